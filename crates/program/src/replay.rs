//! Converts a program to a load: one process per stream (RP11, RP21).
//!
//! Used by: crates `experiment`, `evidence`.
//! Tests: `crates/program/tests/program/replayed.rs`.

use std::io;
use std::sync::Arc;

use hoistway_blk::bio::{BioFlags, IoPriority, Op};
use hoistway_blk::ground::Nanos;
use hoistway_load::{
    Ends, Io, Issue, Load, Pattern, Pause, Process, ProgramStep, Record, RecordError, Records, Replay, WAITS_MAX, When,
};
use hoistway_trace::block::Flags;
use serde::{Deserialize, Serialize};

use crate::alternatives::Change;
use crate::infer::Program;
use crate::steps::{Plug, Step, Steps};
use crate::stream::{Kind, Stream};
use crate::ticks::TimeSpread;

/// Maximum in-flight I/Os of an open stream.
const OPEN_DEPTH: u32 = 4096;
/// Moved offsets stay multiples of this, bytes.
const BLOCK_BYTES: u64 = 4096;
/// Fraction of the recording at its start that is not measured, and at its end in which a stream must be active to count as
/// running until the end (RP22).
const EDGE_SHARE: f64 = 0.1;

/// How a program is replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// I/Os wait for the I/Os that they waited for in the recording.
    #[default]
    RecordedProgram,
    /// I/Os are issued at their recorded times.
    Timed,
    /// As [`RecordedProgram`](Self::RecordedProgram), but without gaps.
    Fast,
}

/// Options of a replay.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplayOptions {
    /// How its I/Os are issued.
    pub mode: Mode,
    /// Gaps and arrival times are divided by this factor.
    pub speed: f64,
    /// Copies of each stream, each at its own addresses.
    pub copies: u32,
    /// Depths of streams by name, where the recorded queue limited them (RP15).
    pub depths: Vec<(String, u32)>,
    /// Priorities of streams, by name.
    pub priorities: Vec<(String, IoPriority)>,
    /// Weights of cgroups, by id (RP28).
    pub cgroup_weights: Vec<(u64, u32)>,
    /// The names of the streams to run; empty for all.
    pub streams: Vec<String>,
    /// Changes of the inferred program.
    pub changes: Vec<Change>,
    /// The depth that [`Change::Deeper`] gives a stream.
    pub queue_depth: u32,
    /// Size of the device, bytes.
    pub device_bytes: u64,
    /// Offsets are divided by this factor and rounded to blocks of 4 KiB (RP34); 1 leaves them unchanged.
    pub shrink: f64,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions {
            mode: Mode::default(),
            speed: 1.0,
            copies: 1,
            depths: Vec::new(),
            priorities: Vec::new(),
            cgroup_weights: Vec::new(),
            streams: Vec::new(),
            changes: Vec::new(),
            queue_depth: 0,
            device_bytes: u64::MAX,
            shrink: 1.0,
        }
    }
}

impl Program {
    /// The load that replays the program on a device with this name. Streams with the same name are processes of one job.
    ///
    /// # Errors
    /// If the temporary file with its steps cannot be read.
    pub fn load(&self, device: &str, options: &ReplayOptions) -> Result<Load, RecordError> {
        let mut load = Load::new();
        let file = load.file(device);
        let copies = self.stream_copies(options);
        let names: Vec<&str> = self.names(options);
        for (number, &(stream, copy)) in copies.iter().enumerate() {
            let process_of =
                |on: usize| copies.iter().position(|&other| other == (on, copy)).map(|number| number as u32);
            let mut process = self.process(stream, copy, file, options, &process_of)?;
            let job = names.iter().position(|name| *name == process.name).unwrap_or(0);
            let clone = copies[..number].iter().filter(|(other, _)| self.streams[*other].name == process.name).count();
            let schedule = &mut process.schedule;
            (schedule.job, schedule.clone) = (job, clone as u32);
            (schedule.group, schedule.group_reporting) = (job as u32, true);
            load.processes.push(process);
        }
        Ok(load)
    }

