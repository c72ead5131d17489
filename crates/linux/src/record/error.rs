//! Errors of recording.

use std::io;

/// Why nothing can be recorded, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{location}: {problem} (expected {expected})")]
pub struct RecordError {
    /// The file, the device or the option at fault.
    pub location: String,
    /// The problem.
    pub problem: String,
    /// What was expected, or what to do.
    pub expected: String,
}

impl RecordError {
    pub(crate) fn new(location: impl Into<String>, problem: impl Into<String>, expected: impl Into<String>) -> Self {
        RecordError { location: location.into(), problem: problem.into(), expected: expected.into() }
    }

    pub(crate) fn io(location: impl Into<String>, error: &io::Error, expected: impl Into<String>) -> Self {
        Self::new(location, error.to_string(), expected)
    }
}
