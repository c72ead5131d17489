//! A front, its device, the processes that use it and the administrator who changes it, all driven by one seed.

mod departing;
mod load;

use hoistway_blk::bio::{Limits, Op, Status, is_sync};
use hoistway_blk::caller::{Action, Agenda, BlockQueue, Caller, Cx, Due, Submitter};
use hoistway_blk::drive::RESOURCE_DELAY;
use hoistway_blk::ground::{CpuId, Instant, IoContextId, Kernel, Local, Nanos, NoMeter, Now, Waiter};
use hoistway_blk::policy::{ContentionOptions, Insertion, SchedulerEvent};
use hoistway_blk::queue::{QueueConfig, SCHEDULERS, Step};
use hoistway_blk::request::{Arbitration, Marks, Merging, Rq, Transport};
use hoistway_blk::schedulers::{Domain, OUTSIDE_LINUX};
use hoistway_blk::sysfs::AttributeError;
use hoistway_legacy::{AnyQueue, LEGACY_SCHEDULERS, LegacyConfig, LegacyQueue, PendingWrite, Tagging, all_schedulers};

use crate::properties::device::{Balance, Device, TIMEOUT_MIN};
use crate::support::Random;
use crate::support::bounds::Bounds;
pub use load::Habits;

/// The probe: what must balance, and what must not wait for too long.
type Watch = (Balance, Bounds);

/// A process: it has a CPU and perhaps an open plug, and submits one bio at a time.
struct Task {
    cpu: CpuId,
    submitter: Submitter<AnyQueue<Local>>,
}

const TASKS: usize = 8;

/// The most write-back that is ever let through: of normal and of swap 16, or 3/4 of the tags, or 2 for a single tag;
/// of discards a quarter of that (BL-119 to BL-125).
fn wbt_max(queue_depth: u32) -> u32 {
    let max = if queue_depth == 1 { 2 } else { queue_depth.min(16).max(queue_depth * 3 / 4) };
    2 * max + max.div_ceil(4)
}

pub struct World {
    pub habits: Habits,
    pub config: QueueConfig,
    front: AnyQueue<Local>,
    device: Device,
    probe: Watch,
    caller: Caller,
    agenda: Agenda,
    /// It begins under a scheduler that Linux does not have, and changes between all of them.
    is_outside_linux: bool,
    /// How a legacy device's tags are given out.
    tagging: Tagging,
    /// A write that waits, and when to look at it if a completion is not the moment.
    change: Option<(PendingWrite, Option<Instant>)>,
    /// How many processes have departed, and whether one has just now, which a write may have waited for.
    departures: u64,
    has_departed: bool,
    tasks: Vec<Task>,
    /// Decides what happens next.
    pub random: Random,
    now: Instant,
    /// The most write-back that may be in flight, of all kinds together.
    wbt_max: u32,
    /// Sectors that have not ended, of each process.
    busy: [u64; TASKS],
    /// Sectors of each bio that have not ended, by its owner number; an empty one counts as one.
    outstanding: Vec<u32>,
    next_sector: u64,
}

/// Whether a scheduler needs a drive with classes of hardware queues.
fn needs_classes(config: &QueueConfig, scheduler: &str) -> bool {
    config.schedulers.find(scheduler).is_some_and(|row| row.needs_arbitration)
}

/// Whether a scheduler needs a transport with a worker on each CPU.
fn needs_workers(config: &QueueConfig, scheduler: &str) -> bool {
    config.schedulers.find(scheduler).is_some_and(|row| row.needs_transport)
}

