//! A fio process as a pure state machine: its description and its main loop.
//!
//! Used by: crates `sim`, `engine`, `experiment`.
//! Tests: `crates/load/src/process/` (in its files), `crates/load/tests/process.rs`.
//!
//! A [`RunningProcess`] reads no clock and does no I/O: each call gets the time, and [`RunningProcess::next`] returns what the
//! caller has to do. The simulator calls it in virtual time, the engine's jobs in real time.
//!
//! ```
//! use hoistway_blk::ground::Instant;
//! use hoistway_load::process::{Flows, RunningProcess, Step};
//! use hoistway_load::{Issue, Load, Pattern, Process};
//!
//! let mut load = Load::new();
//! let disk = load.file("disk");
//! let mut reader = Process::new("reader", disk, Pattern::read(4096));
//! reader.issue = Issue::asynchronous(2);
//! load.add(reader);
//!
//! let description = &load.processes[0];
//! let generator = description.generator(0, 1, |_| 1 << 20)?;
//! let mut process = RunningProcess::new(description, 0, generator, 1, None);
//! let (mut now, mut flows) = (Instant::ZERO, Flows::new(&load.processes));
//! loop {
//!     match process.next(now, &mut flows) {
//!         // Here every I/O takes no time. A caller with real I/O calls `ended` when it is done.
//!         Step::Submit(slot) => process.ended(slot),
//!         Step::EndCall => process.call_ended(now),
//!         Step::Wait(until) => now = until.expect("nothing is in flight"),
//!         Step::Exit => break,
//!     }
//! }
//! assert_eq!(process.into_result(now, None).total_ios(), 256);
//! # Ok::<(), hoistway_load::LoadError>(())
//! ```
//!
//! Modules: `window` holds the I/Os in flight, `submit` decides when the next ones are issued, `reap` takes completions, `measurement`
//! is the result. `thinking` (pauses), `flow` (balance between processes), `latency_search` and `steady_state` are separate rules.
//! `phases` decides which processes run when, and `starts` when fio starts those with a delay. `program` is the main loop of a recorded
//! stream, and `completions` are what such streams wait for.

mod completions;
mod flow;
mod latency_search;
mod measurement;
mod phases;
mod program;
mod reap;
mod starts;
mod steady_state;
mod submit;
mod thinking;
mod window;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos};

use crate::{Fsync, Generator, Io, Pacer};

use crate::description::{Ends, LatencyTarget, LogSettings, Process, Schedule, SteadyFigure, SteadyState, WriteSync};
pub use flow::Flows;
pub use phases::Phases;
pub use starts::start_times;
pub use steady_state::{STEADY_SAMPLE, SteadyStates};
pub use window::IoInFlight;

use latency_search::LatencySearch;
use measurement::Measurement;
use program::ProgramStream;
use thinking::Thinking;
use window::IoWindow;

/// What the caller has to do next for a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Submit the I/O in this slot ([`RunningProcess::io`]), as part of the running system call.
    Submit(u32),
    /// End the system call ([`RunningProcess::call_ended`]), which submits the plugged I/Os.
    EndCall,
    /// Call again when enough I/Os have completed ([`RunningProcess::can_reap`]), or at this time.
    Wait(Option<Instant>),
    /// Nothing; the process has ended.
    Exit,
}

/// The main loop of one process: it fills its queue up to `iodepth` in batches, waits for completions and refills, as fio does.
pub struct RunningProcess {
    number: u32,
    window: IoWindow,
    fsync: Fsync,
    /// Whether each write is followed by a flush of its device, and completes with it.
    commits_writes: bool,
    /// A generated I/O that could not be submitted yet.
    held_back: Option<Io>,
    generator: Generator,
    pacer: Option<Pacer>,
    /// The state of a recorded stream, if the process replays one.
    program: Option<ProgramStream>,
    measurement: Measurement,
    start: Instant,
    /// Start of its rate accounting.
    pace_start: Instant,
    /// From then on it submits no I/O.
    deadline: Instant,
    /// From the start of its measurement to its deadline, if it has one.
    runtime: Option<Nanos>,
    search: Option<LatencySearch>,
    /// The process fails if a read, write or trim takes longer; `None` for no limit.
    max_latency: Option<[Nanos; 3]>,
    think: Option<Thinking>,
    /// CPU time that the pause which has just begun spins.
    spin: Nanos,
    /// Whether it waits before issuing an I/O that overlaps one in flight.
    serializes: bool,
    /// Whether anything other than its depth can hold an I/O back: balance, overlaps, rate or pauses.
    is_restrained: bool,
    /// Whether anything depends on the completion of its I/Os: overlaps, pauses, or a latency limit or search.
    tracks_completions: bool,
    /// For a process in a balance: how long it sleeps when it is ahead of its share; zero to wait until it may
    /// continue.
    flow_sleep: Option<Nanos>,
    /// `end_fsync`: devices, from the last one on, that it still has to flush before it exits.
    devices_to_flush: u8,
    /// Whether those flushes have begun: as in fio, they are not measured.
    is_closing: bool,
    /// Whether it has stopped submitting.
    is_exhausted: bool,
    has_exited: bool,
    exited_at: Instant,
}

