//! Figures in fio's JSON output.
//!
//! Used by: `device`, `fit`.
//! Tests: `crates/hoistway/tests/machine/calibrate.rs`.

use serde_json::Value;

/// The results of a job in fio's document, for reads and writes together.
pub(crate) struct JobFigures {
    /// I/Os per second.
    pub(crate) iops: f64,
    /// Mean of the total latency, us.
    pub(crate) mean_us: f64,
    /// Bytes transferred.
    pub(crate) bytes: u64,
}

impl JobFigures {
    /// The results of a job; missing values are 0.
    pub(crate) fn of(job: &Value) -> Self {
        let by_direction = |path: &str| {
            ["read", "write"]
                .map(|direction| job.pointer(&format!("/{direction}/{path}")).and_then(Value::as_f64).unwrap_or(0.0))
        };
        let sum = |path: &str| by_direction(path).iter().sum::<f64>();
        let (ios, means) = (by_direction("total_ios"), by_direction("lat_ns/mean"));
        let mean_ns = (ios[0] * means[0] + ios[1] * means[1]) / (ios[0] + ios[1]).max(1.0);
        JobFigures { iops: sum("iops"), mean_us: mean_ns / 1e3, bytes: sum("io_bytes") as u64 }
    }
}
