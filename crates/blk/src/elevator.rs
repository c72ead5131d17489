//! The elevator of a queue: a scheduler that many CPUs can call, or none.
//!
//! Used by: `queue`; crates `evidence`, `experiment`, `legacy`.
//! Tests: `crates/blk/src/queue/tests/`, `checks/tests/shuttle.rs`.
//!
//! Policy and locking are two subjects. A [`Scheduler`] is a policy, a single-threaded state machine;
//! [`Serialized`] puts one behind a lock; a [`Concurrent`] one has locks of its own, as [`Kyber`] has. [`Elevator`] is the choice
//! among them, an enum inside so that calls inline. A [`Steering`] policy chooses hardware queues where there is no elevator.

use std::any::Any;

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};
use crate::ground::meter::{Meter, NoMeter};
use crate::ground::sharing::{Objects, Sharing};
use crate::ground::time::Now;
use crate::ground::tunables::{StoreError, Tunable, value_of};
use crate::policy::{
    BoxedScheduler, Concurrent, ConcurrentObject, ContentionOptions, DispatchBatch, ElevatorCx, Place, PolicyCx,
    Scheduler, SchedulerEvent, Serialized, Steering, SteeringObject,
};
use crate::request::cpu_map::CpuMap;
use crate::request::merge::{Edge, MergeRules};
use crate::request::{Request, Rq};
use crate::schedulers::{ASYNC_PERCENT, Attachment, Bfq, KYBER, Kyber, MqDeadline, NONE, Policy, Registry, Row};
use crate::tags::Depth;
use crate::watch::reason::Reason;

/// The scheduler of a queue, or none.
pub struct Elevator<Sh: Sharing> {
    name: &'static str,
    kind: Kind<Sh>,
    /// The policy that chooses hardware queues, if there is one; `kind` is [`Kind::None`] then.
    steering: Option<Box<SteeringObject<Sh>>>,
}

/// The schedulers for which calls are inlined, and all others.
enum Kind<Sh: Sharing> {
    /// Requests wait in the software queues and the driver tags are the only limit.
    None,
    MqDeadline(Box<Serialized<MqDeadline, Sh>>),
    Kyber(Box<Kyber<Sh>>),
    Bfq(Box<Serialized<Bfq, Sh>>),
    Boxed(Box<Serialized<BoxedScheduler, Sh>>),
    Concurrent(Box<ConcurrentObject<Sh>>),
}

impl<Sh: Sharing> From<Kyber<Sh>> for Elevator<Sh> {
    fn from(kyber: Kyber<Sh>) -> Self {
        Elevator::of_kind(KYBER.name, Kind::Kyber(Box::new(kyber)))
    }
}

/// The scheduler without its `Send + Sync` markers.
#[inline]
fn as_concurrent<Sh: Sharing>(object: &ConcurrentObject<Sh>) -> &(dyn Concurrent<Sh> + 'static) {
    Sh::Objects::object::<dyn Concurrent<Sh>, dyn Concurrent<Sh> + Send + Sync>(object, |shared| shared)
}

macro_rules! with_scheduler {
    (
        $self:expr, $scheduler:ident => $call:expr, kyber $kyber:ident => $by_kyber:expr,
        concurrent $concurrent:ident => $by_concurrent:expr, none => $none:expr
    ) => {
        match &$self.kind {
            Kind::None => $none,
            Kind::Kyber($kyber) => $by_kyber,
            Kind::MqDeadline($scheduler) => $call,
            Kind::Bfq($scheduler) => $call,
            Kind::Boxed($scheduler) => $call,
            Kind::Concurrent(object) => {
                let $concurrent = as_concurrent::<Sh>(object);
                $by_concurrent
            }
        }
    };
}

impl<Sh: Sharing> Elevator<Sh> {
    fn of_kind(name: &'static str, kind: Kind<Sh>) -> Self {
        Elevator { name, kind, steering: None }
    }

