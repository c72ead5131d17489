//! fio 3.33's JSON output as types: every key, in fio's order.
//!
//! Reading is lenient: keys that other versions of fio omit become zero, keys that they add are ignored. A document of
//! fio 3.33 is written exactly as it was read.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::steady_state::SteadyState;

/// A whole output document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// `fio-3.33`, or the name of the writer.
    #[serde(rename = "fio version")]
    pub fio_version: String,
    /// Time of the output, s since 1970.
    #[serde(default)]
    pub timestamp: u64,
    /// Time of the output, ms since 1970.
    #[serde(default)]
    pub timestamp_ms: u64,
    /// Time of the output as text, `Fri Nov 20 16:57:40 2026`.
    #[serde(default)]
    pub time: String,
    /// Options of the `[global]` sections; absent without one.
    #[serde(rename = "global options", default, skip_serializing_if = "Option::is_none")]
    pub global_options: Option<IndexMap<String, String>>,
    /// One entry for each process, or for each group with `group_reporting`.
    pub jobs: Vec<Job>,
    /// Statistics of the block devices; absent when fio found none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_util: Option<Vec<DiskUtil>>,
}

/// One process, or one group of processes with `group_reporting`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Name of the (first) job.
    pub jobname: String,
    /// fio's group number.
    pub groupid: u32,
    /// errno of the first failure, 0 if there was none.
    pub error: i32,
    /// Remaining time, s; 0 when finished.
    pub eta: u64,
    /// Whole seconds since fio's start, plus one.
    pub elapsed: u64,
    /// Options of the (first) job's own section.
    #[serde(rename = "job options")]
    pub job_options: IndexMap<String, String>,
    /// Reads.
    #[serde(default = "DirectionStats::absent", skip_serializing_if = "DirectionStats::is_absent")]
    pub read: DirectionStats,
    /// Writes.
    #[serde(default = "DirectionStats::absent", skip_serializing_if = "DirectionStats::is_absent")]
    pub write: DirectionStats,
    /// Trims.
    #[serde(default = "DirectionStats::absent", skip_serializing_if = "DirectionStats::is_absent")]
    pub trim: DirectionStats,
    /// All directions combined, with `unified_rw_reporting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed: Option<DirectionStats>,
    /// fsyncs.
    pub sync: SyncStats,
    /// Runtimes of the processes, summed, ms.
    pub job_runtime: u64,
    /// User CPU time, percent of `job_runtime`.
    pub usr_cpu: f64,
    /// System CPU time, percent of `job_runtime`.
    pub sys_cpu: f64,
    /// Context switches.
    pub ctx: u64,
    /// Major page faults.
    pub majf: u64,
    /// Minor page faults.
    pub minf: u64,
    /// Submissions by the resulting depth, percent of the I/Os (fsyncs are added on top).
    pub iodepth_level: IndexMap<String, f64>,
    /// Submission batches by size, percent.
    pub iodepth_submit: IndexMap<String, f64>,
    /// Completion batches by size, percent.
    pub iodepth_complete: IndexMap<String, f64>,
    /// Completion latencies below 1 us, percent of the I/Os.
    pub latency_ns: IndexMap<String, f64>,
    /// Completion latencies from 1 us to 1 ms, percent of the I/Os.
    pub latency_us: IndexMap<String, f64>,
    /// Completion latencies from 1 ms, percent of the I/Os.
    pub latency_ms: IndexMap<String, f64>,
    /// Number of errors, with `continue_on_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_err: Option<u64>,
    /// errno of the first error, with `continue_on_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<i32>,
    /// Depth found by `latency_target`; otherwise `iodepth`.
    pub latency_depth: u32,
    /// `latency_target`, ns.
    pub latency_target: u64,
    /// `latency_percentile`.
    pub latency_percentile: f64,
    /// `latency_window`, us.
    pub latency_window: u64,
    /// `description`, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desc: Option<String>,
    /// Steady-state detection, if used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steadystate: Option<SteadyState>,
}

