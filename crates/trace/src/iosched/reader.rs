//! From a file to a [`Trace`].

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
    /// Its first line.
    pub header: Header,
    /// All other lines, in the order of the file and of time.
    pub events: Vec<Event>,
}

/// How much a reader takes before it gives up on a file: a recording is held in memory, and a compressed file of a few
/// kilobytes can unpack to anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest line, bytes.
    pub line_bytes: usize,
    /// The most events.
    pub events: usize,
    /// The most text after unpacking, bytes.
    pub bytes: u64,
}

impl Default for Limits {
    /// 1 MiB, 5 million and 1 GiB: some hundred times what the recorders write.
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

    /// Reads a recording, gzip'd or not; `name` is what errors call it.
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
            // Several members behind each other are one file to gzip, so they are to us.
            let text = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(bytes));
            Lines::new(text, limits, zipped).trace()
        } else {
            Lines::new(bytes, limits, zipped).trace()
        };
        result.map_err(|(line, problem)| ReadError { file: name.to_owned(), line, problem })
    }
}

type Faulty = (Option<u64>, Problem);

/// The lines of a file, read into one buffer.
struct Lines<R> {
    reader: R,
    limits: Limits,
    /// Whether the bytes come out of gzip, whose errors deserve words of their own.
    zipped: bool,
    /// The current line, without its end.
    line: Vec<u8>,
    /// Its number.
    number: u64,
    /// Bytes read up to and with this line.
    bytes: u64,
    /// Whether it had an end: only the last may lack it.
    terminated: bool,
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R, limits: Limits, zipped: bool) -> Lines<R> {
        Lines { reader, limits, zipped, line: Vec::new(), number: 0, bytes: 0, terminated: true }
    }

    fn trace(mut self) -> Result<Trace, Faulty> {
        let header = self.header()?;
        // The header's word is not worth an allocation of its size.
        let expected = usize::try_from(header.events).unwrap_or(usize::MAX).min(1 << 16);
        let mut events: Vec<Event> = Vec::with_capacity(expected);
        while self.advance()? {
            if events.len() == self.limits.events {
                return Err((Some(self.number), Problem::TooManyEvents { limit: self.limits.events }));
            }
            let event = line::parse(&self.line, self.number, &header).map_err(|problem| self.fault(problem))?;
            if let Some(before) = events.last().filter(|before| before.t > event.t) {
                let problem = Problem::TimeBackwards { t: event.t.0, previous: before.t.0 };
                return Err((Some(self.number), problem));
            }
            events.push(event);
        }
        let found = events.len() as u64;
        if found != header.events && !header.truncated {
            // It is the header that says otherwise.
            return Err((Some(1), Problem::EventCount { expected: header.events, found }));
        }
        Ok(Trace { header, events })
    }

    fn header(&mut self) -> Result<Header, Faulty> {
        match self.advance() {
            Ok(true) => {}
            Ok(false) => return Err((None, Problem::Empty)),
            // Binary files have long "lines", and their length is not what is wrong with them.
            Err((_, Problem::LineTooLong { .. })) if !foreign::looks_like_json(&self.line) => {
                return Err((Some(1), Problem::Foreign { found: foreign::describe(&self.line).to_owned() }));
            }
            Err(fault) => return Err(fault),
        }
        foreign::check(&self.line).and_then(|()| Header::parse(&self.line)).map_err(|problem| self.fault(problem))
    }

    /// Goes to the next line; false at the end of the file.
    fn advance(&mut self) -> Result<bool, Faulty> {
        self.line.clear();
        self.number += 1;
        // One byte more for the line's end, and one to see that it is too long.
        let most = (self.limits.line_bytes as u64).saturating_add(2);
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| self.io_fault(error))?;
        self.terminated = self.line.last() == Some(&b'\n');
        if self.terminated {
            self.line.pop();
        }
        if self.line.len() > self.limits.line_bytes {
            return Err((Some(self.number), Problem::LineTooLong { limit: self.limits.line_bytes }));
        }
        self.bytes += read as u64;
        if self.bytes > self.limits.bytes {
            return Err((Some(self.number), Problem::TooManyBytes { limit: self.limits.bytes }));
        }
        Ok(read > 0)
    }

    fn io_fault(&self, error: io::Error) -> Faulty {
        let problem = match error.kind() {
            io::ErrorKind::UnexpectedEof if self.zipped => Problem::TruncatedGzip,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.zipped => {
                Problem::CorruptGzip(error.to_string())
            }
            _ => Problem::Io(error),
        };
        (Some(self.number), problem)
    }

    /// `problem` on the current line. What looks like bad JSON on a last line without an end is a cut.
    fn fault(&self, problem: Problem) -> Faulty {
        let cut = !self.terminated && serde_json::from_slice::<serde::de::IgnoredAny>(&self.line).is_err();
        let json = matches!(problem, Problem::Json { .. });
        (Some(self.number), if cut && json { Problem::TruncatedLine } else { problem })
    }
}
