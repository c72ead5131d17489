//! Output of BCC's biosnoop, and of iosnoop -ts of perf-tools: one line per request, printed at its completion. The header names the
//! columns; biosnoop's are known without it.

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
/// Maximum columns after the task's name.
const COLUMNS_MAX: usize = 10;

/// A column after the task's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Pid,
    Disk,
    Direction,
    Sector,
    Bytes,
    /// Time from insertion to issue, in milliseconds.
    Queued,
    /// Time from issue to completion, in milliseconds.
    Latency,
    Other,
}

/// What the lines have: times, the task's name, which may contain blanks, and further columns.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Layout {
    /// Number of times before the name; the last one is that of the completion.
    times: usize,
    columns: Vec<Column>,
}

impl Layout {
    /// That of a header; `None` if the line is not one.
    fn of_header(line: &[u8]) -> Option<Layout> {
        let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let times = words.iter().position(|word| *word == b"COMM")?;
        // The time of the start alone would do, but no tool prints that.
        let ends = matches!(words[..times], [b"TIME(s)"] | [b"ENDs"] | [b"STARTs", b"ENDs"]);
        let columns: Vec<Column> = words[times + 1..]
            .iter()
            .map(|word| match *word {
                b"PID" => Column::Pid,
                b"DISK" | b"DEV" => Column::Disk,
                b"T" | b"TYPE" => Column::Direction,
                b"SECTOR" | b"BLOCK" => Column::Sector,
                b"BYTES" => Column::Bytes,
                b"QUE(ms)" => Column::Queued,
                b"LAT(ms)" | b"LATms" => Column::Latency,
                _ => Column::Other,
            })
            .collect();
        use Column::{Bytes, Direction, Disk, Latency, Pid, Sector};
        let has_all = [Pid, Disk, Direction, Sector, Bytes, Latency].iter().all(|column| columns.contains(column));
        (ends && has_all && columns.len() <= COLUMNS_MAX).then_some(Layout { times, columns })
    }

    /// Those of biosnoop, with and without -Q.
    fn of_biosnoop() -> [Layout; 2] {
        use Column::{Bytes, Direction, Disk, Latency, Pid, Queued, Sector};
        [vec![Pid, Disk, Direction, Sector, Bytes, Queued, Latency], vec![Pid, Disk, Direction, Sector, Bytes, Latency]]
            .map(|columns| Layout { times: 1, columns })
    }

    /// The one of biosnoop that a line has, if the header was cut off.
    fn without_header(line: &[u8]) -> Option<Layout> {
        Layout::of_biosnoop().into_iter().find(|layout| parse(layout, line).is_some())
    }
}

/// Whether a line is such a header, for format detection.
pub(crate) fn is_header(line: &[u8]) -> bool {
    Layout::of_header(line).is_some()
}

/// Whether lines are biosnoop's without a header, for format detection.
pub(crate) fn is_without_header<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    const LINES: usize = 20;
    let mut lines = lines.filter(|line| !line.trim_ascii().is_empty()).take(LINES).peekable();
    lines.peek().is_some() && lines.all(|line| Layout::without_header(line).is_some())
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

fn parse<'a>(layout: &Layout, line: &'a [u8]) -> Option<Row<'a>> {
    let (mut rest, mut complete_ns) = (line, 0);
    for _ in 0..layout.times {
        rest = rest.trim_ascii();
        let end = rest.iter().position(u8::is_ascii_whitespace)?;
        complete_ns = decimal_nanos(&rest[..end])?;
        rest = &rest[end..];
    }
    // A task's name may contain blanks, so the other fields are split off from the right.
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
    for column in layout.columns.iter().rev() {
        let word = take_last_word()?;
        match column {
            Column::Pid => row.pid = if word == b"?" || word == b"-1" { 0 } else { decimal_u32(word)? },
            Column::Disk => row.disk = word,
            // One letter, or the letters of the request's flags.
            Column::Direction => {
                let is_known = word.iter().all(|letter| b"RWDFSMAN".contains(letter));
                row.flags = Some(Flags::from_letters(word))
                    .filter(|_| is_known && word.iter().any(|letter| b"RWD".contains(letter)))?;
            }
            // An unknown sector is printed as -1.
            Column::Sector => row.sector = if word == b"-1" { 0 } else { decimal(word)? },
            Column::Bytes => row.bytes = decimal(word)?,
            Column::Queued => row.queued_ns = ns_from_ms(word),
            Column::Latency => row.latency_ns = ns_from_ms(word)?,
            Column::Other => {}
        }
    }
    row.task = rest.trim_ascii();
    Some(row)
}

/// Reader of biosnoop output.
#[derive(Debug)]
pub(crate) struct Biosnoop {
    input: Input,
    layout: Option<Layout>,
    sorter: Sorter,
    disks: FxHashMap<Box<[u8]>, u32>,
    is_at_end: bool,
}

impl Biosnoop {
    pub(crate) fn new(input: Input) -> Biosnoop {
        let (layout, disks) = (None, FxHashMap::default());
        Biosnoop { input, layout, sorter: Sorter::new(WINDOW_NS), disks, is_at_end: false }
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

    /// The name of a disk.
    pub(crate) fn disk_name(&self, device: Device) -> Option<String> {
        let (name, _) = self.disks.iter().find(|(_, minor)| **minor == device.minor)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    fn read_line(&mut self, names: &mut Names, losses: &mut Losses) -> Result<(), ReadError> {
        let Some(line) = self.input.line()? else {
            self.is_at_end = true;
            return Ok(());
        };
        if let Some(layout) = Layout::of_header(line) {
            if self.layout.is_some() {
                return Err(self.input.line_error("a second header", "one output of biosnoop in a file"));
            }
            self.layout = Some(layout);
            return Ok(());
        }
        if self.layout.is_none() {
            self.layout = Layout::without_header(line);
        }
        let Some(layout) = self.layout.as_ref().filter(|_| !line.trim_ascii().is_empty()) else {
            losses.foreign_lines += 1;
            return Ok(());
        };
        let Some(row) = parse(layout, line) else {
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
