//! Statistics of a block device after a run, as in `/sys/block/DEV/stat` and `io.stat`.
//!
//! Used by: crates `engine`, `sim`, `experiment`, `answer`.
//! Tests: `crates/sim/tests/statistics.rs`.

use serde::{Deserialize, Serialize};

use crate::fio::DiskUtil;

/// The statistics of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskSummary {
    /// The load's file for this device.
    pub file: String,
    /// The content of `/sys/block/DEV/stat`, with the fields of the simulated kernel.
    pub stat: String,
    /// Completed reads.
    pub read_ios: u64,
    /// Merged reads.
    pub read_merges: u64,
    /// Total time of all reads, ms.
    pub read_ms: u64,
    /// Completed writes.
    pub write_ios: u64,
    /// Merged writes.
    pub write_merges: u64,
    /// Total time of all writes, ms.
    pub write_ms: u64,
    /// Total time of all requests, ms.
    pub in_queue_ms: u64,
    /// Time with a request in flight, percent, as the kernel counts it.
    pub util_percent: f64,
    /// Number of times that the scheduler had a choice: it held several requests, or held requests back. `None` in documents
    /// of versions that did not count this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<u64>,
    /// The I/O of each cgroup, including its descendants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<CgroupIoSummary>,
}

/// The I/O that a cgroup has submitted to a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupIoSummary {
    /// The cgroup's path.
    pub cgroup: String,
    /// The fields of the cgroup's `io.stat`.
    pub io_stat: String,
}

/// The I/O of one kind on a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskIos {
    /// Completed requests.
    pub ios: u64,
    /// Merged requests.
    pub merges: u64,
    /// Total time of requests, ns.
    pub nanos: u64,
}

/// Times of a device during a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskTimes {
    /// Total time of requests, ms.
    pub in_queue_ms: u64,
    /// Time with a request in flight, ms.
    pub busy_ms: u64,
    /// Duration of the run, ns.
    pub passed_ns: u64,
}

impl DiskSummary {
    /// The summary of the device behind a file, from its `stat` and counters; without cgroups.
    #[must_use]
    pub fn of(file: &str, stat: String, [reads, writes]: [DiskIos; 2], times: DiskTimes, choices: u64) -> DiskSummary {
        DiskSummary {
            file: file.to_owned(),
            stat,
            read_ios: reads.ios,
            read_merges: reads.merges,
            read_ms: reads.nanos / 1_000_000,
            write_ios: writes.ios,
            write_merges: writes.merges,
            write_ms: writes.nanos / 1_000_000,
            in_queue_ms: times.in_queue_ms,
            util_percent: (times.busy_ms as f64 * 1e8 / times.passed_ns.max(1) as f64).min(100.0),
            choices: Some(choices),
            cgroups: Vec::new(),
        }
    }

    /// The statistics in fio's format.
    #[must_use]
    pub fn as_fio(&self) -> DiskUtil {
        DiskUtil {
            name: self.file.rsplit('/').next().unwrap_or_default().to_owned(),
            read_ios: self.read_ios,
            write_ios: self.write_ios,
            read_merges: self.read_merges,
            write_merges: self.write_merges,
            read_ticks: self.read_ms,
            write_ticks: self.write_ms,
            in_queue: self.in_queue_ms,
            util: self.util_percent,
            aggregate: None,
        }
    }
}
