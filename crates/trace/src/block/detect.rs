//! Detection of a recording's format by its content.

use std::fmt;

use super::table::{self, Columns};
use super::{biosnoop, blkparse, blktrace, tracefs_text, vscsi};

/// Number of bytes at the beginning that are examined.
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
    /// Output of BCC's biosnoop, or of iosnoop -ts.
    Biosnoop,
    /// Records of virtual SCSI disks.
    Vscsi,
    /// A table with a line for each I/O.
    Table(Box<Columns>),
}

impl Format {
    /// Whether its recordings always show the plugs of tasks; the others do if their events were enabled.
    #[must_use]
    pub fn records_plugs(&self) -> bool {
        matches!(self, Format::Blktrace | Format::Blkparse)
    }

    /// Whether its events name the CPU on which they happened.
    #[must_use]
    pub fn records_cpus(&self) -> bool {
        matches!(self, Format::Blktrace | Format::Blkparse | Format::TracefsText)
    }
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

/// A format that a file may have, and the evidence for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The format.
    pub format: Format,
    /// The evidence, in words.
    pub why: String,
}

/// All formats that match the beginning of a file.
#[must_use]
pub fn candidates(head: &[u8]) -> Vec<Candidate> {
    let candidate = |format, why: &str| Candidate { format, why: why.to_owned() };
    if blktrace::is_recording(head) {
        return vec![candidate(Format::Blktrace, "the magic number of blktrace")];
    }
    if vscsi::detect_layout(head).is_some() {
        return vec![candidate(Format::Vscsi, "records with versions, commands and times of vSCSI")];
    }
    // The last line may be cut off.
    let any_line = |test: fn(&[u8]) -> bool| lines(head).find(|line| test(line)).is_some();
    let mut candidates = Vec::new();
    if any_line(blkparse::is_event) {
        candidates.push(candidate(Format::Blkparse, "lines of device, CPU, time, pid, action and flags"));
    }
    if any_line(tracefs_text::is_event) {
        candidates.push(candidate(Format::TracefsText, "lines of task, CPU, time and an event of the block layer"));
    }
    if any_line(biosnoop::is_header) {
        candidates.push(candidate(Format::Biosnoop, "a header with the columns of biosnoop or iosnoop -ts"));
    }
    if candidates.is_empty() && biosnoop::is_without_header(whole_lines(head)) {
        candidates.push(candidate(Format::Biosnoop, "lines with biosnoop's columns"));
    }
    if candidates.is_empty() {
        let why = "the first lines have these columns";
        let tables = table::matching_presets(lines(head)).into_iter();
        candidates.extend(tables.map(|columns| candidate(Format::Table(Box::new(columns)), why)));
    }
    candidates
}

/// The first line that resembles an event but is malformed: its number, what is wrong with it, and what was expected.
pub(crate) fn first_malformed_line(head: &[u8]) -> Option<(u64, &'static str, &'static str)> {
    let parse_failure = |line| tracefs_text::parse_failure(line).or_else(|| blkparse::parse_failure(line));
    lines(head)
        .zip(1..)
        .find_map(|(line, number)| parse_failure(line).map(|(problem, expected)| (number, problem, expected)))
}

/// The kind of a file that is not a recording, and what was expected instead; `None` if the kind is unknown.
pub(crate) fn describe_non_recording(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const JOB: (&str, &str) =
        ("this is a fio job file, not a recording", "a recording; hoistway compare takes job files");
    const IO_LOG: (&str, &str) =
        ("this is an I/O log of fio, which has no completions", "a recording; hoistway compare replays I/O logs");
    const LOG: (&str, &str) = (
        "this is a log of fio's latencies, rates or histograms, which has no addresses of I/Os",
        "a recording, or an I/O log (write_iolog)",
    );
    const RESULTS: (&str, &str) = ("these are results of fio", "a recording, or the job file");
    const BTT: (&str, &str) = ("this is output of btt", "the recording that it was made from");
    const SUMMARY: (&str, &str) = (
        "this is a summary, which has no individual I/Os",
        "a recording; hoistway compare synthesises a load from the output of iostat -x",
    );
    if head.starts_with(b"fio version ") {
        return Some(IO_LOG);
    }
    let contains = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    if contains(b"\"fio version\"") || head.starts_with(b"3;fio-") || head.starts_with(b"5;fio-") {
        return Some(RESULTS);
    }
    if head.starts_with(b"==================== ") {
        return Some(BTT);
    }
    if (contains(b"r/s") && contains(b"w/s")) || contains(b"\"sysstat\"") {
        return Some(SUMMARY);
    }
    let mut content_lines = lines(head)
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && !line.starts_with(b";") && !line.starts_with(b"#"));
    let first = content_lines.next()?;
    // An event's line without its task may begin with a CPU and end with a name in brackets, too.
    let section = first.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    if section.is_some_and(|name| !name.contains(&b']')) {
        return Some(JOB);
    }
    let is_number = |field: &[u8]| {
        let field = field.trim_ascii();
        !field.is_empty() && field.iter().all(|letter| letter.is_ascii_hexdigit() || *letter == b'x')
    };
    let is_log = |line: &[u8]| {
        let fields = || line.split(|letter| *letter == b',');
        memchr::memmem::find(line, b", ").is_some() && fields().count() >= 4 && fields().all(is_number)
    };
    (is_log(first) && content_lines.next().is_none_or(is_log)).then_some(LOG)
}

/// The first lines, without one that the end of `head` cuts off.
fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let end = memchr::memrchr(b'\n', head).filter(|_| head.len() >= HEAD_BYTES).unwrap_or(head.len());
    lines(&head[..end])
}

/// The first lines.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    const LINES_MAX: usize = 1000;
    head.split(|&letter| letter == b'\n').take(LINES_MAX)
}