impl RunningProcess {
    /// The process with this number in its load; it starts at time zero unless [`RunningProcess::start_at`] says otherwise.
    /// `runtime` replaces its own. The same seed gives the same gaps between its I/Os.
    #[must_use]
    pub fn new(process: &Process, number: u32, generator: Generator, seed: u64, runtime: Option<Nanos>) -> Self {
        let runtime = runtime.or(process.schedule.runtime);
        let is_synchronous = !process.issue.engine.is_asynchronous();
        let flushes = process.caching.end_fsync && process.plan.modifies();
        let mut running = RunningProcess {
            number,
            window: IoWindow::new(process),
            fsync: Fsync::of(process.issue.engine),
            commits_writes: process.caching.write_sync != WriteSync::None && process.caching.direct && is_synchronous,
            held_back: None,
            generator,
            pacer: process.pacer(number, seed),
            program: process.plan.replay.as_ref().and_then(|replay| replay.waits_on.clone()).map(ProgramStream::new),
            measurement: Measurement::new(process, Instant::ZERO),
            start: Instant::ZERO,
            pace_start: Instant::ZERO,
            deadline: runtime.map_or(Instant::NEVER, |runtime| Instant::ZERO + process.schedule.ramp + runtime),
            runtime,
            search: None,
            max_latency: (process.latency.max != [Nanos::ZERO; 3]).then_some(process.latency.max),
            think: None,
            spin: Nanos::ZERO,
            serializes: process.issue.serialize_overlap,
            is_restrained: false,
            tracks_completions: false,
            flow_sleep: process.pace.flow.map(|flow| flow.sleep),
            devices_to_flush: if flushes { process.files.len() as u8 } else { 0 },
            is_closing: false,
            is_exhausted: false,
            has_exited: false,
            exited_at: Instant::ZERO,
        };
        // The threads of POSIX asynchronous I/O process a sync in order.
        if !is_synchronous && process.issue.depth > 1 && !running.fsync.waits() {
            running.generator.follow_reaping(running.fsync == Fsync::Sleeps);
        }
        running.start_at(process, Instant::ZERO);
        running
    }

    /// Sets the start time of the process. `process` is the description that it was made from.
    pub fn start_at(&mut self, process: &Process, start: Instant) {
        let shift = start.since(self.start);
        self.start = start;
        if self.deadline != Instant::NEVER {
            self.deadline += shift;
        }
        self.pace_start = start;
        self.think = process.pace.think.map(|think| Thinking::new(think, start));
        let depth_max = process.issue.depth.max(1);
        self.search =
            process.latency.target.map(|rule| LatencySearch::new(rule, depth_max, start + process.schedule.ramp));
        self.window.set_depth(self.search.as_ref().map_or(depth_max, LatencySearch::depth));
        self.is_restrained =
            self.serializes || self.flow_sleep.is_some() || self.pacer.is_some() || self.think.is_some();
        self.tracks_completions =
            self.serializes || self.think.is_some() || self.search.is_some() || self.max_latency.is_some();
        self.measurement = Measurement::new(process, start);
    }

    /// Ends the process early: it stops submitting.
    pub fn end(&mut self) {
        self.is_exhausted = true;
        if let Some(think) = &mut self.think {
            think.until = None;
        }
    }

    /// Whether [`Step::Exit`] was returned.
    #[inline]
    #[must_use]
    pub fn has_exited(&self) -> bool {
        self.has_exited
    }

    /// Whether it depends on other processes, so that [`RunningProcess::next`] needs the [`Flows`] of its load: it belongs to a balance, or
    /// is a recorded stream.
    #[must_use]
    pub fn depends_on_other_processes(&self) -> bool {
        self.flow_sleep.is_some() || self.program.is_some()
    }

