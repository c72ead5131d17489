//! Variants in the result document: the settings that distinguish runs of one scheduler.
//!
//! Used by: `analysis`, `verdict`; crates `experiment`, `render`.
//! Tests: `crates/answer/tests/document.rs`, `crates/experiment/tests/variants.rs`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What distinguishes a run from others of its scheduler: the settings that vary in the comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLabel {
    /// The scheduler with these settings: `bfq`, `bfq kernel=4.19`. Unique among the runs of a repeat.
    pub label: String,
    /// The settings that differ between runs of the scheduler, by name; settings common to all runs are not included.
    pub settings: Map<String, Value>,
    /// Whether settings of the scheduler are compared and these are its defaults.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

/// Names in [`RunLabel::settings`] that identify the setup of a run; all others are tunables and files of `queue/`.
const SETUP_SETTINGS: [&str; 3] = ["device", "host", "kernel"];

impl RunLabel {
    /// A scheduler with these settings.
    #[must_use]
    pub fn new(scheduler: &str, settings: Map<String, Value>) -> Self {
        let mut label = scheduler.to_owned();
        for (name, value) in &settings {
            label += &format!(" {name}={}", value_text(value));
        }
        Self { label, settings, is_default: false }
    }

    /// The settings that can be changed on a host: all except those that identify the setup.
    pub fn own_settings(&self) -> Map<String, Value> {
        let is_own = |(name, _): &(&String, &Value)| !SETUP_SETTINGS.contains(&name.as_str());
        self.settings.iter().filter(is_own).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether the scheduler has its default settings.
    pub fn has_default_settings(&self) -> bool {
        self.is_default || self.own_settings().is_empty()
    }
}

/// Whether a run under `name` uses this scheduler; with guests, whose names are `GUEST-over-HOST`, whether the host does.
#[must_use]
pub fn uses_scheduler(name: &str, scheduler: &str) -> bool {
    name.strip_suffix(scheduler).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with("-over-"))
}

/// A setting's value as it was written.
#[must_use]
pub fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
