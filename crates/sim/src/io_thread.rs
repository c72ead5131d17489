//! The I/O thread of a virtual disk, on the host: takes the guest's commands from the ring, submits them to the host's
//! disk, and signals their completion to the guest.
//!
//! Used by: `simulation`, `driver`, `guests`.
//! Tests: below.
//!
//! ```text
//! guest's driver | doorbell: wake-up  | submit_ns each,       | block layer and     | wake-up, if it sleeps, | guest's
//! fills the ring | if it sleeps       | all that is in the    | device of the host  | complete_ns            | interrupt
//!                                       ring in one call
//! ```
//!
//! The thread does one thing at a time, on its own CPU. Like a task it runs in one event, at the end of its first
//! submission, and stays busy for the rest. To the host, all I/O of a guest comes from one process. If the host has no
//! free request, the thread sleeps in its call but still receives completions.

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op, Status};
use hoistway_blk::caller::{Cx, Env, Parts, Submitted};
use hoistway_blk::ground::{CgroupId, CpuId, Instant, IoContextId, Local, Nanos, Sector};
use hoistway_device::{Command, Schedule, Shape};
use hoistway_legacy::AnyQueue;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::identity::{Sleeper, local_id_of, owner_io_thread};
use crate::span::Span;
use crate::submitter::Submitter;
use crate::virtual_disk::VirtualDisk;

/// Separates the random streams of I/O threads from all others of the seed.
const THREAD_STREAM: u64 = 0x696f_7468_7265_6164;

/// The I/O thread of one virtual disk.
pub(crate) struct IoThread {
    pub(crate) shape: Shape,
    /// Number of the host's disk below the virtual one.
    pub(crate) lower: u32,
    pub(crate) cpu: CpuId,
    /// Commands that the thread has not taken yet.
    ring: VecDeque<Command>,
    /// Outstanding parts of the submitted commands, by tag.
    outstanding_parts: Vec<Parts>,
    /// Submits to the host's disk, and may sleep for one of its requests.
    submitter: Submitter,
    /// Whether a run of the thread is scheduled.
    is_woken: bool,
    /// End of its known work, including the wake-up and first submission of a scheduled run.
    free_at: Instant,
    /// Common fields of its bios.
    pattern: Bio,
    /// First sector of the virtual disk on the host's disk.
    first: Sector,
    wake: Span,
    submit: Nanos,
    complete: Nanos,
    random: Xoshiro256PlusPlus,
}

/// Position of a virtual disk, and the identity of its thread on the host.
pub(crate) struct IoThreadIdentity {
    /// Number of the virtual disk, and of the host's disk below it.
    pub(crate) number: u32,
    pub(crate) lower: u32,
    pub(crate) io_context: IoContextId,
    pub(crate) cgroup: CgroupId,
    pub(crate) cpu: CpuId,
}

