//! The measurements of a process in a simulation or a real run: raw counts, in fio's buckets.
//!
//! Used by: `fio`; crates `load`, `engine`, `sim`, `experiment`, `answer` and others.
//! Tests: below, `crates/measure/tests/fio_output.rs`.

use serde::{Deserialize, Serialize};

use crate::direction::Direction;
use crate::histogram::LatencyHistogram;
use crate::io_log::IoLog;
use crate::samples::SampleStats;
use crate::series::Series;
use crate::steady_state::SteadyState;

/// All measurements of one process, which is one clone of one job.
///
/// A new one has no histogram bins, so thousands of them take little memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessResult {
    /// Name of the job (`name=` or the section's name); clones share it.
    pub name: String,
    /// Index of the job's section in the job file, from 0; clones share it.
    pub job: u32,
    /// fio's group number (`new_group` begins the next), from 0.
    pub group: u32,
    /// Whether fio would report the group instead of the process (`group_reporting`).
    pub group_reporting: bool,
    /// How fio reports the process's directions (`unified_rw_reporting`).
    pub reporting: Reporting,
    /// Options of the job's own section as given, in order; not those of `[global]`.
    pub options: Vec<(String, String)>,
    /// The job's `iodepth`.
    pub iodepth: u32,
    /// The result of the search for a queue depth (`latency_target`), if enabled.
    pub latency_search: Option<LatencySearchResult>,
    /// The result of steady-state detection (`steadystate`), if enabled.
    pub steady_state: Option<Box<SteadyState>>,
    /// From the process's start (after its ramp time) to its last completion, ns.
    pub runtime_ns: u64,
    /// For a stream of a recording, the time from its first I/O to its last completion, ns; `None` if the end of the run cut it off, and
    /// for other processes.
    pub done_ns: Option<u64>,
    /// errno of the first failure; 0 if there was none.
    pub error: i32,
    /// Measurements of reads, writes and trims, in this order.
    pub directions: [DirectionResult; 3],
    /// Measurements of `fsync`, `fdatasync` and the like.
    pub sync: SyncResult,
    /// Depth found at each submission.
    pub depth_levels: DepthLevels,
    /// Size of each batch of submissions.
    pub submit_levels: BatchLevels,
    /// Size of each batch of completions.
    pub complete_levels: BatchLevels,
    /// CPU time and the like; zero when CPUs are not modelled.
    pub cpu: CpuUsage,
    /// The process's I/Os for fio's log files; `None` unless logs are enabled.
    pub log: Option<Box<IoLog>>,
}

impl ProcessResult {
    /// The measurements of one direction.
    pub fn direction(&self, direction: Direction) -> &DirectionResult {
        &self.directions[direction as usize]
    }

    /// The mutable measurements of one direction.
    #[inline]
    pub fn direction_mut(&mut self, direction: Direction) -> &mut DirectionResult {
        &mut self.directions[direction as usize]
    }

    /// I/Os completed in all directions; fsyncs are not counted.
    pub fn total_ios(&self) -> u64 {
        self.directions.iter().map(|direction| direction.ios).sum()
    }
}

/// The parameters and result of a search for the largest queue depth that meets a latency target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencySearchResult {
    /// The depth that was found.
    pub depth: u32,
    /// `latency_target`, ns.
    pub target_ns: u64,
    /// `latency_window`, ns.
    pub window_ns: u64,
    /// `latency_percentile`.
    pub percentile: f64,
}

/// Measurements of one direction of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionResult {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Submission latency: from the I/O's creation to its submission. fio leaves it empty for synchronous engines.
    pub slat: LatencyHistogram,
    /// Completion latency: from submission to completion.
    pub clat: LatencyHistogram,
    /// Total latency: from creation to completion.
    pub lat: LatencyHistogram,
    /// Total latencies of the I/Os that were still in flight at the end of the runtime, if any.
    pub outstanding: Option<Box<LatencyHistogram>>,
    /// Samples of the bandwidth, KiB/s.
    pub bandwidth: SampleStats,
    /// Samples of the IOPS.
    pub iops: SampleStats,
    /// I/Os and their total latency over time.
    pub series: Series,
    /// Latencies by I/O priority, if individual I/Os have their own.
    pub prios: Vec<PriorityLatency>,
}

/// Latencies of the I/Os of one priority.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorityLatency {
    /// Class and level, as `ioprio_get` returns them.
    pub ioprio: u16,
    /// Completion latency.
    pub clat: LatencyHistogram,
    /// Total latency.
    pub lat: LatencyHistogram,
}

