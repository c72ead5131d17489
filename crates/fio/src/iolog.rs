//! Reads fio's I/O logs, versions 2 and 3. Each run reads a log again line by line, since it may be larger than memory.
//!
//! Used by: `build`.
//! Tests: `crates/fio/tests/fio_replay.rs`, `crates/fio/tests/robust.rs`.

use std::io::{self, BufRead};
use std::sync::Arc;

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_blk::ground::Nanos;
use hoistway_load::{Io, Pause, Record, RecordError, Records, Summary};

use crate::environment::LogSource;
use crate::error::quoted;
use crate::options::ReplaySettings;

/// The result of the first pass over a log.
#[derive(Debug)]
pub(crate) struct LogScan {
    /// The log's files, indexed by [`Io::file`].
    pub(crate) files: Vec<String>,
    pub(crate) summary: Summary,
}

/// Reads a whole log once.
pub(crate) fn scan(source: &dyn LogSource, settings: &ReplaySettings) -> Result<LogScan, RecordError> {
    let mut reader = Reader::open(source, settings, None)?;
    let mut summary = Summary::default();
    while let Some(record) = reader.next_record()? {
        summary.add(&record);
    }
    Ok(LogScan { files: reader.files, summary })
}

/// A log replayed by a process.
#[derive(Debug)]
pub(crate) struct Log {
    source: Arc<dyn LogSource>,
    settings: ReplaySettings,
    /// For each of the log's files, the index of the process's device.
    devices: Arc<[u8]>,
}

impl Log {
    pub(crate) fn new(source: &Arc<dyn LogSource>, settings: &ReplaySettings, devices: Vec<u8>) -> Log {
        Log { source: Arc::clone(source), settings: settings.clone(), devices: devices.into() }
    }
}

impl Records for Log {
    fn open(&self, _: u64) -> Result<Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>, RecordError> {
        let mut reader = Reader::open(&*self.source, &self.settings, Some(Arc::clone(&self.devices)))?;
        Ok(Box::new(std::iter::from_fn(move || reader.next_record().transpose())))
    }
}

/// Maximum files of a log: [`Io::file`] has 8 bits.
const FILES_MAX: usize = 255;
/// The first bytes of a record of blktrace: its magic number in either byte order.
const BLKTRACE_MAGIC: [[u8; 3]; 2] = [[0x74, 0x61, 0x65], [0x65, 0x61, 0x74]];
const EXPECTED_ACTIONS: &str = "expected read, write, trim, sync, datasync, wait, add, open or close";

/// Maximum bytes of a line: many times the length of a path.
const LINE_BYTES_MAX: u64 = 1 << 16;

