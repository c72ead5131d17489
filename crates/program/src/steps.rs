//! The steps of a program: I/Os with what each of them waits for. They lie in a temporary file, one run for each stream.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use hoistway_blk::{IoPriority, Nanos, Op};
use hoistway_load::{Io, Pause, Record, RecordError, Records};
use hoistway_trace::block::Flags;

use crate::waits::WAITS_MAX;

/// When an I/O is issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// So long after the start (RP10, RP13, RP16).
    At(Nanos),
    /// After completions, whichever they are (RP6, RP7), and not before the submission before has ended.
    AfterCompletions {
        /// I/Os of its own stream that have to be completed.
        own: u64,
        /// The same of the streams that its stream waits for, in the order of [`Stream::waits`](crate::Stream::waits);
        /// none where it does not wait.
        of: [Option<u64>; WAITS_MAX],
        /// So long after the last of them.
        gap: Nanos,
    },
    /// So long after the end of the submission before (RP8).
    AfterSubmission(Nanos),
}

/// How an I/O stands to the plug of its task (RP9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Plug {
    /// Submitted without one.
    #[default]
    None,
    /// Under a plug that goes on.
    Within,
    /// The last one under a plug, which its task then ended.
    Last,
    /// The last one under a plug that ended because its task went to sleep.
    LastScheduled,
}

/// One I/O of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// When it was submitted in the recording, since the start.
    pub at: Nanos,
    /// When it is issued.
    pub when: When,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Length; 0 for a flush.
    pub bytes: u32,
    /// Direction and modifiers.
    pub flags: Flags,
    /// Its priority; [`IoPriority::UNSET`] if the recording has none.
    pub priority: IoPriority,
    /// Its plug.
    pub plug: Plug,
}

impl Step {
    /// What is done, on device 0 of its process. A discard is a write in the recording, and a flush an empty write.
    #[must_use]
    pub fn io(&self) -> Io {
        let op = match self.flags {
            flags if flags.has(Flags::DISCARD) => Op::Discard,
            _ if self.bytes == 0 => Op::Flush,
            flags if flags.has(Flags::WRITE) => Op::Write,
            _ => Op::Read,
        };
        let offset_bytes = if op == Op::Flush { 0 } else { self.sector.saturating_mul(512) };
        Io { op, file: 0, priority: self.priority, bytes: self.bytes, offset_bytes }
    }
}

const FIXED_BYTES: usize = 42;
const NOT_TIED: u64 = u64::MAX;
const BUFFER_BYTES: usize = 8 << 10;

fn record_bytes(waits: usize) -> usize {
    FIXED_BYTES + 8 * waits
}

fn encode(step: &Step, waits: usize, into: &mut Vec<u8>) {
    let (kind, own, gap, of) = match step.when {
        When::At(_) => (0, 0, 0, [None; WAITS_MAX]),
        When::AfterCompletions { own, of, gap } => (1, own, gap.0, of),
        When::AfterSubmission(gap) => (2, 0, gap.0, [None; WAITS_MAX]),
    };
    into.extend(step.at.0.to_le_bytes());
    into.extend(step.sector.to_le_bytes());
    into.extend(own.to_le_bytes());
    into.extend(gap.to_le_bytes());
    into.extend(step.bytes.to_le_bytes());
    into.extend(step.flags.bits().to_le_bytes());
    into.extend(step.priority.0.to_le_bytes());
    into.extend([kind, step.plug as u8]);
    for count in &of[..waits] {
        into.extend(count.unwrap_or(NOT_TIED).to_le_bytes());
    }
}

fn decode(bytes: &[u8], waits: usize) -> Step {
    let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within the record"));
    let half = |at: usize| u16::from_le_bytes(*bytes[at..].first_chunk().expect("within the record"));
    let (at, own, gap) = (Nanos(long(0)), long(16), Nanos(long(24)));
    let mut of = [None; WAITS_MAX];
    for (wait, count) in of[..waits].iter_mut().enumerate() {
        *count = Some(long(FIXED_BYTES + 8 * wait)).filter(|count| *count != NOT_TIED);
    }
    Step {
        at,
        when: match bytes[40] {
            0 => When::At(at),
            1 => When::AfterCompletions { own, of, gap },
            _ => When::AfterSubmission(gap),
        },
        sector: long(8),
        bytes: u32::from_le_bytes(*bytes[32..].first_chunk().expect("within the record")),
        flags: Flags::from_category(half(36)),
        priority: IoPriority(half(38)),
        plug: [Plug::None, Plug::Within, Plug::Last, Plug::LastScheduled][usize::from(bytes[41] & 3)],
    }
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    ios: u64,
    waits: usize,
}

