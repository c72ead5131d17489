//! A setting of `queue/` in a configuration of udev or tuned.

use serde::Serialize;

/// Whether a configuration really writes a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Always, when the rules run for the device.
    Certain,
    /// Only under conditions that files do not show.
    Possible,
}

/// A file of `queue/` that a configuration sets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// The device.
    pub device: String,
    /// The file below `queue/`, such as `scheduler`.
    pub file: String,
    /// The value.
    pub value: String,
    /// The program that writes it: `udev` or `tuned`.
    pub by: &'static str,
    /// The file with the rule or profile.
    pub source: String,
    /// The line in that file, from 1.
    pub line: usize,
    /// Whether it is written.
    pub certainty: Certainty,
}
