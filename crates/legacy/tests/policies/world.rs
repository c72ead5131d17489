//! A scheduler, the processes that use it, and a model that knows where each request is.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Limits, Op, PriorityClass};
use hoistway_blk::elevator::Elevator;
use hoistway_blk::ground::{
    CgroupId, CpuId, HctxId, Instant, IoContextId, Kernel, Local, Nanos, NoMeter, Now, RqId, Sector,
};
use hoistway_blk::policy::{ElevatorCx, Place, RequestedActions, SchedulerEvent};
use hoistway_blk::request::{CpuMap, Marks, MergeRules, Merging, RequestPool, Rq};
use hoistway_blk::schedulers::{Attachment, Domain};
use hoistway_blk::watch::{Event, Probe};
use hoistway_legacy::all_schedulers;

use crate::support::Random;
use crate::support::bounds::Bounds;

const SLOTS: u32 = 48;
const PROCESSES: usize = 6;
const CGROUPS: u64 = 4;

/// A scheduler of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub scheduler: &'static str,
    pub kernel: Kernel,
}

impl Subject {
    /// Every scheduler on every kernel that has it.
    pub fn all() -> Vec<Subject> {
        let modern = ["mq-deadline", "kyber", "bfq"];
        let legacy = ["noop", "deadline", "cfq"];
        let on_all = modern.iter().flat_map(|&scheduler| Kernel::EXAMPLES.map(|kernel| Subject { scheduler, kernel }));
        let on_old = legacy
            .iter()
            .flat_map(|&scheduler| [Kernel::V4_4, Kernel::V4_19].map(|kernel| Subject { scheduler, kernel }));
        on_all.chain(on_old).collect()
    }

    /// Whether a waiting request is served after a number of others that its rules bound.
    pub fn bounds_waiting(&self) -> bool {
        matches!(self.scheduler, "mq-deadline" | "deadline" | "kyber")
    }

    fn is_legacy(&self) -> bool {
        matches!(self.scheduler, "noop" | "deadline" | "cfq")
    }

    fn elevator(&self, rotational: bool, random: &mut Random) -> Elevator<Local> {
        let generation = &self.kernel.generation();
        let has_actuators = self.scheduler == "bfq" && random.one_in(4);
        let limits = Limits {
            rotational,
            actuators: if has_actuators { vec![Sector(700), Sector(1400)] } else { Vec::new() },
            ..Limits::default()
        };
        let queue = Attachment {
            generation,
            limits: &limits,
            nr_requests: SLOTS,
            default_nr_requests: SLOTS,
            async_depth: SLOTS,
            queue_depth: SLOTS,
            capacity: SLOTS,
            arbitration: None,
            transport: None,
            seed: 0,
            now: generation.hz.now(Instant::ZERO),
        };
        let schedulers = all_schedulers();
        let row = schedulers.find(self.scheduler).expect("a scheduler");
        Elevator::new(&schedulers, row, &queue, &CpuMap::of_one_type(&[HctxId(0)]))
    }
}

/// A process as the block layer sees it.
#[derive(Clone, Copy)]
struct Process {
    ioprio: IoPriority,
    cgroup: CgroupId,
}

pub struct World {
    subject: Subject,
    elevator: Elevator<Local>,
    rules: MergeRules,
    pool: RequestPool<Local>,
    free: Vec<RqId>,
    random: Random,
    pub now: Instant,
    /// The nanosecond clock of a submitter's plug, behind the real one.
    plugged: Option<Instant>,
    timer: Option<Instant>,
    processes: [Process; PROCESSES],
    /// Cgroups that exist, besides the root.
    cgroups: BTreeSet<u32>,
    next_sector: u64,
    /// Requests that the scheduler has.
    inside: BTreeSet<RqId>,
    /// Requests that came out and have not ended.
    out: BTreeMap<RqId, Rq>,
    /// All that came out, in order.
    pub given_out: Vec<u32>,
    bounds: Bounds,
}

