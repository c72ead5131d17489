//! Converts Rust errors to the package's exceptions.

use hoistway_experiment::{self as lab, TraceError};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// An error in a comparison: `hoistway.Error` with file, line and option.
pub(crate) fn comparison(py: Python<'_>, error: &lab::Error) -> PyErr {
    with_argument(py, error, error.field.keyword())
}

/// As `comparison`, for a function whose argument has another name.
pub(crate) fn with_argument(py: Python<'_>, error: &lab::Error, argument: &str) -> PyErr {
    let position = error.place.as_ref();
    let file = position.map(|position| position.file.as_str());
    let line = position.and_then(|position| position.line);
    // An error in a text names the option in that text; any other error names the argument.
    let option = position.map_or(Some(argument), |position| position.option.as_deref());
    exception(py, "Error", (error.message.as_str(), file, line, option))
}

/// An error in an argument for which the library has no field.
pub(crate) fn argument(py: Python<'_>, option: &str, message: &str) -> PyErr {
    exception(py, "Error", (message, None::<&str>, None::<usize>, Some(option)))
}

/// An error in a text as a whole.
pub(crate) fn text(py: Python<'_>, file: &str, message: &str) -> PyErr {
    exception(py, "Error", (message, Some(file), None::<usize>, None::<&str>))
}

/// A `SchedulerError`: a scheduler written in Python broke its contract.
pub(crate) fn scheduler(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "SchedulerError", (message,))
}

pub(crate) fn trace(py: Python<'_>, error: &TraceError) -> PyErr {
    match error {
        TraceError::Runs(error) => comparison(py, error),
        TraceError::Write(error) => PyOSError::new_err(error.to_string()),
    }
}

pub(crate) fn exception<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let raised = py.import("hoistway._errors").and_then(|module| module.getattr(class)?.call1(arguments));
    raised.map_or_else(|error| error, PyErr::from_value)
}
