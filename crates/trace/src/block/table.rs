//! Tables of I/Os: one line for each I/O, with described columns.

use std::fmt;

use hoistway_blk::bio::IoPriority;
use rustc_hash::FxHashMap;

use super::error::{Losses, ReadError, quoted};
use super::event::{Action, Device, Event, Flags, Payload};
use super::input::Input;
use super::sorter::Sorter;
use super::text::{decimal, decimal_nanos};

/// Tables are nearly sorted: an I/O may be this far out of order, ns.
const WINDOW_NS: u64 = 1_000_000_000;
/// Maximum columns of a line.
const COLUMNS_MAX: usize = 32;

/// The column of a number, from 0, and its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NumberColumn {
    column: usize,
    /// One unit in nanoseconds or bytes.
    unit: u64,
}

/// The meaning of a table's columns. Written as `time=1:us,dev=2,op=3:R/W,offset=4:bytes,size=5:bytes,response=6:us`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    /// The description or the name of a preset.
    name: String,
    time: NumberColumn,
    response: Option<NumberColumn>,
    offset: NumberColumn,
    size: NumberColumn,
    /// The column of the operation, and its texts for a read and for a write.
    operation: (usize, String, String),
    /// Columns that together name the device.
    devices: Vec<usize>,
    pid: Option<usize>,
    /// The table's header line, if it has one.
    header_line: Option<&'static str>,
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
        let (description, header_line) =
            preset.map_or((text, None), |(_, description, header_line)| (*description, *header_line));
        let mut columns_by_name: FxHashMap<&str, (usize, &str)> = FxHashMap::default();
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
                    if columns_by_name.insert(name, (column - 1, unit)).is_some() {
                        return Err(format!("{part:?}: there are two columns for {name} (expected one)"));
                    }
                }
                _ => return Err(format!("{part:?}: expected time, response, offset, size, op, dev, host or pid")),
            }
        }
        let required = |name: &str| {
            columns_by_name.get(name).copied().ok_or_else(|| format!("there is no column for {name} (expected one)"))
        };
        let (operation, texts) = required("op")?;
        let texts = if texts.is_empty() { "R/W" } else { texts };
        let (read, write) = texts.split_once('/').ok_or_else(|| format!("op:{texts}: expected READ/WRITE, as R/W"))?;
        Ok(Columns {
            name: text.to_owned(),
            time: number_column(required("time")?, "us")?,
            response: columns_by_name.get("response").map(|&column| number_column(column, "us")).transpose()?,
            offset: number_column(required("offset")?, "bytes")?,
            size: number_column(required("size")?, "bytes")?,
            operation: (operation, read.to_owned(), write.to_owned()),
            devices,
            pid: columns_by_name.get("pid").map(|(column, _)| *column),
            header_line,
        })
    }

    /// Number of columns that a line needs.
    fn count(&self) -> usize {
        let numbers = [Some(self.time), self.response, Some(self.offset), Some(self.size)];
        let numbers = numbers.into_iter().flatten().map(|number| number.column);
        let others = self.devices.iter().copied().chain(self.pid).chain([self.operation.0]);
        numbers.chain(others).max().map_or(0, |last| last + 1)
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn number_column((column, unit): (usize, &str), default_unit: &str) -> Result<NumberColumn, String> {
    let unit = match if unit.is_empty() { default_unit } else { unit } {
        "ns" | "bytes" => 1,
        "100ns" => 100,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "sectors" => 512,
        "KiB" => 1024,
        other => return Err(format!("{other:?}: expected ns, 100ns, us, ms, s, bytes, sectors or KiB")),
    };
    Ok(NumberColumn { column, unit })
}

/// Splits a line into fields: at semicolons if it has any, else at commas, else at blanks.
fn split_fields<'a>(line: &'a [u8], fields: &mut [&'a [u8]; COLUMNS_MAX]) -> usize {
    let mut count = 0;
    let mut add = |field: &'a [u8]| {
        if count < COLUMNS_MAX {
            fields[count] = field.trim_ascii();
            count += 1;
        }
    };
    if let Some(separator) = [b';', b','].into_iter().find(|separator| line.contains(separator)) {
        line.split(|letter| *letter == separator).for_each(&mut add);
    } else {
        line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).for_each(&mut add);
    }
    count
}

/// Parses a number with or without decimals, after a point or a comma, and converts it from its unit.
fn value(text: &[u8], unit: u64) -> Option<u64> {
    if let Some(comma) = memchr::memchr(b',', text) {
        let whole = decimal(&text[..comma])?.checked_mul(unit)?;
        let mut fraction = *b"0.000000000";
        let digits = &text[comma + 1..];
        fraction[2..].iter_mut().zip(digits).for_each(|(to, digit)| *to = *digit);
        return whole.checked_add(value(&fraction, unit).filter(|_| digits.iter().all(u8::is_ascii_digit))?);
    }
    if let Some(number) = decimal(text) {
        return number.checked_mul(unit);
    }
    let product = u128::from(decimal_nanos(text)?) * u128::from(unit) / 1_000_000_000;
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
    let mut fields: [&[u8]; COLUMNS_MAX] = [b""; COLUMNS_MAX];
    let count = split_fields(line, &mut fields);
    if count < columns.count() {
        return None;
    }
    let number = |source: NumberColumn| value(fields[source.column], source.unit);
    let (column, read, write) = &columns.operation;
    let operation = fields[*column];
    let is_write = if operation.eq_ignore_ascii_case(write.as_bytes()) {
        true
    } else if operation.eq_ignore_ascii_case(read.as_bytes()) {
        false
    } else {
        return None;
    };
    let mut devices: [&[u8]; 2] = [b""; 2];
    devices.iter_mut().zip(&columns.devices).for_each(|(device, column)| *device = fields[*column]);
    Some(Row {
        time_ns: number(columns.time)?,
        response_ns: match columns.response {
            Some(source) => Some(number(source)?),
            None => None,
        },
        offset: number(columns.offset)?,
        bytes: number(columns.size)?,
        is_write,
        pid: match columns.pid {
            Some(column) => u32::try_from(decimal(fields[column])?).ok()?,
            None => 0,
        },
        devices,
    })
}