impl World {
    pub fn new(seed: u64, subject: Subject) -> Self {
        let mut random = Random(seed);
        let rotational = random.one_in(2);
        let merging = random.pick(&[Merging::Full, Merging::Full, Merging::Simple]);
        let limits = Limits { max_sectors: 64, rotational, ..Limits::default() };
        let process = Process { ioprio: IoPriority::UNSET, cgroup: CgroupId::ROOT };
        let mut world = World {
            bounds: Bounds::new(subject.kernel, false, false),
            elevator: subject.elevator(rotational, &mut random),
            rules: MergeRules::new(&subject.kernel.generation(), limits, merging),
            pool: RequestPool::new(SLOTS),
            free: (0..SLOTS).rev().map(RqId).collect(),
            now: Instant(random.below(1 << 40)),
            plugged: None,
            timer: None,
            processes: [process; PROCESSES],
            cgroups: BTreeSet::new(),
            next_sector: 0,
            inside: BTreeSet::new(),
            out: BTreeMap::new(),
            given_out: Vec::new(),
            random,
            subject,
        };
        world.follow();
        world
    }

    /// What is promised to those that wait may have changed.
    fn follow(&mut self) {
        let elevator = &self.elevator;
        self.bounds.follow(self.subject.scheduler, &|name| elevator.tunable(name).ok());
    }

    fn moment(&self) -> Now {
        let real = self.subject.kernel.generation().hz.now(self.now);
        Now { at: self.plugged.unwrap_or(real.at), ..real }
    }

    fn watch(&mut self, event: Event<'_>) {
        if let Some(kyber) = self.elevator.as_kyber() {
            self.bounds.set_depths(Domain::ALL.map(|domain| kyber.depth(domain)));
        }
        self.bounds.event(self.moment(), CpuId(0), event);
    }

    /// Something happens.
    pub fn act(&mut self) {
        match self.random.below(32) {
            0..10 => self.submit(),
            10..16 => {
                for _ in 0..=self.random.below(3) {
                    if self.give_out(HctxId(0)).is_none() {
                        break;
                    }
                }
            }
            16..22 => self.finish_some(),
            22 => self.requeue_some(),
            23..26 => self.pass(),
            26 => self.toggle_plug_clock(),
            27 => self.process_changes(),
            28 => self.cgroup_changes(),
            29 => self.write_some_tunable(),
            30 if self.random.one_in(4) => {
                let rotational = self.random.one_in(2);
                self.call(|world, cx| world.elevator.notify(&NoMeter, cx, SchedulerEvent::Rotational(rotational)));
            }
            _ => self.fire_timer_if_due(),
        }
        self.check();
    }

