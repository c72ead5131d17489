//! The recording as short entries in the order of time, in a temporary file.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};

/// What an entry is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An I/O was submitted.
    Queued,
    /// Its submission has ended.
    Submitted,
    /// It has completed.
    Completed,
    /// Its completion is lost.
    GivenUp,
    /// A plug began.
    Plug,
    /// A plug ended.
    Unplug,
    /// A plug ended because its task went to sleep.
    UnplugScheduled,
}

const KINDS: [Kind; 7] =
    [Kind::Queued, Kind::Submitted, Kind::Completed, Kind::GivenUp, Kind::Plug, Kind::Unplug, Kind::UnplugScheduled];

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// Time of the recording's clock.
    pub(crate) time_ns: u64,
    /// Of an I/O its first sector; of a submission's end how long it was blocked, of a completion how long it took, both in
    /// nanoseconds.
    pub(crate) value: u64,
    pub(crate) bytes: u32,
    /// The task's number.
    pub(crate) task: u32,
    /// Bits of the I/O's flags.
    pub(crate) flags: u16,
    pub(crate) priority: u16,
}

const BYTES: usize = 32;
const BUFFER_BYTES: usize = 256 << 10;

impl Entry {
    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.time_ns.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.value.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.task.to_le_bytes());
        bytes[24..26].copy_from_slice(&self.flags.to_le_bytes());
        bytes[26..28].copy_from_slice(&self.priority.to_le_bytes());
        bytes[28] = self.kind as u8;
        bytes
    }

    fn from_bytes(bytes: &[u8; BYTES]) -> Entry {
        let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within the entry"));
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("within the entry"));
        let half = |at: usize| u16::from_le_bytes(*bytes[at..].first_chunk().expect("within the entry"));
        Entry {
            kind: KINDS[usize::from(bytes[28])],
            time_ns: long(0),
            value: long(8),
            bytes: word(16),
            task: word(20),
            flags: half(24),
            priority: half(26),
        }
    }
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Writer(BufWriter<File>);

impl Writer {
    pub(crate) fn new() -> io::Result<Writer> {
        Ok(Writer(BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile()?)))
    }

    #[inline]
    pub(crate) fn add(&mut self, entry: Entry) -> io::Result<()> {
        self.0.write_all(&entry.to_bytes())
    }

    pub(crate) fn finish(self) -> io::Result<Log> {
        Ok(Log(self.0.into_inner().map_err(io::IntoInnerError::into_error)?))
    }
}

/// A log that can be read as often as wanted.
#[derive(Debug)]
pub(crate) struct Log(File);

impl Log {
    /// Shows every entry, in the order of time.
    pub(crate) fn each(&mut self, mut show: impl FnMut(&Entry) -> io::Result<()>) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &self.0);
        let mut bytes = [0; BYTES];
        loop {
            match reader.read_exact(&mut bytes) {
                Ok(()) => show(&Entry::from_bytes(&bytes))?,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}
