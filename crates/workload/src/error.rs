//! The one error type of this crate.

use std::fmt;
use std::sync::Arc;

/// What is wrong with a job file: where, what was found, and what was expected or what to do.
///
/// Displays as `jobs.fio:12: [writers] iodepth: "x" is not a number (expected a whole number of at least 1)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobFileError {
    /// The file, or the include file, at fault.
    pub file: Arc<str>,
    /// The line in that file, from 1; `None` if the file as a whole is at fault.
    pub line: Option<u32>,
    /// The section that the line belongs to, without brackets.
    pub section: Option<Arc<str>>,
    /// The option at fault, as it was written.
    pub option: Option<Box<str>>,
    /// What is wrong.
    pub message: Box<str>,
    /// What was expected, or what to do about it.
    pub hint: Option<Box<str>>,
}

impl JobFileError {
    pub(crate) fn new(file: &Arc<str>, message: impl Into<Box<str>>) -> JobFileError {
        JobFileError {
            file: Arc::clone(file),
            line: None,
            section: None,
            option: None,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn at_line(mut self, line: u32) -> JobFileError {
        self.line = Some(line);
        self
    }

    pub(crate) fn in_section(mut self, section: Option<&Arc<str>>) -> JobFileError {
        self.section = section.cloned();
        self
    }

    pub(crate) fn on_option(mut self, option: &str) -> JobFileError {
        self.option = Some(option.into());
        self
    }

    pub(crate) fn hinting(mut self, hint: impl Into<Box<str>>) -> JobFileError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(section) = &self.section {
            write!(f, "[{section}] ")?;
        }
        if let Some(option) = &self.option {
            write!(f, "{option}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobFileError {}

/// Text from a job file as it may stand in a message: quoted, control characters escaped, and not too long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(SHOWN).collect();
    let more = if chars.next().is_some() { "..." } else { "" };
    format!("{head:?}{more}")
}
