//! A bench for schedulers, those behind one lock and those with locks of their own: a scheduler with the requests that it decides on, a
//! device that holds what it dispatches, and random calls.

use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::limits::Limits;
use crate::bio::{Bio, BioFlags, Op};
use crate::ground::ids::{CgroupId, CpuId, HctxId, IoContextId, RqId, Sector};
use crate::ground::kernel::Kernel;
use crate::ground::meter::NoMeter;
use crate::ground::sharing::Local;
use crate::ground::time::{Hz, Instant};
use crate::ground::tunables::{StoreError, Tunable, value_of};
use crate::policy::{Concurrent, ElevatorCx, Place, RequestStore, RequestedActions, Scheduler, SchedulerEvent};
use crate::request::merge::{Edge, MergeRules, Merging};
use crate::request::{RequestPool, Rq};
use crate::watch::reason::Reason;

pub(super) const CAPACITY: u32 = 64;

/// A scheduler as the bench calls it.
pub(super) trait Tested {
    fn insert(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, rq: Rq, place: Place);
    fn merge_bio(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge>;
    fn dispatch(&mut self, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason);
    fn finish(&mut self, cx: &mut ElevatorCx<'_>, id: RqId);
    fn on_requeued(&mut self, cx: &mut ElevatorCx<'_>, id: RqId);
    fn on_event(&mut self, cx: &mut ElevatorCx<'_>, event: SchedulerEvent);
    fn on_timer(&mut self, cx: &mut ElevatorCx<'_>);
    fn has_work(&self) -> bool;
    fn grow(&mut self, capacity: u32);
    fn tunables(&self) -> Vec<(&'static Tunable, i128)>;
    fn set_tunable(&mut self, cx: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError>;
}

impl<S: Scheduler> Tested for RequestStore<S> {
    fn insert(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, rq: Rq, place: Place) {
        self.insert(cx, rules, rq, place);
    }
    fn merge_bio(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        self.merge_bio(cx, rules, bio)
    }
    fn dispatch(&mut self, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        self.dispatch(cx, hctx)
    }
    fn finish(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        self.call(cx, |policy, cx| policy.finish(cx, id));
    }
    fn on_requeued(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        self.call(cx, |policy, cx| policy.on_requeued(cx, id));
    }
    fn on_event(&mut self, cx: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        self.call(cx, |policy, cx| policy.on_event(cx, event));
    }
    fn on_timer(&mut self, cx: &mut ElevatorCx<'_>) {
        self.call(cx, |policy, cx| policy.on_timer(cx));
    }
    fn has_work(&self) -> bool {
        self.policy().has_work()
    }
    fn grow(&mut self, capacity: u32) {
        self.grow(capacity);
    }
    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        self.policy().tunables()
    }
    fn set_tunable(&mut self, cx: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        self.call(cx, |policy, cx| policy.set_tunable(cx, name, text))
    }
}

/// A scheduler with locks of its own.
pub(super) struct Unserialized<C>(C);

impl<C: Concurrent<Local>> Tested for Unserialized<C> {
    fn insert(&mut self, cx: &mut ElevatorCx<'_>, _: &MergeRules, rq: Rq, place: Place) {
        self.0.insert(&NoMeter, cx, &mut std::iter::once(rq), place);
    }
    fn merge_bio(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        self.0.merge_bio(&NoMeter, cx, rules, bio)
    }
    fn dispatch(&mut self, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        self.0.dispatch(&NoMeter, cx, hctx)
    }
    fn finish(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        self.0.finish(&NoMeter, cx, id);
    }
    fn on_requeued(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        self.0.on_requeued(&NoMeter, cx, id);
    }
    fn on_event(&mut self, cx: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        self.0.on_event(&NoMeter, cx, event);
    }
    fn on_timer(&mut self, cx: &mut ElevatorCx<'_>) {
        self.0.on_timer(&NoMeter, cx);
    }
    fn has_work(&self) -> bool {
        self.0.has_work(HctxId(0))
    }
    fn grow(&mut self, capacity: u32) {
        self.0.grow(capacity);
    }
    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        self.0.tunables()
    }
    fn set_tunable(&mut self, cx: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        self.0.set_tunable(cx, name, text)
    }
}

pub(super) struct Bench<T: Tested> {
    tested: T,
    rules: MergeRules,
    pool: RequestPool<Local>,
    free: Vec<u32>,
    /// Dispatched requests, in order.
    pub(super) at_device: Vec<Rq>,
    /// Actions that the last call requested.
    pub(super) requested: RequestedActions,
    pub(super) at: Instant,
    /// Requests that others have absorbed.
    pub(super) absorbed: Vec<RqId>,
    /// When the policy's timer expires.
    pub(super) timer: Option<Instant>,
}

impl<S: Scheduler> Bench<RequestStore<S>> {
    /// Of a policy.
    pub(super) fn new(policy: S) -> Self {
        Bench::with_tested(RequestStore::new(policy, CAPACITY))
    }

    pub(super) fn policy(&self) -> &S {
        self.tested.policy()
    }
}

impl<C: Concurrent<Local>> Bench<Unserialized<C>> {
    /// Of a scheduler with locks of its own.
    pub(super) fn of_concurrent(scheduler: C) -> Self {
        Bench::with_tested(Unserialized(scheduler))
    }

    pub(super) fn scheduler(&self) -> &C {
        &self.tested.0
    }
}

impl<T: Tested> Bench<T> {
    fn with_tested(tested: T) -> Self {
        let limits = Limits { max_sectors: 1024, write_cache: true, fua: true, ..Limits::default() };
        Bench {
            tested,
            rules: MergeRules::new(&Kernel::V6_18.generation(), limits, Merging::Full),
            pool: RequestPool::new(CAPACITY),
            free: (0..CAPACITY).rev().collect(),
            at_device: Vec::new(),
            requested: RequestedActions::default(),
            at: Instant::ZERO,
            absorbed: Vec::new(),
            timer: None,
        }
    }

    pub(super) fn with(mut self, tunable: &str, text: &str) -> Self {
        self.set(tunable, text).expect("a valid value");
        self
    }

    fn call<R>(&mut self, body: impl FnOnce(&mut T, &mut ElevatorCx<'_>, &MergeRules) -> R) -> R {
        self.requested = RequestedActions::default();
        let mut freed = Vec::new();
        let now = Hz::DEFAULT.now(self.at);
        let mut cx = ElevatorCx { now, cpu: CpuId(0), requested: &mut self.requested, freed: &mut freed };
        let result = body(&mut self.tested, &mut cx, &self.rules);
        if let Some(at) = self.requested.set_timer {
            self.timer = Some(at);
        }
        for rq in freed.drain(..) {
            let id = rq.id();
            let mut cx = ElevatorCx { now, cpu: CpuId(0), requested: &mut self.requested, freed: &mut Vec::new() };
            self.tested.finish(&mut cx, id);
            self.absorbed.push(id);
            self.free.push(id.0);
            self.pool.put(rq);
        }
        result
    }

    pub(super) fn set(&mut self, tunable: &str, text: &str) -> Result<(), StoreError> {
        self.call(|tested, cx, _| tested.set_tunable(cx, tunable, text))
    }

    pub(super) fn shown(&self, tunable: &str) -> i128 {
        value_of(&self.tested.tunables(), tunable).expect("a tunable")
    }

    pub(super) fn tell(&mut self, event: SchedulerEvent) {
        self.call(|tested, cx, _| tested.on_event(cx, event));
    }

    /// The timer expires.
    pub(super) fn fire(&mut self) {
        if let Some(at) = self.timer.take() {
            self.at = self.at.max(at);
            self.call(|tested, cx, _| tested.on_timer(cx));
        }
    }

    /// Inserts a request on a hardware queue, which starts now.
    pub(super) fn insert_on(&mut self, hctx: u16, bio: Bio) -> RqId {
        self.insert_at(hctx, bio, self.at)
    }

    pub(super) fn insert_at(&mut self, hctx: u16, bio: Bio, start: Instant) -> RqId {
        let id = RqId(self.free.pop().expect("a free slot"));
        let mut rq = self.pool.take(id);
        rq.found(bio, start);
        rq.hctx = HctxId(hctx);
        self.call(|tested, cx, rules| tested.insert(cx, rules, rq, Place::Sorted));
        id
    }

    pub(super) fn insert(&mut self, bio: Bio) -> RqId {
        self.insert_on(0, bio)
    }

    pub(super) fn merge(&mut self, bio: Bio) -> Option<Edge> {
        let mut bio = Some(bio);
        self.call(|tested, cx, rules| tested.merge_bio(cx, rules, &mut bio))
    }

    pub(super) fn dispatch_to(&mut self, hctx: u16) -> (Option<RqId>, Reason) {
        let (rq, reason) = self.call(|tested, cx, _| tested.dispatch(cx, HctxId(hctx)));
        let id = rq.as_ref().map(|rq| rq.id());
        self.at_device.extend(rq);
        (id, reason)
    }

    /// Dispatches all requests that can be dispatched now.
    pub(super) fn dispatch(&mut self) -> Vec<RqId> {
        std::iter::from_fn(|| self.dispatch_to(0).0).collect()
    }

    /// Ends one of the requests at the device.
    pub(super) fn complete(&mut self, index: usize) {
        let rq = self.at_device.remove(index);
        let id = rq.id();
        self.pool.put(rq);
        self.free.push(id.0);
        self.call(|tested, cx, _| tested.finish(cx, id));
    }

    /// The device gives a request back.
    pub(super) fn requeue(&mut self, index: usize) -> RqId {
        let rq = self.at_device.remove(index);
        let id = rq.id();
        self.call(|tested, cx, rules| {
            tested.on_requeued(cx, id);
            tested.insert(cx, rules, rq, Place::Head);
        });
        id
    }

    pub(super) fn has_work(&self) -> bool {
        self.tested.has_work()
    }

    pub(super) fn waiting(&self) -> usize {
        CAPACITY as usize - self.free.len() - self.at_device.len()
    }

    /// The order in which everything goes, each request ending before the next is asked for.
    pub(super) fn drain(&mut self) -> Vec<RqId> {
        let mut order = Vec::new();
        loop {
            while !self.at_device.is_empty() {
                self.complete(0);
            }
            match self.dispatch_to(0).0 {
                Some(id) => order.push(id),
                None if self.timer.is_some() => self.fire(),
                None => break,
            }
        }
        assert!(self.waiting() == 0 && !self.has_work(), "{} wait", self.waiting());
        order
    }
}

/// A pseudo-random number generator.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A bio of one of some processes and groups, with any operation, class and flag that schedulers look at; many are neighbours.
    pub(super) fn bio(&mut self, with_groups: bool) -> Bio {
        let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard][self.below(5) as usize];
        let flags = [BioFlags::NONE, BioFlags::NONE, BioFlags::SYNC, BioFlags::FUA][self.below(4) as usize];
        let class = [PriorityClass::None, PriorityClass::RealTime, PriorityClass::BestEffort, PriorityClass::Idle]
            [self.below(4) as usize];
        Bio {
            flags: if op == Op::Write { flags } else { BioFlags::NONE },
            ioprio: IoPriority::new(class, self.below(8) as u8),
            io_context: IoContextId(self.below(5) as u32),
            cgroup: CgroupId(if with_groups { self.below(4) as u32 } else { 0 }),
            ..Bio::new(op, Sector(8 * self.below(200)), 8 << self.below(4))
        }
    }
}

/// Random calls: insertions, merges, dispatches, completions, requeues, tunables, events, and now and then a change of depth while all
/// is frozen. Each request ends once; where requests wait and the device has none there is work; a call that makes work where there was
/// none asks for a run. `check` is called after each.
pub(super) fn random_calls<T: Tested>(mut bench: Bench<T>, seed: u64, check: impl Fn(&Bench<T>)) {
    let mut draws = Draws(seed);
    let with_groups = draws.below(2) == 1;
    let mut inserted = 0_usize;
    let mut ended = 0_usize;
    for _ in 0..600 {
        bench.at.0 += draws.below(300_000);
        if bench.timer.is_some_and(|at| at <= bench.at) {
            let could_work = bench.has_work();
            bench.fire();
            assert!(could_work || !bench.has_work() || bench.requested.run_queues, "the timer runs the queues");
        }
        let could_work = bench.has_work();
        let mut may_make_work = true;
        match draws.below(16) {
            0..5 if !bench.free.is_empty() => {
                let bio = draws.bio(with_groups);
                bench.insert_on(draws.below(4) as u16, bio);
                inserted += 1;
                // The inserting process runs the queue.
                may_make_work = false;
            }
            5 | 6 => {
                let bio = draws.bio(with_groups);
                bench.merge(bio);
            }
            7..10 if !bench.at_device.is_empty() => {
                bench.complete(draws.below(bench.at_device.len() as u64) as usize);
                ended += 1;
            }
            10 if !bench.at_device.is_empty() => {
                bench.requeue(draws.below(bench.at_device.len() as u64) as usize);
                may_make_work = false;
            }
            11 if draws.below(4) == 0 => {
                let tunables = bench.tested.tunables();
                let tunable = tunables[draws.below(tunables.len() as u64) as usize].0;
                let (before, span) = (bench.shown(tunable.name), (tunable.max - tunable.min).min(1 << 40) as u64);
                let offset = match draws.below(3) {
                    0 => draws.below(span.min(8) + 1),
                    1 => draws.below(1 << 24) % (span + 1),
                    _ => span + 1,
                };
                let value = tunable.min + i128::from(offset);
                let is_valid = value <= tunable.max;
                assert_eq!(bench.set(tunable.name, &value.to_string()).is_ok(), is_valid, "{}={value}", tunable.name);
                assert!(is_valid || bench.shown(tunable.name) == before, "what is refused changes nothing");
            }
            12 => {
                let io_context = IoContextId(draws.below(5) as u32);
                let cgroup = CgroupId(1 + draws.below(3) as u32);
                let event = match draws.below(5) {
                    0 => SchedulerEvent::IoContextExited(io_context),
                    1 if with_groups => SchedulerEvent::Weight { cgroup, weight: 1 + draws.below(1000) as u16 },
                    2 if with_groups => SchedulerEvent::CgroupRemoved(cgroup),
                    3 if with_groups => SchedulerEvent::CgroupAdded { cgroup, parent: CgroupId::ROOT },
                    _ => SchedulerEvent::Rotational(draws.below(2) == 0),
                };
                bench.tell(event);
            }
            13 if draws.below(20) == 0 => {
                // Frozen: nothing comes, and all that is held back goes.
                ended += bench.at_device.len();
                ended += bench.drain().len();
                bench.tested.grow(CAPACITY);
                bench.tell(SchedulerEvent::Depths { nr_requests: 8 << draws.below(4), async_depth: None });
            }
            _ => {
                bench.dispatch_to(draws.below(4) as u16);
                may_make_work = false;
            }
        }
        if may_make_work && !could_work && bench.has_work() {
            let is_run = bench.requested.run_queues || !bench.requested.run_hctxs.is_empty();
            assert!(is_run, "nothing else would run the queues");
        }
        let waiting = bench.waiting();
        assert_eq!(inserted, ended + bench.absorbed.len() + bench.at_device.len() + waiting);
        assert!(waiting > 0 || !bench.has_work(), "there is work of nothing");
        let is_looked_at = !bench.at_device.is_empty() || bench.has_work() || bench.timer.is_some();
        assert!(waiting == 0 || is_looked_at, "{waiting} are stuck");
        check(&bench);
    }
    ended += bench.at_device.len();
    ended += bench.drain().len();
    assert_eq!(inserted, ended + bench.absorbed.len());
    assert_eq!(bench.free.len(), CAPACITY as usize);
}