    fn call<R>(&mut self, body: impl FnOnce(&mut World, &mut ElevatorCx<'_>) -> R) -> R {
        let (mut requested, mut freed) = (RequestedActions::default(), Vec::new());
        let now = self.moment();
        let answer = body(self, &mut ElevatorCx { now, cpu: CpuId(0), requested: &mut requested, freed: &mut freed });
        if requested.cancel_timer {
            self.timer = None;
        }
        self.timer = requested.set_timer.or(self.timer);
        self.take_back(freed);
        answer
    }

    /// Since 6.9 the clock of the submitter stands still under its plug; others see the real one.
    fn toggle_plug_clock(&mut self) {
        let quirk = matches!(self.subject.kernel, Kernel::V6_12 | Kernel::V6_18) && !self.subject.is_legacy();
        self.plugged = if self.plugged.is_none() && quirk { Some(self.now) } else { None };
    }

    fn unplugged<R>(&mut self, body: impl FnOnce(&mut World) -> R) -> R {
        let plugged = self.plugged.take();
        let answer = body(self);
        self.plugged = plugged;
        answer
    }

    // --- the way in ---

    fn bio(&mut self) -> Bio {
        let who = self.random.below(PROCESSES as u64) as usize;
        let Process { ioprio, cgroup } = self.processes[who];
        let op = self.random.pick(&[Op::Read, Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard]);
        let sync = self.random.pick(&[BioFlags::NONE, BioFlags::SYNC]);
        let more = self.random.pick(&[BioFlags::NONE, BioFlags::NONE, BioFlags::NONE, BioFlags::META, BioFlags::PRIO]);
        let longest = if self.random.one_in(5) { 64 } else { 12 };
        let sectors = 1 + self.random.below(longest) as u32;
        if self.random.one_in(3) {
            self.next_sector = self.random.below(2000);
        }
        // Often right behind the one before, or right in front of it.
        let sector = if self.random.one_in(4) {
            self.next_sector.saturating_sub(u64::from(sectors) + 8)
        } else {
            self.next_sector
        };
        self.next_sector = sector + u64::from(sectors);
        let bio = Bio::new(op, Sector(sector), sectors);
        Bio { flags: sync.with(more), ioprio, cgroup, io_context: IoContextId(who as u32), ..bio }
    }

    /// A bio joins a request that is inside, or becomes one.
    fn submit(&mut self) {
        let mut bio = Some(self.bio());
        if self.random.one_in(2) {
            self.call(|world, cx| world.elevator.merge_bio(&NoMeter, cx, &world.rules, &mut bio));
        }
        if let Some(bio) = bio {
            self.insert(bio);
        }
    }

    fn allocate(&mut self, bio: Bio) -> Option<Rq> {
        self.call(|world, cx| {
            world.elevator.limit_depth(&NoMeter, cx, &bio);
            world.elevator.with_policy(&NoMeter, cx, |policy, cx| {
                policy.on_bio(cx, &bio);
                if let Some(hooks) = policy.legacy_hooks() {
                    hooks.may_queue(cx, &bio);
                }
            });
        });
        let mut rq = self.pool.take(self.free.pop()?);
        rq.found(bio, self.now);
        rq.marks.set(Marks::USES_ELEVATOR);
        self.call(|world, cx| world.elevator.prepare(&NoMeter, cx, &rq));
        self.watch(Event::GetRq(&rq));
        Some(rq)
    }

    fn insert(&mut self, bio: Bio) {
        let Some(rq) = self.allocate(bio) else { return };
        if self.subject.scheduler != "kyber" && self.random.one_in(20) {
            // It is absorbed in its plug by another.
            self.call(|world, cx| {
                world.elevator.with_policy(&NoMeter, cx, |policy, cx| {
                    policy.on_arrived(cx, &rq);
                    policy.on_dropped(cx, rq.id());
                });
            });
            self.watch(Event::End(&rq));
            self.put(rq);
            return;
        }
        self.enter(rq, Place::Sorted);
    }

    fn enter(&mut self, rq: Rq, place: Place) {
        assert!(self.inside.insert(rq.id()), "a request is inside once");
        self.watch(Event::Insert(&rq));
        self.call(|world, cx| world.elevator.insert(&NoMeter, cx, &world.rules, std::iter::once(rq), place));
    }

    /// A request that can join no other.
    pub fn insert_alone(&mut self, bio: Bio) -> Option<RqId> {
        let rq = self.allocate(Bio { flags: bio.flags.with(BioFlags::NOMERGE), ..bio })?;
        let id = rq.id();
        self.enter(rq, Place::Sorted);
        Some(id)
    }

    /// Requests that others have absorbed.
    fn take_back(&mut self, freed: Vec<Rq>) {
        for rq in freed {
            assert!(self.inside.remove(&rq.id()), "only what is inside is absorbed");
            if rq.marks.contains(Marks::INSERTED) {
                self.call(|world, cx| world.elevator.finish(&NoMeter, cx, rq.id()));
            }
            self.watch(Event::Absorbed(&rq));
            self.put(rq);
        }
    }

    fn put(&mut self, rq: Rq) {
        self.free.push(rq.id());
        self.pool.put(rq);
    }

    // --- the way out ---

    /// Asks for a request.
    pub fn give_out(&mut self, hctx: HctxId) -> Option<RqId> {
        let (rq, reason) = self.call(|world, cx| world.elevator.dispatch(&NoMeter, cx, hctx));
        let rq = rq?;
        self.watch(Event::Dispatch { hctx, rq: Some(&*rq), reason });
        let id = rq.id();
        assert!(self.inside.remove(&id), "what comes out was inside");
        if self.subject.is_legacy() {
            self.start(id);
        }
        self.given_out.push(id.0);
        self.out.insert(id, rq);
        Some(id)
    }

    /// A single queue's driver looks at a request.
    fn start(&mut self, id: RqId) {
        self.call(|world, cx| {
            world.elevator.with_policy(&NoMeter, cx, |policy, cx| {
                if let Some(hooks) = policy.legacy_hooks() {
                    hooks.on_started(cx, id);
                }
            });
        });
    }

    /// A request that was given out ends.
    pub fn finish(&mut self, id: RqId) {
        let rq = self.out.remove(&id).expect("it is out");
        self.unplugged(|world| {
            world.call(|world, cx| {
                world.elevator.on_completed(cx, &rq);
                world.elevator.finish(&NoMeter, cx, id);
            });
        });
        self.watch(Event::End(&rq));
        self.put(rq);
    }

    fn some_out(&mut self) -> Option<RqId> {
        let count = self.out.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize).and_then(|at| self.out.keys().nth(at).copied())
    }