    /// The scheduler of a row of the registry, for a queue with these CPUs and hardware queues.
    ///
    /// # Panics
    /// If the scheduler has locks of its own, and the kind of sharing is neither `Local` nor `Threads`; see
    /// [`concurrent`](Self::concurrent).
    #[must_use]
    pub fn new(schedulers: &Registry, row: &Row, queue: &Attachment<'_>, map: &CpuMap) -> Self {
        let capacity = queue.capacity;
        let kind = match schedulers.make(row, queue) {
            Policy::None => Kind::None,
            Policy::Steered(family) => {
                let steering = Some(family.of::<Sh>(map).expect("a kind of sharing that rows know"));
                return Elevator { name: row.name, kind: Kind::None, steering };
            }
            Policy::MqDeadline(config) => {
                Kind::MqDeadline(Box::new(Serialized::new(MqDeadline::new(config, capacity), capacity)))
            }
            Policy::Kyber(config) => Kind::Kyber(Box::new(Kyber::new(config, map, capacity))),
            Policy::Bfq(config) => Kind::Bfq(Box::new(Serialized::new(Bfq::new(config, capacity), capacity))),
            Policy::Boxed(policy) => Kind::Boxed(Box::new(Serialized::new(policy, capacity))),
            Policy::Concurrent(family) => {
                Kind::Concurrent(family.of::<Sh>(map).expect("a kind of sharing that rows know"))
            }
        };
        Elevator::of_kind(row.name, kind)
    }

    /// With these contention options, if it is behind one lock.
    #[must_use]
    pub fn with(self, contention_options: ContentionOptions) -> Self {
        let kind = match self.kind {
            Kind::MqDeadline(scheduler) => Kind::MqDeadline(Box::new(scheduler.with(contention_options))),
            Kind::Bfq(scheduler) => Kind::Bfq(Box::new(scheduler.with(contention_options))),
            Kind::Boxed(scheduler) => Kind::Boxed(Box::new(scheduler.with(contention_options))),
            without_lock @ (Kind::None | Kind::Kyber(_) | Kind::Concurrent(_)) => without_lock,
        };
        Elevator { kind, ..self }
    }

    /// No scheduler.
    #[must_use]
    pub fn none() -> Self {
        Elevator::of_kind(NONE.name, Kind::None)
    }

    /// A policy that is in no registry.
    #[must_use]
    pub fn custom(name: &'static str, policy: BoxedScheduler, capacity: u32) -> Self {
        Elevator::of_kind(name, Kind::Boxed(Box::new(Serialized::new(policy, capacity))))
    }

    /// A scheduler with locks of its own that no registry knows, or for another kind of sharing than those that rows know.
    #[must_use]
    pub fn concurrent(name: &'static str, scheduler: Box<ConcurrentObject<Sh>>) -> Self {
        Elevator::of_kind(name, Kind::Concurrent(scheduler))
    }

