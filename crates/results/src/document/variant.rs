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
}

impl RunVariant {
    /// A scheduler with these settings.
    #[must_use]
    pub fn new(scheduler: &str, settings: Map<String, Value>) -> Self {
        let mut label = scheduler.to_owned();
        for (name, value) in &settings {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            label += &format!(" {name}={text}");
        }
        Self { label, settings }
    }
}