    fn finish_some(&mut self) {
        if let Some(id) = self.some_out() {
            self.finish(id);
        }
    }

    /// The driver gives a request back: legacy queues keep it before the scheduler, others insert it at the head.
    fn requeue_some(&mut self) {
        let Some(id) = self.some_out() else { return };
        self.unplugged(|world| {
            if world.subject.is_legacy() {
                world.call(|world, cx| {
                    world.elevator.with_policy(&NoMeter, cx, |policy, cx| policy.on_requeued(cx, id));
                });
                world.start(id);
                return;
            }
            world.call(|world, cx| world.elevator.on_requeued(&NoMeter, cx, id));
            let mut rq = world.out.remove(&id).expect("it is out");
            rq.marks.clear(Marks::STARTED);
            world.watch(Event::Requeue(&rq));
            world.enter(rq, Place::Head);
        });
    }

    // --- time ---

    fn pass(&mut self) {
        let span = match self.random.below(8) {
            0..4 => self.random.below(300_000),
            4..7 => self.random.below(20_000_000),
            _ => self.random.below(3_000_000_000),
        };
        let end = self.now + Nanos(span);
        while let Some(due) = self.timer.filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.fire_timer();
        }
        self.now = end;
    }

    fn fire_timer_if_due(&mut self) {
        if self.timer.is_some_and(|due| due <= self.now) {
            self.fire_timer();
        }
    }

    fn fire_timer(&mut self) {
        self.timer = None;
        self.unplugged(|world| world.call(|world, cx| world.elevator.on_timer(&NoMeter, cx)));
    }

    // --- what else can happen ---

    fn process_changes(&mut self) {
        let who = self.random.below(PROCESSES as u64) as usize;
        let id = IoContextId(who as u32);
        match self.random.below(3) {
            0 => self.call(|world, cx| {
                world.elevator.notify(&NoMeter, cx, SchedulerEvent::IoContextExited(id));
            }),
            1 => {
                let classes = [PriorityClass::BestEffort, PriorityClass::RealTime, PriorityClass::Idle];
                let ioprio = IoPriority::new(self.random.pick(&classes), self.random.below(8) as u8);
                let carried = self.random.one_in(2);
                self.processes[who].ioprio = if carried { ioprio } else { IoPriority::UNSET };
                self.call(|world, cx| {
                    world.elevator.notify(&NoMeter, cx, SchedulerEvent::Priority { io_context: id, ioprio });
                });
            }
            _ => {
                let known: Vec<u32> = [0].into_iter().chain(self.cgroups.iter().copied()).collect();
                let cgroup = CgroupId(self.random.pick(&known));
                self.processes[who].cgroup = cgroup;
                if self.random.one_in(2) {
                    self.call(|world, cx| {
                        world.elevator.notify(&NoMeter, cx, SchedulerEvent::Moved { io_context: id, cgroup });
                    });
                }
            }
        }
    }

    fn cgroup_changes(&mut self) {
        let id = 1 + self.random.below(CGROUPS) as u32;
        let weight = 10 + self.random.below(990) as u16;
        let cgroup = CgroupId(id);
        if !self.cgroups.contains(&id) {
            // Below the root, or below the first one, which lives as long as the device.
            let parent = if id > 2 && self.cgroups.contains(&1) { CgroupId(1) } else { CgroupId::ROOT };
            self.cgroups.insert(id);
            self.call(|world, cx| {
                world.elevator.notify(&NoMeter, cx, SchedulerEvent::CgroupAdded { cgroup, parent });
            });
        } else if id != 1 && self.random.one_in(2) && self.inside_of(cgroup) == 0 {
            // Its processes leave first, as rmdir demands.
            self.cgroups.remove(&id);
            for process in &mut self.processes {
                if process.cgroup == cgroup {
                    process.cgroup = CgroupId::ROOT;
                }
            }
            self.call(|world, cx| {
                world.elevator.notify(&NoMeter, cx, SchedulerEvent::CgroupRemoved(cgroup));
            });
        } else {
            self.call(|world, cx| {
                world.elevator.notify(&NoMeter, cx, SchedulerEvent::Weight { cgroup, weight });
                world.elevator.notify(&NoMeter, cx, SchedulerEvent::LeafWeight { cgroup, weight: 1010 - weight });
            });
        }
    }

    /// cfq alone knows nothing of a cgroup that is gone but has requests: its groups are its cgroups' (CFQ-71).
    fn inside_of(&self, cgroup: CgroupId) -> usize {
        if self.subject.scheduler != "cfq" {
            return 0;
        }
        let out = self.out.values().filter(|rq| rq.cgroup == cgroup).count();
        out + self.inside.len()
    }

    fn write_some_tunable(&mut self) {
        let tunables = self.elevator.tunables();
        if tunables.is_empty() {
            return;
        }
        let tunable = self.random.pick(&tunables);
        let small = self.random.below(300);
        let value = self.random.pick(&[small, small, small, 0, 1, 1_000_000]);
        self.write_tunable(tunable.name, &value.to_string());
    }

    pub fn write_tunable(&mut self, name: &str, text: &str) {
        self.call(|world, cx| {
            world.elevator.set_tunable(&NoMeter, cx, name, text).expect("a number is accepted");
        });
        self.follow();
    }

    // --- what must hold ---

    fn check(&self) {
        let has_work = self.elevator.has_work(HctxId(0));
        assert!(has_work || self.inside.is_empty(), "{} requests, and no work", self.inside.len());
        assert_eq!(self.free.len() + self.inside.len() + self.out.len(), SLOTS as usize, "each slot is somewhere");
    }

    /// Nothing new comes: everything comes out, as completions and the timer come.
    pub fn empty(&mut self) {
        self.plugged = None;
        let mut idle_rounds = 0;
        while !self.inside.is_empty() {
            self.check();
            if self.give_out(HctxId(0)).is_some() {
                idle_rounds = 0;
                continue;
            }
            idle_rounds += 1;
            assert!(idle_rounds < 1000, "{} requests do not come out", self.inside.len());
            if !self.out.is_empty() {
                self.finish_some();
            } else if self.subject.scheduler == "mq-deadline" {
                // After a cut of its expiry times requests seem to come from the future; the block layer asks again.
                self.now += Nanos::from_millis(10_000);
            } else {
                let due = self.timer.expect("with nothing out and no timer, a request must come");
                self.now = self.now.max(due);
                self.fire_timer();
            }
        }
        while !self.out.is_empty() {
            self.finish_some();
        }
        assert!(self.give_out(HctxId(0)).is_none(), "an empty scheduler gives nothing out");
        // Now that nothing is left its processes may end.
        for who in 0..PROCESSES {
            self.call(|world, cx| {
                world.elevator.notify(&NoMeter, cx, SchedulerEvent::IoContextExited(IoContextId(who as u32)));
            });
        }
        assert_eq!(self.free.len(), SLOTS as usize);
    }
}
