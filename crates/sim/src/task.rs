//! A task: one fio process as a state machine that submits, waits and reaps.
//!
//! It follows fio's main loop: fill the queue up to `iodepth` in batches, wait for completions, refill. Everything it
//! does between two waits happens at one moment; `cpu` says when, and for how long its CPU is then busy.

mod pace;

use std::collections::VecDeque;

use hoistway_blk::{
    Bio, BioFlags, CgroupId, CgroupPriority, CpuId, Instant, IoContextId, IoPriority, Nanos, Op, Parts, Sector, Status,
};
use hoistway_load::{Generator, Io, Pacer, Process, WriteSync};
use hoistway_results::ProcessResult;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::disk::Submitter;
use crate::flow::Flows;
use crate::identity::{owner_task, place_of};
use crate::latency_search::LatencySearch;
use crate::measure::{Finished, Measurement};
use crate::steady_state::SteadyStates;
use crate::thinking::Thinking;

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
    pub(crate) disk: u32,
    /// Woken and not yet running.
    pub(crate) is_woken: bool,
    /// It has been looking for a completion since then.
    pub(crate) spins_since: Option<Instant>,
    /// How long its wake-ups take.
    pub(crate) wake_random: Xoshiro256PlusPlus,
    /// The setting of its alarm that counts.
    pub(crate) alarm_setting: u32,
    /// To `disk`. The plug is that of the running system call.
    pub(crate) submitter: Submitter,

    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Submitted, or being submitted, and not yet reaped.
    in_flight: u32,
    /// Ended and not yet reaped.
    ended: VecDeque<u32>,
    /// Still to be put forward in the running system call.
    batch: VecDeque<u32>,
    /// Put forward in the running system call.
    called: Vec<u32>,
    /// The other disks that it uses.
    others: Vec<Line>,
    /// Its I/O goes through the page cache.
    pub(crate) is_buffered: bool,
    /// Which of the process's devices `disk` is.
    device: u8,
    /// Its call has something left to do when it is woken.
    resumes_call: bool,
    /// The queue was full and now drains to `iodepth_low`.
    is_draining: bool,
    /// An fsync is under way: nothing is submitted beside it.
    is_fenced: bool,
    /// An I/O that was drawn and could not be submitted yet.
    held_back: Option<Io>,
    generator: Generator,
    pacer: Option<Pacer>,
    measurement: Measurement,

    depth: u32,
    depth_low: u32,
    batch_max: u32,
    complete_min: u32,
    complete_max: u32,
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

