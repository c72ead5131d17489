//! What tells runs of one scheduler apart.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A scheduler with settings that are compared with each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunVariant {
    /// The scheduler with these settings: `bfq`, `bfq kernel=4.19`. Unique among the runs of a repeat.
    pub label: String,
    /// What differs between runs of the scheduler, by name; what is the same for all is not in it.
    pub settings: Map<String, Value>,
    /// Whether settings of the scheduler are compared, and these are what it has anyway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

/// Names in [`RunVariant::settings`] that tell where a run took place; all others are tunables and files of `queue/`.
const PLACES: [&str; 3] = ["device", "host", "kernel"];

impl RunVariant {
    /// A scheduler with these settings.
    #[must_use]
    pub fn new(scheduler: &str, settings: Map<String, Value>) -> Self {
        let mut label = scheduler.to_owned();
        for (name, value) in &settings {
            label += &format!(" {name}={}", value_text(value));
        }
        Self { label, settings, is_default: false }
    }

    /// The settings that can be changed on a host: all but those that say where it took place.
    pub fn knobs(&self) -> Map<String, Value> {
        let is_knob = |(name, _): &(&String, &Value)| !PLACES.contains(&name.as_str());
        self.settings.iter().filter(is_knob).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether it is what its scheduler has anyway, beside others of this scheduler or alone.
    pub fn is_usual(&self) -> bool {
        self.is_default || self.knobs().is_empty()
    }
}

/// A setting's value as it was written.
#[must_use]
pub fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
