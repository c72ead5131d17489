//! What configurations set in `queue/`.

use serde::Serialize;

/// Whether a setting is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Each time that the rules run for the device.
    Certain,
    /// If conditions hold that cannot be seen in files.
    Possible,
}

/// A file of `queue/` that a configuration sets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// The device.
    pub device: String,
    /// The file below `queue/`, such as `scheduler`.
    pub file: String,
    /// What is written.
    pub value: String,
    /// What writes it: `udev` or `tuned`.
    pub by: &'static str,
    /// The file with the rule or profile.
    pub source: String,
    /// The line there, from 1.
    pub line: usize,
    /// Whether it is written.
    pub certainty: Certainty,
}
