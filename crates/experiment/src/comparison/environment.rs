//! What the caller of a comparison provides: this crate reads no files and no environment variables itself.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hoistway_blk::schedulers::Registry;
use hoistway_fio::{LogSource, log_in_memory};
use hoistway_legacy::all_schedulers;
use hoistway_trace::block::{Columns, ReadError, Recording};

use crate::comparison::error::{Error, Fault};
use crate::comparison::fields::Field;
use crate::comparison::{Comparison, Profile};

/// File access, variables and schedulers that a comparison may use.
pub trait CallerEnvironment: Sync {
    /// The content of a file that the comparison or its job file names. By default there are none.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let _ = path;
        Err(io::Error::new(io::ErrorKind::NotFound, "there are no files to read here"))
    }

    /// A log that the job file replays. By default its [content](Self::read), held in memory.
    ///
    /// # Errors
    /// If it cannot be read.
    fn log(&self, path: &Path) -> io::Result<Arc<dyn LogSource>> {
        self.read(path).map(log_in_memory)
    }

    /// The recording of block I/O in a file, if it is one; with `columns` the file is a table of I/Os. By default no file
    /// is a recording.
    ///
    /// # Errors
    /// If it is a recording and cannot be read.
    fn recording(&self, path: &Path, columns: Option<&Columns>) -> Result<Option<Recording>, ReadError> {
        let _ = (path, columns);
        Ok(None)
    }

    /// The value of an environment variable that the job file names. By default none is set.
    fn variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The available schedulers. By default those of Linux.
    fn schedulers(&self) -> Registry {
        all_schedulers()
    }

    /// The caller's name of a field, for messages and notices.
    fn name(&self, field: Field) -> String {
        field.to_string()
    }
}

/// An environment without files and environment variables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl CallerEnvironment for Alone {}

/// The options of a comparison, with the environment that names them.
#[derive(Clone, Copy)]
pub(crate) struct Options<'a> {
    pub(crate) comparison: &'a Comparison,
    pub(crate) environment: &'a dyn CallerEnvironment,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.comparison.fmt(f)
    }
}

impl Options<'_> {
    pub(crate) fn name(&self, field: Field) -> String {
        self.environment.name(field)
    }

    /// A field with its value, as the start of a sentence about it.
    pub(crate) fn given(&self, field: Field, value: impl fmt::Display) -> String {
        format!("{} {value}", self.name(field))
    }

    /// Refuses a value of a field.
    pub(crate) fn refuse(&self, field: Field, value: impl fmt::Display, problem: impl fmt::Display) -> Error {
        Error::new(field, format_args!("{}: {problem}", self.given(field, value)))
    }
}

impl dyn CallerEnvironment + '_ {
    /// The text of a file. `expected` names, for errors, what it should be.
    pub(crate) fn text(&self, path: &Path, expected: &str) -> Result<String, String> {
        let name = path.display();
        let bytes =
            self.read(path).map_err(|error| format!("{name}: cannot be read (expected {expected}): {error}"))?;
        String::from_utf8(bytes).map_err(|error| {
            if hoistway_trace::block::Input::is_compressed(error.as_bytes()) {
                return format!(
                    "{name}: compressed, and not a recording (expected {expected}; unpack anything else first)"
                );
            }
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            format!("{name}:{line}: not text (expected {expected})")
        })
    }

    /// The text of a file that a job file includes. Errors get their position from the parser.
    pub(crate) fn included(&self, path: &Path) -> io::Result<String> {
        let text = String::from_utf8(self.read(path)?);
        text.map_err(|_| io::Error::other("not text (expected options of a fio job file)"))
    }

    /// Reads a profile: TOML text or a file by `read`; otherwise the built-in profile of this name.
    pub(crate) fn profile<T, E: Into<Fault>, B: Into<Fault>>(
        &self,
        profile: &Profile,
        expected: &str,
        read: impl Fn(&str, &str) -> Result<T, E>,
        builtin: impl Fn(&str) -> Result<T, B>,
    ) -> Result<T, Fault> {
        let read = |text: &str, name: &str| read(text, name).map_err(E::into);
        match profile {
            Profile::Text { name, text } => read(text, name),
            Profile::Named(name) => {
                let path = Path::new(name);
                let is_file = path.extension().is_some_and(|extension| extension == "toml") || name.contains('/');
                if is_file {
                    return read(&self.text(path, expected)?, name);
                }
                builtin(name).map_err(B::into)
            }
        }
    }
}
