//! Errors in a load.
//!
//! Used by: `pattern`, `description`, `check`, `generator`, `plan` and others; crates `fio`, `engine`, `sim`.
//! Tests: `crates/load/tests/checking.rs`, `crates/load/tests/regions.rs`.

use std::fmt;
use std::sync::Arc;

/// An error in a load: the process and field, the value found, and what was expected or what to do.
///
/// Displays as `process "writers": plan.pattern.volume.size: the region ... (use a larger device)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError {
    /// The field at fault, by its path in [`Process`](crate::Process).
    pub field: &'static str,
    /// The process, or the place that the field comes from, with its name there.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What was expected, or what to do about it.
    pub hint: String,
}

impl LoadError {
    pub(crate) fn new(field: &'static str, message: impl Into<String>, hint: impl Into<String>) -> LoadError {
        LoadError { field, place: field.to_owned(), message: message.into(), hint: hint.into() }
    }

    /// The same error, about a process.
    pub(crate) fn in_process(self, name: &str, origin: Option<&Origin>) -> LoadError {
        let prefix = origin.and_then(|origin| origin.0.iter().find(|(field, _)| *field == self.field));
        let place = match prefix {
            Some((_, place)) => place.clone(),
            None => format!("process {name:?}: {}", self.field),
        };
        LoadError { place, ..self }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.message, self.hint)
    }
}

impl std::error::Error for LoadError {}

/// Where the fields of a process come from, and their names there, so that messages point into the text that a load was read
/// from. Pairs of a field and the prefix of its messages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin(pub Arc<[(&'static str, String)]>);
