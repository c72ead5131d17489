//! A preset's statements about its own numbers: their sources, and the errors of the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The `[calibration]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The measurements that the parameters were fitted to. Results for these are not predictions.
    pub on: String,
    /// The loads for which the model is valid, as text.
    pub valid_range: String,
    /// The name of the host profile that the parameters were fitted with: predictions for that machine need the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The release of Linux that was measured and simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether nothing was compared with a device: all numbers are from data sheets, or assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The same as `valid_range` in machine-readable form, if possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<CalibratedRange>,
    /// The errors of the calibrated model for its calibration measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<Residual>,
    /// The source of each parameter, by its key with the section: `ssd.flash_read_us`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

/// The loads for which a model was compared with a device; `[least, most]`, both included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedRange {
    /// Sizes of I/Os, bytes.
    pub io_bytes: [u32; 2],
    /// I/Os outstanding at once.
    pub outstanding: [u32; 2],
    /// Share of reads among reads and writes, percent.
    pub reads_percent: [u32; 2],
    /// Whether sequential I/O is included, not only random I/O.
    #[serde(default)]
    pub sequential: bool,
    /// Whether flushes are included.
    #[serde(default)]
    pub flushes: bool,
}

impl std::fmt::Display for CalibratedRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let order = if self.sequential { "random and sequential" } else { "random" };
        let flushes = if self.flushes { "with flushes" } else { "without flushes" };
        let ([least, most], [few, many]) = (self.io_bytes, self.outstanding);
        let [low, high] = self.reads_percent;
        write!(
            f,
            "{order} I/O of {least} to {most} bytes, {few} to {many} outstanding, {low} to {high} % reads, {flushes}"
        )
    }
}

/// One figure of the calibration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// What was measured, with its unit.
    pub what: String,
    /// The figure of the real device.
    pub measured: f64,
    /// The figure of the model.
    pub model: f64,
}

impl Residual {
    /// The error of the model in percent of the measured figure; positive if the model's figure is greater.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        (self.model / self.measured - 1.0) * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_percent_is_positive_for_a_model_that_is_too_fast() {
        let off = |measured, model| Residual { what: "IOPS".to_owned(), measured, model }.error_percent();
        assert!((off(200.0, 250.0) - 25.0).abs() < 1e-9 && (off(200.0, 150.0) + 25.0).abs() < 1e-9);
        assert_eq!(off(200.0, 200.0), 0.0);
    }
}
