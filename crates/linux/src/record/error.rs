//! Errors of recording.

use std::io;

/// What is missing or wrong, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {problem} (expected {expected})")]
pub struct RecordError {
    /// The file, the device or the option at fault.
    pub place: String,
    /// What is wrong.
    pub problem: String,
    /// What was expected, or what to do.
    pub expected: String,
}

impl RecordError {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>, expected: impl Into<String>) -> Self {
        RecordError { place: place.into(), problem: problem.into(), expected: expected.into() }
    }

    pub(crate) fn io(place: impl Into<String>, error: &io::Error, expected: impl Into<String>) -> Self {
        Self::new(place, error.to_string(), expected)
    }
}
