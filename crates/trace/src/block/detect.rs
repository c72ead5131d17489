//! Which format a file has, by its content.

use std::fmt;

use super::table::{self, Columns};
use super::{biosnoop, blkparse, blktrace, tracefs_text, vscsi};

/// Bytes of the beginning that decide.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// A format of recordings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Format {
    /// blktrace's binary records.
    Blktrace,
    /// blkparse's text.
    Blkparse,
    /// Text of ftrace, trace-cmd or perf.
    TracefsText,
    /// Output of BCC's biosnoop.
    Biosnoop,
    /// Records of virtual SCSI disks.
    Vscsi,
    /// A table with a line for each I/O.
    Table(Box<Columns>),
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::Blktrace => f.write_str("blktrace records"),
            Format::Blkparse => f.write_str("blkparse text"),
            Format::TracefsText => f.write_str("block events of ftrace, trace-cmd or perf"),
            Format::Biosnoop => f.write_str("output of biosnoop"),
            Format::Vscsi => f.write_str("records of vSCSI"),
            Format::Table(columns) => write!(f, "a table with columns as in {columns}"),
        }
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
    if vscsi::layout_of(head).is_some() {
        return vec![found(Format::Vscsi, "records with versions, commands and times of vSCSI")];
    }
    // The last line may be cut off.
    let is_line = |test: fn(&[u8]) -> bool| lines(head).find(|line| test(line)).is_some();
    let mut all = Vec::new();
    if is_line(blkparse::is_event) {
        all.push(found(Format::Blkparse, "lines of device, CPU, time, pid, action and flags"));
    }
    if is_line(tracefs_text::is_event) {
        all.push(found(Format::TracefsText, "lines of task, CPU, time and an event of the block layer"));
    }
    if is_line(biosnoop::is_header) {
        all.push(found(Format::Biosnoop, "a header with biosnoop's columns"));
    }
    if all.is_empty() {
        let why = "the first lines have these columns";
        let tables = table::presets_of(lines(head)).into_iter();
        all.extend(tables.map(|columns| found(Format::Table(Box::new(columns)), why)));
    }
    all
}

/// The first lines.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    const LINES_MAX: usize = 1000;
    head.split(|&letter| letter == b'\n').take(LINES_MAX)
}
