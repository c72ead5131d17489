//! A task: a fio process on a CPU, with bios and submitters for its I/Os.
//!
//! Used by: `simulation`, `cpu`, `page_cache`.
//! Tests: `crates/sim/tests/loads.rs`, `crates/sim/tests/starts.rs`.
//!
//! Its [`RunningProcess`] decides what the process does next. Everything between two submissions happens in one event; `cpu`
//! determines the time. `disks` are the disks that it submits to.

mod disks;

use std::sync::Arc;

use hoistway_blk::bio::{Bio, BioFlags, CgroupPriority, IoPriority, Op, Status};
use hoistway_blk::caller::Parts;
use hoistway_blk::ground::{CgroupId, CpuId, Instant, IoContextId, Nanos, Sector};
use hoistway_load::process::{Flows, IoInFlight, RunningProcess, SteadyStates, Step};
use hoistway_load::{Generator, Process, WriteSync};
use hoistway_measure::ProcessResult;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::identity::{local_id_of, owner_task};
use crate::submitter::Submitter;
use disks::TaskDisk;

/// The next action of a task.
#[derive(Debug)]
pub(crate) enum NextAction {
    /// Continue with the task's submission, which may have been parked.
    Submit,
    /// The system call ends: flush the plug, if there is one.
    EndCall,
    /// Wait for a completion, or until this time.
    Wait(Option<Instant>),
    /// The process has ended.
    Exit,
}

/// How a submission waits for `io.latency`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LatencyWait {
    No,
    /// It sleeps for the bio of this owner.
    Sleeps(u64),
    /// Its bio may continue.
    Admitted,
}

/// One process.
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) cpu: CpuId,
    /// The disk that the task currently submits to.
    pub(crate) current_disk: TaskDisk,
    other_disks: Vec<TaskDisk>,
    /// Whether the task is woken but not yet running.
    pub(crate) is_woken: bool,
    /// Whether the task is in the middle of its turn.
    pub(crate) is_running: bool,
    /// Whether its turn is current or ended at this very time: it does not migrate then.
    pub(crate) is_on_cpu: bool,
    /// The CPUs that it may run on; `None` for all.
    cpus: Option<Arc<[u32]>>,
    /// The CPU among these that a scheduler has placed it on, as if it were bound to it.
    placed_on: Option<CpuId>,
    /// CPU time of the first step of its turn, and of the switch before that.
    pub(crate) entry: Nanos,
    pub(crate) switch: Nanos,
    /// Pages beyond the first that the current or last direct I/O has to pin.
    pub(crate) extra_pages: u16,
    /// The valid setting of the event at the end of its step.
    pub(crate) step_setting: u32,
    /// CPU time of its first step that has already been charged.
    pub(crate) precharged: Nanos,
    /// Total interrupt time of its CPU when it was woken.
    pub(crate) interrupted: Nanos,
    /// CPU time that it was owed when it fell asleep.
    pub(crate) lag_ns: i64,
    /// Since when it has been polling for a completion.
    pub(crate) spins_since: Option<Instant>,
    /// Random stream of its wake-up times.
    pub(crate) wake_random: Xoshiro256PlusPlus,
    /// The valid setting of its alarm.
    pub(crate) alarm_setting: u32,
    process: RunningProcess,
    /// Outstanding parts of the I/O in each slot that the process has used: its bio may be split.
    parts: Vec<Parts>,
    /// Whether it replays a stream of a recorded program.
    pub(crate) is_recorded: bool,
    /// Whether its I/O is buffered.
    pub(crate) is_buffered: bool,
    /// Whether its I/Os go another way than to the queue of their disk: through the page cache or stacked devices.
    pub(crate) has_detour: bool,
    /// Whether its call continues when it is woken, or in its next step.
    has_unfinished_call: bool,
    /// Whether `io.latency` lets it sleep in its submission.
    latency_wait: LatencyWait,
    /// CPU time that it uses after its turn.
    pub(crate) spin: Nanos,
    read_flags: BioFlags,
    write_flags: BioFlags,
    ioprio: IoPriority,
    /// How its cgroup changes the priorities of its I/Os.
    cgroup_priority: CgroupPriority,
    cgroup: CgroupId,
}

/// Separates the random streams of wake-ups from all others of the seed.
const WAKE_STREAM: u64 = 0x7761_6b65_2d75_7073;

