//! Replay of recorded I/Os.
//!
//! Used by: `generator`, `plan`, `pace`, `process`; crates `program`, `fio`.
//! Tests: `crates/load/tests/replays.rs`.
//!
//! They are not held in memory: each run opens its [`Records`] again and reads one after the other. A [`Summary`] holds what
//! must be known in advance.

use std::fmt;
use std::sync::Arc;

use hoistway_blk::bio::{BioFlags, Op};
use hoistway_blk::ground::Nanos;

use crate::{Io, LoadError};

/// When a recorded I/O is issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// This long after the previous I/O.
    After(Nanos),
    /// This long after the start.
    Until(Nanos),
    /// When the recorded program would issue it.
    Program(ProgramStep),
}

/// How a recorded program issues an I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramStep {
    /// What it waits for.
    pub when: When,
    /// Flags of its bio: SYNC, FUA, PREFLUSH and the like.
    pub flags: BioFlags,
    /// Whether its program submits it under a plug; `None` if that is up to the kernel.
    pub is_plugged: Option<bool>,
    /// Whether the next I/O goes into the same plug.
    pub plug_goes_on: bool,
}

/// Maximum streams that a stream of a program waits for.
pub const WAITS_MAX: usize = 3;

/// When an I/O of a program is issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// This long after the start (RP10, RP13, RP16).
    At(Nanos),
    /// After a number of completions in any order (RP6, RP7), and not before the end of the previous submission.
    AfterCompletions {
        /// Number of completed I/Os of its own stream.
        own: u64,
        /// The number for each stream that it waits for, in the order of [`Replay::waits_on`]; `None` for a stream that it does not
        /// wait for.
        of: [Option<u64>; WAITS_MAX],
        /// This long after the last of them.
        gap: Nanos,
    },
    /// This long after the end of the previous submission (RP8).
    AfterSubmission(Nanos),
}

/// One I/O of a recording. Its priority is ignored: the process that replays it sets the priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The I/O.
    pub io: Io,
    /// When it is issued.
    pub pause: Pause,
}

/// Why the records of a recording could not be read to the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordError {
    /// The line at fault, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
    /// What was expected, or what to do about it.
    pub hint: &'static str,
}

/// A source of records, which can be read any number of times from the first record on.
pub trait Records: fmt::Debug + Send + Sync {
    /// Starts reading from the first record. `seed` determines random parts of the records; the same seed gives the same records.
    ///
    /// # Errors
    /// If there is nothing to read.
    fn open(&self, seed: u64) -> Result<Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>, RecordError>;
}

/// Records in memory.
impl Records for Arc<[Record]> {
    fn open(&self, _: u64) -> Result<Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>, RecordError> {
        let records = Arc::clone(self);
        Ok(Box::new((0..).map_while(move |at: usize| records.get(at).copied().map(Ok))))
    }
}

/// A recording that a process replays.
///
/// ```
/// use std::sync::Arc;
///
/// use hoistway_blk::bio::{IoPriority, Op};
/// use hoistway_blk::ground::Nanos;
/// use hoistway_load::{Io, IoPlan, Load, Pause, Pattern, Process, Record, Replay};
///
/// let read = |offset_bytes| Io { op: Op::Read, file: 0, priority: IoPriority::UNSET, bytes: 4096, offset_bytes };
/// let records = [0, 8192].map(|offset| Record { io: read(offset), pause: Pause::After(Nanos::from_millis(10)) });
/// let records: Arc<[Record]> = Arc::new(records);
///
/// let mut load = Load::new();
/// let disk = load.file("/dev/sda");
/// let mut process = Process::new("replay", disk, Pattern::default());
/// process.plan.replay = Some(Replay::new(Arc::new(records))?.into());
/// load.add(process);
/// assert_eq!(load.processes[0].generator(0, 1, |_| 1 << 20).map(Iterator::count), Ok(2));
/// # Ok::<(), hoistway_load::RecordError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replay {
    /// The source of its I/Os.
    pub records: Arc<dyn Records>,
    /// A summary of the records.
    pub summary: Summary,
    /// For a recorded stream: the processes whose completions [`When::AfterCompletions`] counts, by their numbers in the load. `None`
    /// if its I/Os do not wait for completions.
    pub waits_on: Option<Arc<[u32]>>,
}