/// One direction of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectionStats {
    /// Reported only as a part of [`Job::mixed`].
    #[serde(skip)]
    pub is_absent: bool,
    /// Bytes moved.
    pub io_bytes: u64,
    /// KiB moved.
    pub io_kbytes: u64,
    /// Bandwidth, B/s.
    pub bw_bytes: u64,
    /// Bandwidth, KiB/s.
    pub bw: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Longest runtime of the processes that did I/O, ms.
    pub runtime: u64,
    /// I/Os completed.
    pub total_ios: u64,
    /// I/Os that were cut short.
    pub short_ios: u64,
    /// I/Os that were dropped.
    pub drop_ios: u64,
    /// Submission latency.
    pub slat_ns: LatencyStats,
    /// Completion latency.
    pub clat_ns: LatencyStats,
    /// Total latency.
    pub lat_ns: LatencyStats,
    /// Latency by priority, if several were used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prios: Option<Vec<PriorityStats>>,
    /// Smallest sample of the bandwidth, KiB/s.
    pub bw_min: u64,
    /// Largest sample of the bandwidth, KiB/s.
    pub bw_max: u64,
    /// Mean bandwidth, percent of the whole group's.
    pub bw_agg: f64,
    /// Mean of the samples of the bandwidth, KiB/s.
    pub bw_mean: f64,
    /// Standard deviation of the samples of the bandwidth, KiB/s.
    pub bw_dev: f64,
    /// Number of samples of the bandwidth.
    pub bw_samples: u64,
    /// Smallest sample of the IOPS.
    pub iops_min: u64,
    /// Largest sample of the IOPS.
    pub iops_max: u64,
    /// Mean of the samples of the IOPS.
    pub iops_mean: f64,
    /// Standard deviation of the samples of the IOPS.
    pub iops_stddev: f64,
    /// Number of samples of the IOPS.
    pub iops_samples: u64,
    /// Page-cache hits in percent, from engines that report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cachehit: Option<f64>,
}

/// A distribution of latencies, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyStats {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Number of values.
    #[serde(rename = "N")]
    pub count: u64,
    /// Latency by percentile (`99.000000`), if enabled and if there was any I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile: Option<IndexMap<String, u64>>,
    /// Count by bin (its midpoint in ns), json+ only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bins: Option<IndexMap<String, u64>>,
}

/// Latencies of the I/Os of one priority: completion latencies, or total ones with `lat_percentiles=1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PriorityStats {
    /// Class: 0 none, 1 real time, 2 best effort, 3 idle.
    pub prioclass: u8,
    /// Level, 0 (highest) to 7.
    pub prio: u8,
    /// Completion latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clat_ns: Option<LatencyStats>,
    /// Total latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lat_ns: Option<LatencyStats>,
}

impl DirectionStats {
    /// A direction that is not reported separately.
    #[must_use]
    pub fn absent() -> DirectionStats {
        DirectionStats { is_absent: true, ..DirectionStats::default() }
    }

    fn is_absent(&self) -> bool {
        self.is_absent
    }
}

/// fsyncs of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncStats {
    /// Number of fsyncs; as in fio without `fdatasync`.
    pub total_ios: u64,
    /// The latency of fsync and fdatasync.
    pub lat_ns: LatencyStats,
}

/// Statistics of a block device over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskUtil {
    /// Device name.
    pub name: String,
    /// Reads completed.
    pub read_ios: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Reads merged.
    pub read_merges: u64,
    /// Writes merged.
    pub write_merges: u64,
    /// Time of all reads, ms.
    pub read_ticks: u64,
    /// Time of all writes, ms.
    pub write_ticks: u64,
    /// Time of all requests, ms.
    pub in_queue: u64,
    /// Time with a request in flight, percent.
    pub util: f64,
    /// The sums over the underlying devices, only for stacked devices.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateDiskUtil>,
}

/// Statistics summed over the underlying devices of a stacked device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AggregateDiskUtil {
    /// Reads completed.
    pub aggr_read_ios: u64,
    /// Writes completed.
    pub aggr_write_ios: u64,
    /// Reads merged.
    pub aggr_read_merges: u64,
    /// Writes merged. fio has the name without an s.
    pub aggr_write_merge: u64,
    /// Time of all reads, ms.
    pub aggr_read_ticks: u64,
    /// Time of all writes, ms.
    pub aggr_write_ticks: u64,
    /// Time of all requests, ms.
    pub aggr_in_queue: u64,
    /// Time with a request in flight, percent.
    pub aggr_util: f64,
}
