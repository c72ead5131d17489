//! Random loads over whole queues: every scheduler, every kernel, several CPUs and hardware queues, plugs, mergeable
//! neighbours, refusals, requeues, late completions. Whatever happens, each bio ends exactly once, tags stay within
//! their depth, and nothing is stuck in the end.

use std::collections::BTreeSet;

use hoistway_blk::{
    Bio, BioFlags, CpuId, Cx, Driver, Effect, Effects, Event, HctxId, Instant, IoPriority, Kernel, Limits, Local,
    Marks, Nanos, NoMerges, Now, Op, Plug, PriorityClass, Probe, Queue, QueueConfig, Refusal, Rejected, Rq, SCHEDULERS,
    Sector, Status, Submission, Submitted, Waiter,
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
}

/// A device that sometimes refuses.
struct Device {
    random: Random,
    depth: u32,
    host_wide: bool,
    /// Pieces of budget that are left, and whether somebody was refused one.
    budget: u32,
    short_of_budget: bool,
    refuses: bool,
    in_flight: Vec<Rq>,
    issued: Vec<u64>,
}

impl Driver for Device {
    fn get_budget(&mut self, _: HctxId) -> bool {
        if self.budget == 0 {
            self.short_of_budget = true;
            return false;
        }
        self.budget -= 1;
        true
    }

    fn put_budget(&mut self, _: HctxId) {
        self.budget += 1;
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Result<(), Rejected> {
        let of_this_hctx = |other: &&Rq| self.host_wide || other.hctx == rq.hctx;
        let tag = rq.driver_tag.expect("what is sent has a driver tag");
        assert!(tag < self.depth, "tag {tag} of {}", self.depth);
        assert!(
            self.in_flight.iter().filter(of_this_hctx).all(|other| other.driver_tag != Some(tag)),
            "tag {tag} twice"
        );
        if self.refuses && self.random.one_in(8) {
            let promised = self.in_flight.iter().any(|other| other.hctx == rq.hctx);
            let why = match self.random.below(8) {
                0 => Refusal::Failed(Status::Medium),
                1..4 if promised => Refusal::UntilCompletion,
                _ => Refusal::Busy,
            };
            if matches!(why, Refusal::Failed(_)) {
                // The budget of a request that reached the driver is the driver's to return.
                self.budget += 1;
            }
            return Err(Rejected { rq, why });
        }
        self.issued.push(rq.sector.0);
        self.in_flight.push(rq);
        Ok(())
    }
}

/// Counts the events that must balance.
#[derive(Default)]
struct Balance {
    allocated: u64,
    issued: u64,
    returned: u64,
    completed: u64,
}

impl Probe for Balance {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::GetRq(_) => self.allocated += 1,
            Event::Issue(_) => self.issued += 1,
            Event::Requeue(_) => self.returned += 1,
            Event::Complete(..) => self.completed += 1,
            _ => {}
        }
    }
}

/// A process: it has a CPU and perhaps an open plug, and submits one bio at a time.
struct Task {
    cpu: CpuId,
    plug: Option<Plug>,
    submission: Submission,
    parked: bool,
}

struct World {
    queue: Queue<Local>,
    config: QueueConfig,
    device: Device,
    probe: Balance,
    effects: Effects,
    /// Hardware queues that run later: one run, however often it is asked for.
    delayed: BTreeSet<HctxId>,
    timer: Option<Instant>,
    tasks: Vec<Task>,
    random: Random,
    now: Instant,
    /// Sectors of each bio that have not ended, by its owner number.
    outstanding: Vec<u32>,
    next_sector: u64,
}

impl World {
    fn new(seed: u64, kernel: Kernel, scheduler: &str) -> Self {
        let mut random = Random(seed);
        let nomerges = [NoMerges::All, NoMerges::All, NoMerges::Cheap, NoMerges::Nothing][random.below(4) as usize];
        let mut config = QueueConfig {
            kernel,
            cpus: 1 + random.below(4) as u16,
            hw_queues: 1 + random.below(4) as u16,
            queue_depth: [1, 2, 4, 7, 32][random.below(5) as usize],
            host_wide_tags: random.one_in(3),
            nomerges,
            limits: Limits { max_sectors: 64, max_write_zeroes_sectors: 32, ..Limits::default() },
            ..QueueConfig::new(kernel)
        };
        if kernel.generation().queue_types {
            config.read_queues = random.below(3) as u16;
        }
        let queue = Queue::new(&config, scheduler).expect("a valid configuration");
        let task = |number| Task {
            cpu: CpuId(number as u16 % config.cpus),
            plug: None,
            submission: Submission::idle(Waiter(number)),
            parked: false,
        };
        World {
            queue,
            device: Device {
                random: Random(random.next()),
                depth: config.queue_depth,
                host_wide: config.host_wide_tags,
                budget: if random.one_in(2) { 1 + random.below(4) as u32 } else { u32::MAX / 2 },
                short_of_budget: false,
                refuses: random.one_in(2),
                in_flight: Vec::new(),
                issued: Vec::new(),
            },
            probe: Balance::default(),
            effects: Effects::new(),
            delayed: BTreeSet::new(),
            timer: None,
            tasks: (0..6).map(task).collect(),
            random,
            now: Instant::ZERO,
            outstanding: Vec::new(),
            next_sector: 0,
            config,
        }
    }