    /// The name of the scheduler; "none" if there is none.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// kyber, if that is what it is.
    #[must_use]
    pub fn as_kyber(&self) -> Option<&Kyber<Sh>> {
        match &self.kind {
            Kind::Kyber(kyber) => Some(kyber),
            Kind::Concurrent(object) => (as_concurrent::<Sh>(object) as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// The policy that chooses hardware queues, if there is one.
    #[must_use]
    pub fn steering(&self) -> Option<&(dyn Steering<Sh> + 'static)> {
        let object = self.steering.as_deref()?;
        Some(Sh::Objects::object::<dyn Steering<Sh>, dyn Steering<Sh> + Send + Sync>(object, |shared| shared))
    }

    /// The weights of the drive's classes that its policy needs, if any.
    #[must_use]
    pub fn weights(&self) -> Option<[u16; 3]> {
        self.steering()?.weights()
    }

    /// Whether requests pass no scheduler. A [steering](Self::steering) policy may choose their hardware queues.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self.kind, Kind::None)
    }

    /// Whether "run all" may run a single hardware queue.
    #[must_use]
    pub fn is_single_dispatch(&self) -> bool {
        with_scheduler!(
            self,
            s => s.needs().single_dispatch,
            kyber _kyber => false,
            concurrent c => c.is_single_dispatch(),
            none => false
        )
    }

    /// Whether it disables write-back throttling.
    #[must_use]
    pub fn disables_wbt(&self) -> bool {
        with_scheduler!(self, s => s.needs().disables_wbt, kyber _kyber => false, concurrent _c => false, none => false)
    }

    /// The smallest shallow depth it will ask for.
    #[must_use]
    pub fn min_shallow(&self) -> Option<u32> {
        with_scheduler!(
            self,
            s => s.min_shallow(),
            kyber k => k.min_shallow(),
            concurrent c => c.min_shallow(),
            none => None
        )
    }

    /// Tries to merge a bio that is submitted on `cpu` into a queued request; see [`Serialized::merge_bio`].
    #[inline]
    pub fn merge_bio(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        with_scheduler!(
            self,
            s => s.merge_bio(meter, cx, rules, bio),
            kyber k => k.merge_bio(meter, cx.cpu, rules, bio),
            concurrent c => c.merge_bio(meter, cx, rules, bio),
            none => None
        )
    }

    /// Inserts requests; see [`Serialized::insert`].
    #[inline]
    pub fn insert(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        mut list: impl Iterator<Item = Rq>,
        place: Place,
    ) {
        with_scheduler!(
            self,
            s => s.insert(meter, cx, rules, list, place),
            kyber k => k.insert(meter, list, place),
            concurrent c => c.insert(meter, cx, &mut list, place),
            none => debug_assert!(false, "without a scheduler requests go to the software queues")
        );
    }

    /// Asks for the next request for `hctx`.
    #[inline]
    pub fn dispatch(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        with_scheduler!(
            self,
            s => s.dispatch(meter, cx, hctx),
            kyber k => k.dispatch(meter, hctx),
            concurrent c => c.dispatch(meter, cx, hctx),
            none => (None, Reason::Empty)
        )
    }

    /// Whether requests are dispatched [in batches](Self::dispatch_batch).
    #[inline]
    #[must_use]
    pub fn dispatches_batches(&self) -> bool {
        with_scheduler!(
            self,
            s => s.dispatches_batches(),
            kyber _kyber => false,
            concurrent _c => false,
            none => false
        )
    }

    /// Whether the rest of a run of `hctx` is left to a later call, since this one has waited for the scheduler's lock in virtual time.
    #[inline]
    pub fn postpones_run(&self, meter: &impl Meter, hctx: HctxId) -> bool {
        with_scheduler!(
            self,
            _s => meter.postpones_run(hctx),
            kyber _kyber => false,
            concurrent _c => false,
            none => false
        )
    }

    /// Asks for requests for `hctx` under one hold of the lock; see [`Serialized::dispatch_batch`].
    #[inline(never)]
    pub fn dispatch_batch(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        hctx: HctxId,
        requests_max: u32,
        batch: &mut impl DispatchBatch,
    ) {
        with_scheduler!(
            self,
            s => s.dispatch_batch(meter, cx, hctx, requests_max, batch),
            kyber _kyber => debug_assert!(false, "it is not behind one lock"),
            concurrent _c => debug_assert!(false, "it is not behind one lock"),
            none => {}
        );
    }

    /// Whether a run of `hctx` sees work; see [`Serialized::shows_work`].
    #[inline]
    pub fn shows_work(&self, meter: &impl Meter, hctx: HctxId) -> bool {
        with_scheduler!(
            self,
            s => s.shows_work(meter),
            kyber k => k.has_work(hctx),
            concurrent c => c.has_work(hctx),
            none => false
        )
    }

    /// Whether dispatching for `hctx` is worth asking.
    #[inline]
    #[must_use]
    pub fn has_work(&self, hctx: HctxId) -> bool {
        with_scheduler!(
            self,
            s => s.has_work(),
            kyber k => k.has_work(hctx),
            concurrent c => c.has_work(hctx),
            none => false
        )
    }

    /// How many scheduler tags an allocation may use.
    #[inline]
    pub fn limit_depth(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, bio: &Bio) -> Depth {
        with_scheduler!(
            self,
            s => s.limit_depth(meter, cx, bio),
            kyber k => k.limit_depth(bio),
            concurrent c => c.limit_depth(bio),
            none => Depth::Full
        )
    }

    /// A request was allocated.
    #[inline]
    pub fn prepare(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, rq: &Request) {
        with_scheduler!(self, s => s.prepare(meter, cx, rq), kyber _kyber => {}, concurrent _c => {}, none => {});
    }

    /// A request that this scheduler manages has completed on `cpu`. Its release follows.
    #[inline]
    pub fn on_completed(&self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        match &self.kind {
            Kind::Kyber(kyber) => kyber.on_completed(cx, rq),
            Kind::Concurrent(object) => as_concurrent::<Sh>(object).on_completed(cx, rq),
            _ => {}
        }
    }

    /// A request that was inserted has been released.
    #[inline]
    pub fn finish(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_scheduler!(
            self,
            s => s.finish(meter, cx, id),
            kyber k => k.finish(meter, cx, id),
            concurrent c => c.finish(meter, cx, id),
            none => {}
        );
    }

    /// A dispatched request comes back.
    pub fn on_requeued(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_scheduler!(
            self,
            s => s.on_requeued(meter, cx, id),
            kyber k => k.on_requeued(meter, cx, id),
            concurrent c => c.on_requeued(meter, cx, id),
            none => {}
        );
    }

    /// Its timer has fired.
    pub fn on_timer(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>) {
        with_scheduler!(
            self,
            s => s.on_timer(meter, cx),
            kyber k => k.on_timer(meter, cx),
            concurrent c => c.on_timer(meter, cx),
            none => {}
        );
    }

    /// The value that it sets `queue/async_depth` to when it is attached, in percent of `nr_requests`.
    #[must_use]
    pub fn async_percent(&self) -> u32 {
        with_scheduler!(
            self,
            s => s.needs().async_percent,
            kyber _kyber => ASYNC_PERCENT,
            concurrent c => c.async_percent(),
            none => 100
        )
    }

    /// `nr_requests` or `async_depth` has changed.
    pub fn depth_updated(&self, nr_requests: u32, async_depth: Option<u32>) {
        let event = SchedulerEvent::Depths { nr_requests, async_depth };
        ElevatorCx::alone(Now::default(), |cx| self.notify(&NoMeter, cx, event));
    }

    /// Request ids below `capacity` may occur from now on. It must hold no requests.
    pub fn grow(&mut self, capacity: u32) {
        match &mut self.kind {
            Kind::None => {}
            Kind::Kyber(kyber) => kyber.grow(capacity),
            Kind::MqDeadline(scheduler) => scheduler.grow(capacity),
            Kind::Bfq(scheduler) => scheduler.grow(capacity),
            Kind::Boxed(scheduler) => scheduler.grow(capacity),
            Kind::Concurrent(object) => {
                let scheduler =
                    Sh::Objects::object_mut::<dyn Concurrent<Sh>, dyn Concurrent<Sh> + Send + Sync>(object, |shared| {
                        shared
                    });
                scheduler.grow(capacity);
            }
        }
    }

    /// Notifies it of an event.
    pub fn notify(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        with_scheduler!(
            self,
            s => s.notify(meter, cx, event),
            kyber k => k.on_event(event),
            concurrent c => c.on_event(meter, cx, event),
            none => if let Some(steering) = self.steering() { steering.on_event(cx, event) }
        );
    }

    /// Calls the policy itself, if there is one: for a replay or a test that stands in for the block layer.
    pub fn with_policy(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        body: impl FnOnce(&mut dyn Scheduler, &mut PolicyCx<'_>),
    ) {
        with_scheduler!(
            self,
            s => s.with_policy(meter, cx, |policy, cx| body(policy, cx)),
            kyber _kyber => {},
            concurrent _c => {},
            none => {}
        );
    }

    fn tunables_with_values(&self) -> Vec<(&'static Tunable, i128)> {
        with_scheduler!(
            self,
            s => s.tunables(),
            kyber k => k.tunables(),
            concurrent c => c.tunables(),
            none => self.steering().map_or_else(Vec::new, |steering| steering.tunables())
        )
    }

    /// Its tunables, in the order of their files.
    #[must_use]
    pub fn tunables(&self) -> Vec<&'static Tunable> {
        self.tunables_with_values().into_iter().map(|(tunable, _)| tunable).collect()
    }

    /// The value that a tunable's file shows.
    ///
    /// # Errors
    /// If there is no such tunable.
    pub fn tunable(&self, name: &str) -> Result<i128, StoreError> {
        value_of(&self.tunables_with_values(), name)
    }

    /// Writes a tunable, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        name: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        with_scheduler!(
            self,
            s => s.set_tunable(meter, cx, name, text),
            kyber k => k.set_tunable(name, text),
            concurrent c => c.set_tunable(cx, name, text),
            none => match self.steering() {
                Some(steering) => steering.set_tunable(cx, name, text),
                None => Err(StoreError::Unknown),
            }
        )
    }
}