    /// For each process of the [load](Program::load), the index of its stream in [`Program::streams`].
    pub fn order(&self, options: &ReplayOptions) -> impl Iterator<Item = usize> {
        self.stream_copies(options).into_iter().map(|(stream, _)| stream)
    }

    /// For each process, the index of its stream and the number of its copy.
    fn stream_copies(&self, options: &ReplayOptions) -> Vec<(usize, u32)> {
        let mut copies: Vec<(usize, u32)> = Vec::new();
        for name in self.names(options) {
            let streams_of_name = || (0..self.streams.len()).filter(move |&stream| self.streams[stream].name == name);
            copies.extend(
                (0..options.copies.max(1)).flat_map(|copy| streams_of_name().map(move |stream| (stream, copy))),
            );
        }
        copies
    }

    /// The names of the jobs.
    fn names(&self, options: &ReplayOptions) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for stream in &self.streams {
            let is_wanted = options.streams.is_empty() || options.streams.iter().any(|text| stream.is_called(text));
            if is_wanted && !names.contains(&&*stream.name) {
                names.push(&stream.name);
            }
        }
        names
    }

    /// Whether synchronous writes of a stream are assumed to be direct I/O, which write-back throttling does not limit. A
    /// recording does not show this, but a task that makes buffered writes durable flushes, or waits for a journal.
    fn writes_directly(&self, stream: usize) -> bool {
        let recorded = &self.streams[stream];
        let has_journal = recorded.waits.iter().any(|wait| self.streams[wait.on].kind == Kind::Helper);
        recorded.kind == Kind::Task && recorded.durable_writes + recorded.flushes == 0 && !has_journal
    }

    /// The process that replays a stream. `process_of` returns the process of another stream in the load.
    fn process(
        &self,
        stream: usize,
        copy: u32,
        file: u32,
        options: &ReplayOptions,
        process_of: &dyn Fn(usize) -> Option<u32>,
    ) -> Result<Process, RecordError> {
        let recorded = &self.streams[stream];
        let mut reading = recorded.reading();
        reading.is_open |= options.mode == Mode::Timed;
        let mut depth = recorded.evidence.depth_max.max(1);
        let mut fixed_depth: Option<FixedDepth> = None;
        let mut requested_depth = find_by_name(&options.depths, recorded).unwrap_or(0);
        for change in options.changes.iter().filter(|change| change.stream() == stream) {
            match *change {
                Change::Open { .. } => reading.is_open = true,
                Change::Closed { .. } => reading.is_open = false,
                Change::Kept { latency_ns, .. } => fixed_depth = Some(FixedDepth::of(recorded, latency_ns)),
                Change::Deeper { seen, to, .. } => {
                    requested_depth = requested_depth.max(to.depth(seen, options.queue_depth));
                }
                Change::Waits { on, .. } => {
                    if let Some(wait) = recorded.may_wait_for().position(|other| other == on) {
                        reading.waits[wait] = true;
                    }
                }
            }
        }
        reading.deeper = u64::from(requested_depth.saturating_sub(depth));
        depth = depth.max(requested_depth);
        if reading.is_open {
            depth = OPEN_DEPTH.min(u32::try_from(recorded.ios).unwrap_or(u32::MAX)).max(1);
        }
        let fixed_depth = fixed_depth.filter(|_| options.mode != Mode::Timed);
        if let Some(fixed_depth) = fixed_depth {
            depth = fixed_depth.depth;
        }
        // Do not wait for streams that do not run.
        let mut waits_on = Vec::new();
        for (wait, on) in recorded.may_wait_for().enumerate() {
            let number = process_of(on);
            reading.waits[wait] &= number.is_some();
            waits_on.push(number.unwrap_or_default());
        }
        let copies = u64::from(options.copies.max(1));
        let mapping = ReplayMapping {
            shift_bytes: options.device_bytes / copies / BLOCK_BYTES * BLOCK_BYTES * u64::from(copy),
            device_bytes: options.device_bytes,
            shrink: options.shrink,
        };
        let is_background = recorded.kind == Kind::WriteBack;
        let is_direct = self.writes_directly(stream);
        let (mode, speed) = (options.mode, options.speed);
        let tick_ns = self.tick.map_or(0, |tick| tick.length_ns);
        let steps = self.steps_as(stream, reading);
        let has_lone_plugs = self.has_lone_plugs();
        let records = StreamRecords {
            steps,
            mode,
            speed,
            mapping,
            is_background,
            is_direct,
            has_lone_plugs,
            tick_ns,
            fixed_depth,
        };
        let mut replay = Replay::new(Arc::new(records))?;
        replay.waits_on = Some(waits_on.into());
        let mut process = Process::new(&recorded.name, file, Pattern::default());
        process.issue = Issue::asynchronous(depth);
        process.standing.io_priority = find_by_name(&options.priorities, recorded);
        if let Some(id) = recorded.cgroup {
            process.standing.cgroup = Some(format!("/{id}"));
            let weight = options.cgroup_weights.iter().find(|(other, _)| *other == id);
            process.standing.cgroup_weight = weight.map(|(_, weight)| *weight);
        }
        process.schedule.ramp = Nanos((self.span_ns as f64 * EDGE_SHARE / options.speed) as u64);
        // `others`, tasks with few I/Os, do not end the run.
        let is_active_at_the_end =
            recorded.kind != Kind::Others && recorded.last_ns as f64 >= self.span_ns as f64 * (1.0 - EDGE_SHARE);
        process.schedule.ends = is_active_at_the_end.then_some(Ends::All);
        process.plan.replay = Some(Arc::new(replay));
        Ok(process)
    }
}

