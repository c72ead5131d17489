//! Tables of I/Os: one line for each I/O, with described columns.

use std::fmt;

use hoistway_blk::bio::IoPriority;
use rustc_hash::FxHashMap;

use super::error::{Losses, ReadError, shown};
use super::event::{Action, Device, Event, Flags, Payload};
use super::input::Input;
use super::order::Order;
use super::text::{decimal, nano};

/// Tables are nearly sorted: an I/O may be this far out of order, ns.
const WINDOW_NS: u64 = 1_000_000_000;
/// Maximum columns of a line.
const COLUMNS_MAX: usize = 32;

/// The column of a number, from 0, and its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Scaled {
    column: usize,
    /// One unit in nanoseconds or bytes.
    unit: u64,
}

/// The meaning of a table's columns. Written as `time=1:us,dev=2,op=3:R/W,offset=4:bytes,size=5:bytes,response=6:us`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    /// The description or the name of a preset.
    name: String,
    time: Scaled,
    response: Option<Scaled>,
    offset: Scaled,
    size: Scaled,
    /// The column of the operation, and its texts for a read and for a write.
    operation: (usize, String, String),
    /// Columns that together name the device.
    devices: Vec<usize>,
    pid: Option<usize>,
    /// The table's header line, if it has one.
    head: Option<&'static str>,
}

/// Presets: name, description, and header line.
const PRESETS: [(&str, &str, Option<&str>); 7] = [
    ("msr", "time=1:100ns,host=2,dev=3,op=4:Read/Write,offset=5:bytes,size=6:bytes,response=7:100ns", None),
    ("alibaba", "dev=1,op=2:R/W,offset=3:bytes,size=4:bytes,time=5:us", None),
    ("tencent", "time=1:s,offset=2:sectors,size=3:sectors,op=4:0/1,dev=5", None),
    ("spc", "dev=1,offset=2:sectors,size=3:bytes,op=4:R/W,time=5:s", None),
    (
        "systor17",
        "time=1:s,response=2:s,op=3:R/W,dev=4,offset=5:bytes,size=6:bytes",
        Some("Timestamp,Response,IOType,LUN,Offset,Size"),
    ),
    ("fiu", "time=1:ns,pid=2,offset=4:sectors,size=5:sectors,op=6:R/W,dev=7", None),
    ("mqsim", "time=1:ns,dev=2,offset=3:sectors,size=4:sectors,op=5:1/0", None),
];