/// The presets that match all of the first lines of a table.
pub(crate) fn matching_presets<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<Columns> {
    const LINES: usize = 20;
    // fio's latency and rate logs look like tencent's tables, except for their blanks.
    let has_blanks = |line: &[u8]| memchr::memmem::find(line, b", ").is_some();
    let presets = PRESETS.iter().filter_map(|(name, ..)| Columns::parse(name).ok());
    let matches = |columns: &Columns| {
        let mut lines = lines.clone().filter(|line| !line.trim_ascii().is_empty());
        if let Some(header_line) = columns.header_line
            && lines.next().is_none_or(|line| line.trim_ascii() != header_line.as_bytes())
        {
            return false;
        }
        let mut has_row = false;
        let all_match = lines.take(LINES).all(|line| {
            let mut fields: [&[u8]; COLUMNS_MAX] = [b""; COLUMNS_MAX];
            let count = split_fields(line, &mut fields);
            let row = parse(columns, line);
            has_row |= row.is_some();
            // An empty field is an unknown value. FIU's tables have a further column if there is a hash per block.
            let is_unknown = row.is_none() && fields[..count].contains(&&b""[..]);
            let has_count = count == columns.count() || (columns.name == "fiu" && count == 9);
            has_count
                && !has_blanks(line)
                && line.contains(&b',') == (columns.name != "fiu" && columns.name != "mqsim")
                && (row.is_some() || is_unknown)
        });
        all_match && has_row
    };
    presets.filter(matches).collect()
}

/// The reader.
#[derive(Debug)]
pub(crate) struct Table {
    input: Input,
    columns: Columns,
    sorter: Sorter,
    /// Minor numbers by the columns that name a device, each with a comma after it.
    devices: FxHashMap<Box<[u8]>, u32>,
    /// The device of the last line.
    device_key: Vec<u8>,
    is_at_end: bool,
}

impl Table {
    pub(crate) fn new(input: Input, columns: Columns) -> Table {
        let (devices, device_key) = (FxHashMap::default(), Vec::new());
        Table { input, columns, sorter: Sorter::new(WINDOW_NS), devices, device_key, is_at_end: false }
    }

    pub(crate) fn next(&mut self, losses: &mut Losses) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = if self.is_at_end { self.sorter.pop_remaining() } else { self.sorter.pop() } {
                return Ok(Some(event));
            }
            if self.is_at_end {
                losses.step_back_ns = self.sorter.step_back_ns();
                return Ok(None);
            }
            self.read_line(losses)?;
        }
    }

    /// The name of a device: the columns that name it; `None` if the table has none.
    pub(crate) fn disk_name(&self, device: Device) -> Option<String> {
        let (key, _) = self.devices.iter().find(|(_, minor)| **minor == device.minor)?;
        let parts = key.split(|letter| *letter == b',').filter(|part| !part.is_empty());
        let parts: Vec<_> = parts.map(String::from_utf8_lossy).collect();
        (!parts.is_empty()).then(|| parts.join("."))
    }

    fn read_line(&mut self, losses: &mut Losses) -> Result<(), ReadError> {
        let is_first = self.input.lines() == 0;
        let Some(line) = self.input.line()? else {
            self.is_at_end = true;
            return Ok(());
        };
        let line = line.trim_ascii();
        let Some(row) = parse(&self.columns, line) else {
            let has_empty_field = line.split(|letter| *letter == b',' || *letter == b';').any(<[u8]>::is_empty);
            // The names of the columns.
            let is_header = is_first && !line.iter().any(u8::is_ascii_digit);
            if line.is_empty()
                || has_empty_field
                || is_header
                || self.columns.header_line.is_some_and(|header_line| line == header_line.as_bytes())
            {
                losses.foreign_lines += u64::from(has_empty_field);
                return Ok(());
            }
            let message = format!("this is not a line of such a table: {}", quoted(line));
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
        self.device_key.clear();
        for part in row.devices {
            self.device_key.extend(part);
            self.device_key.push(b',');
        }
        let next_minor = self.devices.len() as u32;
        let minor = match self.devices.get(&self.device_key[..]) {
            Some(&minor) => minor,
            None if next_minor >= 1 << 20 => {
                return Err(self.input.line_error("more than 1048576 devices", "a table of fewer"));
            }
            None => *self.devices.entry(self.device_key[..].into()).or_insert(next_minor),
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
        self.sorter.advance_to(row.time_ns);
        for event in [Some(queued), completed].into_iter().flatten() {
            self.sorter.push(event).map_err(|late_ns| {
                let message = format!("the time goes back by {late_ns} ns");
                self.input.line_error(message, "lines that are sorted by time to within 1 s")
            })?;
        }
        Ok(())
    }
}
