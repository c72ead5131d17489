//! The inputs of runs: files and variables of the environment, read once and kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::plan::Plan;

/// Contents of files and values of variables. They serve as the environment of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    files: BTreeMap<PathBuf, Content>,
    /// `None` for a variable that is not set.
    variables: BTreeMap<String, Option<String>>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Content {
        String::from_utf8(bytes).map_or_else(|error| Content::Bytes(error.into_bytes()), Content::Text)
    }
}

impl CallerEnvironment for Inputs {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let content = self.files.get(path);
        content.map(|content| content.bytes().to_vec()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned().flatten()
    }

    fn name(&self, field: Field) -> String {
        space_field_name(field)
    }
}

impl Inputs {
    /// Reads all inputs of a comparison, so that it can run where its files do not exist.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn of(comparison: &Comparison, environment: &dyn CallerEnvironment) -> Result<Inputs, Error> {
        let shared = Shared::new(environment);
        Plan::of(comparison, &Recorder::new(&shared))?;
        Ok(shared.into_inputs())
    }

    /// The inputs with these names.
    pub(super) fn only(&self, read: &Read) -> Inputs {
        let files = self.files.iter().filter(|(path, _)| read.files.contains(*path));
        let variables = self.variables.iter().filter(|(name, _)| read.variables.contains(*name));
        Inputs {
            files: files.map(|(path, content)| (path.clone(), content.clone())).collect(),
            variables: variables.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

/// The name in a space for a field of a comparison.
pub(super) fn space_field_name(field: Field) -> String {
    match field {
        Field::Load => "`loads`".to_owned(),
        Field::Devices | Field::Kernels | Field::Hosts | Field::Schedulers => field.to_string(),
        Field::GuestSchedulers => "`guest_schedulers`".to_owned(),
        Field::Tunables | Field::QueueFiles => "`settings`".to_owned(),
        _ => format!("`base.{}`", field.name()),
    }
}

/// Inputs that several threads read from an environment, each file once.
pub(super) struct Shared<'a> {
    environment: &'a dyn CallerEnvironment,
    inputs: Mutex<Inputs>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(environment: &'a dyn CallerEnvironment) -> Self {
        Shared { environment, inputs: Mutex::default() }
    }

    pub(super) fn into_inputs(self) -> Inputs {
        self.inputs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names of the inputs that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    files: BTreeSet<PathBuf>,
    variables: BTreeSet<String>,
}

/// An environment that records what is read from it.
pub(super) struct Recorder<'a> {
    shared: &'a Shared<'a>,
    read: Mutex<Read>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Recorder<'a> {
    pub(super) fn new(shared: &'a Shared<'a>) -> Self {
        Recorder { shared, read: Mutex::default() }
    }

    pub(super) fn into_read(self) -> Read {
        self.read.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerEnvironment for Recorder<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        // Read under the lock, so that all threads see the file as of the same time.
        let mut inputs = lock(&self.shared.inputs);
        let bytes = match inputs.files.get(path) {
            Some(content) => content.bytes().to_vec(),
            None => {
                let bytes = self.shared.environment.read(path)?;
                inputs.files.insert(path.to_owned(), bytes.clone().into());
                bytes
            }
        };
        lock(&self.read).files.insert(path.to_owned());
        Ok(bytes)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.shared.environment.variable(name);
        lock(&self.shared.inputs).variables.insert(name.to_owned(), value.clone());
        lock(&self.read).variables.insert(name.to_owned());
        value
    }

    // Custom schedulers cannot be stored, so only those of Linux are available.

    fn name(&self, field: Field) -> String {
        space_field_name(field)
    }
}