impl Columns {
    /// Names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, ..)| *name)
    }

    /// A preset by its name, or a description.
    ///
    /// # Errors
    /// If it is invalid: what is wrong, and what was expected.
    pub fn parse(text: &str) -> Result<Columns, String> {
        let preset = PRESETS.iter().find(|(name, ..)| *name == text);
        let (description, head) = preset.map_or((text, None), |(_, description, head)| (*description, *head));
        let mut parts: FxHashMap<&str, (usize, &str)> = FxHashMap::default();
        let mut devices = Vec::new();
        for part in description.split(',') {
            let expected = || {
                let presets: Vec<&str> = Columns::presets().collect();
                format!("{part:?}: expected NAME=COLUMN[:UNIT], as time=1:us, or one of {}", presets.join(", "))
            };
            let (name, value) = part.split_once('=').ok_or_else(expected)?;
            let (column, unit) = value.split_once(':').unwrap_or((value, ""));
            let column: usize =
                column.parse().ok().filter(|column| (1..=COLUMNS_MAX).contains(column)).ok_or_else(expected)?;
            match name {
                "dev" | "host" => devices.push(column - 1),
                "time" | "response" | "offset" | "size" | "op" | "pid" => {
                    if parts.insert(name, (column - 1, unit)).is_some() {
                        return Err(format!("{part:?}: there are two columns for {name} (expected one)"));
                    }
                }
                _ => return Err(format!("{part:?}: expected time, response, offset, size, op, dev, host or pid")),
            }
        }
        let wanted = |name: &str| {
            parts.get(name).copied().ok_or_else(|| format!("there is no column for {name} (expected one)"))
        };
        let (operation, words) = wanted("op")?;
        let words = if words.is_empty() { "R/W" } else { words };
        let (read, write) = words.split_once('/').ok_or_else(|| format!("op:{words}: expected READ/WRITE, as R/W"))?;
        Ok(Columns {
            name: text.to_owned(),
            time: scaled(wanted("time")?, "us")?,
            response: parts.get("response").map(|&column| scaled(column, "us")).transpose()?,
            offset: scaled(wanted("offset")?, "bytes")?,
            size: scaled(wanted("size")?, "bytes")?,
            operation: (operation, read.to_owned(), write.to_owned()),
            devices,
            pid: parts.get("pid").map(|(column, _)| *column),
            head,
        })
    }

    /// Number of columns that a line needs.
    fn count(&self) -> usize {
        let numbers = [Some(self.time), self.response, Some(self.offset), Some(self.size)];
        let numbers = numbers.into_iter().flatten().map(|of| of.column);
        let others = self.devices.iter().copied().chain(self.pid).chain([self.operation.0]);
        numbers.chain(others).max().map_or(0, |last| last + 1)
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn scaled((column, unit): (usize, &str), usual: &str) -> Result<Scaled, String> {
    let unit = match if unit.is_empty() { usual } else { unit } {
        "ns" | "bytes" => 1,
        "100ns" => 100,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "sectors" => 512,
        "KiB" => 1024,
        other => return Err(format!("{other:?}: expected ns, 100ns, us, ms, s, bytes, sectors or KiB")),
    };
    Ok(Scaled { column, unit })
}

/// Splits a line into fields, at commas if it has any, otherwise at blanks.
fn fields<'a>(line: &'a [u8], into: &mut [&'a [u8]; COLUMNS_MAX]) -> usize {
    let mut count = 0;
    let mut add = |field: &'a [u8]| {
        if count < COLUMNS_MAX {
            into[count] = field.trim_ascii();
            count += 1;
        }
    };
    if line.contains(&b',') {
        line.split(|letter| *letter == b',').for_each(&mut add);
    } else {
        line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).for_each(&mut add);
    }
    count
}

/// Parses a number with or without decimals, and converts it from its unit.
fn value(text: &[u8], unit: u64) -> Option<u64> {
    if let Some(number) = decimal(text) {
        return number.checked_mul(unit);
    }
    let product = u128::from(nano(text)?) * u128::from(unit) / 1_000_000_000;
    u64::try_from(product).ok()
}

/// The I/O of a line.
struct Row<'a> {
    time_ns: u64,
    response_ns: Option<u64>,
    offset: u64,
    bytes: u64,
    is_write: bool,
    pid: u32,
    devices: [&'a [u8]; 2],
}

fn parse<'a>(columns: &Columns, line: &'a [u8]) -> Option<Row<'a>> {
    let mut found: [&[u8]; COLUMNS_MAX] = [b""; COLUMNS_MAX];
    let count = fields(line, &mut found);
    if count < columns.count() {
        return None;
    }
    let number = |of: Scaled| value(found[of.column], of.unit);
    let (column, read, write) = &columns.operation;
    let operation = found[*column];
    let is_write = if operation.eq_ignore_ascii_case(write.as_bytes()) {
        true
    } else if operation.eq_ignore_ascii_case(read.as_bytes()) {
        false
    } else {
        return None;
    };
    let mut devices: [&[u8]; 2] = [b""; 2];
    devices.iter_mut().zip(&columns.devices).for_each(|(device, column)| *device = found[*column]);
    Some(Row {
        time_ns: number(columns.time)?,
        response_ns: match columns.response {
            Some(of) => Some(number(of)?),
            None => None,
        },
        offset: number(columns.offset)?,
        bytes: number(columns.size)?,
        is_write,
        pid: match columns.pid {
            Some(column) => u32::try_from(decimal(found[column])?).ok()?,
            None => 0,
        },
        devices,
    })
}