/// Where and how a process runs as a task.
pub(crate) struct Placement {
    pub(crate) number: u32,
    pub(crate) cpu: CpuId,
    pub(crate) cgroup: CgroupId,
    /// How its cgroup changes priorities.
    pub(crate) priority: CgroupPriority,
    /// Whether it polls, and its devices support that.
    pub(crate) polls: bool,
    pub(crate) seed: u64,
    /// Replaces the process's own runtime; `None` keeps it.
    pub(crate) runtime: Option<Nanos>,
}

impl Task {
    /// `submitter` creates the submitter for each of its disks.
    pub(crate) fn new(
        process: &Process,
        generator: Generator,
        submitter: impl Fn(u32) -> Submitter,
        placement: &Placement,
    ) -> Self {
        let (current_disk, other_disks) = TaskDisk::for_files(&process.files, submitter);
        let polled = if placement.polls { BioFlags::POLLED } else { BioFlags::NONE };
        // Writes of a replayed stream keep their recorded flags.
        let is_recorded = process.plan.replay.as_ref().is_some_and(|replay| replay.waits_on.is_some());
        let direct_write = if is_recorded { BioFlags::NONE } else { BioFlags::SYNC.with(BioFlags::IDLE) };
        let write_flags = match process.caching.write_sync {
            WriteSync::None => direct_write.with(polled),
            WriteSync::Sync | WriteSync::Dsync => direct_write.with(BioFlags::FUA),
        };
        Task {
            number: placement.number,
            cpu: placement.cpu,
            current_disk,
            other_disks,
            is_woken: false,
            is_running: false,
            is_on_cpu: false,
            cpus: process.standing.cpus.clone(),
            placed_on: None,
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
            parts: Vec::new(),
            is_recorded,
            is_buffered: !process.caching.direct,
            has_detour: !process.caching.direct,
            has_unfinished_call: false,
            latency_wait: LatencyWait::No,
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

    /// Sets the start of the process's time.
    pub(crate) fn start_at(&mut self, process: &Process, start: Instant) {
        self.process.start_at(process, start);
    }

    /// The I/O context of the process.
    #[inline]
    pub(crate) fn io_context(&self) -> IoContextId {
        IoContextId(self.number + 1)
    }

    /// Ends the process early: it submits nothing more.
    pub(crate) fn end(&mut self) {
        self.process.end();
    }

    #[inline]
    pub(crate) fn has_exited(&self) -> bool {
        self.process.has_exited()
    }

    /// Measured I/Os and bytes so far.
    pub(crate) fn done(&self) -> (u64, u64) {
        self.process.done()
    }

    /// Charges CPU time to it.
    #[inline]
    pub(crate) fn charge(&mut self, now: Instant, cpu: Nanos) {
        self.process.charge(now, cpu);
    }

    /// Whether it may run on a CPU.
    pub(crate) fn may_run_on(&self, cpu: CpuId) -> bool {
        match self.placed_on {
            Some(placed_on) => cpu == placed_on,
            None => self.is_allowed_on(cpu),
        }
    }

    fn is_allowed_on(&self, cpu: CpuId) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu.0))
    }

    /// Has it run on a CPU from its next wake-up on, if it is allowed there.
    pub(crate) fn place_on(&mut self, cpu: CpuId) {
        if self.is_allowed_on(cpu) {
            self.placed_on = Some(cpu);
        }
    }

    /// The CPU that it has to run on and does not.
    #[inline]
    pub(crate) fn placed_elsewhere(&self) -> Option<CpuId> {
        self.placed_on.filter(|&cpu| cpu != self.cpu)
    }

    /// Preempts it in the middle of its turn, with this much of its step left. It stays runnable.
    pub(crate) fn preempt(&mut self, left: Nanos) {
        (self.is_running, self.is_woken, self.is_on_cpu) = (false, true, false);
        (self.entry, self.precharged) = (left, left);
        self.step_setting = self.step_setting.wrapping_add(1);
    }

    // --- completions ---

    /// A part of an I/O has completed.
    #[inline]
    pub(crate) fn bio_ended(&mut self, bio: &Bio, status: Status) {
        if status != Status::Ok {
            self.process.failed(status.errno());
        }
        let slot = local_id_of(bio);
        if self.parts[slot as usize].ended(bio, status).is_some() {
            self.process.ended(slot);
        }
    }

    /// Reports the completion of an I/O of a recorded program, for which others may wait, if this bio was the last of it.
    #[inline]
    pub(crate) fn recorded_ended(&mut self, now: Instant, bio: &Bio, flows: &mut Flows) {
        if self.is_recorded && self.parts[local_id_of(bio) as usize].have_ended() {
            self.process.completed(local_id_of(bio), now, flows);
        }
    }

    /// Whether it waits for completions and has one to reap.
    #[inline]
    pub(crate) fn can_reap(&self) -> bool {
        !self.is_parked() && self.process.can_reap()
    }

    /// Whether it is polling for a completion.
    #[inline]
    pub(crate) fn is_polling(&self) -> bool {
        self.read_flags.contains(BioFlags::POLLED) && self.process.in_flight() > 0 && !self.is_parked()
    }

    pub(crate) fn into_result(self, now: Instant, steady: &SteadyStates) -> ProcessResult {
        self.process.into_result(now, steady.document(self.number))
    }

    // --- the main loop ---

    /// Continues until the event loop has to act.
    #[inline(always)]
    pub(crate) fn next(&mut self, now: Instant, flows: &mut Flows) -> NextAction {
        if self.current_disk.submitter.is_parked() || std::mem::take(&mut self.has_unfinished_call) {
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
        if device != self.current_disk.device {
            self.switch_to_disk(|task_disk| task_disk.device == device);
        }
        let bio = self.bio(self.process.io(slot), slot);
        if slot as usize >= self.parts.len() {
            self.parts.resize(slot as usize + 1, Parts::of_sectors(0));
        }
        self.parts[slot as usize] = Parts::of(&bio);
        let has_pages = !self.is_buffered && matches!(bio.op, Op::Read | Op::Write);
        self.extra_pages = if has_pages { bio.segments - 1 } else { 0 };
        self.current_disk.submitter.begin(bio);
    }

    /// Whether it sleeps in its submission, for a tag or for `io.latency`.
    #[inline]
    pub(crate) fn sleeps_in_submission(&self) -> bool {
        self.current_disk.submitter.is_parked() || self.latency_wait != LatencyWait::No
    }

    /// Has it sleep until the controller that holds its current bio, of this owner, admits it.
    pub(crate) fn sleep_for(&mut self, owner: u64) {
        self.has_unfinished_call = true;
        self.latency_wait = LatencyWait::Sleeps(owner);
    }

    /// Whether it sleeps for the bio of this owner.
    pub(crate) fn sleeps_for(&self, owner: u64) -> bool {
        self.latency_wait == LatencyWait::Sleeps(owner)
    }

    /// Its bio may continue when it is woken.
    pub(crate) fn admit(&mut self, bio: Bio) {
        self.has_unfinished_call = true;
        self.latency_wait = LatencyWait::Admitted;
        self.current_disk.submitter.begin(bio);
    }

    /// The owner of the bio that it still sleeps for, if something else has woken it.
    pub(crate) fn still_sleeps_for(&self) -> Option<u64> {
        match self.latency_wait {
            LatencyWait::Sleeps(owner) => Some(owner),
            LatencyWait::No | LatencyWait::Admitted => None,
        }
    }

    /// Whether its current bio has been admitted, as it continues.
    pub(crate) fn take_admitted(&mut self) -> bool {
        let is_admitted = self.latency_wait == LatencyWait::Admitted;
        if is_admitted {
            self.latency_wait = LatencyWait::No;
        }
        is_admitted
    }

    /// Makes its call continue when it is woken, or in its next step.
    pub(crate) fn resume_call(&mut self) {
        self.has_unfinished_call = true;
    }

    /// Whether it sleeps in the middle of a call.
    #[inline]
    fn is_parked(&self) -> bool {
        self.current_disk.submitter.is_parked() || self.has_unfinished_call
    }

    /// Whether the current I/O was recorded under a plug; `None` if it is not an I/O of a recorded program.
    #[inline]
    pub(crate) fn recorded_plug(&self) -> Option<bool> {
        self.process.recorded_plug()
    }

    /// Number of I/Os of the current system call.
    #[inline]
    pub(crate) fn call_size(&self) -> usize {
        self.process.call_size()
    }

    /// The system call returns.
    #[inline]
    pub(crate) fn call_ended(&mut self, now: Instant) {
        // The call ends when the plugs of all disks are flushed.
        if !self.other_disks.is_empty() && self.switch_to_disk(|task_disk| task_disk.submitter.is_plugged()) {
            return;
        }
        self.process.call_ended(now);
    }

    /// The bio that flushes the device after this slot's I/O.
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
            // Each page of user memory is one segment.
            segments: slot.bytes.div_ceil(4096).clamp(1, u32::from(u16::MAX)) as u16,
            op,
            write_hint: 0,
            flags,
            ioprio: match slot.priority {
                IoPriority::UNSET => self.ioprio,
                priority => self.cgroup_priority.applied_to(priority),
            },
            io_context: self.io_context(),
            cgroup: self.cgroup,
            owner: owner_task(self.number, index),
        }
    }
}
