//! A recording of block I/O that was the load: what it holds, how well the model repeats it, and what it leaves open.

use serde::{Deserialize, Serialize};

use hoistway_measure::Operation;

use super::{Change, SeriesSummary};
use crate::figure_name::FigureName;

/// A recording that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingSummary {
    /// Its format.
    pub format: String,
    /// The device that it is of, as `8,0`.
    pub device: String,
    /// Time from its first event to its last, s.
    pub seconds: f64,
    /// I/Os of the device.
    pub ios: u64,
    /// How it was replayed: `recorded-program`, `timed` or `fast`.
    pub mode: String,
    /// Gaps were divided by it.
    pub speed: f64,
    /// How often each stream ran.
    pub copies: u32,
    /// Scheduler that it was recorded under.
    pub recorded_under: Option<String>,
    /// Whether that is a guess.
    pub is_guess: bool,
    /// Jobs of the replay, with most I/Os first.
    pub streams: Vec<RecordedStream>,
    /// The recording beside its replay under its own scheduler.
    pub self_check: Vec<SelfCheck>,
    /// Programs that the recording allows as well.
    pub alternatives: Vec<AlternativeProgram>,
    /// What is recommended, part by part of the recording's time; none if nothing else than the reference is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartsCheck>,
}

/// The streams of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedStream {
    /// The name of the task, and of the job.
    pub name: String,
    /// Tasks.
    pub tasks: u64,
    /// I/Os.
    pub ios: u64,
    /// Reads.
    pub reads: u64,
    /// Writes, without flushes.
    pub writes: u64,
    /// Flushes, and writes with a flush before or behind them.
    pub durable: u64,
    /// Mean size of reads and writes, bytes.
    pub mean_bytes: f64,
    /// `closed`, `open` or `undecided`.
    pub arrival: String,
    /// Median pause between a completion and the next I/O, ns.
    pub think_ns: Option<u64>,
    /// The depth that was seen, where the old queue hid more.
    pub hidden_depth: Option<u32>,
    /// Streams that it waits for.
    pub waits_for: Vec<String>,
    /// How it went when it was recorded, if that can be laid beside the runs: no faster, no copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<RecordedSeries>,
}

/// An operation of a stream over time, as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedSeries {
    /// Reads, or writes with flushes and discards.
    pub operation: Operation,
    /// It begins where the measurement of the runs begins: at 10 % of the recording.
    pub series: SeriesSummary,
}

/// The figure that decides, in parts of equal time: a recording is one sample, and its parts show how much chance is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartsCheck {
    /// The figure: IOPS, or the mean latency for any latency.
    pub figure: FigureName,
    /// What is compared with, by its label.
    pub reference: String,
    /// What is recommended, by its label.
    pub recommended: String,
    /// Parts that have I/Os under both.
    pub parts: u32,
    /// How much better off it is, from the differences of the parts.
    pub change: Change,
    /// Whether the interval excludes both no difference and the smallest effect.
    pub is_beyond_chance: bool,
    /// I/Os of the operation in the recording.
    pub ios: u64,
}

/// An operation of a job, recorded and replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// The job.
    pub job: String,
    /// Reads or writes.
    pub operation: Operation,
    /// I/Os that were recorded.
    pub ios: u64,
    /// Mean time from submission to completion in the recording, ns.
    pub recorded_ns: f64,
    /// The same in the replay, ns.
    pub replayed_ns: f64,
    /// I/Os a second in the recording.
    pub recorded_iops: f64,
    /// The same in the replay.
    pub replayed_iops: f64,
}

impl SelfCheck {
    /// By what fraction the mean of the replay is off.
    #[must_use]
    pub fn off(&self) -> f64 {
        if self.recorded_ns > 0.0 { self.replayed_ns / self.recorded_ns - 1.0 } else { 0.0 }
    }
}

/// A program that the recording allows as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlternativeProgram {
    /// What would be otherwise, as the end of a sentence that begins with "if".
    pub condition: String,
    /// What would settle it.
    pub settled_by: String,
    /// What is best then, by its label; none if nothing can be said.
    pub recommended: Option<String>,
    /// The figures of each job then.
    pub figures: Vec<AlternativeFigures>,
}

/// Figures of an operation of a job under one scheduler, in an alternative program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlternativeFigures {
    /// The label of the row.
    pub label: String,
    /// The job.
    pub job: String,
    /// The operation.
    pub operation: Operation,
    /// I/Os a second.
    pub iops: f64,
    /// Mean latency, ns.
    pub mean_ns: f64,
    /// 99th percentile, ns.
    pub p99_ns: f64,
}