    fn moment(&self) -> Now {
        self.config.kernel.generation().hz.now(self.now)
    }

    fn call<R>(&mut self, cpu: CpuId, body: impl FnOnce(&Queue<Local>, &mut Cx<'_, Device, Balance>) -> R) -> R {
        let now = self.moment();
        let (driver, effects, probe) = (&mut self.device, &mut self.effects, &mut self.probe);
        body(&self.queue, &mut Cx { now, cpu, driver, effects, probe })
    }

    fn some_cpu(&mut self) -> CpuId {
        CpuId(self.random.below(u64::from(self.config.cpus)) as u16)
    }

    fn random_bio(&mut self) -> Bio {
        let ops = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Write, Op::Discard, Op::WriteZeroes];
        let op = ops[self.random.below(7) as usize];
        let longest = if self.random.one_in(6) { 150 } else { 16 };
        let sectors = 1 + self.random.below(longest) as u32;
        if self.random.one_in(3) {
            self.next_sector = self.random.below(2000);
        }
        // Often right behind the one before, or right in front of it.
        let sector = self.next_sector;
        self.next_sector = if self.random.one_in(4) { sector.saturating_sub(8) } else { sector + u64::from(sectors) };
        let flags = [BioFlags::NONE, BioFlags::NONE, BioFlags::SYNC, BioFlags::NOMERGE, BioFlags::NOWAIT];
        let classes =
            [PriorityClass::BestEffort, PriorityClass::BestEffort, PriorityClass::RealTime, PriorityClass::Idle];
        let owner = self.outstanding.len() as u64;
        self.outstanding.push(sectors);
        Bio {
            flags: flags[self.random.below(5) as usize],
            ioprio: IoPriority::new(classes[self.random.below(4) as usize], 4),
            owner,
            ..Bio::new(op, Sector(sector), sectors)
        }
    }

    fn go_on(&mut self, number: usize) {
        let cpu = self.tasks[number].cpu;
        let mut submission = std::mem::replace(&mut self.tasks[number].submission, Submission::idle(Waiter(0)));
        let mut plug = self.tasks[number].plug.take();
        let submitted = self.call(cpu, |queue, cx| queue.submit(cx, &mut submission, plug.as_mut()));
        let task = &mut self.tasks[number];
        (task.submission, task.plug) = (submission, plug);
        task.parked = submitted == Submitted::Parked;
    }

    fn flush(&mut self, number: usize) {
        if let Some(mut plug) = self.tasks[number].plug.take() {
            let cpu = self.tasks[number].cpu;
            self.call(cpu, |queue, cx| queue.flush_plug(cx, &mut plug));
        }
    }

    fn act(&mut self) {
        let number = self.random.below(self.tasks.len() as u64) as usize;
        match self.random.below(16) {
            0..8 if !self.tasks[number].parked => {
                let bio = self.random_bio();
                self.tasks[number].submission.begin(bio);
                self.go_on(number);
            }
            8 if !self.tasks[number].parked && self.tasks[number].plug.is_none() => {
                self.tasks[number].plug = Some(Plug::new());
            }
            9 if !self.tasks[number].parked => self.flush(number),
            10 => self.tasks[number].cpu = self.some_cpu(),
            11 => self.later(),
            12 if self.random.one_in(4) => self.give_back(),
            13 => self.now += Nanos::from_micros(self.random.below(20_000)),
            _ => self.complete_one(),
        }
        self.carry_out();
    }