/// Steps that are being written.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    runs: Vec<Run>,
    /// Bytes written of each run, and those that are not yet.
    parts: Vec<(u64, Vec<u8>)>,
}

impl Writer {
    /// For streams with so many I/Os and waits each.
    pub(crate) fn new(streams: impl Iterator<Item = (u64, usize)>) -> io::Result<Writer> {
        let mut start = 0;
        let runs: Vec<Run> = streams
            .map(|(ios, waits)| {
                let run = Run { start, ios, waits };
                start += ios * record_bytes(waits) as u64;
                run
            })
            .collect();
        let parts = vec![(0, Vec::new()); runs.len()];
        Ok(Writer { file: tempfile::tempfile()?, runs, parts })
    }

    pub(crate) fn add(&mut self, stream: usize, step: &Step) -> io::Result<()> {
        encode(step, self.runs[stream].waits, &mut self.parts[stream].1);
        if self.parts[stream].1.len() >= BUFFER_BYTES { self.write(stream) } else { Ok(()) }
    }

    fn write(&mut self, stream: usize) -> io::Result<()> {
        let (written, bytes) = &mut self.parts[stream];
        self.file.write_all_at(bytes, self.runs[stream].start + *written)?;
        *written += bytes.len() as u64;
        bytes.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<Store> {
        for stream in 0..self.runs.len() {
            self.write(stream)?;
        }
        Ok(Store { file: Arc::new(self.file), runs: self.runs })
    }
}

/// The file with all steps.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    file: Arc<File>,
    runs: Vec<Run>,
}

impl Store {
    pub(crate) fn steps(&self, stream: usize) -> Steps {
        let run = self.runs[stream];
        Steps { file: Arc::clone(&self.file), run, at: 0, buffer: Vec::new(), used: 0 }
    }
}

/// The steps of a stream, from the first on. An error ends them.
#[derive(Clone, Debug)]
pub struct Steps {
    file: Arc<File>,
    run: Run,
    /// Steps that were read.
    at: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl Steps {
    fn read(&mut self) -> io::Result<()> {
        let record = record_bytes(self.run.waits);
        let left = self.run.ios - self.at;
        let count = left.min((BUFFER_BYTES / record) as u64);
        self.buffer.resize(count as usize * record, 0);
        self.used = 0;
        self.file.read_exact_at(&mut self.buffer, self.run.start + self.at * record as u64)
    }
}

impl Iterator for Steps {
    type Item = io::Result<Step>;

    fn next(&mut self) -> Option<io::Result<Step>> {
        if self.at == self.run.ios {
            return None;
        }
        if self.used == self.buffer.len()
            && let Err(error) = self.read()
        {
            self.at = self.run.ios;
            return Some(Err(error));
        }
        let record = record_bytes(self.run.waits);
        let step = decode(&self.buffer[self.used..self.used + record], self.run.waits);
        self.used += record;
        self.at += 1;
        Some(Ok(step))
    }
}

/// The I/Os of a stream at their recorded times, as a process replays them.
#[derive(Debug)]
pub(crate) struct Timed(pub(crate) Steps);

impl Records for Timed {
    fn open(&self) -> Result<Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>, RecordError> {
        let records = self.0.clone().zip(1u32..).map(|(step, number)| match step {
            Ok(step) => Ok(Record { io: step.io(), pause: Pause::Until(step.at) }),
            Err(error) => Err(RecordError {
                line: number,
                message: format!("the temporary file cannot be read: {error}"),
                hint: "a folder for temporary files that stays there",
            }),
        });
        Ok(Box::new(records))
    }
}
