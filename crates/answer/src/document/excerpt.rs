//! An excerpt of a run: a time window in which every request was recorded.

use serde::{Deserialize, Serialize};

/// The life of each request in a window of a run, and the scheduler's dispatch decisions.
///
/// Times are virtual, ns since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Start of the window.
    pub begin_ns: u64,
    /// End of the window for requests.
    pub end_ns: u64,
    /// End of the window for dispatch decisions: later, so that the last requests are explained, too.
    pub answers_end_ns: u64,
    /// Names of the devices, indexed by requests and dispatch decisions.
    pub devices: Vec<String>,
    /// Job names of the processes, indexed by requests and dispatch decisions.
    pub processes: Vec<String>,
    /// The reasons, indexed by requests and dispatch decisions.
    pub reasons: Vec<ExcerptReason>,
    /// The requests that existed within the window, in the order of their start.
    pub requests: Vec<ExcerptRequest>,
    /// The scheduler's dispatch decisions, in the order of time.
    pub answers: Vec<ExcerptAnswer>,
}

/// The reason for a dispatch decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcerptReason {
    /// The reason as a keyword.
    pub reason: String,
    /// The reason as a sentence.
    pub why: String,
}

/// A request. A time is `None` if the request did not reach that point within the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcerptRequest {
    /// The device: index into [`Excerpt::devices`].
    pub device: u32,
    /// The process that submitted it: index into [`Excerpt::processes`]; `None` if it belongs to no process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// `read`, `write`, `flush`, `discard` or `write_zeroes`.
    pub op: String,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Final length in sectors, merges included.
    pub sectors: u32,
    /// When its bio was submitted: until `made_ns` it waited for a free tag or a throttle limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ns: Option<u64>,
    /// When the request was allocated.
    pub made_ns: u64,
    /// When it was inserted into the scheduler, or into a software queue without one. `None` if it was issued directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inserted_ns: Option<u64>,
    /// When the scheduler dispatched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_ns: Option<u64>,
    /// Why the scheduler dispatched it: index into [`Excerpt::reasons`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<u32>,
    /// When it was issued to the device, the last time if it was requeued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_ns: Option<u64>,
    /// When the device completed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// Whether it was merged into another request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absorbed: bool,
}

/// A dispatch decision of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcerptAnswer {
    /// When dispatch was called.
    pub at_ns: u64,
    /// The device: index into [`Excerpt::devices`].
    pub device: u32,
    /// The dispatched request: index into [`Excerpt::requests`]; `None` if there was none or it is not in the excerpt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u32>,
    /// The process of the dispatched request; `None` if there was none or it belongs to no process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Whether a request was dispatched.
    pub gave: bool,
    /// The reason: index into [`Excerpt::reasons`].
    pub reason: u32,
}
