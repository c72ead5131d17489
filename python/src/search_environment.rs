//! The environment of a search started from Python. Errors name the arguments of `tune`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use hoistway_experiment::{CallerEnvironment, Error, Field};
use hoistway_fio::LogSource;
use hoistway_legacy::all_schedulers;
use hoistway_trace::block::{Columns, ReadError, Recording};
use pyo3::prelude::*;

use crate::environment::Caller;
use crate::errors;

/// The environment of a search.
pub(crate) struct SearchEnvironment(Caller);

impl Default for SearchEnvironment {
    fn default() -> Self {
        SearchEnvironment(Caller { schedulers: all_schedulers() })
    }
}

impl CallerEnvironment for SearchEnvironment {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn log(&self, path: &Path) -> io::Result<Arc<dyn LogSource>> {
        self.0.log(path)
    }

    fn recording(&self, path: &Path, columns: Option<&Columns>) -> Result<Option<Recording>, ReadError> {
        self.0.recording(path, columns)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.variable(name)
    }

    fn name(&self, field: Field) -> String {
        keyword(field).to_owned()
    }
}

/// The argument for a field of a search.
fn keyword(field: Field) -> &'static str {
    match field {
        Field::Kernels => "kernel",
        Field::Hosts => "host",
        Field::Schedulers => "over",
        Field::Repeats => "seeds",
        field => field.keyword(),
    }
}

/// An error in a search, as an exception.
pub(crate) fn search_error(py: Python<'_>, error: &Error) -> PyErr {
    errors::with_argument(py, error, keyword(error.field))
}
