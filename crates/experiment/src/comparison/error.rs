//! Errors in a comparison, each with the field at fault.

use std::fmt;

use hoistway_device::PresetError;
use hoistway_fio::JobFileError;
use hoistway_sim::ProfileError;
use hoistway_trace::block::{Position as TracePosition, ReadError};

use crate::comparison::fields::Field;

/// Why a comparison cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The field at fault.
    pub field: Field,
    /// What is wrong and what was expected. It names the field as the [`CallerEnvironment`](crate::CallerEnvironment) does, or, if a
    /// text is at fault, the text and the line.
    pub message: String,
    /// The position in a text, if a text is at fault. The message begins with it.
    pub place: Option<Place>,
}

/// A place in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The name of the text: its file, if it came from one.
    pub file: String,
    /// The line, from 1; `None` if the text as a whole is at fault.
    pub line: Option<usize>,
    /// The option or key at fault, as written; `None` if the error concerns no single one.
    pub option: Option<String>,
}

impl Error {
    pub(crate) fn new(field: Field, message: impl fmt::Display) -> Error {
        Error { field, message: message.to_string(), place: None }
    }
}

/// Turns an error without a field into one about a field; the message stays as it is.
pub(crate) trait About<T> {
    fn about(self, field: Field) -> Result<T, Error>;
}

impl<T, E: fmt::Display> About<T> for Result<T, E> {
    fn about(self, field: Field) -> Result<T, Error> {
        self.map_err(|error| Error::new(field, error))
    }
}

/// What is wrong with a text.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    place: Option<Place>,
}

impl Fault {
    pub(crate) fn of(self, field: Field) -> Error {
        Error { field, message: self.message, place: self.place }
    }

    fn at(error: &impl fmt::Display, file: &str, line: Option<usize>, option: Option<&str>) -> Fault {
        let place = Place { file: file.to_owned(), line, option: option.map(str::to_owned) };
        Fault { message: error.to_string(), place: Some(place) }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Fault {
        Fault { message, place: None }
    }
}

impl From<JobFileError> for Fault {
    fn from(error: JobFileError) -> Fault {
        let line = error.line.map(|line| line as usize);
        Fault::at(&error, &error.file, line, error.option.as_deref())
    }
}

impl From<PresetError> for Fault {
    fn from(error: PresetError) -> Fault {
        match &error {
            PresetError::Text { file, line, .. } => Fault::at(&error, file, Some(*line), None),
            PresetError::Key { file, line, key, .. } => Fault::at(&error, file, Some(*line), Some(key)),
            PresetError::NoSuchPreset { .. } => error.to_string().into(),
        }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Fault {
        let line = match error.position {
            TracePosition::Line(line) => usize::try_from(line).ok(),
            TracePosition::File | TracePosition::Record { .. } => None,
        };
        Fault::at(&error, &error.file, line, None)
    }
}

impl From<ProfileError> for Fault {
    fn from(error: ProfileError) -> Fault {
        match &error {
            ProfileError::Text { file, line, key, .. } => Fault::at(&error, file, Some(*line), key.as_deref()),
            ProfileError::NotBuiltIn { .. } => error.to_string().into(),
        }
    }
}
