//! Loads and devices given by a single word.

use serde::{Deserialize, Deserializer};

use crate::comparison::{Devices, Load};
use crate::scenarios;

/// A load by name, or in the form of a comparison.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected the name of a scenario, \"example\", a job file, or { text = { name = ..., text = ... } }"
)]
enum NamedLoad {
    Name(String),
    Load(Load),
}

impl From<NamedLoad> for Load {
    fn from(named: NamedLoad) -> Load {
        match named {
            NamedLoad::Load(load) => load,
            NamedLoad::Name(name) if name == "example" => Load::Example,
            NamedLoad::Name(name) if scenarios::named(&name).is_some() => Load::Scenario(name),
            NamedLoad::Name(name) => Load::File(name.into()),
        }
    }
}

/// Devices by one name for all files, or in the form of a comparison.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected the name of a device, a file FILE.toml, or { common = ..., files = { ... } }")]
enum NamedDevices {
    Name(String),
    Devices(Devices),
}

impl From<NamedDevices> for Devices {
    fn from(named: NamedDevices) -> Devices {
        match named {
            NamedDevices::Name(name) => name.as_str().into(),
            NamedDevices::Devices(devices) => devices,
        }
    }
}

pub(super) fn loads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Load>, D::Error> {
    Vec::<NamedLoad>::deserialize(deserializer).map(|named| named.into_iter().map(Load::from).collect())
}

pub(super) fn devices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Devices>, D::Error> {
    Vec::<NamedDevices>::deserialize(deserializer).map(|named| named.into_iter().map(Devices::from).collect())
}
