//! Reader for `hoistway-trace/1`, line by line.

use std::borrow::Cow;
use std::io::BufRead;

use serde::Deserialize;

use super::{FORMAT, Header};

/// Longest line, bytes.
const LINE_MAX: u64 = 1 << 20;

/// An event. Fields that are absent from the line are `None`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Line<'a> {
    /// Name of the event; also `run_end` and `trace_end`.
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    /// The run.
    pub run: Option<u32>,
    /// Virtual time since the start of the run, ns.
    pub time_ns: Option<u64>,
    /// The process whose I/O it is.
    pub process: Option<u32>,
    /// The request.
    pub rq: Option<u32>,
    /// Why the scheduler dispatched the request or nothing, as one word.
    #[serde(borrow)]
    pub reason: Option<Cow<'a, str>>,
    /// The same as a sentence.
    #[serde(borrow)]
    pub why: Option<Cow<'a, str>>,
    /// Whether the run or trace is incomplete; in the last line of each.
    pub partial: Option<bool>,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// An I/O error.
    #[error("line {0}: cannot be read: {1}")]
    Io(u64, std::io::Error),
    /// A line is malformed: its number, and what was expected.
    #[error("line {0}: {1}")]
    Line(u64, String),
    /// The last line is missing: number of lines read.
    #[error("line {0}: the trace ends in the middle (expected the event trace_end)")]
    CutOff(u64),
}

/// Reads a trace.
pub struct Reader<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    has_ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// If it is not the header of such a trace.
    pub fn new(input: R) -> Result<(Header, Self), ReadError> {
        let mut reader = Reader { input, line: Vec::new(), number: 0, has_ended: false };
        let expected =
            || ReadError::Line(1, format!("expected the first line of a trace, with \"format\":\"{FORMAT}\""));
        if !reader.read_line()? {
            return Err(expected());
        }
        let header: Header = serde_json::from_slice(&reader.line).map_err(|_| expected())?;
        if header.format != FORMAT {
            return Err(expected());
        }
        Ok((header, reader))
    }

    /// The next line; `None` after the last one.
    ///
    /// # Errors
    /// If the line is not an event, or the trace ends before its last line.
    pub fn line(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        if self.has_ended {
            return Ok(None);
        }
        if !self.read_line()? || !self.line.ends_with(b"\n") {
            return Err(ReadError::CutOff(self.number));
        }
        let line: Line<'_> = serde_json::from_slice(&self.line)
            .map_err(|error| ReadError::Line(self.number, format!("expected an event: {error}")))?;
        self.has_ended = line.event == "trace_end";
        Ok(Some(line))
    }

    /// Reads the next line into the buffer; returns false at the end of the file.
    fn read_line(&mut self) -> Result<bool, ReadError> {
        self.line.clear();
        self.number += 1;
        let number = self.number;
        let failed = |error| ReadError::Io(number, error);
        let bytes = std::io::Read::take(&mut self.input, LINE_MAX).read_until(b'\n', &mut self.line).map_err(failed)?;
        if bytes as u64 == LINE_MAX {
            return Err(ReadError::Line(number, "longer than 1 MiB (expected an event)".to_owned()));
        }
        Ok(bytes > 0)
    }
}