impl Replay {
    /// Reads all records once.
    ///
    /// # Errors
    /// The same as [`Records::open`] and its iterator.
    pub fn new(records: Arc<dyn Records>) -> Result<Replay, RecordError> {
        let mut summary = Summary::default();
        for record in records.open(0)? {
            summary.add(&record?);
        }
        Ok(Replay { records, summary, waits_on: None })
    }
}

/// A summary of a recording's records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The number of I/Os.
    pub ios: u64,
    /// For each device, by [`Io::file`], the end of the last byte that is accessed.
    pub ends: Vec<u64>,
    /// The smallest and the largest read, write or trim, in bytes.
    pub sizes: Option<(u32, u32)>,
    /// Whether there are pauses.
    pub has_pauses: bool,
    /// When the last I/O is due, if none is late, ns after the start; unknown for a recorded program, whose I/Os wait for each other.
    pub last_due_ns: u64,
    /// Whether something is written or trimmed.
    pub modifies: bool,
    /// Whether there are flushes.
    pub flushes: bool,
    /// I/Os that begin where the previous one ended.
    sequential_ios: u64,
    last_end: Option<u64>,
    /// An offset that is not a multiple of a sector, if there is one.
    unaligned_offset: Option<u64>,
}

impl Summary {
    /// Adds a record.
    pub fn add(&mut self, Record { io, pause }: &Record) {
        let end = io.offset_bytes.saturating_add(u64::from(io.bytes));
        let file = usize::from(io.file);
        if self.ends.len() <= file {
            self.ends.resize(file + 1, 0);
        }
        self.ends[file] = self.ends[file].max(end);
        if io.op != Op::Flush {
            let (least, most) = self.sizes.unwrap_or((io.bytes, io.bytes));
            self.sizes = Some((least.min(io.bytes), most.max(io.bytes)));
        }
        self.ios += 1;
        self.has_pauses |= *pause != Pause::After(Nanos::ZERO);
        self.last_due_ns = match pause {
            Pause::After(gap) => self.last_due_ns.saturating_add(gap.0),
            Pause::Until(at) => self.last_due_ns.max(at.0),
            Pause::Program(_) => 0,
        };
        self.modifies |= matches!(io.op, Op::Write | Op::Discard);
        self.flushes |= io.op == Op::Flush;
        self.sequential_ios += u64::from(self.last_end == Some(io.offset_bytes));
        self.last_end = Some(end);
        if !io.offset_bytes.is_multiple_of(512) {
            self.unaligned_offset.get_or_insert(io.offset_bytes);
        }
    }

    /// The same with other devices: `devices` maps the numbers of the devices.
    #[must_use]
    pub fn on_devices(mut self, devices: &[u8]) -> Summary {
        let mut ends = vec![0; devices.iter().map(|&device| usize::from(device) + 1).max().unwrap_or(0)];
        for (end, &device) in self.ends.iter().zip(devices) {
            let device_end = &mut ends[usize::from(device)];
            *device_end = (*device_end).max(*end);
        }
        self.ends = ends;
        self
    }

    /// Whether most I/Os do not begin where the previous one ended.
    #[must_use]
    pub fn is_random(&self) -> bool {
        2 * self.sequential_ios < self.ios
    }

    /// Whether every I/O lies on its device, in whole sectors.
    pub(crate) fn check(&self, device_bytes: &dyn Fn(usize) -> u64) -> Result<(), LoadError> {
        let error = |message: String, hint| Err(LoadError::new("plan.replay", message, hint));
        for (device, &end) in self.ends.iter().enumerate().filter(|(_, end)| **end > 0) {
            let bytes = device_bytes(device);
            if end > bytes {
                let message = format!("the log goes to byte {end}, but the device has {bytes}");
                return error(message, "use a larger device, or scale the offsets down (replay_scale)");
            }
        }
        match self.unaligned_offset {
            Some(offset) => error(
                format!("the offset {offset} is not a multiple of a sector of 512"),
                "direct I/O needs whole sectors: align the offsets (replay_align=512)",
            ),
            None => Ok(()),
        }
    }
}
