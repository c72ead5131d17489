//! Random loads over legacy queues: every scheduler, changed at any time, plugs, mergeable neighbours, sleepers, refusals,
//! requeues, late completions. Whatever happens, each bio ends exactly once, limits are kept, and nothing is stuck in
//! the end.

use hoistway_blk::{
    Bio, BioFlags, CgroupId, CpuId, Cx, Driver, Effect, Effects, HctxId, Instant, IoContextId, IoPriority, Kernel,
    LEGACY_SCHEDULERS, LegacyConfig, LegacyElevator, LegacyQueue, LegacySubmission, Limits, Local, Nanos, NoMerges,
    NoProbe, Now, Op, Plug, PriorityClass, Refusal, Rejected, Rq, SWITCH_POLL, Sector, Status, Step, Submitted,
    Tagging, Waiter, is_sync,
};
use proptest::prelude::*;

/// SplitMix64.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A device that sometimes refuses.
struct Device {
    random: Random,
    depth: u32,
    budget: u32,
    refuses: bool,
    in_flight: Vec<Rq>,
    issued: Vec<u64>,
}

impl Driver for Device {
    fn get_budget(&mut self, _: HctxId) -> bool {
        self.budget.checked_sub(1).map(|left| self.budget = left).is_some()
    }

    fn put_budget(&mut self, _: HctxId) {
        self.budget += 1;
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Result<(), Rejected> {
        let tag = rq.driver_tag.expect("what is sent has a driver tag");
        assert!(tag < self.depth, "tag {tag} of {}", self.depth);
        assert!(self.in_flight.iter().all(|other| other.driver_tag != Some(tag)), "tag {tag} twice");
        if self.refuses && self.random.one_in(8) {
            let why = self.random.of(&[Refusal::Failed(Status::Medium), Refusal::Busy, Refusal::UntilCompletion]);
            // The budget of a request that failed at the driver is the driver's to return.
            self.budget += u32::from(matches!(why, Refusal::Failed(_)));
            return Err(Rejected { rq, why });
        }
        self.issued.push(rq.sector.0);
        self.in_flight.push(rq);
        Ok(())
    }
}

/// A process: perhaps with an open plug, it submits one bio at a time.
struct Task {
    plug: Option<Plug>,
    submission: LegacySubmission,
    parked: bool,
}

struct World {
    config: LegacyConfig,
    queue: LegacyQueue<Local>,
    device: Device,
    effects: Effects,
    /// A delayed run is set.
    delayed: bool,
    timer: Option<Instant>,
    /// When a change of scheduler is looked at next, and to which.
    switching: Option<(Instant, Option<&'static str>)>,
    tasks: Vec<Task>,
    random: Random,
    now: Instant,
    /// Sectors of each bio that have not ended, by its owner number.
    outstanding: Vec<u32>,
    next_sector: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let config = LegacyConfig {
            kernel: random.of(&Kernel::ALL),
            queue_depth: random.of(&[1, 2, 3, 4, 7, 32]),
            nr_requests: random.of(&[1, 4, 5, 8, 16]),
            nr_requests_max: 16,
            tagging: random.of(&[Tagging::Driver, Tagging::Lowest, Tagging::RoundRobin]),
            nomerges: random.of(&[NoMerges::All, NoMerges::All, NoMerges::Cheap, NoMerges::Nothing]),
            limits: Limits {
                max_sectors: 64,
                max_write_zeroes_sectors: 32,
                rotational: random.one_in(2),
                ..Limits::default()
            },
        };
        let scheduler = random.of(&LEGACY_SCHEDULERS);
        let task = |number| Task { plug: None, submission: LegacySubmission::idle(Waiter(number)), parked: false };
        World {
            queue: LegacyQueue::new(&config, scheduler).expect("a valid configuration"),
            device: Device {
                random: Random(random.next()),
                depth: config.queue_depth,
                budget: if random.one_in(2) { 1 + random.below(4) as u32 } else { u32::MAX / 2 },
                refuses: random.one_in(2),
                in_flight: Vec::new(),
                issued: Vec::new(),
            },
            effects: Effects::new(),
            delayed: false,
            timer: None,
            switching: None,
            tasks: (0..12).map(task).collect(),
            random,
            now: Instant::ZERO,
            outstanding: Vec::new(),
            next_sector: 0,
            config,
        }
    }

    fn moment(&self) -> Now {
        self.queue.generation().hz.now(self.now)
    }

