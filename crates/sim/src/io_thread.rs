//! The thread of the host behind a virtual disk: it takes the guest's commands out of the ring, submits them to the disk
//! that the virtual one lies on, and tells the guest when they have ended.
//!
//! ```text
//! guest's driver | doorbell: wake-up  | submit_ns each,       | block layer and     | wake-up, if it sleeps, | guest's
//! fills the ring | if it sleeps       | all that is in the    | device of the host  | complete_ns            | interrupt
//!                                       ring in one call
//! ```
//!
//! It does one thing at a time, on a CPU of its own. Like a task it acts at one moment, the end of its first submission,
//! and is busy for the rest. To the host all of a guest's I/O is that of one process. If the host has no request left,
//! the thread sleeps in its call; it is notified of completions nevertheless.

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op, Status};
use hoistway_blk::caller::{Cx, Env, Parts, Submitted};
use hoistway_blk::ground::{CgroupId, CpuId, Instant, IoContextId, Local, Nanos, Sector};
use hoistway_device::{Command, Schedule, Shape};
use hoistway_legacy::AnyQueue;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::identity::{Sleeper, owner_io_thread, place_of};
use crate::span::Span;
use crate::submitter::Submitter;
use crate::virtual_disk::VirtualDisk;

/// Keeps the random streams of I/O threads apart from all others of the seed.
const THREAD_STREAM: u64 = 0x696f_7468_7265_6164;

/// The thread of one virtual disk.
pub(crate) struct IoThread {
    pub(crate) shape: Shape,
    /// The disk that the virtual one lies on.
    pub(crate) lower: u32,
    pub(crate) cpu: CpuId,
    /// Commands that it has not taken yet.
    ring: VecDeque<Command>,
    /// What is left of the commands that it has submitted, by their tags.
    under_way: Vec<Parts>,
    /// To the disk of the host; it may sleep for a request of that.
    submitter: Submitter,
    /// It is on its way to the ring.
    is_woken: bool,
    /// It is busy until then: a wake-up and the first submission of a run that it is on its way to count already.
    free_at: Instant,
    /// What its bios have in common.
    pattern: Bio,
    /// Where the virtual disk begins.
    first: Sector,
    wake: Span,
    submit: Nanos,
    complete: Nanos,
    random: Xoshiro256PlusPlus,
}

