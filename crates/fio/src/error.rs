//! The error type of this crate, with the position in the job file.
//!
//! Used by: `options`, `build`, `values`, `jobfile`, `notices` and others; crate `experiment`.
//! Tests: below, `crates/fio/tests/job_files.rs`, `crates/fio/tests/examples.rs`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// An error in a job file: where, what was found, and what was expected or what to do.
///
/// Displays as `jobs.fio:12: [writers] iodepth: "x" is not a number (expected a whole number of at least 1)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobFileError {
    /// The job file or included file at fault.
    pub file: Arc<str>,
    /// The line in that file, from 1; `None` if the file as a whole is at fault.
    pub line: Option<u32>,
    /// The section that the line belongs to, without brackets.
    pub section: Option<Arc<str>>,
    /// The option at fault, as it was written.
    pub option: Option<Box<str>>,
    /// The problem.
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

    pub(crate) fn with_hint(mut self, hint: impl Into<Box<str>>) -> JobFileError {
        self.hint = Some(hint.into());
        self
    }
}

impl JobFileError {
    /// The position, at the start of the message.
    pub(crate) fn position(&self) -> String {
        let mut position = self.file.to_string();
        if let Some(line) = self.line {
            position += &format!(":{line}");
        }
        if let Some(section) = &self.section {
            position += &format!(": [{}]", printable(section));
        }
        if let Some(option) = &self.option {
            let separator = if self.section.is_some() { " " } else { ": " };
            position += &format!("{separator}{}", printable(option));
        }
        position
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.section.is_some() && self.option.is_none() { " " } else { ": " };
        write!(f, "{}{separator}{}", self.position(), self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobFileError {}

/// A name from a job file for use in messages: quoted only if it is long or not plain text.
pub(crate) fn printable(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
    if name.len() <= 60 && name.chars().all(plain) { Cow::Borrowed(name) } else { Cow::Owned(quoted(name)) }
}

/// Text from a job file for use in messages: quoted, control characters escaped, and not too long.
pub(crate) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(CHARS_MAX).collect();
    let more = if chars.next().is_some() { "..." } else { "" };
    format!("{head:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        let file: Arc<str> = "jobs.fio".into();
        let section: Arc<str> = "a\u{1b}[2J".into();
        let error = JobFileError::new(&file, "wrong").at_line(3).in_section(Some(&section)).on_option("b\rs");
        assert_eq!(error.to_string(), r#"jobs.fio:3: ["a\u{1b}[2J"] "b\rs": wrong"#);
    }
}
