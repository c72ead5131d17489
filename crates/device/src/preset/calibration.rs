//! What a preset says about its own numbers: where they come from and how far off the model is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The `[calibration]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The measurements that the parameters were adjusted to. Predictions of these are not predictions.
    pub on: String,
    /// For which loads the model may be believed, for people.
    pub valid_range: String,
    /// Nothing of it was compared with a device: its numbers are from data sheets, or assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The same as `valid_range` for programs, if it can be said in these terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<CalibratedRange>,
    /// How the calibrated model compares with what it was calibrated on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<Residual>,
    /// Where each parameter comes from, by its key with the section: `ssd.flash_read_us`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

/// The loads that a model was compared with a device on; `[least, most]`, both included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedRange {
    /// Sizes of I/Os, bytes.
    pub io_bytes: [u32; 2],
    /// I/Os outstanding at once.
    pub outstanding: [u32; 2],
    /// Share of reads among reads and writes, percent.
    pub reads_percent: [u32; 2],
    /// Whether sequential I/O is in it, and not random I/O alone.
    #[serde(default)]
    pub sequential: bool,
    /// Whether flushes are in it.
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

/// One figure that entered the calibration.
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
    /// How far the model is off, percent of the measured figure; positive if the model's figure is greater.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        (self.model / self.measured - 1.0) * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_too_fast_is_off_by_a_positive_part_of_what_was_measured() {
        let off = |measured, model| Residual { what: "IOPS".to_owned(), measured, model }.error_percent();
        assert!((off(200.0, 250.0) - 25.0).abs() < 1e-9 && (off(200.0, 150.0) + 25.0).abs() < 1e-9);
        assert_eq!(off(200.0, 200.0), 0.0);
    }
}
