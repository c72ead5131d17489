//! Which format a file has, by its content.

use std::fmt;

use super::{blkparse, blktrace};

/// Bytes of the beginning that decide.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// A format of recordings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Format {
    /// blktrace's binary records.
    Blktrace,
    /// blkparse's text.
    Blkparse,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Blktrace => "blktrace records",
            Format::Blkparse => "blkparse text",
        })
    }
}

/// A format that a file may have, and what speaks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The format.
    pub format: Format,
    /// What was seen.
    pub why: String,
}

/// All formats that the beginning of a file allows.
#[must_use]
pub fn candidates(head: &[u8]) -> Vec<Candidate> {
    let found = |format, why: &str| Candidate { format, why: why.to_owned() };
    if blktrace::is_recording(head) {
        return vec![found(Format::Blktrace, "the magic number of blktrace")];
    }
    // The last line may be cut off.
    let is_line = |test: fn(&[u8]) -> bool| lines(head).find(|line| test(line)).is_some();
    let mut all = Vec::new();
    if is_line(blkparse::is_event) {
        all.push(found(Format::Blkparse, "lines of device, CPU, time, pid, action and flags"));
    }
    all
}

/// The first lines.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    const LINES_MAX: usize = 200;
    head.split(|&letter| letter == b'\n').take(LINES_MAX)
}
