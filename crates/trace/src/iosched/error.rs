//! Errors in a recording.

use std::borrow::Cow;
use std::fmt;
use std::io;

/// Why a recording cannot be read: the file, the line, and what was expected there.
#[derive(Debug, thiserror::Error)]
pub struct ReadError {
    /// Name of the file as the caller gave it.
    pub file: String,
    /// The line, counted from 1; `None` if the error is not on a line.
    pub line: Option<u64>,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a recording. Each text says what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// An error of the operating system.
    #[error("cannot read it: {0}")]
    Io(#[source] io::Error),
    /// The file is empty.
    #[error("the file is empty; expected a header line with \"format\":\"iosched-trace/1\"")]
    Empty,
    /// The file has another format.
    #[error("expected a header line with \"format\":\"iosched-trace/1\", found {found}")]
    Foreign {
        /// The format that it appears to have.
        found: String,
    },
    /// The compressed data is truncated.
    #[error("the gzip data ends in the middle: the file was cut off, so copy or record it again")]
    TruncatedGzip,
    /// The compressed data is corrupt.
    #[error("the gzip data is damaged ({0}), so copy or record the file again")]
    CorruptGzip(String),
    /// The last line is truncated.
    #[error("the last line ends in the middle: expected a complete JSON object; the file was cut off")]
    TruncatedLine,
    /// A line is not a JSON object, or a value has the wrong type.
    #[error("expected a JSON object with the documented fields: {}{message} (column {column})", field_prefix(.field))]
    Json {
        /// The field at fault, if one can be named.
        field: Option<String>,
        /// The JSON parser's message.
        message: String,
        /// Column of the line, counted from 1.
        column: usize,
    },
    /// An event lacks a field.
    #[error("expected the field `{field}`, which every `{event}` event has")]
    MissingField {
        /// The kind of event.
        event: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field has the right JSON type, but an invalid value.
    #[error("field `{field}`: expected {expected}, found {found}")]
    BadField {
        /// The field.
        field: &'static str,
        /// The valid values.
        expected: Cow<'static, str>,
        /// The actual value.
        found: String,
    },
    /// Events are not in the order of time.
    #[error("expected events in the order of time, found t = {t} after t = {previous}")]
    TimeBackwards {
        /// The time of this event, ns.
        t: u64,
        /// The time of the previous event, ns.
        previous: u64,
    },
    /// The number of events differs from the header's.
    #[error("expected {expected} events, as this header says, found {found}; the file was cut off or edited")]
    EventCount {
        /// Number of events in the header.
        expected: u64,
        /// Number of events in the file.
        found: u64,
    },
    /// A line is longer than any that a recorder writes.
    #[error("expected lines of at most {limit} bytes")]
    LineTooLong {
        /// The limit, bytes.
        limit: usize,
    },
    /// The text exceeds the reader's limit.
    #[error("expected at most {limit} bytes of text; cut the recording or raise the limit")]
    TooManyBytes {
        /// The limit.
        limit: u64,
    },
    /// The number of events exceeds the reader's limit.
    #[error("expected at most {limit} events; cut the recording or raise the limit")]
    TooManyEvents {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl Problem {
    pub(super) fn bad_field(
        field: &'static str,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Problem {
        Problem::BadField { field, expected: expected.into(), found: shorten(&format!("`{found}`")) }
    }

    /// Converts a JSON error in `line`.
    pub(super) fn from_json(error: &serde_json::Error, line: &[u8]) -> Problem {
        let text = error.to_string();
        // The parser always reports line 1, which would contradict the file's line number.
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        let field = if error.is_data() { field_before(line, error.column()) } else { None };
        Problem::Json { field, message: shorten(message), column: error.column() }
    }
}

/// Guesses the key whose value ends at or before `column`: the JSON parser reports only the position of an error, not
/// the field.
fn field_before(line: &[u8], column: usize) -> Option<String> {
    let before = &line[..column.min(line.len())];
    let end = before.windows(2).rposition(|pair| pair == b"\":")?;
    let start = before[..end].iter().rposition(|&byte| byte == b'"')? + 1;
    Some(shorten(&String::from_utf8_lossy(&before[start..end])))
}

fn field_prefix(field: &Option<String>) -> String {
    field.as_ref().map_or(String::new(), |field| format!("at field `{field}`: "))
}

/// Shortens a long text in an error.
fn shorten(text: &str) -> String {
    const CHARACTERS_MAX: usize = 160;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
