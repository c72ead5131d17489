//! A recording: from a path to events in the order of time.

use std::num::NonZeroU64;
use std::path::Path;

use super::biosnoop::Biosnoop;
use super::blkparse::Blkparse;
use super::blktrace::Blktrace;
use super::detect::{self, Format};
use super::error::{Losses, Position, ReadError};
use super::event::{Device, Event};
use super::input::Input;
use super::names::Names;
use super::set::FileSet;
use super::table::{Columns, Table};
use super::tracefs_text::TracefsText;
use super::vscsi::Vscsi;

/// Formats in words, for messages.
const FORMATS: &str = "blktrace or vSCSI records, text of blkparse, ftrace, trace-cmd, perf or biosnoop, or a table of a public set, plain or compressed";

#[derive(Debug)]
enum Reader {
    Blktrace(Blktrace),
    Blkparse(Blkparse),
    TracefsText(TracefsText),
    Biosnoop(Biosnoop),
    Vscsi(Vscsi),
    Table(Box<Table>),
}

/// A recording, read once from beginning to end.
///
/// ```no_run
/// use hoistway_trace::block::Recording;
///
/// let mut recording = Recording::open("trace.blktrace.0".as_ref())?;
/// while let Some(event) = recording.next_event()? {
///     println!("{} {} {}", event.time_ns, event.action.letters(), event.sector);
/// }
/// println!("{} lost", recording.losses().lost_events);
/// # Ok::<(), hoistway_trace::block::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Recording {
    reader: Reader,
    format: Format,
    why: String,
    files: usize,
    names: Names,
    losses: Losses,
}

impl Recording {
    /// Opens a file in any format, a member of a set of blktrace files or the folder that contains the set, or standard input (`-`).
    ///
    /// # Errors
    /// If it cannot be read, is not a recording, or matches several formats.
    pub fn open(path: &Path) -> Result<Recording, ReadError> {
        let set = FileSet::find(path)?;
        let path_text = path.display().to_string();
        let mut inputs = set.files.iter().map(|file| Input::open(file)).collect::<Result<Vec<_>, _>>()?;
        // Files of idle CPUs are empty.
        let mut candidates_by_file = Vec::new();
        for input in &mut inputs {
            let head = input.fill(detect::HEAD_BYTES)?;
            candidates_by_file.push(if head.is_empty() { Vec::new() } else { detect::candidates(head) });
        }
        if let [input] = &mut inputs[..] {
            let input = std::mem::replace(input, Input::new("", Box::new(std::io::empty()))?);
            return Recording::read(input);
        }
        let is_not_blktrace = |file: &usize| {
            !candidates_by_file[*file].is_empty() && candidates_by_file[*file][0].format != Format::Blktrace
        };
        if let Some(index) = (0..inputs.len()).find(is_not_blktrace) {
            let message = format!("this is {}", candidates_by_file[index][0].format);
            return Err(ReadError::file(inputs[index].name(), message, "blktrace records, like the other files"));
        }
        let files = inputs.len();
        let reader = Reader::Blktrace(Blktrace::new(inputs)?);
        let why = format!("{files} files of {path_text}'s name with the magic number of blktrace");
        let losses = Losses { missing_cpus: set.missing, ..Losses::default() };
        Ok(Recording { reader, format: Format::Blktrace, why, files, names: Names::default(), losses })
    }

    /// The same, but returns `None` for a file that is not a recording. With `columns` the file is a table of I/Os.
    ///
    /// # Errors
    /// As for [`Recording::open`], except for a file that is not a recording.
    pub fn open_if_any(path: &Path, columns: Option<&Columns>) -> Result<Option<Recording>, ReadError> {
        if let Some(columns) = columns {
            return Recording::table(Input::open(path)?, columns).map(Some);
        }
        let set = FileSet::find(path)?;
        if let [file] = &set.files[..] {
            return Ok(Recording::read_if_any(Input::open(file)?)?.ok());
        }
        Recording::open(path).map(Some)
    }

    /// Reads a stream of bytes, or returns it unchanged if it is not a recording.
    ///
    /// # Errors
    /// As for [`Recording::open`], except for a stream that is not a recording.
    pub fn read_if_any(mut input: Input) -> Result<Result<Recording, Input>, ReadError> {
        let head = input.fill(detect::HEAD_BYTES)?;
        // A figure such as 3,12 at the beginning of a summary's line is no device.
        let is_damaged =
            || detect::describe_non_recording(head).is_none() && detect::first_malformed_line(head).is_some();
        let is_recording = !detect::candidates(head).is_empty() || is_damaged();
        if is_recording { Recording::read(input).map(Ok) } else { Ok(Err(input)) }
    }

