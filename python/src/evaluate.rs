//! Makes the runs of a search: on threads of this process, or by calling a Python function.

use hoistway_answer::tuning::Setting;
use hoistway_experiment::tune::{Evaluate, Evaluator, Figures};
use hoistway_experiment::{Error, Field};
use pyo3::prelude::*;

use crate::stop::Stop;
use crate::table::internal_error;

/// A placeholder that is never shown: the actual reason is in the [`Stop`].
fn ended_error() -> Error {
    Error { field: Field::Load, message: "the search was ended".to_owned(), place: None }
}

/// Makes runs on threads of this process.
pub(crate) struct Local<'a> {
    pub(crate) evaluator: &'a Evaluator<'a>,
    pub(crate) stop: &'a Stop,
}

impl Evaluate for Local<'_> {
    fn figures(&self, setting: &Setting, seed: u64, runtime_ns: Option<u64>) -> Result<Figures, Error> {
        let figures = self.evaluator.figures(setting, seed, runtime_ns)?;
        // They may be the figures of an interrupted run.
        if self.stop.is_requested() { Err(ended_error()) } else { Ok(figures) }
    }
}

/// Makes runs by calling a Python function with a setting as JSON, a seed and a runtime in ns. It returns the figures, by name,
/// as JSON.
pub(crate) struct Remote<'a> {
    pub(crate) call: Py<PyAny>,
    pub(crate) stop: &'a Stop,
}

impl Remote<'_> {
    /// Stops waiting for runs.
    pub(crate) fn stop(&self, py: Python<'_>) {
        // The first reason to stop is kept, so further errors are ignored.
        self.call.call_method0(py, "stop").map(drop).unwrap_or_default();
    }
}

impl Evaluate for Remote<'_> {
    fn figures(&self, setting: &Setting, seed: u64, runtime_ns: Option<u64>) -> Result<Figures, Error> {
        let response = Python::attach(|py| {
            let setting = serde_json::to_string(setting).map_err(internal_error)?;
            let response = self.call.call1(py, (setting, seed, runtime_ns))?;
            serde_json::from_str(&response.extract::<String>(py)?).map_err(internal_error)
        });
        response.map_err(|error| {
            self.stop.end_runs(error);
            ended_error()
        })
    }
}