/// A disk that a task uses, while it submits to another.
struct Line {
    device: u8,
    disk: u32,
    submitter: Submitter,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    op: Option<Op>,
    device: u8,
    /// Of its own, if it has one.
    priority: IoPriority,
    offset_bytes: u64,
    bytes: u32,
    parts: Parts,
    created: Instant,
    issued: Instant,
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
        let mut lines =
            (0..).zip(process.files.iter()).map(|(device, &disk)| Line { device, disk, submitter: submitter(disk) });
        let disk = process.files.first().copied().unwrap_or_default();
        let first = lines.next();
        let polled = if placement.polls { BioFlags::POLLED } else { BioFlags::NONE };
        let direct_write = BioFlags::SYNC.with(BioFlags::IDLE);
        let write_flags = match process.caching.write_sync {
            WriteSync::None => direct_write.with(polled),
            WriteSync::Sync | WriteSync::Dsync => direct_write.with(BioFlags::FUA),
        };
        let depth = process.issue.depth.max(1);
        let runtime = placement.runtime.or(process.schedule.runtime);
        let mut task = Task {
            number: placement.number,
            cpu: placement.cpu,
            disk,
            is_woken: false,
            spins_since: None,
            wake_random: Xoshiro256PlusPlus::seed_from_u64(
                placement.seed ^ WAKE_STREAM ^ u64::from(placement.number) << 32,
            ),
            alarm_setting: 0,
            submitter: first.map_or_else(|| submitter(disk), |line| line.submitter),
            slots: vec![Slot::default(); depth as usize],
            free: (0..depth).rev().collect(),
            in_flight: 0,
            ended: VecDeque::with_capacity(depth as usize),
            batch: VecDeque::with_capacity(depth as usize),
            called: Vec::with_capacity(depth as usize),
            others: lines.collect(),
            is_buffered: !process.caching.direct,
            device: 0,
            resumes_call: false,
            is_draining: false,
            is_fenced: false,
            held_back: None,
            generator,
            pacer: process.pacer(placement.number, placement.seed),
            measurement: Measurement::new(process, Instant::ZERO),
            depth,
            depth_low: process.issue.depth_low.unwrap_or(depth).min(depth),
            batch_max: process.issue.batch.clamp(1, depth),
            complete_min: process.issue.complete_min,
            complete_max: process.issue.complete_max.max(1),
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
        self.depth = self.search.as_ref().map_or(depth_max, LatencySearch::depth);
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

    /// The disks that it uses.
    pub(crate) fn disks(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.disk).chain(self.others.iter().map(|line| line.disk))
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

    // --- what the block layer tells ---

    /// A part of an I/O has ended.
    #[inline]
    pub(crate) fn bio_ended(&mut self, bio: &Bio, status: Status) {
        let index = place_of(bio);
        if status != Status::Ok {
            self.measurement.failed(status.errno());
            self.is_exhausted = true;
        }
        if self.slots[index as usize].parts.ended(bio, status).is_some() {
            self.ended.push_back(index);
        }
    }

    /// Whether there is a reason to run: something to reap that it waits for.
    #[inline]
    pub(crate) fn can_reap(&self) -> bool {
        !self.is_parked() && !self.ended.is_empty() && self.ended.len() as u32 >= self.wanted()
    }

    /// Whether it waits by looking.
    #[inline]
    pub(crate) fn is_polling(&self) -> bool {
        self.read_flags.contains(BioFlags::POLLED) && self.in_flight > 0 && !self.is_parked()
    }

    /// Completions that it waits for.
    fn wanted(&self) -> u32 {
        self.complete_min.clamp(1, self.in_flight.max(1))
    }

    // --- the main loop ---

    /// Goes on until something outside has to happen.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, flows: &mut Flows) -> Next {
        if self.submitter.is_parked() || std::mem::take(&mut self.resumes_call) {
            return Next::Submit;
        }
        if self.begin_submission() {
            return Next::Submit;
        }
        if !self.called.is_empty() {
            return Next::EndCall;
        }
        loop {
            if self.complete_min == 0 {
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
            if self.may_submit(now) {
                alarm = self.gather(now, flows);
                if self.begin_submission() {
                    return Next::Submit;
                }
            }
            if self.can_reap() {
                self.reap(now);
                continue;
            }
            if self.in_flight == 0 && (self.is_exhausted || now >= self.deadline) {
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
        // Asked far more often than there is one.
        !self.batch.is_empty() && self.begin_next_of_batch()
    }

    #[inline(never)]
    fn begin_next_of_batch(&mut self) -> bool {
        let Some(slot) = self.batch.pop_front() else { return false };
        self.called.push(slot);
        let device = self.slots[slot as usize].device;
        if device != self.device {
            self.turn_to(|line| line.device == device);
        }
        let bio = self.bio(slot);
        self.submitter.begin(bio);
        true
    }

    /// Begins the flush of the next device at the end of the process, if one is left.
    fn flush_at_end(&mut self, now: Instant) -> bool {
        let Some(device) = self.devices_to_flush.checked_sub(1) else { return false };
        let Some(slot) = self.free.pop() else { return false };
        self.devices_to_flush = device;
        self.is_closing = true;
        self.slots[slot as usize] = Slot { op: Some(Op::Flush), device, created: now, ..Slot::default() };
        self.in_flight += 1;
        self.batch.push_back(slot);
        self.begin_submission()
    }

    /// Goes on with another disk, if there is such a one.
    #[cold]
    fn turn_to(&mut self, is_wanted: impl Fn(&Line) -> bool) -> bool {
        let Some(line) = self.others.iter_mut().find(|line| is_wanted(line)) else { return false };
        std::mem::swap(&mut self.device, &mut line.device);
        std::mem::swap(&mut self.disk, &mut line.disk);
        std::mem::swap(&mut self.submitter, &mut line.submitter);
        true
    }

    /// A disk that it is not submitting to, for which it has something plugged.
    pub(crate) fn other_plugged(&mut self) -> Option<(u32, &mut Submitter)> {
        let line = self.others.iter_mut().find(|line| line.submitter.is_plugged())?;
        Some((line.disk, &mut line.submitter))
    }

    /// Its call goes on when it is woken.
    pub(crate) fn resume_call(&mut self) {
        self.resumes_call = true;
    }

    /// Whether it sleeps in the middle of a call.
    #[inline]
    fn is_parked(&self) -> bool {
        self.submitter.is_parked() || self.resumes_call
    }

    /// Whether the running system call submits so many I/Os at once.
    #[inline]
    pub(crate) fn call_size(&self) -> usize {
        self.called.len() + self.batch.len()
    }

    /// The system call returns.
    #[inline]
    pub(crate) fn call_ended(&mut self, now: Instant) {
        // The call ends when the plugs of all disks are flushed: it goes on with the next.
        if !self.others.is_empty() && self.turn_to(|line| line.submitter.is_plugged()) {
            return;
        }
        self.measurement.submitted(now, self.called.len() as u32, self.in_flight);
        for slot in self.called.drain(..) {
            self.slots[slot as usize].issued = now;
        }
    }

    /// Takes what has ended.
    #[inline]
    fn reap(&mut self, now: Instant) {
        let mut taken = 0;
        while taken < self.complete_max {
            let Some(index) = self.ended.pop_front() else { break };
            taken += 1;
            self.in_flight -= 1;
            let slot = self.slots[index as usize];
            self.free.push(index);
            if let Some(op) = slot.op.filter(|_| !self.is_closing) {
                // A completion may be noticed before the call that submitted it has returned.
                let issued = slot.issued.max(slot.created).min(now);
                if self.watches_ends {
                    self.judge_end(now, index, op, now.since(slot.created));
                }
                self.measurement.finished(&Finished {
                    op,
                    bytes: slot.bytes,
                    offset_bytes: slot.offset_bytes,
                    priority: slot.priority,
                    created: slot.created,
                    issued,
                    reaped: now,
                });
            }
        }
        if taken > 0 {
            self.measurement.reaped(now, taken);
            if self.watches_ends {
                self.count_reaped(now, taken);
            }
        }
    }

    /// The bio of an I/O.
    #[inline]
    fn bio(&self, index: u32) -> Bio {
        let slot = &self.slots[index as usize];
        let (op, flags) = match slot.op {
            Some(Op::Flush) => (Op::Write, BioFlags::SYNC.with(BioFlags::PREFLUSH)),
            Some(Op::Write) => (Op::Write, self.write_flags),
            Some(Op::Read) => (Op::Read, self.read_flags),
            Some(op) => (op, BioFlags::NONE),
            None => (Op::Read, BioFlags::NONE),
        };
        Bio {
            sector: Sector(slot.offset_bytes / 512),
            sectors: slot.bytes / 512,
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

    pub(crate) fn into_result(mut self, now: Instant, steady: &SteadyStates) -> ProcessResult {
        let end = if self.has_exited { self.exited_at } else { now };
        if let Some(search) = &self.search {
            self.measurement.searched(search.result());
        }
        self.measurement.watched(steady.document(self.number));
        // A process that is bounded by time has run for that time, even if its last I/O ended a little later.
        self.measurement.into_result(end)
    }
}
