//! What `io.cost` did on a device in a run.
//!
//! Used by: crates `answer`, `sim`.
//! Tests: `crates/sim/tests/io_cost.rs`.

use serde::{Deserialize, Serialize};

/// What `io.cost` did on a device, from the start of the run including ramps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoCostSummary {
    /// The file of the load that is the device.
    pub disk: String,
    /// `io.cost.qos` of the device, as a write after its number.
    pub qos: String,
    /// `io.cost.model` of the device, likewise.
    pub model: String,
    /// How fast device time passed in the mean (vrate), percent of the model.
    pub mean_rate_percent: f64,
    /// Each cgroup of the load, without its descendants.
    pub groups: Vec<IoCostGroup>,
}

/// What a cgroup spent and waited on a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoCostGroup {
    /// Its path.
    pub cgroup: String,
    /// Its `io.weight`.
    pub weight: u32,
    /// Device time of its bios by the model, ms.
    pub device_time_ms: f64,
    /// Time in which at least one of its bios waited, ms.
    pub throttled_ms: f64,
    /// Bios that waited.
    pub delayed: u64,
}