/// What was asked for a stream; for its own name rather than for that of its task.
fn find_by_name<T: Copy>(list: &[(String, T)], stream: &Stream) -> Option<T> {
    let own = list.iter().find(|(text, _)| *text == stream.name);
    own.or_else(|| list.iter().find(|(text, _)| stream.is_called(text))).map(|(_, value)| *value)
}

/// Maps recorded offsets to those of a copy.
#[derive(Clone, Copy, Debug)]
struct ReplayMapping {
    shift_bytes: u64,
    device_bytes: u64,
    shrink: f64,
}

impl ReplayMapping {
    fn offset_bytes(&self, io: &Io) -> u64 {
        let mut offset_bytes = io.offset_bytes;
        if self.shrink != 1.0 {
            offset_bytes = (offset_bytes as f64 / self.shrink) as u64 / BLOCK_BYTES * BLOCK_BYTES;
        }
        if self.shift_bytes > 0 {
            offset_bytes = (offset_bytes + self.shift_bytes) % self.device_bytes;
        }
        let is_moved = self.shrink != 1.0 || self.shift_bytes > 0;
        let last = self.device_bytes.saturating_sub(u64::from(io.bytes));
        if is_moved { offset_bytes.min(last) } else { offset_bytes }
    }
}

/// The I/Os of a stream, as a process replays them.
#[derive(Clone, Debug)]
struct StreamRecords {
    steps: Steps,
    mode: Mode,
    speed: f64,
    mapping: ReplayMapping,
    is_background: bool,
    is_direct: bool,
    /// Whether the recorded kernel opened plugs for single I/Os.
    has_lone_plugs: bool,
    /// Length of a tick of the recording's clock, if it is coarse; otherwise 0.
    tick_ns: u64,
    fixed_depth: Option<FixedDepth>,
}

/// A fixed depth that replaces a stream's recorded times.
#[derive(Clone, Copy, Debug)]
struct FixedDepth {
    depth: u32,
    /// Time from a completion to the I/O that waited for it.
    gap: Nanos,
}

impl FixedDepth {
    /// By Little's law, the depth that reaches the stream's rate on a device with this latency.
    fn of(stream: &Stream, latency_ns: u64) -> FixedDepth {
        let period_ns = (stream.last_ns - stream.first_ns) / stream.ios.saturating_sub(1).max(1);
        let depth = latency_ns.div_ceil(period_ns.max(1)).clamp(1, u64::from(OPEN_DEPTH));
        FixedDepth { depth: depth as u32, gap: Nanos((depth * period_ns).saturating_sub(latency_ns)) }
    }