impl DirectionResult {
    /// The mutable latencies of one priority.
    pub fn priority_mut(&mut self, ioprio: u16) -> &mut PriorityLatency {
        let existing = self.prios.iter().position(|latency| latency.ioprio == ioprio);
        let index = existing.unwrap_or(self.prios.len());
        if existing.is_none() {
            self.prios.push(PriorityLatency { ioprio, ..PriorityLatency::default() });
        }
        &mut self.prios[index]
    }
}

/// Measurements of a process's fsyncs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncResult {
    /// Number of fsyncs, including `fdatasync`.
    pub total_ios: u64,
    /// Number of `fdatasync` calls among them.
    pub of_data: u64,
    /// Latency of all fsyncs.
    pub lat: LatencyHistogram,
}

/// How the directions of a process are reported in fio's JSON: `unified_rw_reporting`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reporting {
    /// Each separately.
    #[default]
    Separate,
    /// All combined.
    Unified,
    /// Both.
    Both,
}

/// CPU usage of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// Time in user mode, ns.
    pub user_ns: u64,
    /// Time in kernel mode, ns.
    pub system_ns: u64,
    /// Context switches.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

/// Submissions by the resulting queue depth, in fio's buckets (`iodepth_level`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthLevels([u64; 7]);

impl DepthLevels {
    /// fio's names of the buckets: the smallest depth of each.
    pub const NAMES: [&'static str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

    /// Counts one submission after which `depth` I/Os were in flight. fsyncs count, too, as in fio.
    #[inline]
    pub fn record(&mut self, depth: u32) {
        let bucket = (depth | 1).ilog2() as usize;
        self.0[bucket.min(6)] += 1;
    }

    /// Adds another process's counts.
    pub fn merge(&mut self, other: &Self) {
        add_counts(&mut self.0, &other.0);
    }

    /// Counts by bucket.
    pub fn counts(&self) -> &[u64; 7] {
        &self.0
    }
}

/// Batches of submissions or completions by their size, in fio's buckets (`iodepth_submit`, `iodepth_complete`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchLevels([u64; 7]);

impl BatchLevels {
    /// fio's names of the buckets: the *largest* size of each (1 to 4 are one bucket), then everything above 64.
    pub const NAMES: [&'static str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

    /// Counts one batch of `size` I/Os; 0 for a call that found nothing.
    #[inline]
    pub fn record(&mut self, size: u32) {
        let bucket = match size {
            0 => 0,
            1..=4 => 1,
            // 5..=8 -> 2, 9..=16 -> 3, ...
            _ => (size - 1).ilog2() as usize,
        };
        self.0[bucket.min(6)] += 1;
    }

    /// Adds another process's counts.
    pub fn merge(&mut self, other: &Self) {
        add_counts(&mut self.0, &other.0);
    }

    /// Counts by bucket.
    pub fn counts(&self) -> &[u64; 7] {
        &self.0
    }
}

fn add_counts(counts: &mut [u64; 7], others: &[u64; 7]) {
    for (count, other) in counts.iter_mut().zip(others) {
        *count += other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_fall_into_the_bucket_named_by_its_smallest() {
        let bucket = |depth| {
            let mut levels = DepthLevels::default();
            levels.record(depth);
            DepthLevels::NAMES[levels.counts().iter().position(|&count| count == 1).unwrap()]
        };
        for (depth, name) in
            [(0, "1"), (1, "1"), (2, "2"), (3, "2"), (4, "4"), (31, "16"), (32, "32"), (63, "32"), (64, ">=64")]
        {
            assert_eq!(bucket(depth), name, "depth {depth}");
        }
        assert_eq!(bucket(u32::MAX), ">=64");
    }

    #[test]
    fn batches_fall_into_the_bucket_named_by_its_largest() {
        let bucket = |size| {
            let mut levels = BatchLevels::default();
            levels.record(size);
            BatchLevels::NAMES[levels.counts().iter().position(|&count| count == 1).unwrap()]
        };
        for (size, name) in [
            (0, "0"),
            (1, "4"),
            (4, "4"),
            (5, "8"),
            (8, "8"),
            (9, "16"),
            (32, "32"),
            (33, "64"),
            (64, "64"),
            (65, ">=64"),
        ] {
            assert_eq!(bucket(size), name, "size {size}");
        }
        assert_eq!(bucket(u32::MAX), ">=64");
    }

    #[test]
    fn a_new_process_holds_no_bins() {
        assert!(size_of::<ProcessResult>() < 2176, "{}", size_of::<ProcessResult>());
    }
}