    /// Reads a stream of bytes in any format.
    ///
    /// # Errors
    /// As for [`Recording::open`].
    pub fn read(mut input: Input) -> Result<Recording, ReadError> {
        let head = input.fill(detect::HEAD_BYTES)?;
        if head.is_empty() {
            return Err(ReadError::file(input.name(), "the file is empty", FORMATS));
        }
        let candidates = detect::candidates(head);
        match &candidates[..] {
            [] => {
                let non_recording = detect::describe_non_recording(head);
                if let Some((line, message, expected)) =
                    detect::first_malformed_line(head).filter(|_| non_recording.is_none())
                {
                    return Err(ReadError::at(input.name(), Position::Line(line), message, expected));
                }
                let (message, expected) = non_recording.unwrap_or(("this is no recording of block I/O", FORMATS));
                Err(ReadError::file(input.name(), message, expected))
            }
            [only] => Recording::as_format(input, only.format.clone(), only.why.clone()),
            several => {
                let names: Vec<String> = several.iter().map(|candidate| candidate.format.to_string()).collect();
                let message = format!("this may be {}", names.join(" or "));
                Err(ReadError::file(input.name(), message, "one format: name it"))
            }
        }
    }

    /// Reads a stream of bytes as a table of I/Os.
    ///
    /// # Errors
    /// If its beginning cannot be read.
    pub fn table(input: Input, columns: &Columns) -> Result<Recording, ReadError> {
        Recording::as_format(input, Format::Table(Box::new(columns.clone())), "the columns that were given".to_owned())
    }

    /// Reads a stream of bytes in a known format; `why` says how the format was determined.
    ///
    /// # Errors
    /// If its beginning cannot be read.
    pub fn as_format(input: Input, format: Format, why: String) -> Result<Recording, ReadError> {
        let reader = match &format {
            Format::Blktrace => Reader::Blktrace(Blktrace::new(vec![input])?),
            Format::Blkparse => Reader::Blkparse(Blkparse::new(input)),
            Format::TracefsText => Reader::TracefsText(TracefsText::new(input)),
            Format::Biosnoop => Reader::Biosnoop(Biosnoop::new(input)),
            Format::Vscsi => Reader::Vscsi(Vscsi::new(input)?),
            Format::Table(columns) => Reader::Table(Box::new(Table::new(input, (**columns).clone()))),
        };
        Ok(Recording { reader, format, why, files: 1, names: Names::default(), losses: Losses::default() })
    }

    /// Converts times of ftrace's counting clocks (`x86-tsc`) at this rate. Without it they are refused, because a recording does not
    /// contain the rate.
    #[must_use]
    pub fn with_clock_hz(mut self, hz: NonZeroU64) -> Recording {
        if let Reader::TracefsText(reader) = &mut self.reader {
            reader.set_clock_hz(hz);
        }
        self
    }

    /// The next event, in the order of time; `None` at the end.
    ///
    /// # Errors
    /// At the first mistake in the file.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        match &mut self.reader {
            Reader::Blktrace(reader) => reader.next(&mut self.names, &mut self.losses),
            Reader::Blkparse(reader) => reader.next(&mut self.names, &mut self.losses),
            Reader::TracefsText(reader) => reader.next(&mut self.names, &mut self.losses),
            Reader::Biosnoop(reader) => reader.next(&mut self.names, &mut self.losses),
            Reader::Vscsi(reader) => reader.next(&mut self.losses),
            Reader::Table(reader) => reader.next(&mut self.losses),
        }
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// How the format was recognised, in words.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Number of files of the recording.
    #[must_use]
    pub const fn files(&self) -> usize {
        self.files
    }

    /// Names of tasks that have been read so far.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The recording's own name of a device that has been read so far; `None` if it has only numbers.
    #[must_use]
    pub fn disk_name(&self, device: Device) -> Option<String> {
        match &self.reader {
            Reader::Biosnoop(reader) => reader.disk_name(device),
            Reader::Table(reader) => reader.disk_name(device),
            Reader::Blktrace(_) | Reader::Blkparse(_) | Reader::TracefsText(_) | Reader::Vscsi(_) => None,
        }
    }

    /// Losses that have been found so far.
    #[must_use]
    pub const fn losses(&self) -> &Losses {
        &self.losses
    }
}
