//! The demand of a job, as its load defines it.

use serde::{Deserialize, Serialize};

/// Properties of a job that its measured figures do not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobDemand {
    /// Maximum I/Os in flight per process.
    pub depth: u32,
    /// Rate limit of all its processes together, I/Os a second; `None` if no limit is set.
    pub asked_iops: Option<f64>,
    /// I/O weight that was set for its cgroup, or for its guest on the host; `None` if none was set.
    pub weight: Option<u32>,
    /// Whether it pauses between I/Os.
    pub thinks: bool,
    /// Whether it waits until its writes are durable.
    pub syncs: bool,
    /// Whether its I/O has the real-time class.
    pub is_realtime: bool,
    /// Whether its I/O has the idle class: it is meant to get only what others leave.
    pub is_idle: bool,
    /// Whether it ends after a fixed amount of I/O.
    pub ends: bool,
    /// Whether its I/O goes through the page cache.
    pub is_buffered: bool,
}