    fn call<R>(&mut self, body: impl FnOnce(&LegacyQueue<Local>, &mut Cx<'_, Device, NoProbe>) -> R) -> R {
        let (now, cpu) = (self.moment(), CpuId(self.random.below(4) as u16));
        let (driver, effects) = (&mut self.device, &mut self.effects);
        body(&self.queue, &mut Cx { now, cpu, driver, effects, probe: &mut NoProbe })
    }

    fn random_bio(&mut self, task: usize) -> Bio {
        let op = self.random.of(&[Op::Read, Op::Read, Op::Write, Op::Write, Op::Write, Op::Discard, Op::WriteZeroes]);
        let longest = if self.random.one_in(6) { 150 } else { 16 };
        let sectors = 1 + self.random.below(longest) as u32;
        if self.random.one_in(3) {
            self.next_sector = self.random.below(2000);
        }
        // Often right behind the one before, or right in front of it.
        let sector = self.next_sector;
        self.next_sector = if self.random.one_in(4) { sector.saturating_sub(8) } else { sector + u64::from(sectors) };
        let flags = [
            BioFlags::NONE,
            BioFlags::NONE,
            BioFlags::SYNC,
            BioFlags::SYNC.with(BioFlags::IDLE),
            BioFlags::NOMERGE,
            BioFlags::NOWAIT,
            BioFlags::FUA,
            BioFlags::PRIO,
        ];
        let classes =
            [PriorityClass::BestEffort, PriorityClass::BestEffort, PriorityClass::RealTime, PriorityClass::Idle];
        let owner = self.outstanding.len() as u64;
        self.outstanding.push(sectors);
        Bio {
            flags: self.random.of(&flags),
            ioprio: IoPriority::new(self.random.of(&classes), 4),
            io_context: IoContextId(task as u32),
            cgroup: CgroupId(task as u32 % 3),
            owner,
            ..Bio::new(op, Sector(sector), sectors)
        }
    }

    fn go_on(&mut self, number: usize) {
        let mut submission = std::mem::replace(&mut self.tasks[number].submission, LegacySubmission::idle(Waiter(0)));
        let mut plug = self.tasks[number].plug.take();
        let submitted = self.call(|queue, cx| queue.submit(cx, &mut submission, plug.as_mut()));
        let task = &mut self.tasks[number];
        (task.submission, task.plug) = (submission, plug);
        task.parked = submitted == Submitted::Parked;
    }

    fn flush(&mut self, number: usize) {
        if let Some(mut plug) = self.tasks[number].plug.take() {
            self.call(|queue, cx| queue.flush_plug(cx, &mut plug));
        }
    }

    fn act(&mut self) {
        let number = self.random.below(self.tasks.len() as u64) as usize;
        let is_free = !self.tasks[number].parked;
        match self.random.below(20) {
            0..9 if is_free => {
                let bio = self.random_bio(number);
                self.tasks[number].submission.begin(bio);
                self.go_on(number);
            }
            9 if is_free && self.tasks[number].plug.is_none() => self.tasks[number].plug = Some(Plug::new()),
            10 if is_free => self.flush(number),
            11 => self.later(),
            12 if self.random.one_in(3) => self.give_back(),
            13 => self.now += Nanos::from_micros(self.random.below(20_000)),
            14 if self.switching.is_none() && self.random.one_in(3) => {
                let to = if self.random.one_in(5) { None } else { Some(self.random.of(&LEGACY_SCHEDULERS)) };
                self.switching = Some((self.now + SWITCH_POLL, to));
                self.call(|queue, cx| queue.begin_switch(cx));
            }
            15 if self.random.one_in(3) => {
                let nr_requests = self.random.below(17) as u32;
                self.queue.set_nr_requests(nr_requests, &mut self.effects).expect("the queue was made for 16");
            }
            16 if is_free && self.tasks[number].plug.is_none() && self.random.one_in(3) => {
                let now = self.moment();
                self.queue.io_context_exited(now, &mut self.effects, IoContextId(number as u32));
            }
            _ => self.complete_one(),
        }
        self.carry_out();
    }

    fn some_in_flight(&mut self) -> Option<Rq> {
        let count = self.device.in_flight.len() as u64;
        let at = (count > 0).then(|| self.random.below(count) as usize)?;
        self.device.budget += 1;
        Some(self.device.in_flight.swap_remove(at))
    }

    fn complete_one(&mut self) {
        if let Some(rq) = self.some_in_flight() {
            self.call(|queue, cx| queue.complete(cx, rq, Status::Ok));
        }
    }

    fn give_back(&mut self) {
        if let Some(rq) = self.some_in_flight() {
            self.call(|queue, cx| queue.requeue(cx, rq));
        }
    }

    /// Time passes: what was delayed comes due.
    fn later(&mut self) {
        self.now += Nanos::from_millis(3);
        if self.timer.is_some_and(|at| at <= self.now) {
            self.timer = None;
            let now = self.moment();
            self.queue.timer(now, &mut self.effects);
        }
        if std::mem::take(&mut self.delayed) {
            self.call(|queue, cx| queue.run(cx));
        }
        if let Some((due, to)) = self.switching
            && due <= self.now
        {
            self.switching = Some((self.now + SWITCH_POLL, to));
            if self.call(|queue, cx| queue.poll_switch(cx)) == Step::Done {
                self.switching = None;
                let next = to.and_then(|name| LegacyElevator::named(name, &self.config, self.moment()));
                self.call(|queue, cx| queue.end_switch(cx, next));
                assert!(to.is_none_or(|name| name == self.queue.scheduler()));
            }
        }
    }

    fn carry_out(&mut self) {
        let mut effects = 0;
        while let Some(effect) = self.effects.pop() {
            effects += 1;
            assert!(effects < 10_000, "effects cause effects without end: {effect:?}");
            match effect {
                Effect::EndBio { bio, .. } => {
                    let left = &mut self.outstanding[bio.owner as usize];
                    *left = left.checked_sub(bio.sectors).expect("no sector of a bio ends twice");
                }
                Effect::Wake(Waiter(number)) => {
                    assert!(self.tasks[number as usize].parked, "only who sleeps is woken");
                    self.go_on(number as usize);
                }
                Effect::RunHctx { delay: Nanos::ZERO, .. } => self.call(|queue, cx| queue.run(cx)),
                Effect::RunHctx { .. } => self.delayed = true,
                Effect::SetTimer(at) => self.timer = Some(at),
                Effect::CancelTimer => self.timer = None,
                Effect::SetTimeout(_) => {}
                other => panic!("a legacy queue does not ask for {other:?}"),
            }
        }
        let at_device = self.device.in_flight.len() as u32;
        assert_eq!((self.queue.in_flight(), self.queue.driver_tags_in_use()), (at_device, at_device));
        assert!(self.queue.requests_in_use() <= self.config.capacity() as usize);
        if self.config.tagging != Tagging::Driver && self.config.queue_depth >= 4 {
            let is_async = |rq: &&Rq| !is_sync(rq.op, rq.flags);
            let count = self.device.in_flight.iter().filter(is_async).count() as u32;
            assert!(count <= self.config.queue_depth - 2, "the last two tags are for sync I/O");
        }
    }

    /// The load ends: everything is served.
    fn finish(&mut self) {
        for _ in 0..5_000 {
            for number in 0..self.tasks.len() {
                if !self.tasks[number].parked {
                    self.flush(number);
                    self.carry_out();
                }
            }
            let quiet = self.device.in_flight.is_empty()
                && !self.delayed
                && self.switching.is_none()
                && self.tasks.iter().all(|task| !task.parked && task.plug.is_none());
            if quiet && (self.queue.requests_in_use() == 0 || self.timer.is_none()) {
                return;
            }
            self.complete_one();
            self.carry_out();
            self.later();
            self.carry_out();
        }
        panic!(
            "it does not end: {} requests, {} at the device, {} sleepers",
            self.queue.requests_in_use(),
            self.device.in_flight.len(),
            self.tasks.iter().filter(|task| task.parked).count()
        );
    }
}

/// Says which load it was if that fails.
struct Context(String);

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with {}", self.0);
        }
    }
}

/// One load from beginning to end; answers what was issued, in order.
fn load(seed: u64) -> Vec<u64> {
    let mut world = World::new(seed);
    let _context = Context(format!("seed {seed}, {:?}", world.config));
    for _ in 0..400 {
        world.act();
    }
    world.finish();
    assert_eq!((world.queue.requests_in_use(), world.queue.driver_tags_in_use()), (0, 0), "something is stuck");
    assert!(world.outstanding.iter().all(|&sectors| sectors == 0), "every bio has ended");
    world.device.issued
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_bio_ends_once_and_nothing_is_stuck_under_any_scheduler_and_while_it_is_changed(seed in any::<u64>()) {
        load(seed);
    }

    #[test]
    fn the_same_seed_gives_the_same_order(seed in any::<u64>()) {
        prop_assert_eq!(load(seed), load(seed));
    }
}