impl World {
    pub fn new(seed: u64, kernel: Kernel, scheduler: &str) -> Self {
        let mut random = Random(seed);
        let schedulers = all_schedulers();
        let (is_legacy, kernel) = (schedulers.is_legacy(scheduler), schedulers.kernel_under(kernel, scheduler));
        let mut config = QueueConfig {
            cpus: 1 + random.below(4) as u16,
            hw_queues: 1 + random.below(4) as u16,
            queue_depth: random.pick(&[1, 2, 4, 7, 32]),
            host_wide_tags: random.one_in(3),
            merging: random.pick(&[Merging::Full, Merging::Full, Merging::Simple, Merging::Off]),
            limits: Limits {
                max_sectors: 64,
                max_write_zeroes_sectors: 32,
                max_discard_segments: random.pick(&[1, 3]),
                rotational: random.one_in(2),
                write_cache: random.one_in(2),
                fua: random.one_in(2),
                flush_queueable: random.one_in(2),
                ..Limits::default()
            },
            schedulers,
            contention_options: ContentionOptions {
                single_dispatcher: random.one_in(2),
                try_merge: random.one_in(2),
                batch_dispatch: random.one_in(2),
                insertion: random.pick(&[Insertion::Direct, Insertion::Buckets, Insertion::Pending]),
            },
            ..QueueConfig::new(kernel)
        };
        if kernel.generation().queue_types {
            config.read_queues = random.below(3) as u16;
        }
        if needs_classes(&config, scheduler) {
            config = QueueConfig {
                hw_queues: 3 + random.below(12) as u16,
                read_queues: 0,
                arbitration: Some(Arbitration { weight_max: random.pick(&[3, 16, 256]) }),
                ..config
            };
        }
        if needs_workers(&config, scheduler) {
            let cpus = 2 + random.below(3) as u16;
            config = QueueConfig {
                cpus,
                hw_queues: 2 * cpus,
                read_queues: 0,
                transport: Some(Transport { batch: random.pick(&[1, 4, 16]) }),
                ..config
            };
        }
        let tagging = random.pick(&[Tagging::Driver, Tagging::Lowest, Tagging::RoundRobin]);
        let front: AnyQueue<Local> = if is_legacy {
            // The widest choice of tags, which only a legacy device has.
            config.host_wide_tags = true;
            let config = LegacyConfig { tagging, nr_requests: random.pick(&[1, 4, 16]), ..LegacyConfig::new(&config) };
            AnyQueue::Legacy(Box::new(LegacyQueue::new(&config, scheduler).expect("a valid configuration")))
        } else {
            AnyQueue::new(&config, scheduler).expect("a valid configuration")
        };
        let task = |number| Task {
            cpu: CpuId(number % u32::from(config.cpus)),
            submitter: Submitter::new(&front, Waiter(number)),
        };
        let habits = Habits::random(&mut random);
        let come_late = !is_legacy && config.contention_options.insertion == Insertion::Pending;
        let mut world = World {
            habits,
            tasks: (0..TASKS as u32).map(task).collect(),
            agenda: Agenda::new(front.hw_queues()),
            device: Device::new(Random(random.next()), &config, is_legacy, random.clone()),
            front,
            probe: (Balance::default(), Bounds::new(kernel, habits.apart, come_late)),
            caller: Caller::new(),
            is_outside_linux: OUTSIDE_LINUX.iter().any(|row| row.name == scheduler),
            tagging,
            change: None,
            departures: 0,
            has_departed: false,
            random,
            now: Instant::ZERO,
            wbt_max: wbt_max(config.queue_depth),
            busy: [0; TASKS],
            outstanding: Vec::new(),
            next_sector: 0,
            config,
        };
        if world.random.one_in(2) {
            world.shorten_waits();
        }
        if world.habits.slow {
            let timeout_ms = TIMEOUT_MIN.0 / 1_000_000 + world.random.below(1000);
            let set = world.front.set_attribute(
                world.moment(),
                "io_timeout",
                &timeout_ms.to_string(),
                &mut world.caller.effects,
            );
            set.expect("the file can be written");
        }
        world.follow();
        world
    }

    /// What is promised to those that wait may have changed.
    fn follow(&mut self) {
        let front = &self.front;
        self.probe.1.follow(front.scheduler(), &|name| front.tunable(name).ok());
    }

    fn moment(&self) -> Now {
        self.front.generation().hz.now(self.now)
    }

