//! What is varied, and what is the same everywhere.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::named;
use crate::comparison::{Comparison, Devices, Load, Profile};

/// A product: every load on every device, kernel and host, under every scheduler with each of its settings, with each seed.
///
/// An axis that is left out has one place, which is that of a [`Comparison`] that says nothing; but schedulers have to be named,
/// as each run is of one. Fields are called as those of a comparison.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Space {
    /// What runs. In texts a word stands for a scenario or a job file.
    #[serde(deserialize_with = "named::loads")]
    pub loads: Vec<Load>,
    /// What it runs on. In texts a word stands for the device of every file.
    #[serde(deserialize_with = "named::devices")]
    pub devices: Vec<Devices>,
    /// The kernels.
    pub kernels: Vec<String>,
    /// The hosts.
    pub hosts: Vec<Profile>,
    /// The schedulers, one a run: names, or `default`.
    pub schedulers: Vec<String>,
    /// Those of guests, one a run, if the loads run in guests.
    pub guest_schedulers: Vec<String>,
    /// Values of tunables, by scheduler and name, and of files of `queue/`, by the word `queue` and file. Runs of a scheduler have
    /// each combination of what is said of it and of the queue.
    pub settings: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    /// The seeds.
    pub seeds: Seeds,
    /// All else. It has none of what is an axis, and nothing that is about several runs together.
    pub base: Comparison,
}

/// What is written to a tunable or a file.
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
#[serde(untagged, expecting = "expected how many seeds there are, or a list of them")]
pub enum Seeds {
    /// So many, drawn from the seed of [`Space::base`], which is the first: those of as many repeats of a comparison.
    Count(u32),
    /// These.
    List(Vec<u64>),
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds::Count(1)
    }
}
