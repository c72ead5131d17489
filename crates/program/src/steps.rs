//! The steps of a program: I/Os with what each of them waits for, in a temporary file that is sorted by stream.
//!
//! Used by: `replay`, `infer`, `track`, `stream`, `ticks`.
//! Tests: `crates/program/tests/program/worked_example.rs`, `crates/program/tests/program/tables.rs`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_blk::ground::Nanos;
use hoistway_load::{Io, WAITS_MAX, When};
use hoistway_trace::block::Flags;

/// The relation of an I/O to the plug of its task (RP9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Plug {
    /// Submitted without a plug.
    #[default]
    None,
    /// Under a plug that stays open.
    Within,
    /// The last one under a plug that its task then finished.
    Last,
    /// The last one under a plug that was flushed because its task went to sleep.
    LastScheduled,
    /// The only one under its plug, which kernels from 6.10 to 7.1 open for direct I/O.
    Lone,
}

/// One I/O of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// When it was submitted in the recording, ns since the start.
    pub at: Nanos,
    /// When a replay issues it.
    pub when: When,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u32,
    /// Direction and modifiers.
    pub flags: Flags,
    /// Its priority; [`IoPriority::UNSET`] if the recording has none.
    pub priority: IoPriority,
    /// Its plug.
    pub plug: Plug,
}

impl Step {
    /// The I/O, on device 0 of its process. In a recording a discard is a write, and a flush an empty write.
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

/// Possible causes of an I/O's submission: preceding events, and how long before they happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Causes {
    /// Whether it was issued at its time, independent of other events: the first of a burst of write-back.
    pub(crate) is_fixed: bool,
    /// Number of completions of its own stream that it waited for.
    pub(crate) own_completions: u64,
    /// Nanoseconds since the last of these completions; `None` if it followed the previous submission instead.
    pub(crate) own_gap_ns: Option<u64>,
    /// Nanoseconds since the end of the previous submission; `None` for the first I/O.
    pub(crate) submission_gap_ns: Option<u64>,
    /// For each stream that it may wait for: number of completions and nanoseconds since the last one; `None` if that stream was
    /// not idle.
    pub(crate) others: [Option<(u64, u64)>; WAITS_MAX],
}

/// How causes are interpreted: which of them an I/O really waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reading {
    /// Whether every I/O is issued at its recorded time (RP13).
    pub(crate) is_open: bool,
    /// Which of the other streams it waits for.
    pub(crate) waits: [bool; WAITS_MAX],
    /// I/Os that it keeps outstanding in addition to the recorded depth (RP15).
    pub(crate) deeper: u64,
}

impl Causes {
    /// When the I/O is issued.
    pub(crate) fn when(&self, at: Nanos, reading: &Reading) -> When {
        let Some(submission_gap_ns) = self.submission_gap_ns.filter(|_| !self.is_fixed && !reading.is_open) else {
            return When::At(at);
        };
        let mut gap_ns = self.own_gap_ns;
        let mut of = [None; WAITS_MAX];
        for ((count, cause), waits) in of.iter_mut().zip(self.others).zip(reading.waits) {
            if let Some((completed, since_ns)) = cause.filter(|_| waits) {
                *count = Some(completed);
                if since_ns < submission_gap_ns {
                    gap_ns = Some(gap_ns.map_or(since_ns, |gap_ns| gap_ns.min(since_ns)));
                }
            }
        }
        match gap_ns {
            Some(gap_ns) => When::AfterCompletions {
                own: self.own_completions.saturating_sub(reading.deeper),
                of,
                gap: Nanos(gap_ns),
            },
            None => When::AfterSubmission(Nanos(submission_gap_ns)),
        }
    }
}

const FIXED_BYTES: usize = 50;
const ABSENT: u64 = u64::MAX;
const BUFFER_BYTES: usize = 8 << 10;

fn record_bytes(wait_count: usize) -> usize {
    FIXED_BYTES + 16 * wait_count
}

fn encode(step: &Step, causes: &Causes, waits: usize, bytes: &mut Vec<u8>) {
    let longs = [
        step.at.0,
        step.sector,
        causes.own_completions,
        causes.own_gap_ns.unwrap_or(ABSENT),
        causes.submission_gap_ns.unwrap_or(ABSENT),
    ];
    longs.iter().for_each(|long| bytes.extend(long.to_le_bytes()));
    bytes.extend(step.bytes.to_le_bytes());
    bytes.extend(step.flags.bits().to_le_bytes());
    bytes.extend(step.priority.0.to_le_bytes());
    bytes.extend([u8::from(causes.is_fixed), step.plug as u8]);
    for cause in &causes.others[..waits] {
        let (count, since_ns) = cause.unwrap_or((ABSENT, 0));
        bytes.extend(count.to_le_bytes());
        bytes.extend(since_ns.to_le_bytes());
    }
}