type LineError = (String, &'static str);

struct Reader {
    input: Box<dyn BufRead + Send>,
    settings: ReplaySettings,
    /// `None` to use the log's own file numbers.
    devices: Option<Arc<[u8]>>,
    text: Vec<u8>,
    /// Lines read so far.
    lines: u32,
    version: u32,
    files: Vec<String>,
    /// Time of the first line.
    first_us: Option<u64>,
    /// Time of the last I/O, or of the first line.
    last_us: u64,
    /// A `wait` of version 2 that the next I/O takes.
    wait: Option<Nanos>,
    /// Sum of the pauses of I/Os skipped since the last one.
    skipped_pause: Nanos,
}

impl Reader {
    /// Opens a log and reads its header.
    fn open(
        source: &dyn LogSource,
        settings: &ReplaySettings,
        devices: Option<Arc<[u8]>>,
    ) -> Result<Reader, RecordError> {
        let input = source.open().map_err(|error| unreadable(1, &error))?;
        let mut reader = Reader {
            input,
            settings: settings.clone(),
            devices,
            text: Vec::new(),
            lines: 0,
            version: 0,
            files: Vec::new(),
            first_us: None,
            last_us: 0,
            wait: None,
            skipped_pause: Nanos::ZERO,
        };
        let has_header = reader.read_line()?;
        let bytes = &reader.text;
        let error = |message: &str, hint| Err(RecordError { line: 1, message: message.to_owned(), hint });
        if bytes.get(1..4) == Some(&BLKTRACE_MAGIC[0]) || bytes.get(..3) == Some(&BLKTRACE_MAGIC[1]) {
            let hint = "replay it in fio with write_iolog, and use the log that this writes";
            return error("blktrace recordings are not supported", hint);
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return error("not text", "expected an I/O log of fio, version 2 or 3");
        };
        reader.version = match text.trim() {
            "fio version 2 iolog" => 2,
            "fio version 3 iolog" => 3,
            // The text is not quoted, since it may come from any kind of file.
            head => {
                let message = if !has_header {
                    "the log is empty".to_owned()
                } else if head.starts_with("fio version") {
                    format!("{} is not the header of an I/O log", quoted(head))
                } else {
                    "not the header of an I/O log".to_owned()
                };
                return error(&message, "expected \"fio version 2 iolog\" or \"fio version 3 iolog\"");
            }
        };
        Ok(reader)
    }

    /// Reads the next line; `false` at the end of the log.
    fn read_line(&mut self) -> Result<bool, RecordError> {
        self.text.clear();
        let mut input = io::Read::take(&mut self.input, LINE_BYTES_MAX);
        let bytes_read = input.read_until(b'\n', &mut self.text).map_err(|error| unreadable(self.lines + 1, &error))?;
        self.lines = self.lines.saturating_add(1);
        if bytes_read as u64 == LINE_BYTES_MAX && self.text.last() != Some(&b'\n') {
            let (message, hint) = ("the line is too long".to_owned(), "expected an I/O log of fio, version 2 or 3");
            return Err(RecordError { line: self.lines, message, hint });
        }
        Ok(bytes_read > 0)
    }

    /// The next I/O; `None` at the end of the log.
    fn next_record(&mut self) -> Result<Option<Record>, RecordError> {
        while self.read_line()? {
            let text = std::mem::take(&mut self.text);
            let record = self.parse_line(&text);
            self.text = text;
            match record {
                Ok(None) => {}
                Ok(Some(record)) => {
                    if let Some(record) = self.apply_settings(record) {
                        return Ok(Some(record));
                    }
                }
                Err((message, hint)) => return Err(RecordError { line: self.lines, message, hint }),
            }
        }
        Ok(None)
    }

    /// Applies the options to an I/O; `None` if it is skipped, in which case its pause is added to the next one.
    fn apply_settings(&mut self, Record { io, pause }: Record) -> Option<Record> {
        let pause = match self.settings.pause(pause) {
            Pause::After(gap) => Pause::After(Nanos(self.skipped_pause.0.saturating_add(gap.0))),
            until => until,
        };
        if self.settings.skips(io.op) {
            self.skipped_pause = if let Pause::After(gap) = pause { gap } else { self.skipped_pause };
            return None;
        }
        self.skipped_pause = Nanos::ZERO;
        let file = match &self.devices {
            Some(devices) => devices.get(usize::from(io.file)).copied().unwrap_or(0),
            None => io.file,
        };
        Some(Record { io: Io { offset_bytes: self.settings.offset(io.offset_bytes), file, ..io }, pause })
    }

    fn parse_line(&mut self, bytes: &[u8]) -> Result<Option<Record>, LineError> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(("not text".to_owned(), "expected an I/O log of fio, version 2 or 3"));
        };
        // No valid line has this many fields.
        const FIELDS_MAX: usize = 6;
        let mut fields = [""; FIELDS_MAX];
        let mut count = 0;
        for (field, word) in fields.iter_mut().zip(text.split_whitespace()) {
            *field = word;
            count += 1;
        }
        match &fields[..count] {
            [] => Ok(None),
            fields if self.version == 2 => self.parse_fields(None, fields),
            fields => self.parse_timed_line(fields),
        }
    }

    /// A line of version 3.
    fn parse_timed_line(&mut self, fields: &[&str]) -> Result<Option<Record>, LineError> {
        // fio appends the log of a second job to that of the first.
        if fields == ["fio", "version", "3", "iolog"] {
            return Err(("a second log begins here".to_owned(), "fio appends to an existing log: record a single run"));
        }
        let time = number(fields[0], "a time in microseconds")?;
        self.parse_fields(Some(time), &fields[1..])
    }

    /// A line without its timestamp.
    fn parse_fields(&mut self, time_us: Option<u64>, fields: &[&str]) -> Result<Option<Record>, LineError> {
        if let (None, Some(time)) = (self.first_us, time_us) {
            (self.first_us, self.last_us) = (Some(time), time);
        }
        let (file, action, offset, length) = match *fields {
            [file, "add" | "open" | "close"] => return self.file_index(file).map(|_| None),
            [_, "wait", ms, _] if time_us.is_none() => {
                self.wait = Some(to_nanos(number(ms, "a time in milliseconds")?, 1_000_000)?);
                return Ok(None);
            }
            [_, "wait", ..] if time_us.is_some() => {
                return Err(("version 3 has no wait".to_owned(), "each line has its time"));
            }
            [file, action, offset, length] => (file, action, offset, length),
            _ => {
                return Err((
                    format!("{} is not a line of an I/O log", quoted(&fields.join(" "))),
                    "expected FILE ACTION, or FILE ACTION OFFSET LENGTH, after the time in version 3",
                ));
            }
        };
        let op = match action {
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Discard,
            "sync" | "datasync" => Op::Flush,
            _ => return Err((format!("{} is not an action", quoted(action)), EXPECTED_ACTIONS)),
        };
        let (mut offset_bytes, mut bytes) =
            (number(offset, "an offset in bytes")?, number(length, "a length in bytes")?);
        if op == Op::Flush {
            (offset_bytes, bytes) = (0, 0);
        } else if bytes == 0 || bytes % 512 != 0 || bytes > 1 << 30 || offset_bytes > 1 << 60 {
            let message = format!("an I/O of {bytes} bytes at {offset_bytes} is not possible");
            return Err((message, "direct I/O needs whole sectors of 512 bytes, at most 1 GiB per I/O"));
        }
        let pause = match (self.wait.take(), time_us) {
            (Some(until), _) => Pause::Until(until),
            (None, Some(time)) => {
                let gap = time.saturating_sub(self.last_us);
                self.last_us = time;
                Pause::After(to_nanos(gap, 1_000)?)
            }
            (None, None) => Pause::After(Nanos::ZERO),
        };
        let file = self.file_index(file)?;
        let io = Io { op, file, priority: IoPriority::UNSET, bytes: bytes as u32, offset_bytes };
        Ok(Some(Record { io, pause }))
    }

    fn file_index(&mut self, name: &str) -> Result<u8, LineError> {
        let files = &mut self.files;
        // A log has few files, so a linear search is enough.
        if let Some(index) = files.iter().position(|known| known == name) {
            return Ok(index as u8);
        }
        if files.len() == FILES_MAX {
            return Err((format!("more than {FILES_MAX} files"), "set replay_redirect to replay on one device"));
        }
        files.push(name.to_owned());
        Ok((files.len() - 1) as u8)
    }
}

fn number(text: &str, expected: &'static str) -> Result<u64, LineError> {
    text.parse().map_err(|_| (format!("{} is not a number", quoted(text)), expected))
}

/// Converts a time to nanoseconds; limited so that sums of times do not overflow.
fn to_nanos(number: u64, unit_ns: u64) -> Result<Nanos, LineError> {
    const TEN_YEARS_NS: u64 = 3_653 * 86_400 * 1_000_000_000;
    match number.checked_mul(unit_ns) {
        Some(time_ns) if time_ns <= TEN_YEARS_NS => Ok(Nanos(time_ns)),
        _ => Err(("the time is more than ten years".to_owned(), "expected less")),
    }
}

fn unreadable(line: u32, error: &io::Error) -> RecordError {
    RecordError {
        line,
        message: format!("cannot be read: {error}"),
        hint: "expected an I/O log of fio, version 2 or 3",
    }
}
