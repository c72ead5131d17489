//! A window of a run in which every request was recorded.

use serde::{Deserialize, Serialize};

/// What happened to each request in a part of a run, and what the scheduler answered meanwhile.
///
/// Times are virtual ones since the beginning of the run, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// When it begins.
    pub begin_ns: u64,
    /// Until when all requests are in it.
    pub end_ns: u64,
    /// Until when all answers are in it: later, so that the last requests can be explained, too.
    pub answers_end_ns: u64,
    /// The devices, by the number that requests and answers give.
    pub devices: Vec<String>,
    /// The jobs of the processes, by the number that requests and answers give.
    pub processes: Vec<String>,
    /// The reasons that answers have.
    pub reasons: Vec<ExcerptReason>,
    /// The requests that were there between its begin and its end, in the order of their beginning.
    pub requests: Vec<ExcerptRequest>,
    /// What the scheduler answered when it was asked for a request, in the order of time.
    pub answers: Vec<ExcerptAnswer>,
}

/// Why a scheduler answered as it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcerptReason {
    /// As a word.
    pub reason: String,
    /// As a sentence.
    pub why: String,
}

/// A request. A time is None if it was not reached, or was after all that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcerptRequest {
    /// Its device.
    pub device: u32,
    /// Whose it is; None if it belongs to no process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// `read`, `write`, `flush`, `discard` or `write_zeroes`.
    pub op: String,
    /// Where it begins, in 512 bytes.
    pub sector: u64,
    /// How long it is in the end, in 512 bytes: with what has joined it.
    pub sectors: u32,
    /// When its I/O came in: before `begin_ns` it waited for a free request, or for a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ns: Option<u64>,
    /// When the request was made.
    pub made_ns: u64,
    /// When it went into the scheduler, or without one into a software queue. None if it went to the device at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inserted_ns: Option<u64>,
    /// When the scheduler gave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_ns: Option<u64>,
    /// Why it did: index into the reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<u32>,
    /// When it went to the device, the last time if that was more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_ns: Option<u64>,
    /// When it ended there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// Whether it joined another request instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absorbed: bool,
}

/// What a scheduler answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcerptAnswer {
    /// When.
    pub at_ns: u64,
    /// The device that it was asked for.
    pub device: u32,
    /// The request that it gave out, if that is in the excerpt: index into the requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u32>,
    /// Whose request it gave out; None if that is no process's, or there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Whether it gave one out.
    pub gave: bool,
    /// Why: index into the reasons.
    pub reason: u32,
}
