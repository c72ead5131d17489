//! Everything that can be wrong with a recording.

use std::borrow::Cow;
use std::fmt;
use std::io;

/// A recording that could not be read: which file, which line, and what was expected there.
#[derive(Debug, thiserror::Error)]
pub struct ReadError {
    /// The file, as it was named to the reader.
    pub file: String,
    /// The line, counted from 1; absent where the fault is not on a line.
    pub line: Option<u64>,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a recording. Each text says what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The operating system's word.
    #[error("cannot read it: {0}")]
    Io(#[source] io::Error),
    /// Nothing in it.
    #[error("the file is empty; expected a header line with \"format\":\"iosched-trace/1\"")]
    Empty,
    /// Some other kind of file.
    #[error("expected a header line with \"format\":\"iosched-trace/1\", found {found}")]
    Foreign {
        /// What it looks like.
        found: String,
    },
    /// The compressed data stops early.
    #[error("the gzip data ends in the middle: the file was cut off, so copy or record it again")]
    TruncatedGzip,
    /// The compressed data makes no sense.
    #[error("the gzip data is damaged ({0}), so copy or record the file again")]
    CorruptGzip(String),
    /// The last line stops early.
    #[error("the last line ends in the middle: expected a complete JSON object; the file was cut off")]
    TruncatedLine,
    /// A line that is no JSON object, or a value of the wrong type.
    #[error("expected a JSON object with the documented fields: {}{message} (column {column})", at(.field))]
    Json {
        /// The field at fault, if one can be named.
        field: Option<String>,
        /// What the JSON parser says.
        message: String,
        /// Where on the line, counted from 1.
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
    /// A field has the right JSON type, but no possible value.
    #[error("field `{field}`: expected {expected}, found {found}")]
    BadField {
        /// The field.
        field: &'static str,
        /// What it may hold.
        expected: Cow<'static, str>,
        /// What it holds.
        found: String,
    },
    /// Events are not in the order of time.
    #[error("expected events in the order of time, found t = {t} after t = {previous}")]
    TimeBackwards {
        /// The time of this event, ns.
        t: u64,
        /// The time of the event before, ns.
        previous: u64,
    },
    /// The header promises another number of events.
    #[error("expected {expected} events, as this header says, found {found}; the file was cut off or edited")]
    EventCount {
        /// What the header says.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A line that no recorder would write.
    #[error("expected lines of at most {limit} bytes")]
    LineTooLong {
        /// The limit, bytes.
        limit: usize,
    },
    /// More text than the reader is prepared to hold.
    #[error("expected at most {limit} bytes of text; cut the recording or raise the limit")]
    TooManyBytes {
        /// The limit.
        limit: u64,
    },
    /// More events than the reader is prepared to hold.
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

    /// What `error` says about `line`.
    pub(super) fn from_json(error: &serde_json::Error, line: &[u8]) -> Problem {
        let text = error.to_string();
        // The parser's own "line 1" would contradict the line of the file.
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        let field = if error.is_data() { field_before(line, error.column()) } else { None };
        Problem::Json { field, message: shorten(message), column: error.column() }
    }
}

/// The key whose value ends at or before `column`, as far as a look at the text can tell: the JSON parser says where
/// it stumbled, but not over which field.
fn field_before(line: &[u8], column: usize) -> Option<String> {
    let before = &line[..column.min(line.len())];
    let end = before.windows(2).rposition(|pair| pair == b"\":")?;
    let start = before[..end].iter().rposition(|&byte| byte == b'"')? + 1;
    Some(shorten(&String::from_utf8_lossy(&before[start..end])))
}

fn at(field: &Option<String>) -> String {
    field.as_ref().map_or(String::new(), |field| format!("at field `{field}`: "))
}

/// Keeps an error readable when the file is not.
fn shorten(text: &str) -> String {
    const MAX: usize = 160;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