/// The presets that match all of the first lines of a table.
pub(crate) fn presets_of<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<Columns> {
    const LINES: usize = 20;
    // fio's latency and rate logs look like tencent's tables, except for their blanks.
    let has_blanks = |line: &[u8]| memchr::memmem::find(line, b", ").is_some();
    let presets = PRESETS.iter().filter_map(|(name, ..)| Columns::parse(name).ok());
    let is_it = |columns: &Columns| {
        let mut lines = lines.clone().filter(|line| !line.trim_ascii().is_empty());
        if let Some(head) = columns.head
            && lines.next().is_none_or(|line| line.trim_ascii() != head.as_bytes())
        {
            return false;
        }
        let mut some = false;
        let fits = lines.take(LINES).all(|line| {
            let mut found: [&[u8]; COLUMNS_MAX] = [b""; COLUMNS_MAX];
            let count = fields(line, &mut found);
            let row = parse(columns, line);
            some |= row.is_some();
            // An empty field is an unknown value. FIU's tables have a further column if there is a hash per block.
            let is_unknown = row.is_none() && found[..count].contains(&&b""[..]);
            let has_count = count == columns.count() || (columns.name == "fiu" && count == 9);
            has_count
                && !has_blanks(line)
                && line.contains(&b',') == (columns.name != "fiu" && columns.name != "mqsim")
                && (row.is_some() || is_unknown)
        });
        fits && some
    };
    presets.filter(is_it).collect()
}

/// The reader.
#[derive(Debug)]
pub(crate) struct Table {
    input: Input,
    columns: Columns,
    order: Order,
    devices: FxHashMap<Box<[u8]>, u32>,
    /// The device of the last line.
    key: Vec<u8>,
    is_at_end: bool,
}

impl Table {
    pub(crate) fn new(input: Input, columns: Columns) -> Table {
        let (devices, key) = (FxHashMap::default(), Vec::new());
        Table { input, columns, order: Order::new(WINDOW_NS), devices, key, is_at_end: false }
    }

    pub(crate) fn next(&mut self, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = if self.is_at_end { self.order.pop_any() } else { self.order.pop() } {
                return Ok(Some(event));
            }
            if self.is_at_end {
                losses.step_back_ns = self.order.step_back_ns();
                return Ok(None);
            }
            self.read_line(losses)?;
        }
    }

    fn read_line(&mut self, losses: &mut Losses) -> Result<(), ReadError> {
        let Some(line) = self.input.line()? else {
            self.is_at_end = true;
            return Ok(());
        };
        let line = line.trim_ascii();
        let Some(row) = parse(&self.columns, line) else {
            let has_gap = line.split(|letter| *letter == b',').any(<[u8]>::is_empty);
            if line.is_empty() || has_gap || self.columns.head.is_some_and(|head| line == head.as_bytes()) {
                losses.foreign_lines += u64::from(has_gap);
                return Ok(());
            }
            let message = format!("this is not a line of such a table: {}", shown(line));
            return Err(self.input.line_error(message, format!("columns as in {}", self.columns)));
        };
        if row.bytes == 0 {
            losses.empty_ios += 1;
            return Ok(());
        }
        let Ok(bytes) = u32::try_from(row.bytes) else {
            let message = format!("an I/O of {} bytes", row.bytes);
            return Err(self.input.line_error(message, "less than 4 GiB"));
        };
        self.key.clear();
        for part in row.devices {
            self.key.extend(part);
            self.key.push(b',');
        }
        let next = self.devices.len() as u32;
        let minor = match self.devices.get(&self.key[..]) {
            Some(&minor) => minor,
            None if next >= 1 << 20 => {
                return Err(self.input.line_error("more than 1048576 devices", "a table of fewer"));
            }
            None => *self.devices.entry(self.key[..].into()).or_insert(next),
        };
        let flags = if row.is_write { Flags::WRITE } else { Flags::READ };
        let queued = Event {
            time_ns: row.time_ns,
            sector: row.offset / 512,
            bytes,
            pid: row.pid,
            device: Device { major: 259, minor },
            cpu: 0,
            error: 0,
            action: Action::Queue,
            flags,
            priority: IoPriority::UNSET,
            cgroup: 0,
            payload: Payload::None,
        };
        let completed = row.response_ns.map(|response_ns| Event {
            time_ns: row.time_ns.saturating_add(response_ns),
            action: Action::Complete,
            ..queued
        });
        self.order.reached(row.time_ns);
        for event in [Some(queued), completed].into_iter().flatten() {
            self.order.push(event).map_err(|late_ns| {
                let message = format!("the time goes back by {late_ns} ns");
                self.input.line_error(message, "lines that are sorted by time to within 1 s")
            })?;
        }
        Ok(())
    }
}
