//! A task: one fio process as a state machine that submits, waits and reaps.
//!
//! It follows fio's main loop: fill the queue up to `iodepth` in batches, wait for completions, refill. Everything it
//! does between two submissions happens at one moment; `cpu` says when.
//!
//! `lanes` is which disk it submits to, `window` what it has under way, `pace` when it submits, `reap` what comes of it.

mod lanes;
mod pace;
mod reap;
mod window;

use std::sync::Arc;

use hoistway_blk::{
    Bio, BioFlags, CgroupId, CgroupPriority, CpuId, Instant, IoContextId, IoPriority, Nanos, Op, Sector, Status,
};
use hoistway_load::{Fsync, Generator, Io, Pacer, Process, WriteSync};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::flow::Flows;
use crate::identity::{owner_task, place_of};
use crate::latency_search::LatencySearch;
use crate::measure::Measurement;
use crate::submitter::Submitter;
use crate::thinking::Thinking;
use lanes::Lane;
use window::{Slot, Window};

/// What a task wants next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Put the task's submission forward; it may have been parked before.
    Submit,
    /// The system call ends: flush the plug, if there is one.
    EndCall,
    /// Nothing until a completion comes, or this moment.
    Wait(Option<Instant>),
    /// The process has ended.
    Exit,
}

/// One process.
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) cpu: CpuId,
    /// The disk that it submits to.
    pub(crate) lane: Lane,
    other_lanes: Vec<Lane>,
    /// Woken and not yet running.
    pub(crate) is_woken: bool,
    /// In the middle of its turn on its CPU.
    pub(crate) is_running: bool,
    /// It is having its turn on its CPU, or had at this moment: it does not move.
    pub(crate) has_its_turn: bool,
    /// The CPUs that it may run on, if not all.
    cpus: Option<Arc<[u32]>>,
    /// CPU time of what it does first in its turn, and of switching to it before that.
    pub(crate) entry: Nanos,
    pub(crate) switch: Nanos,
    /// Pages of the I/O in hand, or of the last one, beyond the first: those that a direct I/O has to hold on to.
    pub(crate) more_pages: u16,
    /// The setting of the end of its step that counts.
    pub(crate) step_setting: u32,
    /// CPU time of what it does first that has been charged.
    pub(crate) prepaid: Nanos,
    /// How long its CPU had been interrupted when it was woken.
    pub(crate) interrupted: Nanos,
    /// CPU time that it was owed when it fell asleep.
    pub(crate) lag_ns: i64,
    /// It has been looking for a completion since then.
    pub(crate) spins_since: Option<Instant>,
    /// How long its wake-ups take.
    pub(crate) wake_random: Xoshiro256PlusPlus,
    /// The setting of its alarm that counts.
    pub(crate) alarm_setting: u32,
    window: Window,
    /// Its I/O goes through the page cache.
    pub(crate) is_buffered: bool,
    /// Its call has something left to do when it is woken, or in its next step.
    resumes_call: bool,
    fsync: Fsync,
    /// Each write is followed by a flush of its device, and has ended when that has.
    commits_writes: bool,
    /// An I/O that was drawn and could not be submitted yet.
    held_back: Option<Io>,
    generator: Generator,
    pacer: Option<Pacer>,
    measurement: Measurement,

    start: Instant,
    /// From then on its rate counts.
    pace_start: Instant,
    /// No I/O is submitted from then on.
    deadline: Instant,
    /// From the beginning of its measurement to its deadline, if it has one.
    runtime: Option<Nanos>,
    search: Option<LatencySearch>,
    /// It fails when a read, write or trim takes longer; `None` if never.
    max_latency: Option<[Nanos; 3]>,
    think: Option<Thinking>,
    /// How long it goes on to keep its CPU busy.
    pub(crate) spin: Nanos,
    /// It issues nothing that overlaps an I/O in flight.
    serializes: bool,
    /// Whether anything but its depth can keep an I/O back: balance, overlaps, rate or pauses.
    is_restrained: bool,
    /// Whether anything depends on the ends of its I/Os: overlaps, pauses, or a limit or a search by latency.
    watches_ends: bool,
    /// It has a part in a balance; how long it sleeps when it is ahead of its share, zero for until it may go on.
    flow_sleep: Option<Nanos>,
    read_flags: BioFlags,
    write_flags: BioFlags,
    ioprio: IoPriority,
    /// What its cgroup makes of the priorities of single I/Os.
    cgroup_priority: CgroupPriority,
    cgroup: CgroupId,
    phase: u32,
    /// Its process has begun.
    pub(crate) has_started: bool,
    /// `end_fsync`: devices, from the last on, that are still to be flushed before it exits.
    devices_to_flush: u8,
    /// Those flushes have begun: as in fio, they are not measured.
    is_closing: bool,
    is_exhausted: bool,
    pub(crate) has_exited: bool,
    exited_at: Instant,
}

