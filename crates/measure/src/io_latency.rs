//! What `io.latency` did on a device in a run.
//!
//! Used by: crates `answer`, `sim`.
//! Tests: `crates/sim/tests/io_latency.rs`.

use serde::{Deserialize, Serialize};

/// What `io.latency` did on a device, from the start of the run including ramps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoLatencySummary {
    /// The file of the load that is the device.
    pub disk: String,
    /// Each cgroup of the load.
    pub groups: Vec<IoLatencyGroup>,
}

/// What a cgroup has in `io.stat` at the end of the run, and what happened to it on a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoLatencyGroup {
    /// Its path.
    pub cgroup: String,
    /// `io.latency` of it, us; 0 for no target.
    pub target_us: u32,
    /// I/Os that it may have outstanding at the end; `None` for no limit (`max`).
    pub depth: Option<u32>,
    /// Moving average of the latencies of its I/Os and of those of groups below it, us.
    pub avg_lat_us: f64,
    /// Length of its window, ms.
    pub win_ms: f64,
    /// I/Os that passed although it was at its depth, and for which it was not delayed yet.
    pub use_delay: u32,
    /// The delay that it owes for them, us.
    pub delay_us: f64,
    /// The lowest depth that it had; `None` if it never had a limit.
    pub lowest_depth: Option<u32>,
    /// Windows that ended.
    pub windows: u64,
    /// Of these, windows that missed the target.
    pub missed: u64,
    /// Time in which at least one of its own bios waited, ms.
    pub throttled_ms: f64,
    /// Its own bios that waited.
    pub delayed: u64,
}
