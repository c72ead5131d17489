//! Reads a file into a [`Trace`].

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::{Problem, ReadError};
use super::event::Event;
use super::foreign;
use super::header::Header;
use super::line;

/// A whole recording in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The header.
    pub header: Header,
    /// The events, in the order of time.
    pub events: Vec<Event>,
}

/// Limits of a reader: a recording is held in memory, and a compressed file of a few kilobytes can unpack to any size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum length of a line, bytes.
    pub line_bytes: usize,
    /// Maximum number of events.
    pub events: usize,
    /// Maximum size after unpacking, bytes.
    pub bytes: u64,
}

impl Default for Limits {
    /// 1 MiB, 5 million and 1 GiB: some hundred times the size of actual recordings.
    fn default() -> Limits {
        Limits { line_bytes: 1 << 20, events: 5_000_000, bytes: 1 << 30 }
    }
}

impl Trace {
    /// Reads the recording at `path`, gzip'd or not.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not a complete and well-formed recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace, ReadError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Trace::read(file, &name),
            Err(error) => Err(ReadError { file: name, line: None, problem: Problem::Io(error) }),
        }
    }

    /// Reads a recording, gzip'd or not; `name` is its name in errors.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`].
    pub fn read(reader: impl Read, name: &str) -> Result<Trace, ReadError> {
        Trace::read_limited(reader, name, Limits::default())
    }

    /// As [`Trace::read`], with other limits.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`].
    pub fn read_limited(mut reader: impl Read, name: &str, limits: Limits) -> Result<Trace, ReadError> {
        let mut magic = Vec::with_capacity(2);
        if let Err(error) = reader.by_ref().take(2).read_to_end(&mut magic) {
            return Err(ReadError { file: name.to_owned(), line: None, problem: Problem::Io(error) });
        }
        let zipped = magic == [0x1f, 0x8b];
        let bytes = BufReader::with_capacity(1 << 16, magic.chain(reader));
        let result = if zipped {
            // Concatenated gzip members are one file, as for gzip itself.
            let text = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(bytes));
            Lines::new(text, limits, zipped).trace()
        } else {
            Lines::new(bytes, limits, zipped).trace()
        };
        result.map_err(|(line, problem)| ReadError { file: name.to_owned(), line, problem })
    }
}

type LineProblem = (Option<u64>, Problem);

/// The lines of a file, read into one buffer.
struct Lines<R> {
    reader: R,
    limits: Limits,
    /// Whether the file is gzip'd, for better error messages.
    zipped: bool,
    /// The current line, without its end.
    line: Vec<u8>,
    /// The number of the current line, from 1.
    number: u64,
    /// Bytes read so far, including this line.
    bytes: u64,
    /// Whether the line ended with a newline: only the last may lack it.
    terminated: bool,
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R, limits: Limits, zipped: bool) -> Lines<R> {
        Lines { reader, limits, zipped, line: Vec::new(), number: 0, bytes: 0, terminated: true }
    }

    fn trace(mut self) -> Result<Trace, LineProblem> {
        let header = self.header()?;
        // The header's count is not trusted for an allocation.
        let expected = usize::try_from(header.events).unwrap_or(usize::MAX).min(1 << 16);
        let mut events: Vec<Event> = Vec::with_capacity(expected);
        while self.advance()? {
            if events.len() == self.limits.events {
                return Err((Some(self.number), Problem::TooManyEvents { limit: self.limits.events }));
            }
            let event = line::parse(&self.line, self.number, &header).map_err(|problem| self.locate(problem))?;
            if let Some(before) = events.last().filter(|before| before.t > event.t) {
                let problem = Problem::TimeBackwards { t: event.t.0, previous: before.t.0 };
                return Err((Some(self.number), problem));
            }
            events.push(event);
        }
        let found = events.len() as u64;
        if found != header.events && !header.truncated {
            // The header is on line 1.
            return Err((Some(1), Problem::EventCount { expected: header.events, found }));
        }
        Ok(Trace { header, events })
    }

    fn header(&mut self) -> Result<Header, LineProblem> {
        match self.advance() {
            Ok(true) => {}
            Ok(false) => return Err((None, Problem::Empty)),
            // A binary file has long "lines", but their length is not the actual error.
            Err((_, Problem::LineTooLong { .. })) if !foreign::looks_like_json(&self.line) => {
                return Err((Some(1), Problem::Foreign { found: foreign::describe(&self.line).to_owned() }));
            }
            Err(problem) => return Err(problem),
        }
        foreign::check(&self.line).and_then(|()| Header::parse(&self.line)).map_err(|problem| self.locate(problem))
    }

    /// Reads the next line; returns `false` at the end of the file.
    fn advance(&mut self) -> Result<bool, LineProblem> {
        self.line.clear();
        self.number += 1;
        // One more byte for the newline, and one to detect a line that is too long.
        let bytes_max = (self.limits.line_bytes as u64).saturating_add(2);
        let bytes = self.reader.by_ref().take(bytes_max).read_until(b'\n', &mut self.line);
        let bytes = bytes.map_err(|error| self.io_fault(error))?;
        self.terminated = self.line.last() == Some(&b'\n');
        if self.terminated {
            self.line.pop();
        }
        if self.line.len() > self.limits.line_bytes {
            return Err((Some(self.number), Problem::LineTooLong { limit: self.limits.line_bytes }));
        }
        self.bytes += bytes as u64;
        if self.bytes > self.limits.bytes {
            return Err((Some(self.number), Problem::TooManyBytes { limit: self.limits.bytes }));
        }
        Ok(bytes > 0)
    }

    fn io_fault(&self, error: io::Error) -> LineProblem {
        let problem = match error.kind() {
            io::ErrorKind::UnexpectedEof if self.zipped => Problem::TruncatedGzip,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.zipped => {
                Problem::CorruptGzip(error.to_string())
            }
            _ => Problem::Io(error),
        };
        (Some(self.number), problem)
    }

    /// Locates `problem` on the current line. Invalid JSON on a last line without a newline means that the file was cut
    /// off.
    fn locate(&self, problem: Problem) -> LineProblem {
        let is_cut_off = !self.terminated && serde_json::from_slice::<serde::de::IgnoredAny>(&self.line).is_err();
        let is_json_error = matches!(problem, Problem::Json { .. });
        (Some(self.number), if is_cut_off && is_json_error { Problem::TruncatedLine } else { problem })
    }
}