    fn call<R>(&mut self, cpu: CpuId, body: impl FnOnce(&AnyQueue<Local>, &mut Cx<'_, (Device, Watch)>) -> R) -> R {
        self.with_task(0, cpu, |front, cx, _| body(front, cx))
    }

    /// A task calls on its CPU.
    fn of_task<R>(
        &mut self,
        number: usize,
        body: impl FnOnce(&AnyQueue<Local>, &mut Cx<'_, (Device, Watch)>, &mut Submitter<AnyQueue<Local>>) -> R,
    ) -> R {
        self.with_task(number, self.tasks[number].cpu, |front, cx, submitter| body(front, cx, submitter))
    }

    fn with_task<R>(
        &mut self,
        number: usize,
        cpu: CpuId,
        body: impl FnOnce(&AnyQueue<Local>, &mut Cx<'_, (Device, Watch)>, &mut Submitter<AnyQueue<Local>>) -> R,
    ) -> R {
        let now = self.moment();
        if let AnyQueue::Mq(queue) = &self.front
            && let Some(depths) = queue
                .elevator(|elevator| elevator.as_kyber().map(|kyber| Domain::ALL.map(|domain| kyber.depth(domain))))
        {
            self.probe.1.set_depths(depths);
        }
        let mut cx = self.caller.cx(now, cpu, self.device.driver_of(cpu), &mut self.probe, &NoMeter);
        body(&self.front, &mut cx, &mut self.tasks[number].submitter)
    }

    fn some_cpu(&mut self) -> CpuId {
        CpuId(self.random.below(u64::from(self.config.cpus)) as u32)
    }

    // --- what happens ---

    pub fn act(&mut self) {
        let is_greedy_one = self.habits.greedy && !self.random.one_in(8);
        let number = if is_greedy_one { 0 } else { self.random.below(TASKS as u64) as usize };
        let submitter = &mut self.tasks[number].submitter;
        let (is_free, is_plugged) = (!submitter.is_parked(), submitter.is_plugged());
        let may_submit = is_free && (!self.habits.greedy || number == 0 || self.busy[number] == 0);
        match self.random.below(20) {
            0..9 if may_submit => {
                let most = if is_greedy_one { 1 + self.random.below(6) } else { 1 };
                for _ in 0..most {
                    let bio = self.random_bio(number);
                    self.of_task(number, |front, cx, submitter| submitter.submit(front, cx, bio));
                    if self.tasks[number].submitter.is_parked() {
                        break;
                    }
                }
            }
            9 if is_free => submitter.plug(),
            10 if is_free => self.flush(number),
            11 => self.tasks[number].cpu = self.some_cpu(),
            12 => self.later(),
            13 if self.random.one_in(3) => self.give_back(),
            14 => {
                let most_us = if self.habits.slow { 3_000_000 } else { 20_000 };
                self.now += Nanos::from_micros(self.random.below(most_us));
            }
            18 if self.habits.departing && !is_free => self.depart(number),
            17 if self.habits.buffered => self.dirty(),
            15 if self.habits.host_disks && self.change.is_none() && self.random.one_in(6) => self.poll_queue_writes(),
            16 if self.is_outside_linux && self.random.one_in(2) => {
                let (now, event) = (self.moment(), self.random_group_event());
                self.front.notify(now, &mut self.caller.effects, event);
            }
            16 if is_free && !is_plugged && self.random.one_in(3) => {
                let now = self.moment();
                self.front.notify(
                    now,
                    &mut self.caller.effects,
                    SchedulerEvent::IoContextExited(IoContextId(number as u32)),
                );
            }
            _ if self.habits.slow && !self.random.one_in(4) => {}
            _ => self.complete_one(),
        }
        self.carry_out();
        self.look_after_departure();
    }

    /// Writers are held up because too much is dirty, or go on.
    fn dirty(&mut self) {
        let is_held_up = self.random.one_in(2);
        self.front.set_dirty_throttled(self.now, is_held_up);
    }

    fn flush(&mut self, number: usize) {
        self.of_task(number, |front, cx, submitter| submitter.unplug(front, cx));
    }

    /// A file of `queue/` is written.
    fn poll_queue_writes(&mut self) {
        let mut schedulers = if self.front.is_legacy() { LEGACY_SCHEDULERS.to_vec() } else { SCHEDULERS.to_vec() };
        if self.is_outside_linux {
            // Those that need classes or a transport may be refused.
            schedulers.extend(OUTSIDE_LINUX.map(|row| row.name));
        }
        let (file, text) = match self.random.below(9) {
            0..3 => ("scheduler".to_owned(), self.random.pick(&schedulers).to_owned()),
            3 => {
                // Maps of many words, too.
                let count = if self.random.one_in(4) { 1024 + self.random.below(1024) } else { self.random.below(40) };
                ("nr_requests".to_owned(), count.to_string())
            }
            4 => ("nomerges".to_owned(), self.random.below(3).to_string()),
            5 => ("write_cache".to_owned(), self.random.pick(&["write back", "write through"]).to_owned()),
            6 if !self.front.is_legacy() => {
                ("wbt_lat_usec".to_owned(), self.random.pick(&["-1", "0", "50", "100000"]).to_owned())
            }
            7 => ("rotational".to_owned(), self.random.below(2).to_string()),
            _ => {
                let tunables = self.front.tunables();
                if tunables.is_empty() {
                    return;
                }
                let tunable = tunables[self.random.below(tunables.len() as u64) as usize];
                // bfq with the greatest slice_idle waits for longer than a load lasts, as it was told to.
                let takes_any = OUTSIDE_LINUX.iter().any(|row| row.name == self.front.scheduler());
                let text = if takes_any { self.text_for(tunable) } else { self.random.below(20).to_string() };
                (format!("iosched/{}", tunable.name), text)
            }
        };
        let cpu = self.some_cpu();
        let before = self.front.attribute(&file);
        match self.call(cpu, |front, cx| front.begin_change(cx, &file, &text)) {
            Ok(Some(change)) => {
                let poll_at = change.poll_interval().map(|after| self.now + after);
                self.change = Some((change, poll_at));
            }
            Ok(None) => {}
            Err(error) => assert_eq!(self.front.attribute(&file), before, "{file} was refused: {error}"),
        }
        self.follow();
    }

    fn poll_change(&mut self) {
        let Some((change, poll_at)) = self.change.take() else { return };
        if poll_at.is_some_and(|at| at > self.now) {
            self.change = Some((change, poll_at));
            return;
        }
        let cpu = self.some_cpu();
        match self.call(cpu, |front, cx| front.poll_change(cx, &change)) {
            Ok(Step::Done) => self.follow(),
            Ok(Step::More) => {
                let poll_at = change.poll_interval().map(|after| self.now + after);
                self.change = Some((change, poll_at));
            }
            // The device lacks the classes or the transport that the scheduler needs, so the queue keeps its old one.
            Err(AttributeError::Failed(_)) if self.is_outside_linux => {}
            Err(error) => panic!("{}: {error}", change.file()),
        }
    }

    // --- the device ---

    /// The device is through with a request: its budget is free, and the queue that was short of it runs again.
    fn some_in_flight(&mut self) -> Option<Rq> {
        let rq = self.device.take_one(&mut self.random)?;
        let has_budget = self.front.is_legacy() || self.front.generation().budget;
        if self.device.release(has_budget) && !self.front.is_legacy() {
            self.run_all_later();
        }
        Some(rq)
    }

    fn complete_one(&mut self) {
        let Some(rq) = self.some_in_flight() else { return };
        let status = if self.random.one_in(20) { Status::Medium } else { Status::Ok };
        let cpu = self.some_cpu();
        self.call(cpu, |front, cx| front.complete(cx, rq, status));
        if self.change.as_ref().is_some_and(|(_, poll_at)| poll_at.is_none()) {
            self.carry_out();
            self.poll_change();
        }
    }

    fn give_back(&mut self) {
        let Some(mut rq) = self.some_in_flight() else { return };
        if self.random.one_in(3) && !self.front.is_legacy() {
            rq.marks.set(Marks::DONTPREP);
        }
        let cpu = self.some_cpu();
        self.call(cpu, |front, cx| front.requeue(cx, rq));
    }

    // --- time ---

    /// Time passes: what was delayed comes due.
    fn later(&mut self) {
        self.now += Nanos::from_millis(3);
        self.carry_out();
        self.poll_change();
    }

    fn run_all_later(&mut self) {
        let cpu = self.some_cpu();
        self.agenda.run_all(&self.front, cpu, RESOURCE_DELAY, &mut self.now);
    }

    /// Carries out all that is due, one by one: the bounds that are watched may change with each.
    fn carry_out(&mut self) {
        for _ in 0..10_000 {
            if let Some(due) = self.agenda.take_due(self.now) {
                let cpu = if let Due::Run(hctx) = due { self.front.worker_cpu(hctx, 0) } else { self.some_cpu() };
                self.call(cpu, |front, cx| due.carry_out(front, cx));
                continue;
            }
            let (cpu, effects) = (self.some_cpu(), &mut self.caller.effects);
            match self.agenda.take(&self.front, cpu, effects, &mut self.now) {
                Some(Action::End { bio, .. }) => {
                    let left = &mut self.outstanding[bio.owner as usize];
                    *left = left.checked_sub(bio.sectors.max(1)).expect("no sector of a bio ends twice");
                    self.busy[bio.io_context.0 as usize] -= u64::from(bio.sectors.max(1));
                }
                Some(Action::Wake(Waiter(number))) => {
                    let number = number as usize;
                    assert!(self.tasks[number].submitter.is_parked(), "only who sleeps is woken");
                    if self.habits.departing && self.random.one_in(6) {
                        self.depart(number);
                    } else {
                        self.of_task(number, |front, cx, submitter| submitter.make_progress(front, cx));
                    }
                }
                Some(Action::TimedOut { cpu, id }) => self.call(cpu, |front, cx| front.timed_out(cx, id)),
                Some(Action::RunOther { .. }) => unreachable!("its tags are not shared"),
                Some(Action::Arbitrate(weights)) => self.check_weights(weights),
                Some(Action::MoveSubmitter { io_context, cpu }) => {
                    assert!(cpu.0 < u32::from(self.config.cpus), "there is no {cpu:?}");
                    self.tasks[io_context.0 as usize].cpu = cpu;
                }
                None if self.agenda.next_at().is_some_and(|at| at <= self.now) => {}
                None => return self.check(),
            }
        }
        panic!("effects cause effects without end");
    }

    // --- what must hold ---

    /// A drive with classes can carry out the weights that it is given.
    fn check_weights(&self, weights: Option<[u16; 3]>) {
        let Some([high, medium, low]) = weights else { return };
        let most = self.config.arbitration.expect("the drive has classes").weight_max;
        assert!(1 <= low && low <= medium && medium <= high && high <= most, "{weights:?} of {most}");
    }

    fn check(&self) {
        let spaces = if self.config.host_wide_tags { 1 } else { u32::from(self.front.hw_queues()) };
        let in_use = self.front.driver_tags_in_use();
        assert!(in_use <= self.config.queue_depth * spaces);
        let queue = match &self.front {
            AnyQueue::Legacy(queue) => queue,
            AnyQueue::Mq(queue) => {
                // (A bio that is let go because throttling is switched off is beyond all limits.)
                let throttled = queue.throttled_in_flight();
                assert!(throttled <= self.wbt_max || self.habits.host_disks, "{throttled} throttled writes");
                return;
            }
        };
        let at_device = self.device.in_flight().count() as u32;
        assert_eq!((queue.in_flight(), in_use), (at_device, at_device));
        if self.tagging != Tagging::Driver && self.config.queue_depth >= 4 {
            let is_async = |rq: &&Rq| !is_sync(rq.op, rq.flags) && rq.op != Op::Flush;
            let count = self.device.in_flight().filter(is_async).count() as u32;
            assert!(count <= self.config.queue_depth - 2, "the last two tags are for sync I/O");
        }
    }

    /// The load ends: everything is served.
    pub fn finish(&mut self) {
        for _ in 0..20_000 {
            for number in 0..self.tasks.len() {
                if !self.tasks[number].submitter.is_parked() {
                    self.flush(number);
                    self.carry_out();
                }
            }
            let quiet = self.device.in_flight().next().is_none()
                && self.change.is_none()
                && self.tasks.iter().all(|task| !task.submitter.is_parked() && !task.submitter.is_plugged());
            if quiet && (self.front.requests_in_use() == 0 || self.agenda.next_at().is_none()) {
                return;
            }
            self.complete_one();
            self.carry_out();
            self.look_after_departure();
            if self.config.kernel <= Kernel::V4_12 {
                // bfq of 4.12 may stand still until something is inserted (BFQ-123).
                self.run_all_later();
            }
            self.later();
            self.carry_out();
        }
        panic!(
            "it does not end: {} requests, {} at the device, {} sleepers, change {:?}",
            self.front.requests_in_use(),
            self.device.in_flight().count(),
            self.tasks.iter().filter(|task| task.submitter.is_parked()).count(),
            self.change
        );
    }

    pub fn check_end(&self) {
        assert_eq!(self.front.requests_in_use(), 0, "requests are stuck");
        assert_eq!(self.front.driver_tags_in_use(), 0, "driver tags are stuck");
        if let AnyQueue::Mq(queue) = &self.front {
            assert_eq!(queue.throttled_in_flight(), 0, "what has ended no longer counts");
        }
        assert!(self.outstanding.iter().all(|&sectors| sectors == 0), "every bio has ended");
        let events = &self.probe.0;
        assert_eq!(events.issued, events.completed + events.returned);
        assert_eq!(events.allocated, events.ended + events.absorbed, "each request ends once, or joins another");
    }

    /// How many processes have departed.
    pub fn departures(&self) -> u64 {
        self.departures
    }

    /// How often a driver was notified that a request took too long.
    pub fn timeouts(&self) -> u64 {
        self.device.timeouts
    }

    /// What was issued, in order, and how many bios there were.
    pub fn into_issued(self) -> (Vec<u64>, u64) {
        (self.device.issued, self.outstanding.len() as u64)
    }
}
