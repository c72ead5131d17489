//! Names of figures, the same everywhere: `job:operation:figure`.
//!
//! Used by: `verdict`, `document`, `tuning`, `analysis`, `diff` and others; crates `experiment`, `render`.
//! Tests: `crates/answer/tests/figure_name.rs`.
//!
//! ```text
//! backends:read:p99           the 99th percentile of the latencies of the reads of the job "backends"
//! wal:sync:max                the longest fsync (or fdatasync) of the job "wal"
//! "db:main":write:iops        a job's name that contains a colon or a blank is quoted; \" and \\ are escapes within the quotes
//! ```

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use hoistway_measure::Operation;

/// A figure of one operation of a job, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FigureName {
    /// Name of the job; the first one if several have it.
    pub job: String,
    /// Read, write, trim or sync.
    pub operation: Operation,
    /// The figure.
    pub figure: Figure,
}

/// Why a text is not the name of a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} names no figure: {problem} (expected JOB:OPERATION:FIGURE, such as backends:read:p99, with one of {}, and \
     one of {}; a JOB with a colon in quotes)",
    operations(),
    figures()
)]
pub struct FigureNameError {
    /// The text.
    pub text: String,
    /// What is wrong with the text.
    pub problem: String,
}

fn operations() -> String {
    Operation::ALL.map(Operation::name).join(", ")
}

/// The names of all figures, with commas.
pub(crate) fn figures() -> String {
    Figure::NAMED.map(Figure::name).join(", ")
}

impl FromStr for FigureName {
    type Err = FigureNameError;

    fn from_str(text: &str) -> Result<Self, FigureNameError> {
        Self::parse(text).map_err(|problem| FigureNameError { text: text.to_owned(), problem })
    }
}

impl FigureName {
    fn parse(text: &str) -> Result<Self, String> {
        let (job, rest) = match text.strip_prefix('"') {
            Some(quoted) => parse_quoted_job(quoted)?,
            None => {
                let (job, rest) = text.split_once(':').unwrap_or((text, ""));
                if job.is_empty() {
                    return Err("it has no job".to_owned());
                }
                (job.to_owned(), rest)
            }
        };
        let parts: Vec<&str> = rest.split(':').collect();
        let &[operation, figure] = &parts[..] else {
            return Err(match parts.len() {
                1 => "it has no operation and figure".to_owned(),
                _ => "it has too many parts".to_owned(),
            });
        };
        let operation = Operation::ALL
            .into_iter()
            .find(|known| known.name() == operation)
            .ok_or_else(|| format!("{operation:?} is not an operation"))?;
        let figure = Figure::NAMED
            .into_iter()
            .find(|known| known.name() == figure)
            .ok_or_else(|| format!("{figure:?} is not a figure"))?;
        if !figure.is_of(operation) {
            return Err(format!("a {} has no {}", operation.name(), figure.name()));
        }
        Ok(Self { job, operation, figure })
    }
}

/// The job before the closing quotation mark, and the text after the colon that follows.
fn parse_quoted_job(text: &str) -> Result<(String, &str), String> {
    let mut job = String::new();
    let mut chars = text.char_indices();
    while let Some((position, c)) = chars.next() {
        match c {
            '"' => {
                let rest = text[position + 1..].strip_prefix(':');
                return rest.map(|rest| (job, rest)).ok_or_else(|| "no colon follows the quoted job".to_owned());
            }
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => job.push(c),
                _ => return Err("after \\ only \" or \\ is allowed".to_owned()),
            },
            c => job.push(c),
        }
    }
    Err("the closing quotation mark is missing".to_owned())
}

/// A job as written in the name of a figure: quoted if necessary.
pub fn quoted(job: &str) -> impl fmt::Display {
    QuotedJob(job)
}

/// A job, displayed with quotes if necessary.
struct QuotedJob<'a>(&'a str);

impl fmt::Display for QuotedJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !":\"\\".contains(c);
        if !self.0.is_empty() && self.0.chars().all(is_plain) {
            return f.write_str(self.0);
        }
        f.write_char('"')?;
        for c in self.0.chars() {
            if "\"\\".contains(c) {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", QuotedJob(&self.job), self.operation.name(), self.figure.name())
    }
}

impl TryFrom<String> for FigureName {
    type Error = FigureNameError;

    fn try_from(text: String) -> Result<Self, FigureNameError> {
        text.parse()
    }
}

impl From<FigureName> for String {
    fn from(name: FigureName) -> String {
        name.to_string()
    }
}
