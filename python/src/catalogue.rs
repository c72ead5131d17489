//! Built-in items, by name.

use hoistway_device::Preset;
use hoistway_legacy::all_schedulers;
use hoistway_sim::Host;
use pyo3::prelude::*;

use crate::errors;

/// The names of the device presets.
#[pyfunction]
pub(crate) fn devices() -> Vec<&'static str> {
    Preset::builtin_names().collect()
}

/// A device preset, as TOML.
#[pyfunction]
pub(crate) fn device_toml(py: Python<'_>, name: &str) -> PyResult<String> {
    Preset::builtin_toml(name).map_err(|error| errors::argument(py, "name", &error.to_string()))
}

/// A host profile, as TOML.
#[pyfunction]
pub(crate) fn host_toml(py: Python<'_>, name: &str) -> PyResult<&'static str> {
    Host::builtin_toml(name).map_err(|error| errors::argument(py, "name", &error.to_string()))
}

/// The names of the host profiles.
#[pyfunction]
pub(crate) fn hosts() -> Vec<&'static str> {
    Host::builtin_names().collect()
}

/// The names of the bundled loads.
#[pyfunction]
pub(crate) fn scenarios() -> Vec<&'static str> {
    hoistway_experiment::scenarios::names().collect()
}

/// The names of the schedulers, including those that only old kernels have.
#[pyfunction]
pub(crate) fn schedulers() -> Vec<&'static str> {
    all_schedulers().names()
}

/// Converts a dictionary, passed as JSON, to TOML. `option` is the argument that contained it.
#[pyfunction]
pub(crate) fn toml_text(py: Python<'_>, option: &str, json: &str) -> PyResult<String> {
    let written = serde_json::from_str::<serde_json::Value>(json)
        .map_err(|error| error.to_string())
        .and_then(|value| toml::to_string(&value).map_err(|error| error.to_string()));
    written.map_err(|error| errors::argument(py, option, &format!("{option}: cannot be written as TOML: {error}")))
}
