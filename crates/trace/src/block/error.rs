//! Errors and losses of recordings.

use std::fmt;

/// A position in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// The file as a whole.
    File,
    /// A binary record.
    Record {
        /// Number of the record, from 1.
        number: u64,
        /// Offset of its first byte.
        byte: u64,
    },
    /// A line, from 1.
    Line(u64),
}

/// Why a recording cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The file as the user named it.
    pub file: String,
    /// Where in it.
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// What was expected, or what to do.
    pub expected: String,
}

impl ReadError {
    /// An error of a file as a whole.
    #[must_use]
    pub fn file(file: &str, message: impl Into<String>, expected: impl Into<String>) -> ReadError {
        ReadError::at(file, Position::File, message, expected)
    }

    /// An error at a place of a file.
    #[must_use]
    pub fn at(file: &str, position: Position, message: impl Into<String>, expected: impl Into<String>) -> ReadError {
        ReadError { file: file.to_owned(), position, message: message.into(), expected: expected.into() }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        match self.position {
            Position::File => {}
            Position::Record { number, byte } => write!(f, "record {number} at byte {byte}: ")?,
            Position::Line(line) => write!(f, "line {line}: ")?,
        }
        write!(f, "{} (expected {})", self.message, self.expected)
    }
}

impl std::error::Error for ReadError {}

/// Quotes a file's text for an error message: shortened, on one line, without control characters.
pub(crate) fn quoted(text: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 60;
    let text = String::from_utf8_lossy(text);
    let mut quoted: String =
        text.chars().take(CHARACTERS_MAX).map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        quoted.push_str("...");
    }
    format!("{quoted:?}")
}

/// Missing and superfluous parts of a recording, which do not stop a reader.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Events that the recorder lost: gaps of sequence numbers, markers of dropped events.
    pub lost_events: u64,
    /// Records or lines with an unknown action.
    pub unknown_actions: u64,
    /// Records or lines that end in the middle.
    pub truncated: u64,
    /// Lines that are not events.
    pub foreign_lines: u64,
    /// Messages of drivers and schedulers.
    pub messages: u64,
    /// Messages of bfq, which writes them only while it is in use.
    pub bfq_messages: u64,
    /// I/Os of length 0, which are omitted.
    pub empty_ios: u64,
    /// CPUs below the highest one whose files are missing.
    pub missing_cpus: Vec<u32>,
    /// Largest backward step of time that sorting has corrected, in nanoseconds.
    pub step_back_ns: u64,
}
