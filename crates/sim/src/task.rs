//! A task: a fio process on a CPU, with bios and submitters for its I/Os.
//!
//! What the process does next is decided by its [`RunningProcess`]. Everything it does between two submissions happens at one moment;
//! `cpu` says when. `lanes` is which disk it submits to.

mod lanes;

use std::sync::Arc;

use hoistway_blk::bio::{Bio, BioFlags, CgroupPriority, IoPriority, Op, Status};
use hoistway_blk::caller::Parts;
use hoistway_blk::ground::{CgroupId, CpuId, Instant, IoContextId, Nanos, Sector};
use hoistway_load::process::{Flows, IoInFlight, RunningProcess, SteadyStates, Step};
use hoistway_load::{Generator, Process, WriteSync};
use hoistway_measure::ProcessResult;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::identity::{owner_task, place_of};
use crate::submitter::Submitter;
use lanes::TaskDisk;

/// What a task wants next.
#[derive(Debug)]
pub(crate) enum NextAction {
    /// Go on with the task's submission; it may have been parked before.
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
    pub(crate) lane: TaskDisk,
    other_lanes: Vec<TaskDisk>,
    /// Woken and not yet running.
    pub(crate) is_woken: bool,
    /// In the middle of its turn on its CPU.
    pub(crate) is_running: bool,
    /// It is having its turn on its CPU, or had at this moment: it does not move.
    pub(crate) is_in_turn: bool,
    /// The CPUs that it may run on, if not all.
    cpus: Option<Arc<[u32]>>,
    /// CPU time of what it does first in its turn, and of switching to it before that.
    pub(crate) entry: Nanos,
    pub(crate) switch: Nanos,
    /// Pages of the I/O in hand, or of the last one, beyond the first: those that a direct I/O has to hold on to.
    pub(crate) extra_pages: u16,
    /// The setting of the end of its step that counts.
    pub(crate) step_setting: u32,
    /// CPU time of what it does first that has been charged.
    pub(crate) precharged: Nanos,
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
    process: RunningProcess,
    /// What is left of the I/O in each slot of the process: its bio may be split.
    parts: Vec<Parts>,
    /// It is a stream of a recorded program.
    is_recorded: bool,
    /// Its I/O goes through the page cache.
    pub(crate) is_buffered: bool,
    /// Its call has something left to do when it is woken, or in its next step.
    has_unfinished_call: bool,
    /// How much longer it keeps its CPU busy.
    pub(crate) spin: Nanos,
    read_flags: BioFlags,
    write_flags: BioFlags,
    ioprio: IoPriority,
    /// What its cgroup makes of the priorities of single I/Os.
    cgroup_priority: CgroupPriority,
    cgroup: CgroupId,
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
        let (lane, other_lanes) = TaskDisk::of(&process.files, submitter);
        let polled = if placement.polls { BioFlags::POLLED } else { BioFlags::NONE };
        // What a stream of a program writes has the modifiers that were recorded.
        let is_recorded = process.plan.replay.as_ref().is_some_and(|replay| replay.waits_on.is_some());
        let direct_write = if is_recorded { BioFlags::NONE } else { BioFlags::SYNC.with(BioFlags::IDLE) };
        let write_flags = match process.caching.write_sync {
            WriteSync::None => direct_write.with(polled),
            WriteSync::Sync | WriteSync::Dsync => direct_write.with(BioFlags::FUA),
        };
        Task {
            number: placement.number,
            cpu: placement.cpu,
            lane,
            other_lanes,
            is_woken: false,
            is_running: false,
            is_in_turn: false,
            cpus: process.standing.cpus.clone(),
            entry: Nanos::ZERO,
            switch: Nanos::ZERO,
            extra_pages: 0,
            step_setting: 0,
            precharged: Nanos::ZERO,
            interrupted: Nanos::ZERO,
            lag_ns: 0,
            spins_since: None,
            wake_random: Xoshiro256PlusPlus::seed_from_u64(
                placement.seed ^ WAKE_STREAM ^ u64::from(placement.number) << 32,
            ),
            alarm_setting: 0,
            process: RunningProcess::new(process, placement.number, generator, placement.seed, placement.runtime),
            parts: vec![Parts::of_sectors(0); process.issue.depth.max(1) as usize],
            is_recorded,
            is_buffered: !process.caching.direct,
            has_unfinished_call: false,
            spin: Nanos::ZERO,
            read_flags: polled,
            write_flags,
            ioprio: placement.priority.applied_to(
                process.standing.io_priority.unwrap_or_else(|| IoPriority::from_nice(process.standing.nice)),
            ),
            cgroup_priority: placement.priority,
            cgroup: placement.cgroup,
        }
    }

    /// Sets the beginning of the process's time.
    pub(crate) fn start_at(&mut self, process: &Process, start: Instant) {
        self.process.start_at(process, start);
    }

    /// The process, as schedulers know it.
    #[inline]
    pub(crate) fn io_context(&self) -> IoContextId {
        IoContextId(self.number + 1)
    }

    /// Another process ends it: it submits nothing any more.
    pub(crate) fn end(&mut self) {
        self.process.end();
    }

    #[inline]
    pub(crate) fn has_exited(&self) -> bool {
        self.process.has_exited()
    }

    /// I/Os and bytes that were measured so far.
    pub(crate) fn done(&self) -> (u64, u64) {
        self.process.done()
    }

    /// CPU time was spent for it.
    #[inline]
    pub(crate) fn charge(&mut self, now: Instant, cpu: Nanos) {
        self.process.charge(now, cpu);
    }

    /// Whether it may run on a CPU.
    pub(crate) fn may_run_on(&self, cpu: CpuId) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu.0))
    }

    /// It is stopped in the middle of its turn, and does what is left of its step when it has its CPU again: it is as good as woken.
    pub(crate) fn stop(&mut self, left: Nanos) {
        (self.is_running, self.is_woken, self.is_in_turn) = (false, true, false);
        (self.entry, self.precharged) = (left, left);
        self.step_setting = self.step_setting.wrapping_add(1);
    }

    // --- completions ---

    /// A part of an I/O has ended.
    #[inline]
    pub(crate) fn bio_ended(&mut self, bio: &Bio, status: Status) {
        if status != Status::Ok {
            self.process.failed(status.errno());
        }
        let slot = place_of(bio);
        if self.parts[slot as usize].ended(bio, status).is_some() {
            self.process.ended(slot);
        }
    }

    /// The I/O of a bio that has just ended, if that is all of it and it is one of a recorded program: others may wait for it.
    #[inline]
    pub(crate) fn recorded_ended(&mut self, now: Instant, bio: &Bio, flows: &mut Flows) {
        if self.is_recorded && self.parts[place_of(bio) as usize].have_ended() {
            self.process.completed(place_of(bio), now, flows);
        }
    }

    /// Whether there is a reason to run: something to reap that it waits for.
    #[inline]
    pub(crate) fn can_reap(&self) -> bool {
        !self.is_parked() && self.process.can_reap()
    }

    /// Whether it polls for a completion now.
    #[inline]
    pub(crate) fn is_polling(&self) -> bool {
        self.read_flags.contains(BioFlags::POLLED) && self.process.in_flight() > 0 && !self.is_parked()
    }

    pub(crate) fn into_result(self, now: Instant, steady: &SteadyStates) -> ProcessResult {
        self.process.into_result(now, steady.document(self.number))
    }

    // --- the main loop ---

    /// Continues until something outside has to happen.
    #[inline(always)]
    pub(crate) fn next(&mut self, now: Instant, flows: &mut Flows) -> NextAction {
        if self.lane.submitter.is_parked() || std::mem::take(&mut self.has_unfinished_call) {
            return NextAction::Submit;
        }
        match self.process.next(now, flows) {
            Step::Submit(slot) => {
                self.begin(slot);
                NextAction::Submit
            }
            Step::EndCall => NextAction::EndCall,
            Step::Wait(alarm) => {
                self.spin = self.process.take_spin();
                NextAction::Wait(alarm)
            }
            Step::Exit => NextAction::Exit,
        }
    }

    #[inline(never)]
    fn begin(&mut self, slot: u32) {
        let device = self.process.io(slot).device;
        if device != self.lane.device {
            self.switch_to_disk(|lane| lane.device == device);
        }
        let bio = self.bio(self.process.io(slot), slot);
        self.parts[slot as usize] = Parts::of(&bio);
        let has_pages = !self.is_buffered && matches!(bio.op, Op::Read | Op::Write);
        self.extra_pages = if has_pages { bio.segments - 1 } else { 0 };
        self.lane.submitter.begin(bio);
    }

    /// Whether it sleeps for a tag.
    #[inline]
    pub(crate) fn sleeps_for_tag(&self) -> bool {
        self.lane.submitter.is_parked()
    }

    /// Its call continues when it is woken, or in its next step.
    pub(crate) fn resume_call(&mut self) {
        self.has_unfinished_call = true;
    }

    /// Whether it sleeps in the middle of a call.
    #[inline]
    fn is_parked(&self) -> bool {
        self.lane.submitter.is_parked() || self.has_unfinished_call
    }

    /// Whether the I/O in submission is under a plug, if it is that of a recorded program.
    #[inline]
    pub(crate) fn recorded_plug(&self) -> Option<bool> {
        self.process.recorded_plug()
    }

    /// I/Os of the running system call.
    #[inline]
    pub(crate) fn call_size(&self) -> usize {
        self.process.call_size()
    }

    /// The system call returns.
    #[inline]
    pub(crate) fn call_ended(&mut self, now: Instant) {
        // The call ends when the plugs of all disks are flushed: it continues with the next.
        if !self.other_lanes.is_empty() && self.switch_to_disk(|lane| lane.submitter.is_plugged()) {
            return;
        }
        self.process.call_ended(now);
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
    fn bio(&self, slot: &IoInFlight, index: u32) -> Bio {
        let (op, flags) = match slot.op {
            Some(Op::Flush) => return self.flush_bio(index),
            Some(Op::Write) if slot.is_committing => return self.flush_bio(index),
            Some(Op::Write) => (Op::Write, self.write_flags),
            Some(Op::Read) => (Op::Read, self.read_flags),
            Some(op) => (op, BioFlags::NONE),
            None => (Op::Read, BioFlags::NONE),
        };
        let flags = flags.with(slot.flags);
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
