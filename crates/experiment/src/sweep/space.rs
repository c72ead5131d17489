//! The space of a sweep: its axes, and what all runs have in common.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::named;
use crate::comparison::{Comparison, Devices, Load, Profile};

/// A product: every load on every device, kernel and host, under every scheduler with each of its settings, with each seed.
///
/// An axis that is left out has one value, the default of a [`Comparison`]; but schedulers must be named, as each run has one.
/// Fields are named as in a comparison.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Space {
    /// The loads. In a text, a word stands for a scenario or a job file.
    #[serde(deserialize_with = "named::loads")]
    pub loads: Vec<Load>,
    /// The devices. In a text, a word stands for the device of every file.
    #[serde(deserialize_with = "named::devices")]
    pub devices: Vec<Devices>,
    /// The kernels.
    pub kernels: Vec<String>,
    /// The hosts.
    pub hosts: Vec<Profile>,
    /// The schedulers, one per run: names, or `default`.
    pub schedulers: Vec<String>,
    /// The schedulers of guests, one per run, if the loads run in guests.
    pub guest_schedulers: Vec<String>,
    /// Values of tunables, by scheduler and name, and of files of `queue/`, by the word `queue` and file. A scheduler runs with
    /// each combination of its own settings and those of `queue`.
    pub settings: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    /// The seeds.
    pub seeds: Seeds,
    /// Whether to measure as fio does, each job from its start to its end, rather than the time in which all jobs run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_start: bool,
    /// All other fields. It must not contain an axis, or a field that concerns several runs together.
    pub base: Comparison,
}

/// A value for a tunable or a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct Value(pub String);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a whole number or a text")]
        enum Written {
            Number(i64),
            Text(String),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Number(number) => Value(number.to_string()),
            Written::Text(text) => Value(text),
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The seeds of a space.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of seeds, or a list of seeds")]
pub enum Seeds {
    /// This number of seeds, drawn from the seed of [`Space::base`], which is the first: the same as for the repeats of
    /// a comparison.
    Count(u32),
    /// Exactly these seeds.
    List(Vec<u64>),
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds::Count(1)
    }
}