impl IoThread {
    /// `shape` is the virtual disk's, and `lower` the queue that it submits to.
    pub(crate) fn new(
        profile: &VirtualDisk,
        shape: Shape,
        lower: &AnyQueue<Local>,
        identity: &IoThreadIdentity,
        seed: u64,
    ) -> Self {
        let tags = u32::from(shape.hw_queues) * shape.queue_depth;
        IoThread {
            first: Sector(shape.capacity_sectors * u64::from(identity.number)),
            lower: identity.lower,
            cpu: identity.cpu,
            ring: VecDeque::with_capacity(tags as usize),
            outstanding_parts: vec![Parts::default(); tags as usize],
            submitter: Submitter::new(lower, Sleeper::IoThread(identity.number).waiter()),
            is_woken: false,
            free_at: Instant::ZERO,
            pattern: Bio {
                io_context: identity.io_context,
                cgroup: identity.cgroup,
                ioprio: IoPriority::from_nice(0),
                owner: owner_io_thread(identity.number, 0),
                ..Bio::new(Op::Read, Sector(0), 0)
            },
            wake: Span::new(profile.wake_ns),
            submit: Nanos(profile.submit_ns),
            complete: Nanos(profile.complete_ns),
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ THREAD_STREAM),
            shape,
        }
    }

    /// The guest adds a command to the ring and rings the doorbell.
    pub(crate) fn queue(&mut self, now: Instant, command: Command, schedule: &mut Schedule) {
        if !self.shape.holds(&command) {
            return schedule.end(now, command.tag, Status::IoError);
        }
        self.ring.push_back(command);
        if !self.is_woken && !self.submitter.is_parked() {
            let at = self.occupy(now, self.submit);
            self.schedule_run(at, schedule);
        }
    }

    /// Occupies the thread for this time, after a wake-up if it sleeps. Returns the end.
    fn occupy(&mut self, now: Instant, time: Nanos) -> Instant {
        let begins = if self.free_at > now { self.free_at } else { now + self.wake.draw(&mut self.random) };
        self.free_at = begins + time;
        self.free_at
    }

    fn schedule_run(&mut self, at: Instant, schedule: &mut Schedule) {
        self.is_woken = true;
        schedule.alarms.push((at, 0));
    }

    /// The host has a free request again.
    pub(crate) fn unpark(&mut self, now: Instant, schedule: &mut Schedule) {
        let at = self.occupy(now, Nanos::ZERO);
        self.schedule_run(at, schedule);
    }

    /// Runs the thread: submits the commands in the ring as far as the host has requests. `plugs` returns whether a call
    /// that submits this many commands opens a plug.
    pub(crate) fn run<E: Env>(
        &mut self,
        cx: &mut Cx<'_, E>,
        queue: &AnyQueue<Local>,
        schedule: &mut Schedule,
        plugs: impl Fn(usize) -> bool,
    ) {
        let now = cx.now.at;
        self.is_woken = false;
        if self.free_at > now {
            // Completions kept the thread busy meanwhile.
            return self.schedule_run(self.free_at, schedule);
        }
        let mut submitted = 0;
        loop {
            if !self.submitter.is_parked() {
                if plugs(self.ring.len()) {
                    self.submitter.plug();
                }
                let Some(command) = self.ring.pop_front() else { break };
                let bio = self.bio(&command);
                self.outstanding_parts[command.tag as usize] = Parts::of(&bio);
                self.submitter.begin(bio);
            }
            // The bio that the thread slept with is the first of this run.
            submitted += 1;
            if self.submitter.make_progress(queue, cx) == Submitted::Parked {
                break;
            }
        }
        if !self.submitter.is_parked() {
            self.submitter.unplug(queue, cx);
        }
        self.free_at = now + Nanos(self.submit.0 * u64::from(u32::saturating_sub(submitted, 1)));
    }

    /// A part of one of its bios has completed. If that completes a command, returns when the guest is notified, the tag
    /// and the status.
    pub(crate) fn bio_ended(&mut self, now: Instant, bio: &Bio, status: Status) -> Option<(Instant, u32, Status)> {
        let tag = local_id_of(bio);
        let status = match self.outstanding_parts[tag as usize].ended(bio, status)? {
            status @ (Status::Ok | Status::NotSupported) => status,
            // The ring has only one error status.
            _ => Status::IoError,
        };
        Some((self.occupy(now, self.complete), tag, status))
    }

    /// The bio for a command, on the host's disk.
    fn bio(&self, command: &Command) -> Bio {
        let direct_write = BioFlags::SYNC.with(BioFlags::IDLE);
        let (op, flags) = match command.op {
            Op::Flush => (Op::Write, BioFlags::SYNC.with(BioFlags::PREFLUSH)),
            Op::Write if command.fua => (Op::Write, direct_write.with(BioFlags::FUA)),
            Op::Write => (Op::Write, direct_write),
            op => (op, BioFlags::NONE),
        };
        // A flush has no sectors and no position.
        let sector = if command.sectors == 0 { Sector(0) } else { Sector(self.first.0 + command.sector.0) };
        Bio {
            sector,
            sectors: command.sectors,
            // Each page of guest memory is one segment.
            segments: command.sectors.div_ceil(8).clamp(1, u32::from(u16::MAX)) as u16,
            op,
            flags,
            owner: self.pattern.owner | u64::from(command.tag),
            ..self.pattern.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::caller::Caller;
    use hoistway_blk::ground::{Hz, Kernel};
    use hoistway_blk::watch::NoProbe;
    use hoistway_device::Preset;

    use super::*;
    use crate::disk::{QueueSettings, SimulatedDisk};
    use crate::driver::Backing;
    use crate::locks::LockMeter;
    use hoistway_measure::Setting;

    /// A thread over a host's disk, with constant times: wake-up 7000 ns, submission 300 ns, completion 20 ns.
    struct Bench {
        /// Declared before the thread, which may still sleep for one of its requests when dropped.
        lower: SimulatedDisk,
        thread: IoThread,
        caller: Caller,
        schedule: Schedule,
    }

    impl Bench {
        fn new(nr_requests: Option<u32>) -> Bench {
            let mut setting = Setting::untouched("mq-deadline");
            nr_requests.iter().for_each(|requests| setting.write("nr_requests", &requests.to_string()));
            let builtin = VirtualDisk::builtin(VirtualDisk::DEFAULT).unwrap();
            let profile = VirtualDisk { wake_ns: [7000, 7000], submit_ns: 300, complete_ns: 20, ..builtin };
            let settings = QueueSettings::new(Kernel::V6_18, 1);
            let device = Backing::Device(Preset::builtin("null").unwrap().build(1));
            let lower = SimulatedDisk::new(device, &settings, &setting, (0, 1), &mut None).unwrap();
            let (io_context, cgroup) = (IoContextId(1), CgroupId::ROOT);
            let identity = IoThreadIdentity { number: 1, lower: 2, io_context, cgroup, cpu: CpuId(0) };
            let shape = profile.shape(lower.driver.shape(), 2);
            let thread = IoThread::new(&profile, shape, &lower.queue, &identity, 1);
            Bench { thread, lower, caller: Caller::new(), schedule: Schedule::default() }
        }

        fn queue(&mut self, at_ns: u64, tag: u32, op: Op, sectors: u32) {
            let command = Command { tag, queue: 0, op, sector: Sector(8), sectors, fua: false };
            self.thread.queue(Instant(at_ns), command, &mut self.schedule);
        }

        fn run(&mut self, at_ns: u64) {
            let now = Hz(1000).now(Instant(at_ns));
            let SimulatedDisk { queue, driver, .. } = &mut self.lower;
            let probe = &mut NoProbe;
            let meter = LockMeter::new(1);
            let mut cx = self.caller.cx::<crate::driver::Machine<NoProbe>>(now, CpuId(0), driver, probe, &meter);
            self.thread.run(&mut cx, queue, &mut self.schedule, |_| false);
        }

        fn end(&mut self, at_ns: u64, tag: u32, sectors: u32, status: Status) -> Option<(u64, u32, Status)> {
            let bio = Bio { owner: owner_io_thread(1, tag), ..Bio::new(Op::Read, Sector(0), sectors) };
            self.thread.bio_ended(Instant(at_ns), &bio, status).map(|(at, tag, status)| (at.0, tag, status))
        }

        /// Run times that the thread has requested since the last call.
        fn alarms(&mut self) -> Vec<u64> {
            self.schedule.alarms.drain(..).map(|(at, _)| at.0).collect()
        }
    }

    #[test]
    fn one_wake_up_is_enough_for_all_that_comes_until_it_runs() {
        let mut bench = Bench::new(None);
        (0..3).for_each(|tag| bench.queue(1000 * u64::from(tag), tag, Op::Read, 8));
        assert_eq!(bench.alarms(), [7300]);
        bench.run(7300);
        assert!(bench.thread.ring.is_empty());
        // The thread is busy for two more submissions.
        bench.queue(7400, 3, Op::Read, 8);
        assert_eq!(bench.alarms(), [7900 + 300]);
    }

    #[test]
    fn completions_before_the_io_thread_wakes_need_no_further_wake_up() {
        let mut bench = Bench::new(None);
        bench.queue(0, 0, Op::Read, 8);
        bench.run(7300);
        bench.alarms();
        bench.queue(20_000, 1, Op::Read, 8);
        assert_eq!(bench.alarms(), [27_300]);
        assert_eq!(bench.end(20_500, 0, 8, Status::Ok), Some((27_320, 0, Status::Ok)));
        bench.run(27_300);
        assert_eq!((bench.alarms(), bench.thread.ring.len()), (vec![27_320], 1));
        bench.run(27_320);
        assert_eq!((bench.alarms().len(), bench.thread.ring.len()), (0, 0));
    }

    #[test]
    fn an_io_thread_sleeping_for_a_host_request_is_not_woken_by_commands() {
        let mut bench = Bench::new(Some(1));
        let most = (0..8).take_while(|&tag| {
            bench.queue(10_000 * u64::from(tag), tag, Op::Read, 8);
            bench.run(10_000 * u64::from(tag) + 7300);
            !bench.thread.submitter.is_parked()
        });
        let taken = most.count() as u32;
        assert!(taken < 8 && bench.thread.submitter.is_parked());
        bench.alarms();
        bench.queue(100_000, 8, Op::Read, 8);
        assert!(bench.alarms().is_empty());
        bench.thread.unpark(Instant(110_000), &mut bench.schedule);
        assert_eq!(bench.alarms(), [117_000]);
    }

    #[test]
    fn a_command_ends_with_its_last_part_and_with_the_error_of_any() {
        let mut bench = Bench::new(None);
        for (tag, status, reported) in [
            (0, Status::Ok, Status::Ok),
            (1, Status::Timeout, Status::IoError),
            (2, Status::NotSupported, Status::NotSupported),
            (0, Status::Ok, Status::Ok),
            (1, Status::Ok, Status::Ok),
        ] {
            bench.queue(0, tag, Op::Read, 16);
            bench.run(7300);
            assert_eq!(bench.end(7300, tag, 8, status), None);
            assert_eq!(
                bench.end(7300, tag, 8, Status::Ok).map(|(_, tag, status)| (tag, status)),
                Some((tag, reported))
            );
            bench.thread.free_at = Instant::ZERO;
        }
    }

    #[test]
    fn commands_become_direct_io_at_their_offset_and_flushes_have_none() {
        let bench = Bench::new(None);
        let first = bench.thread.shape.capacity_sectors;
        let bio = |op, sectors, fua| {
            let bio = bench.thread.bio(&Command { tag: 5, queue: 0, op, sector: Sector(8), sectors, fua });
            (bio.op, bio.sector.0, bio.segments, bio.flags)
        };
        let direct = BioFlags::SYNC.with(BioFlags::IDLE);
        assert_eq!(bio(Op::Read, 24, false), (Op::Read, first + 8, 3, BioFlags::NONE));
        assert_eq!(bio(Op::Write, 9, false), (Op::Write, first + 8, 2, direct));
        assert_eq!(bio(Op::Write, 8, true), (Op::Write, first + 8, 1, direct.with(BioFlags::FUA)));
        assert_eq!(bio(Op::Discard, 8, false), (Op::Discard, first + 8, 1, BioFlags::NONE));
        assert_eq!(bio(Op::Flush, 0, false), (Op::Write, 0, 1, BioFlags::SYNC.with(BioFlags::PREFLUSH)));
    }
}