    /// When the I/O with this number, from 0, is issued.
    fn when(self, number: u64, first: Nanos) -> When {
        match (number + 1).checked_sub(u64::from(self.depth)).filter(|own| *own > 0) {
            Some(own) => When::AfterCompletions { own, of: [None; WAITS_MAX], gap: self.gap },
            None if number == 0 => When::At(first),
            None => When::AfterSubmission(Nanos::ZERO),
        }
    }
}

impl StreamRecords {
    /// The time by the mode and speed of the replay.
    fn scaled_when(&self, when: When) -> When {
        let scaled = |time: Nanos| if self.speed == 1.0 { time } else { Nanos((time.0 as f64 / self.speed) as u64) };
        match (when, self.mode) {
            (When::At(at), Mode::Fast) if at.0 > 0 => When::AfterSubmission(Nanos::ZERO),
            (When::AfterCompletions { own, of, .. }, Mode::Fast) => {
                When::AfterCompletions { own, of, gap: Nanos::ZERO }
            }
            (When::AfterSubmission(_), Mode::Fast) => When::AfterSubmission(Nanos::ZERO),
            (When::At(at), _) => When::At(scaled(at)),
            (When::AfterCompletions { own, of, gap }, _) => When::AfterCompletions { own, of, gap: scaled(gap) },
            (When::AfterSubmission(gap), _) => When::AfterSubmission(scaled(gap)),
        }
    }

    fn record(&self, step: &Step, number: u64) -> Record {
        let mut io = step.io();
        if io.op != Op::Flush {
            io.offset_bytes = self.mapping.offset_bytes(&io);
        }
        let mut flags = bio_flags(step.flags);
        if self.is_background {
            flags = flags.with(BioFlags::BACKGROUND);
        }
        if self.is_direct && flags.contains(BioFlags::SYNC) && io.op == Op::Write {
            flags = flags.with(BioFlags::IDLE);
        }
        let is_plugged = match step.plug {
            Plug::Lone => None,
            // Where the recorded kernel plugged single I/Os, this one came another way.
            Plug::None => (self.has_lone_plugs || self.is_background).then_some(false),
            Plug::Within | Plug::Last | Plug::LastScheduled => Some(true),
        };
        let plug_goes_on = step.plug == Plug::Within;
        let when = self.fixed_depth.map_or(step.when, |fixed_depth| fixed_depth.when(number, step.at));
        Record {
            io,
            pause: Pause::Program(ProgramStep { when: self.scaled_when(when), flags, is_plugged, plug_goes_on }),
        }
    }
}

impl Records for StreamRecords {
    fn open(&self, seed: u64) -> Result<Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>, RecordError> {
        let stream = self.clone();
        let steps: Box<dyn Iterator<Item = io::Result<Step>> + Send> = match self.tick_ns {
            0 => Box::new(self.steps.clone()),
            tick_ns => Box::new(TimeSpread::new(self.steps.clone(), tick_ns, seed)),
        };
        let records = steps.zip(0u64..).map(move |(step, number)| match step {
            Ok(step) => Ok(stream.record(&step, number)),
            Err(error) => Err(RecordError {
                line: u32::try_from(number + 1).unwrap_or(u32::MAX),
                message: format!("the temporary file cannot be read: {error}"),
                hint: "a folder for temporary files that is not removed during the run",
            }),
        });
        Ok(Box::new(records))
    }
}

/// The flags of a bio, as far as they are recorded.
fn bio_flags(flags: Flags) -> BioFlags {
    let pairs = [
        (Flags::SYNC, BioFlags::SYNC),
        (Flags::FUA, BioFlags::FUA),
        (Flags::FLUSH, BioFlags::PREFLUSH),
        (Flags::META, BioFlags::META),
        (Flags::AHEAD, BioFlags::RAHEAD),
    ];
    let known = pairs.into_iter().filter(|(recorded, _)| flags.has(*recorded));
    known.fold(BioFlags::NONE, |flags, (_, flag)| flags.with(flag))
}
