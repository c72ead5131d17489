//! A replayed recording in the result document: its contents, the accuracy of the replay, and alternative readings.

use serde::{Deserialize, Serialize};

use hoistway_measure::Operation;

use super::SeriesSummary;

/// A recording that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingSummary {
    /// The recording's file format.
    pub format: String,
    /// The recorded device, as `8,0` (major, minor).
    pub device: String,
    /// Time from its first event to its last, s.
    pub seconds: f64,
    /// I/Os of the device.
    pub ios: u64,
    /// Replay mode: `recorded-program`, `timed` or `fast`.
    pub mode: String,
    /// Speed-up: the recorded gaps were divided by it.
    pub speed: f64,
    /// Number of copies of each stream that ran.
    pub copies: u32,
    /// Scheduler that was active during the recording; `None` if unknown.
    pub recorded_under: Option<String>,
    /// Whether `recorded_under` is a guess.
    pub is_guess: bool,
    /// Jobs of the replay, the one with the most I/Os first.
    pub streams: Vec<RecordedStream>,
    /// The recorded figures and those of a replay under the recording's own scheduler.
    pub self_check: Vec<SelfCheck>,
    /// By what factor the device model is off on the recorded requests themselves, as many at a time as then; `None` if the recording shows
    /// too few from their issue to their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_off_factor: Option<f64>,
    /// Whether the device model was chosen by the recording, or made of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_device_seen: bool,
    /// Other programs that are consistent with the recording.
    pub alternatives: Vec<AlternativeProgram>,
    /// Whether it lacks too much for a verdict.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_too_lossy: bool,
}

/// A replay whose mean latency or rate differs by this factor from the recording is of another program or device.
const MISMATCH_FACTOR: f64 = 1.5;
/// An operation of a job is compared if at least one in this many I/Os is of it.
const IOS_PER_COUNTED: u64 = 20;

impl RecordingSummary {
    /// The operations of jobs, of those with a share in the recording, whose replay differs from it by more than this factor in the mean
    /// latency or in the rate.
    fn off_by(&self, factor: f64) -> impl Iterator<Item = &SelfCheck> {
        let all: u64 = self.self_check.iter().map(|check| check.ios).sum();
        self.self_check.iter().filter(move |check| check.ios * IOS_PER_COUNTED >= all && check.factor() >= factor)
    }

    /// Where the replay under the recorded scheduler is not what was recorded: figures of it say nothing about the recorded machine, and
    /// there is no verdict. Empty if it fits, or if the replay was asked to differ. Of discards device models know too little to be wrong.
    pub fn mismatches(&self) -> impl Iterator<Item = &SelfCheck> {
        let is_as_recorded = self.speed == 1.0 && self.copies == 1;
        let is_modelled = |check: &&SelfCheck| check.operation != Operation::Trim;
        self.off_by(MISMATCH_FACTOR).filter(move |_| is_as_recorded).filter(is_modelled)
    }

    /// Whether the job of this name stands for all tasks that are too small for a job of their own.
    #[must_use]
    pub fn is_rest(&self, job: &str) -> bool {
        self.streams.iter().any(|stream| stream.is_rest && stream.name == job)
    }

    /// Whether the recorded queue may have hidden how many I/Os a stream wanted outstanding.
    #[must_use]
    pub fn hides_depth(&self) -> bool {
        self.streams.iter().any(|stream| stream.hidden_depth.is_some())
    }

    /// Number of recorded I/Os of an operation of a job.
    #[must_use]
    pub fn ios_of(&self, job: &str, operation: Operation) -> u64 {
        let streams = self.streams.iter().filter(|stream| stream.name == job);
        let count = |stream: &RecordedStream| match operation {
            Operation::Read => stream.reads,
            Operation::Trim => stream.discards,
            Operation::Write | Operation::Sync => stream.writes,
        };
        streams.map(count).sum()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The recorded streams with one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedStream {
    /// The name of the task, and of the job.
    pub name: String,
    /// Number of tasks.
    pub tasks: u64,
    /// The task, if it alone has this role among those of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Whether it stands for all tasks that are too small for a job of their own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_rest: bool,
    /// Number of I/Os.
    pub ios: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes, without flushes.
    pub writes: u64,
    /// Number of discards.
    #[serde(skip_serializing_if = "is_zero")]
    pub discards: u64,
    /// Number of flushes, and of writes with a preflush or FUA.
    pub durable: u64,
    /// Mean size of reads and writes, bytes.
    pub mean_bytes: f64,
    /// Arrival model: `closed`, `open` or `undecided`.
    pub arrival: String,
    /// Median pause between a completion and the next I/O, ns.
    pub think_ns: Option<u64>,
    /// Depth observed, if the recorded queue's nr_requests may have limited it.
    pub hidden_depth: Option<u32>,
    /// Streams that it waits for.
    pub waits_for: Vec<String>,
    /// The recorded I/O over time, if it is comparable with the runs: without speed-up or copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<RecordedSeries>,
}

/// An operation of a stream over time, as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedSeries {
    /// Reads, or writes with flushes and discards.
    pub operation: Operation,
    /// The series. Like the measurement of the runs, it starts at 10 % of the recording.
    pub series: SeriesSummary,
}

/// An operation of a job, recorded and replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// The job.
    pub job: String,
    /// Reads, writes (with flushes) or discards.
    pub operation: Operation,
    /// Number of recorded I/Os.
    pub ios: u64,
    /// Mean time from submission to completion in the recording, ns.
    pub recorded_ns: f64,
    /// Mean time from submission to completion in the replay, ns.
    pub replayed_ns: f64,
    /// I/Os a second in the recording.
    pub recorded_iops: f64,
    /// I/Os a second in the replay.
    pub replayed_iops: f64,
}

impl SelfCheck {
    /// The larger of the factors by which the mean latency and the rate of the replay differ from the recording: 1 if they are equal.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let between = |recorded: f64, replayed: f64| {
            let ratio = replayed / recorded;
            if ratio.is_finite() && ratio > 0.0 { ratio.max(ratio.recip()) } else { 1.0 }
        };
        between(self.recorded_ns, self.replayed_ns).max(between(self.recorded_iops, self.replayed_iops))
    }

    /// Relative error of the replay's mean latency: 0.1 means 10 % longer than recorded.
    #[must_use]
    pub fn off(&self) -> f64 {
        if self.recorded_ns > 0.0 { self.replayed_ns / self.recorded_ns - 1.0 } else { 0.0 }
    }
}

/// Another program that is consistent with the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlternativeProgram {
    /// The assumption that differs, as the end of a sentence that begins with "if".
    pub condition: String,
    /// A measurement that would settle it.
    pub settled_by: String,
    /// The label of the variant that is best under this assumption; `None` if undecided.
    pub recommended: Option<String>,
    /// The figures of each job under this assumption.
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