/// Keeps the random streams of wake-ups apart from all others of the seed.
const WAKE_STREAM: u64 = 0x7761_6b65_2d75_7073;

/// How a process becomes a task.
pub(crate) struct Placement {
    pub(crate) number: u32,
    pub(crate) cpu: CpuId,
    pub(crate) cgroup: CgroupId,
    /// What the cgroup makes of priorities.
    pub(crate) priority: CgroupPriority,
    /// It polls, and its devices can be polled.
    pub(crate) polls: bool,
    pub(crate) seed: u64,
    /// Replaces the process's own runtime.
    pub(crate) runtime: Option<Nanos>,
}

impl Task {
    /// `submitter` makes those to its disks.
    pub(crate) fn new(
        process: &Process,
        generator: Generator,
        submitter: impl Fn(u32) -> Submitter,
        placement: &Placement,
    ) -> Self {
        let (lane, other_lanes) = Lane::of(&process.files, submitter);
        let polled = if placement.polls { BioFlags::POLLED } else { BioFlags::NONE };
        let direct_write = BioFlags::SYNC.with(BioFlags::IDLE);
        let write_flags = match process.caching.write_sync {
            WriteSync::None => direct_write.with(polled),
            WriteSync::Sync | WriteSync::Dsync => direct_write.with(BioFlags::FUA),
        };
        let runtime = placement.runtime.or(process.schedule.runtime);
        let mut task = Task {
            number: placement.number,
            cpu: placement.cpu,
            lane,
            other_lanes,
            is_woken: false,
            is_running: false,
            has_its_turn: false,
            cpus: process.standing.cpus.clone(),
            entry: Nanos::ZERO,
            switch: Nanos::ZERO,
            more_pages: 0,
            step_setting: 0,
            prepaid: Nanos::ZERO,
            interrupted: Nanos::ZERO,
            lag_ns: 0,
            spins_since: None,
            wake_random: Xoshiro256PlusPlus::seed_from_u64(
                placement.seed ^ WAKE_STREAM ^ u64::from(placement.number) << 32,
            ),
            alarm_setting: 0,
            window: Window::new(process),
            is_buffered: !process.caching.direct,
            resumes_call: false,
            fsync: Fsync::of(process.issue.engine),
            commits_writes: process.caching.write_sync != WriteSync::None
                && process.caching.direct
                && !process.issue.engine.is_asynchronous(),
            held_back: None,
            generator,
            pacer: process.pacer(placement.number, placement.seed),
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
            watches_ends: false,
            flow_sleep: process.pace.flow.map(|flow| flow.sleep),
            read_flags: polled,
            write_flags,
            ioprio: placement.priority.applied_to(
                process.standing.io_priority.unwrap_or_else(|| IoPriority::from_nice(process.standing.nice)),
            ),
            cgroup_priority: placement.priority,
            cgroup: placement.cgroup,
            phase: process.schedule.phase,
            has_started: false,
            devices_to_flush: if process.caching.end_fsync && process.plan.modifies() {
                process.files.len() as u8
            } else {
                0
            },
            is_closing: false,
            is_exhausted: false,
            has_exited: false,
            exited_at: Instant::ZERO,
        };
        task.start_at(process, Instant::ZERO);
        task
    }