/// Where a virtual disk lies, and what its thread is to the host.
pub(crate) struct IoThreadIdentity {
    /// Its own number, and that of the disk it lies on.
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
        place: &IoThreadIdentity,
        seed: u64,
    ) -> Self {
        let tags = u32::from(shape.hw_queues) * shape.queue_depth;
        IoThread {
            first: Sector(shape.capacity_sectors * u64::from(place.number)),
            lower: place.lower,
            cpu: place.cpu,
            ring: VecDeque::with_capacity(tags as usize),
            under_way: vec![Parts::default(); tags as usize],
            submitter: Submitter::new(lower, Sleeper::IoThread(place.number).waiter()),
            is_woken: false,
            free_at: Instant::ZERO,
            pattern: Bio {
                io_context: place.io_context,
                cgroup: place.cgroup,
                ioprio: IoPriority::from_nice(0),
                owner: owner_io_thread(place.number, 0),
                ..Bio::new(Op::Read, Sector(0), 0)
            },
            wake: Span::new(profile.wake_ns),
            submit: Nanos(profile.submit_ns),
            complete: Nanos(profile.complete_ns),
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ THREAD_STREAM),
            shape,
        }
    }

    /// The guest puts a command into the ring and rings the bell.
    pub(crate) fn queue(&mut self, now: Instant, command: Command, schedule: &mut Schedule) {
        if !self.shape.holds(&command) {
            return schedule.end(now, command.tag, Status::IoError);
        }
        self.ring.push_back(command);
        if !self.is_woken && !self.submitter.is_parked() {
            let at = self.does(now, self.submit);
            self.set(at, schedule);
        }
    }

    /// It does what takes this time, after a wake-up if it sleeps. Returns when that is done.
    fn does(&mut self, now: Instant, time: Nanos) -> Instant {
        let begins = if self.free_at > now { self.free_at } else { now + self.wake.draw(&mut self.random) };
        self.free_at = begins + time;
        self.free_at
    }

    fn set(&mut self, at: Instant, schedule: &mut Schedule) {
        self.is_woken = true;
        schedule.alarms.push((at, 0));
    }

    /// The host has a request for it again.
    pub(crate) fn unpark(&mut self, now: Instant, schedule: &mut Schedule) {
        let at = self.does(now, Nanos::ZERO);
        self.set(at, schedule);
    }

    /// It runs, and submits what is in the ring as far as the host has requests. `plugs` says whether a call that submits
    /// this many opens a plug.
    pub(crate) fn run<E: Env>(
        &mut self,
        cx: &mut Cx<'_, E>,
        front: &AnyQueue<Local>,
        schedule: &mut Schedule,
        plugs: impl Fn(usize) -> bool,
    ) {
        let now = cx.now.at;
        self.is_woken = false;
        if self.free_at > now {
            // Completions have kept it meanwhile.
            return self.set(self.free_at, schedule);
        }
        let mut submitted = 0;
        loop {
            if !self.submitter.is_parked() {
                if plugs(self.ring.len()) {
                    self.submitter.plug();
                }
                let Some(command) = self.ring.pop_front() else { break };
                let bio = self.bio(&command);
                self.under_way[command.tag as usize] = Parts::of(&bio);
                self.submitter.begin(bio);
            }
            // One that it slept with is the first of this run.
            submitted += 1;
            if self.submitter.make_progress(front, cx) == Submitted::Parked {
                break;
            }
        }
        if !self.submitter.is_parked() {
            self.submitter.unplug(front, cx);
        }
        self.free_at = now + Nanos(self.submit.0 * u64::from(u32::saturating_sub(submitted, 1)));
    }

    /// A part of a bio of its has ended. Returns which command has ended with it, how, and when the guest hears of it.
    pub(crate) fn bio_ended(&mut self, now: Instant, bio: &Bio, status: Status) -> Option<(Instant, u32, Status)> {
        let tag = place_of(bio);
        let status = match self.under_way[tag as usize].ended(bio, status)? {
            status @ (Status::Ok | Status::NotSupported) => status,
            // A ring knows no other errors.
            _ => Status::IoError,
        };
        Some((self.does(now, self.complete), tag, status))
    }

    /// What a command is on the host.
    fn bio(&self, command: &Command) -> Bio {
        let direct_write = BioFlags::SYNC.with(BioFlags::IDLE);
        let (op, flags) = match command.op {
            Op::Flush => (Op::Write, BioFlags::SYNC.with(BioFlags::PREFLUSH)),
            Op::Write if command.fua => (Op::Write, direct_write.with(BioFlags::FUA)),
            Op::Write => (Op::Write, direct_write),
            op => (op, BioFlags::NONE),
        };
        // A flush has no sectors, and no place.
        let sector = if command.sectors == 0 { Sector(0) } else { Sector(self.first.0 + command.sector.0) };
        Bio {
            sector,
            sectors: command.sectors,
            // A page of the guest's memory is a segment.
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

    /// A thread over a disk of the host, with plain times: wake-up 7000 ns, submission 300, completion 20.
    struct Bench {
        /// Before its thread, which may still sleep for something of it at the end.
        lower: SimulatedDisk,
        thread: IoThread,
        caller: Caller,
        schedule: Schedule,
    }

    impl Bench {
        fn new(nr_requests: Option<u32>) -> Bench {
            let builtin = VirtualDisk::builtin(VirtualDisk::DEFAULT).unwrap();
            let profile = VirtualDisk { wake_ns: [7000, 7000], submit_ns: 300, complete_ns: 20, ..builtin };
            let settings = QueueSettings { nr_requests, ..QueueSettings::new(Kernel::V6_18, 1) };
            let device = Backing::Device(Preset::builtin("null").unwrap().build(1));
            let lower = SimulatedDisk::new(device, &settings, "mq-deadline", (0, 1), &mut None).unwrap();
            let (io_context, cgroup) = (IoContextId(1), CgroupId::ROOT);
            let place = IoThreadIdentity { number: 1, lower: 2, io_context, cgroup, cpu: CpuId(0) };
            let shape = profile.shape(lower.driver.shape(), 2);
            let thread = IoThread::new(&profile, shape, &lower.front, &place, 1);
            Bench { thread, lower, caller: Caller::new(), schedule: Schedule::default() }
        }

        fn queue(&mut self, at_ns: u64, tag: u32, op: Op, sectors: u32) {
            let command = Command { tag, queue: 0, op, sector: Sector(8), sectors, fua: false };
            self.thread.queue(Instant(at_ns), command, &mut self.schedule);
        }

        fn run(&mut self, at_ns: u64) {
            let now = Hz(1000).now(Instant(at_ns));
            let SimulatedDisk { front, driver, .. } = &mut self.lower;
            let probe = &mut NoProbe;
            let meter = LockMeter::new(1);
            let mut cx = self.caller.cx::<crate::driver::Machine<NoProbe>>(now, CpuId(0), driver, probe, &meter);
            self.thread.run(&mut cx, front, &mut self.schedule, |_| false);
        }

        fn end(&mut self, at_ns: u64, tag: u32, sectors: u32, status: Status) -> Option<(u64, u32, Status)> {
            let bio = Bio { owner: owner_io_thread(1, tag), ..Bio::new(Op::Read, Sector(0), sectors) };
            self.thread.bio_ended(Instant(at_ns), &bio, status).map(|(at, tag, status)| (at.0, tag, status))
        }

        /// When it has asked to run since the last look.
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
        // Busy for two more submissions.
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
        for (tag, status, told) in [
            (0, Status::Ok, Status::Ok),
            (1, Status::Timeout, Status::IoError),
            (2, Status::NotSupported, Status::NotSupported),
            (0, Status::Ok, Status::Ok),
            (1, Status::Ok, Status::Ok),
        ] {
            bench.queue(0, tag, Op::Read, 16);
            bench.run(7300);
            assert_eq!(bench.end(7300, tag, 8, status), None);
            assert_eq!(bench.end(7300, tag, 8, Status::Ok).map(|(_, tag, status)| (tag, status)), Some((tag, told)));
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
