//! The text of fio's I/O logs, versions 2 and 3.

use hoistway_blk::{IoPriority, Nanos, Op};

use super::record::{Pause, Record};
use crate::Io;
use crate::error::quoted;

/// A log as it was read. `Io::file` counts its files.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) files: Vec<String>,
    pub(crate) records: Vec<Record>,
}

/// What is wrong in a log, and in which line.
pub(crate) struct LogError {
    pub(crate) line: u32,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// As many as an [`Io`] can tell apart.
const FILES_MAX: usize = 255;
/// The first bytes of a record of blktrace: its magic number in either byte order.
const BLKTRACE: [[u8; 3]; 2] = [[0x74, 0x61, 0x65], [0x65, 0x61, 0x74]];
const ACTIONS: &str = "expected read, write, trim, sync, datasync, wait, add, open or close";

/// Reads the log `bytes`.
pub(crate) fn read(bytes: &[u8]) -> Result<Log, LogError> {
    let error = |line, message: &str, hint| LogError { line, message: message.to_owned(), hint };
    if bytes.get(1..4) == Some(&BLKTRACE[0]) || bytes.get(..3) == Some(&BLKTRACE[1]) {
        let hint = "replay it with fio, with write_iolog, and give the log that this writes";
        return Err(error(1, "blktrace recordings are not supported", hint));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(error(1, "this is not text", "an I/O log of fio, version 2 or 3, is expected"));
    };
    let mut lines = (1..).zip(text.lines());
    let version = match lines.next().map(|(_, line)| line.trim()) {
        Some("fio version 2 iolog") => 2,
        Some("fio version 3 iolog") => 3,
        first => {
            let message = format!("{} is not the head of an I/O log", quoted(first.unwrap_or_default()));
            return Err(error(1, &message, "expected \"fio version 2 iolog\" or \"fio version 3 iolog\""));
        }
    };
    let mut reader =
        Reader { log: Log { files: Vec::new(), records: Vec::new() }, first_us: None, last_us: 0, wait: None };
    for (number, line) in lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if !fields.is_empty() {
            let read = if version == 2 { reader.line(None, &fields) } else { reader.timed_line(&fields) };
            read.map_err(|(message, hint)| LogError { line: number, message, hint })?;
        }
    }
    Ok(reader.log)
}

type Wrong = (String, &'static str);

struct Reader {
    log: Log,
    /// Time of the first line.
    first_us: Option<u64>,
    /// Time of the last I/O, or of the first line.
    last_us: u64,
    /// A `wait` of version 2 that no I/O has kept yet.
    wait: Option<Nanos>,
}

impl Reader {
    /// A line of version 3.
    fn timed_line(&mut self, fields: &[&str]) -> Result<(), Wrong> {
        // The log of a second job may be appended to that of a first.
        if fields == ["fio", "version", "3", "iolog"] {
            return Err((
                "a second log begins here".to_owned(),
                "fio appends to a log that is there: give it one run only",
            ));
        }
        let time = number(fields[0], "a time in microseconds")?;
        self.line(Some(time), &fields[1..])
    }

    /// A line without its time.
    fn line(&mut self, time_us: Option<u64>, fields: &[&str]) -> Result<(), Wrong> {
        if let (None, Some(time)) = (self.first_us, time_us) {
            (self.first_us, self.last_us) = (Some(time), time);
        }
        let (file, action, offset, length) = match *fields {
            [file, "add" | "open" | "close"] => return self.file(file).map(|_| ()),
            [_, "wait", ms, _] if time_us.is_none() => {
                let ms = number(ms, "a time in milliseconds")?;
                self.wait = Some(Nanos(ms.saturating_mul(1_000_000)));
                return Ok(());
            }
            [_, "wait", ..] if time_us.is_some() => {
                return Err(("there is no wait in version 3".to_owned(), "each line has its time"));
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
            _ => return Err((format!("{} is no action", quoted(action)), ACTIONS)),
        };
        let (mut offset_bytes, mut bytes) =
            (number(offset, "an offset in bytes")?, number(length, "a length in bytes")?);
        if op == Op::Flush {
            (offset_bytes, bytes) = (0, 0);
        } else if bytes == 0 || bytes % 512 != 0 || bytes > 1 << 30 || offset_bytes > 1 << 60 {
            let message = format!("an I/O of {bytes} bytes at {offset_bytes} is not possible");
            return Err((message, "direct I/O needs whole sectors of 512, at most 1 GiB at once"));
        }
        let pause = match (self.wait.take(), time_us) {
            (Some(until), _) => Pause::Until(until),
            (None, Some(time)) => {
                let gap = time.saturating_sub(self.last_us);
                self.last_us = time;
                Pause::After(Nanos(gap.saturating_mul(1000)))
            }
            (None, None) => Pause::After(Nanos::ZERO),
        };
        let file = self.file(file)?;
        let io = Io { op, file, priority: IoPriority::UNSET, bytes: bytes as u32, offset_bytes };
        self.log.records.push(Record { io, pause });
        Ok(())
    }

    fn file(&mut self, name: &str) -> Result<u8, Wrong> {
        let files = &mut self.log.files;
        // A log goes on with the same few files: no need for a map.
        if let Some(at) = files.iter().position(|known| known == name) {
            return Ok(at as u8);
        }
        if files.len() == FILES_MAX {
            return Err((format!("more than {FILES_MAX} files"), "set replay_redirect to replay on one device"));
        }
        files.push(name.to_owned());
        Ok((files.len() - 1) as u8)
    }
}

fn number(text: &str, expected: &'static str) -> Result<u64, Wrong> {
    text.parse().map_err(|_| (format!("{} is not a number", quoted(text)), expected))
}