    /// Sets the beginning of the process's time.
    pub(crate) fn start_at(&mut self, process: &Process, start: Instant) {
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
        self.watches_ends =
            self.serializes || self.think.is_some() || self.search.is_some() || self.max_latency.is_some();
        self.measurement = Measurement::new(process, start);
    }

    /// The process, as schedulers know it.
    #[inline]
    pub(crate) fn io_context(&self) -> IoContextId {
        IoContextId(self.number + 1)
    }

    /// Another process ends it: it submits nothing any more.
    pub(crate) fn end(&mut self) {
        self.is_exhausted = true;
        if let Some(think) = &mut self.think {
            think.until = None;
        }
    }

    /// I/Os and bytes that were measured so far.
    pub(crate) fn done(&self) -> (u64, u64) {
        self.measurement.done()
    }

    pub(crate) fn phase(&self) -> u32 {
        self.phase
    }

    /// So much CPU time was spent for it.
    #[inline]
    pub(crate) fn charge(&mut self, now: Instant, cpu: Nanos) {
        self.measurement.charged(now, cpu);
    }

    /// Whether it may run on a CPU.
    pub(crate) fn may_run_on(&self, cpu: CpuId) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu.0))
    }

    /// It is stopped in the middle of its turn, and does what is left of its step when it has its CPU again: it is as good as woken.
    pub(crate) fn stop(&mut self, left: Nanos) {
        (self.is_running, self.is_woken, self.has_its_turn) = (false, true, false);
        (self.entry, self.prepaid) = (left, left);
        self.step_setting = self.step_setting.wrapping_add(1);
    }

    // --- what the block layer tells ---

    /// A part of an I/O has ended.
    #[inline]
    pub(crate) fn bio_ended(&mut self, bio: &Bio, status: Status) {
        if status != Status::Ok {
            self.measurement.failed(status.errno());
            self.is_exhausted = true;
        }
        self.window.bio_ended(place_of(bio), bio, status);
    }

    /// Whether there is a reason to run: something to reap that it waits for.
    #[inline]
    pub(crate) fn can_reap(&self) -> bool {
        !self.is_parked() && self.window.can_reap()
    }

    /// Whether it waits by looking.
    #[inline]
    pub(crate) fn is_polling(&self) -> bool {
        self.read_flags.contains(BioFlags::POLLED) && self.window.in_flight() > 0 && !self.is_parked()
    }

    // --- the main loop ---

    /// Goes on until something outside has to happen.
    #[inline(always)]
    pub(crate) fn next(&mut self, now: Instant, flows: &mut Flows) -> Next {
        if self.lane.submitter.is_parked() || std::mem::take(&mut self.resumes_call) {
            return Next::Submit;
        }
        if self.begin_submission() {
            return Next::Submit;
        }
        if self.window.call_size() > 0 {
            return Next::EndCall;
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
            let mut alarm = None;
            let room = self.room(now);
            if room > 0 {
                alarm = self.gather(now, room, flows);
                if self.begin_submission() {
                    return Next::Submit;
                }
            }
            if self.can_reap() {
                self.reap(now);
                // A write goes on with a flush.
                if self.commits_writes && self.begin_submission() {
                    return Next::Submit;
                }
                continue;
            }
            if self.window.in_flight() == 0 && (self.is_exhausted || now >= self.deadline) {
                if self.flush_at_end(now) {
                    return Next::Submit;
                }
                self.has_exited = true;
                self.exited_at = now;
                return Next::Exit;
            }
            return Next::Wait(alarm);
        }
    }

    /// Begins the submission of the next I/O of the running system call, if there is one.
    #[inline]
    fn begin_submission(&mut self) -> bool {
        match self.window.next_of_batch() {
            Some(slot) => {
                self.begin(slot);
                true
            }
            None => false,
        }
    }

    #[inline(never)]
    fn begin(&mut self, slot: u32) {
        let device = self.window.slot(slot).device;
        if device != self.lane.device {
            self.turn_to(|lane| lane.device == device);
        }
        let bio = self.bio(self.window.slot(slot), slot);
        let has_pages = !self.is_buffered && matches!(bio.op, Op::Read | Op::Write);
        self.more_pages = if has_pages { bio.segments - 1 } else { 0 };
        self.lane.submitter.begin(bio);
    }

    /// Begins the flush of the next device at the end of the process, if one is left.
    fn flush_at_end(&mut self, now: Instant) -> bool {
        let Some(device) = self.devices_to_flush.checked_sub(1) else { return false };
        self.devices_to_flush = device;
        self.is_closing = true;
        self.window.add(Slot { op: Some(Op::Flush), device, created: now, ..Slot::default() });
        self.begin_submission()
    }

    /// Whether it sleeps for a tag.
    #[inline]
    pub(crate) fn sleeps_for_tag(&self) -> bool {
        self.lane.submitter.is_parked()
    }

    /// Its call goes on when it is woken, or in its next step.
    pub(crate) fn resume_call(&mut self) {
        self.resumes_call = true;
    }

    /// Whether it sleeps in the middle of a call.
    #[inline]
    fn is_parked(&self) -> bool {
        self.lane.submitter.is_parked() || self.resumes_call
    }

    /// Whether the running system call submits so many I/Os at once.
    #[inline]
    pub(crate) fn call_size(&self) -> usize {
        self.window.call_size()
    }

    /// The system call returns.
    #[inline]
    pub(crate) fn call_ended(&mut self, now: Instant) {
        // The call ends when the plugs of all disks are flushed: it goes on with the next.
        if !self.other_lanes.is_empty() && self.turn_to(|lane| lane.submitter.is_plugged()) {
            return;
        }
        let count = self.window.call_ended(now);
        self.measurement.submitted(now, count, self.window.in_flight());
    }

    /// The bio that flushes the device of this slot's I/O.
    #[cold]
    fn flush_bio(&self, index: u32) -> Bio {
        Bio {
            sector: Sector(0),
            sectors: 0,
            segments: 1,
            op: Op::Write,
            write_hint: 0,
            flags: BioFlags::SYNC.with(BioFlags::PREFLUSH),
            ioprio: self.ioprio,
            io_context: self.io_context(),
            cgroup: self.cgroup,
            owner: owner_task(self.number, index),
        }
    }

    /// The bio of an I/O.
    #[inline]
    fn bio(&self, slot: &Slot, index: u32) -> Bio {
        let (op, flags) = match slot.op {
            Some(Op::Flush) => return self.flush_bio(index),
            Some(Op::Write) if slot.is_committing => return self.flush_bio(index),
            Some(Op::Write) => (Op::Write, self.write_flags),
            Some(Op::Read) => (Op::Read, self.read_flags),
            Some(op) => (op, BioFlags::NONE),
            None => (Op::Read, BioFlags::NONE),
        };
        Bio {
            sector: Sector(slot.offset_bytes / 512),
            sectors: slot.sectors(),
            // A page of user memory is a segment.
            segments: slot.bytes.div_ceil(4096).clamp(1, u32::from(u16::MAX)) as u16,
            op,
            write_hint: 0,
            flags,
            ioprio: match slot.priority {
                IoPriority::UNSET => self.ioprio,
                own => self.cgroup_priority.applied_to(own),
            },
            io_context: self.io_context(),
            cgroup: self.cgroup,
            owner: owner_task(self.number, index),
        }
    }
}