fn decode(bytes: &[u8], waits: usize, reading: &Reading) -> Step {
    let long = |offset: usize| u64::from_le_bytes(*bytes[offset..].first_chunk().expect("within the record"));
    let half = |offset: usize| u16::from_le_bytes(*bytes[offset..].first_chunk().expect("within the record"));
    let present = |value: u64| (value != ABSENT).then_some(value);
    let mut causes = Causes {
        is_fixed: bytes[48] != 0,
        own_completions: long(16),
        own_gap_ns: present(long(24)),
        submission_gap_ns: present(long(32)),
        others: [None; WAITS_MAX],
    };
    for (wait, cause) in causes.others[..waits].iter_mut().enumerate() {
        let offset = FIXED_BYTES + 16 * wait;
        *cause = present(long(offset)).map(|count| (count, long(offset + 8)));
    }
    let at = Nanos(long(0));
    Step {
        at,
        when: causes.when(at, reading),
        sector: long(8),
        bytes: u32::from_le_bytes(*bytes[40..].first_chunk().expect("within the record")),
        flags: Flags::from_category(half(44)),
        priority: IoPriority(half(46)),
        plug: [Plug::None, Plug::Within, Plug::Last, Plug::LastScheduled, Plug::Lone][usize::from(bytes[49] % 5)],
    }
}

/// Where the steps of a stream are in the file.
#[derive(Clone, Copy, Debug)]
struct StepRun {
    start: u64,
    ios: u64,
    waits: usize,
}

/// Steps that are being written.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    runs: Vec<StepRun>,
    /// For each run: bytes written, and bytes still buffered.
    parts: Vec<(u64, Vec<u8>)>,
    has_lone_plugs: bool,
}

impl Writer {
    /// A writer for streams with these numbers of I/Os and waits.
    pub(crate) fn new(streams: impl Iterator<Item = (u64, usize)>) -> io::Result<Writer> {
        let mut start = 0;
        let runs: Vec<StepRun> = streams
            .map(|(ios, waits)| {
                let run = StepRun { start, ios, waits };
                start += ios * record_bytes(waits) as u64;
                run
            })
            .collect();
        let parts = vec![(0, Vec::new()); runs.len()];
        Ok(Writer { file: tempfile::tempfile()?, runs, parts, has_lone_plugs: false })
    }

    pub(crate) fn add(&mut self, stream: usize, step: &Step, causes: &Causes) -> io::Result<()> {
        self.has_lone_plugs |= step.plug == Plug::Lone;
        encode(step, causes, self.runs[stream].waits, &mut self.parts[stream].1);
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
        Ok(Store { file: Arc::new(self.file), runs: self.runs, has_lone_plugs: self.has_lone_plugs })
    }
}

/// The file with all steps.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    file: Arc<File>,
    runs: Vec<StepRun>,
    pub(crate) has_lone_plugs: bool,
}

impl Store {
    pub(crate) fn steps(&self, stream: usize, reading: Reading) -> Steps {
        let run = self.runs[stream];
        Steps { file: Arc::clone(&self.file), run, reading, next: 0, buffer: Vec::new(), decoded: 0 }
    }
}

/// Iterates over the steps of a stream; an error ends the iteration.
#[derive(Clone, Debug)]
pub struct Steps {
    file: Arc<File>,
    run: StepRun,
    reading: Reading,
    /// Number of steps read so far.
    next: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were decoded.
    decoded: usize,
}

impl Steps {
    fn read(&mut self) -> io::Result<()> {
        let record = record_bytes(self.run.waits);
        let remaining = self.run.ios - self.next;
        let count = remaining.min((BUFFER_BYTES / record) as u64);
        self.buffer.resize(count as usize * record, 0);
        self.decoded = 0;
        self.file.read_exact_at(&mut self.buffer, self.run.start + self.next * record as u64)
    }
}

impl Iterator for Steps {
    type Item = io::Result<Step>;

    fn next(&mut self) -> Option<io::Result<Step>> {
        if self.next == self.run.ios {
            return None;
        }
        if self.decoded == self.buffer.len()
            && let Err(error) = self.read()
        {
            self.next = self.run.ios;
            return Some(Err(error));
        }
        let record = record_bytes(self.run.waits);
        let step = decode(&self.buffer[self.decoded..self.decoded + record], self.run.waits, &self.reading);
        self.decoded += record;
        self.next += 1;
        Some(Ok(step))
    }
}
