//! What a job asks for, as the load says it.

use serde::{Deserialize, Serialize};

/// What the figures of a job do not say about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobDemand {
    /// I/Os that each process keeps in flight at most.
    pub depth: u32,
    /// I/Os a second that all its processes ask for together; None if nothing limits their rate.
    pub asked_iops: Option<f64>,
    /// Whether it pauses between its I/Os.
    pub thinks: bool,
    /// Whether it waits until its writes are durable.
    pub syncs: bool,
    /// Whether its I/O has the real-time class.
    pub is_realtime: bool,
    /// Whether it ends by itself, after an amount of I/O.
    pub ends: bool,
    /// Whether its I/O passes the page cache.
    pub is_buffered: bool,
}