    fn some_in_flight(&mut self) -> Option<Rq> {
        let count = self.device.in_flight.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize).map(|at| self.device.in_flight.swap_remove(at))
    }

    /// The device is through with a request: its budget is free, and whoever was short of it runs again.
    fn release_budget(&mut self) {
        if self.config.kernel.generation().budget {
            self.device.budget += 1;
        }
        if std::mem::take(&mut self.device.short_of_budget) {
            self.run_all_later();
        }
    }

    fn complete_one(&mut self) {
        let Some(rq) = self.some_in_flight() else { return };
        self.release_budget();
        let cpu = self.some_cpu();
        self.call(cpu, |queue, cx| queue.complete(cx, rq, Status::Ok));
    }

    fn give_back(&mut self) {
        let Some(mut rq) = self.some_in_flight() else { return };
        self.release_budget();
        if self.random.one_in(3) {
            rq.marks.set(Marks::DONTPREP);
        }
        let cpu = self.some_cpu();
        self.call(cpu, |queue, cx| queue.requeue(cx, rq));
    }

    /// Time passes: what was delayed comes due.
    fn later(&mut self) {
        self.now += Nanos::from_millis(3);
        if self.timer.is_some_and(|at| at <= self.now) {
            self.timer = None;
            let now = self.moment();
            self.queue.timer(now, &mut self.effects);
        }
        for hctx in std::mem::take(&mut self.delayed) {
            self.run(hctx);
        }
    }

    fn run(&mut self, hctx: HctxId) {
        let cpu = self.queue.hctx(hctx).cpus()[0];
        self.call(cpu, |queue, cx| queue.run_hctx(cx, hctx));
    }

    fn run_all_later(&mut self) {
        let cpu = self.some_cpu();
        self.delayed.extend(self.queue.hctxs_of_run_all(cpu));
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
                    let number = number as usize;
                    assert!(self.tasks[number].parked, "only who sleeps is woken");
                    self.go_on(number);
                }
                Effect::RunHctx { hctx, delay: Nanos::ZERO } => self.run(hctx),
                Effect::RunHctx { hctx, .. } => {
                    self.delayed.insert(hctx);
                }
                Effect::RunAll { delay: Nanos::ZERO } => {
                    let cpu = self.some_cpu();
                    let hctxs: Vec<HctxId> = self.queue.hctxs_of_run_all(cpu).collect();
                    hctxs.into_iter().for_each(|hctx| self.run(hctx));
                }
                Effect::RunAll { .. } => self.run_all_later(),
                Effect::KickRequeue => {
                    let cpu = self.some_cpu();
                    self.call(cpu, |queue, cx| queue.kick_requeue(cx));
                }
                Effect::RunOther { .. } => unreachable!("nobody shares its tags"),
                Effect::SetTimer(at) => self.timer = Some(at),
                Effect::CancelTimer => self.timer = None,
                Effect::SetTimeout(_) => {}
            }
        }
        let spaces = if self.config.host_wide_tags { 1 } else { u32::from(self.queue.hw_queues()) };
        let tags = self.config.queue_depth * spaces;
        assert!(self.queue.driver_tags_in_use() <= tags);
    }

    /// The load ends: everything is served.
    fn finish(&mut self) {
        for _ in 0..2_000 {
            for number in 0..self.tasks.len() {
                if !self.tasks[number].parked {
                    self.flush(number);
                    self.carry_out();
                }
            }
            let quiet = self.device.in_flight.is_empty()
                && self.delayed.is_empty()
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
fn load(seed: u64, kernel: Kernel, scheduler: &str) -> Vec<u64> {
    let mut world = World::new(seed, kernel, scheduler);
    let _context = Context(format!("{scheduler} on {kernel}, seed {seed}, {:?}", world.config));
    for _ in 0..250 {
        world.act();
    }
    world.finish();
    assert_eq!(world.queue.requests_in_use(), 0, "requests are stuck");
    assert_eq!(world.queue.driver_tags_in_use(), 0, "driver tags are stuck");
    assert!(world.outstanding.iter().all(|&sectors| sectors == 0), "every bio has ended");
    let events = &world.probe;
    assert_eq!(events.issued, events.completed + events.returned);
    assert!(events.completed <= events.allocated);
    world.device.issued
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_bio_ends_once_and_nothing_is_stuck_with_any_scheduler_on_any_kernel(seed in any::<u64>()) {
        for kernel in Kernel::ALL {
            for scheduler in SCHEDULERS {
                load(seed, kernel, scheduler);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order(seed in any::<u64>(), kernel in 0usize..7, scheduler in 0..SCHEDULERS.len()) {
        let once = load(seed, Kernel::ALL[kernel], SCHEDULERS[scheduler]);
        let again = load(seed, Kernel::ALL[kernel], SCHEDULERS[scheduler]);
        prop_assert_eq!(once, again);
    }
}
