//! Output of BCC's biosnoop: one line per request, printed at its completion. The header names the columns.

use hoistway_blk::bio::IoPriority;
use rustc_hash::FxHashMap;

use super::error::{Losses, ReadError, quoted};
use super::event::{Action, Device, Event, Flags, Payload};
use super::input::Input;
use super::names::Names;
use super::sorter::Sorter;
use super::text::{decimal, decimal_nanos, decimal_u32};

/// Longest time that a request may have taken, ns.
const WINDOW_NS: u64 = 60_000_000_000;
/// Maximum columns after the disk.
const COLUMNS_AFTER_DISK_MAX: usize = 8;

/// A column after the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Direction,
    Sector,
    Bytes,
    /// Time from insertion to issue, in milliseconds.
    Queued,
    /// Time from issue to completion, in milliseconds.
    Latency,
    Other,
}

/// The columns of a header; `None` if the line is not a header.
fn parse_header(line: &[u8]) -> Option<Vec<Column>> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let has_fixed_columns = words.by_ref().take(4).eq([&b"TIME(s)"[..], b"COMM", b"PID", b"DISK"]);
    let columns: Vec<Column> = words
        .map(|word| match word {
            b"T" => Column::Direction,
            b"SECTOR" => Column::Sector,
            b"BYTES" => Column::Bytes,
            b"QUE(ms)" => Column::Queued,
            b"LAT(ms)" => Column::Latency,
            _ => Column::Other,
        })
        .collect();
    let contains = |column: Column| columns.contains(&column);
    let has_required_columns =
        [Column::Direction, Column::Sector, Column::Bytes, Column::Latency].into_iter().all(contains);
    (has_fixed_columns && has_required_columns && columns.len() <= COLUMNS_AFTER_DISK_MAX).then_some(columns)
}

/// Whether a line is such a header, for format detection.
pub(crate) fn is_header(line: &[u8]) -> bool {
    parse_header(line).is_some()
}

/// The request of a line.
struct Row<'a> {
    complete_ns: u64,
    task: &'a [u8],
    pid: u32,
    disk: &'a [u8],
    flags: Flags,
    sector: u64,
    bytes: u64,
    queued_ns: Option<u64>,
    latency_ns: u64,
}

fn parse<'a>(columns: &[Column], line: &'a [u8]) -> Option<Row<'a>> {
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    let complete_ns = decimal_nanos(&line[..end])?;
    // A task's name may contain blanks, so the other fields are split off from the right.
    let mut rest = &line[end..];
    let mut take_last_word = || {
        rest = rest.trim_ascii_end();
        let blank = rest.iter().rposition(u8::is_ascii_whitespace)?;
        let (before, word) = rest.split_at(blank + 1);
        rest = before;
        Some(word)
    };
    let mut row = Row {
        complete_ns,
        task: b"",
        pid: 0,
        disk: b"",
        flags: Flags::READ,
        sector: 0,
        bytes: 0,
        queued_ns: None,
        latency_ns: 0,
    };
    let ns_from_ms = |word: &[u8]| decimal_nanos(word).map(|value| value / 1000);
    for column in columns.iter().rev() {
        let word = take_last_word()?;
        match column {
            Column::Direction if word == b"W" => row.flags = Flags::WRITE,
            Column::Direction if word == b"R" => {}
            Column::Direction => return None,
            // An unknown sector is printed as -1.
            Column::Sector => row.sector = if word == b"-1" { 0 } else { decimal(word)? },
            Column::Bytes => row.bytes = decimal(word)?,
            Column::Queued => row.queued_ns = ns_from_ms(word),
            Column::Latency => row.latency_ns = ns_from_ms(word)?,
            Column::Other => {}
        }
    }
    row.disk = take_last_word()?;
    let pid = take_last_word()?;
    row.pid = if pid == b"?" || pid == b"-1" { 0 } else { decimal_u32(pid)? };
    row.task = rest.trim_ascii();
    Some(row)
}

/// Reader of biosnoop output.
#[derive(Debug)]
pub(crate) struct Biosnoop {
    input: Input,
    columns: Vec<Column>,
    sorter: Sorter,
    disks: FxHashMap<Box<[u8]>, u32>,
    is_at_end: bool,
}

impl Biosnoop {
    pub(crate) fn new(input: Input) -> Biosnoop {
        let (columns, disks) = (Vec::new(), FxHashMap::default());
        Biosnoop { input, columns, sorter: Sorter::new(WINDOW_NS), disks, is_at_end: false }
    }

    pub(crate) fn next(&mut self, names: &mut Names, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = if self.is_at_end { self.sorter.pop_remaining() } else { self.sorter.pop() } {
                return Ok(Some(event));
            }
            if self.is_at_end {
                losses.step_back_ns = self.sorter.step_back_ns();
                return Ok(None);
            }
            self.read_line(names, losses)?;
        }
    }

    fn read_line(&mut self, names: &mut Names, losses: &mut Losses) -> Result<(), ReadError> {
        let Some(line) = self.input.line()? else {
            self.is_at_end = true;
            return Ok(());
        };
        if let Some(columns) = parse_header(line) {
            if !self.columns.is_empty() {
                return Err(self.input.line_error("a second header", "one output of biosnoop in a file"));
            }
            self.columns = columns;
            return Ok(());
        }
        if self.columns.is_empty() || line.trim_ascii().is_empty() {
            losses.foreign_lines += 1;
            return Ok(());
        }
        let Some(row) = parse(&self.columns, line) else {
            let message = format!("this is not a line of biosnoop: {}", quoted(line.trim_ascii()));
            return Err(self.input.line_error(message, "a line with the columns of its header"));
        };
        if row.bytes == 0 {
            losses.empty_ios += 1;
            return Ok(());
        }
        names.learn(row.pid, row.task);
        let next_minor = self.disks.len() as u32 & 0xf_ffff;
        let minor = match self.disks.get(row.disk) {
            Some(&minor) => minor,
            None => *self.disks.entry(row.disk.into()).or_insert(next_minor),
        };
        // Times are relative to the first completion, but requests were issued before that.
        let complete_ns = row.complete_ns.saturating_add(WINDOW_NS);
        let event = Event {
            time_ns: complete_ns,
            sector: row.sector,
            bytes: u32::try_from(row.bytes).unwrap_or(u32::MAX),
            pid: row.pid,
            device: Device { major: 259, minor },
            cpu: 0,
            error: 0,
            action: Action::Complete,
            flags: row.flags,
            priority: IoPriority::UNSET,
            cgroup: 0,
            payload: Payload::None,
        };
        let issue_ns = complete_ns.saturating_sub(row.latency_ns);
        let issued = Event { time_ns: issue_ns, action: Action::Issue, ..event };
        let inserted = row.queued_ns.map(|queued_ns| Event {
            time_ns: issue_ns.saturating_sub(queued_ns),
            action: Action::Insert,
            ..event
        });
        self.sorter.advance_to(complete_ns);
        for event in [inserted, Some(issued), Some(event)].into_iter().flatten() {
            self.sorter.push(event).map_err(|late_ns| {
                let message = format!("this request was issued {late_ns} ns too early for its place");
                self.input.line_error(message, "requests that took less than 60 s, sorted by completion")
            })?;
        }
        Ok(())
    }
}
