//! What a preset says about its own numbers: where they come from and how far off the model is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The `[calibration]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The measurements that the parameters were adjusted to. Predictions of these are not predictions.
    pub on: String,
    /// For which loads the model may be believed.
    pub valid_range: String,
    /// How the calibrated model compares with what it was calibrated on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<Residual>,
    /// Where each parameter comes from, by its key with the section: `ssd.flash_read_us`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
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
