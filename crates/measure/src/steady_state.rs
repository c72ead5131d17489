//! Result of fio's steady-state detection, as in its JSON output.
//!
//! Used by: `fio`, `measurement`; crate `load`.
//! Tests: `crates/load/tests/process.rs`, `crates/measure/tests/fio_output.rs`.

use serde::{Deserialize, Serialize};

/// Result of steady-state detection (`ss=`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// The option's value, normalised.
    pub ss: String,
    /// `ss_dur`, s.
    pub duration: u64,
    /// 1 if the steady state was reached.
    pub attained: u8,
    /// The value that was compared with the limit, with its unit.
    pub criterion: String,
    /// Largest deviation from the mean.
    pub max_deviation: f64,
    /// Slope of the line through the samples.
    pub slope: f64,
    /// The samples.
    pub data: SteadyStateData,
}

/// Samples of steady-state detection, one a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyStateData {
    /// Mean bandwidth, B/s.
    pub bw_mean: u64,
    /// Mean IOPS.
    pub iops_mean: u64,
    /// IOPS samples.
    pub iops: Vec<u64>,
    /// Bandwidth samples, B/s.
    pub bw: Vec<u64>,
}