    /// When it stops submitting; [`Instant::NEVER`] without a time limit.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// I/Os and bytes measured so far.
    #[must_use]
    pub fn done(&self) -> (u64, u64) {
        self.measurement.done()
    }

    /// Adds CPU time that was spent for it.
    #[inline]
    pub fn charge(&mut self, now: Instant, cpu: Nanos) {
        self.measurement.charged(now, cpu);
    }

    // --- the main loop ---

    /// Runs the process until the caller has to do something. `flows` holds the balances and completions of its load; only a process
    /// that [depends on others](RunningProcess::depends_on_other_processes) uses it.
    #[inline(always)]
    pub fn next(&mut self, now: Instant, flows: &mut Flows) -> Step {
        if let Some(slot) = self.window.next_in_batch() {
            return Step::Submit(slot);
        }
        if self.program.is_some() {
            return self.next_program_step(now, flows);
        }
        if self.window.call_size() > 0 {
            return Step::EndCall;
        }
        loop {
            if self.window.complete_min == 0 {
                self.reap(now);
            }
            if let Some(pause) = self.pause(now) {
                if self.can_reap() {
                    self.reap(now);
                    continue;
                }
                return pause;
            }
            let mut wake_at = None;
            let room = self.room(now);
            if room > 0 {
                wake_at = self.generate_batch(now, room, flows);
                if let Some(slot) = self.window.next_in_batch() {
                    return Step::Submit(slot);
                }
            }
            if self.can_reap() {
                self.reap(now);
                // A write continues with a flush.
                if self.commits_writes
                    && let Some(slot) = self.window.next_in_batch()
                {
                    return Step::Submit(slot);
                }
                continue;
            }
            if self.window.in_flight() == 0 && (self.is_exhausted || now >= self.deadline) {
                if let Some(slot) = self.flush_at_end(now) {
                    return Step::Submit(slot);
                }
                self.has_exited = true;
                self.exited_at = now;
                return Step::Exit;
            }
            return Step::Wait(wake_at);
        }
    }

    /// The next flush at the end of the process, if a device is left.
    #[cold]
    fn flush_at_end(&mut self, now: Instant) -> Option<u32> {
        let device = self.devices_to_flush.checked_sub(1)?;
        self.devices_to_flush = device;
        self.is_closing = true;
        self.window.add(IoInFlight { op: Some(Op::Flush), device, created: now, ..IoInFlight::default() });
        self.window.next_in_batch()
    }

    /// How long the pause begun by the last [`Step::Wait`] spins on the CPU; zero if it began none. To be called once per
    /// pause.
    #[inline]
    pub fn take_spin(&mut self) -> Nanos {
        std::mem::take(&mut self.spin)
    }

    /// The I/O in a slot.
    #[inline]
    #[must_use]
    pub fn io(&self, slot: u32) -> &IoInFlight {
        self.window.slot(slot)
    }

    /// I/Os that are submitted or being submitted, and not reaped yet.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.window.in_flight()
    }

    /// I/Os of the running system call; 0 between two calls.
    #[inline]
    #[must_use]
    pub fn call_size(&self) -> usize {
        self.window.call_size()
    }

    /// The system call has returned.
    #[inline]
    pub fn call_ended(&mut self, now: Instant) {
        let count = self.window.call_ended(now);
        self.measurement.submitted(now, count, self.window.in_flight());
    }

    /// Whether it would submit or reap something now, if its rate and other restraints allow it.
    pub fn has_more_to_do(&mut self, now: Instant) -> bool {
        self.room(now) > 0 || self.can_reap()
    }

    // --- completions ---

    /// The I/O in this slot has completed.
    #[inline]
    pub fn ended(&mut self, slot: u32) {
        self.window.ended(slot);
    }

    /// The I/O in this slot has failed with this errno: it is not measured, and the process stops.
    #[cold]
    pub fn io_failed(&mut self, slot: u32, errno: i32) {
        self.failed(errno);
        self.window.forget(slot);
        self.window.ended(slot);
    }

    /// An operation has failed with this errno: the process stops, and the first error is its result.
    #[cold]
    pub fn failed(&mut self, errno: i32) {
        self.measurement.failed(errno);
        self.is_exhausted = true;
    }

    /// Whether as many I/Os have completed as it waits for.
    #[inline]
    #[must_use]
    pub fn can_reap(&self) -> bool {
        self.window.can_reap()
    }
}
