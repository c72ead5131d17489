//! What the block layer calls: a scheduler made safe for many CPUs.
//!
//! Policy and locking are two subjects. A [`Scheduler`] is a policy, a single-threaded state machine;
//! [`Serialized`] puts one behind a lock; [`Kyber`] needs none. [`Elevator`] is the choice among them, an enum so that
//! calls inline.

mod boxed;
mod custody;
mod finished;
mod merge_index;
mod reason;
mod scheduler;
mod serialized;
mod woken;

pub use custody::Custody;
pub use reason::Reason;
pub use scheduler::{Choice, Completions, ElevatorCx, MayQueue, Needs, Place, PolicyCx, Requests, Scheduler, Wishes};
pub use serialized::Serialized;
pub use woken::WokenHctxs;

use crate::bio::Bio;
use crate::ids::{HctxId, RqId};
use crate::merge::{Edge, MergeRules};
use crate::meter::Meter;
use crate::request::{Request, Rq};
use crate::schedulers::{Bfq, Kyber, MqDeadline};
use crate::sharing::Sharing;
use crate::tags::Depth;
use crate::tunables::{StoreError, Tunable};

/// A policy of somebody's own, for [`Elevator::custom`].
pub type BoxedScheduler = Box<dyn Scheduler + Send>;

/// The scheduler of a queue, or none.
pub enum Elevator<Sh: Sharing> {
    /// No scheduler: requests wait in the software queues and the driver tags are the only limit.
    None,
    /// mq-deadline.
    MqDeadline(Box<Serialized<MqDeadline, Sh>>),
    /// kyber.
    Kyber(Box<Kyber<Sh>>),
    /// bfq.
    Bfq(Box<Serialized<Bfq, Sh>>),
    /// Somebody's own policy.
    Custom(Box<Serialized<BoxedScheduler, Sh>>),
}

macro_rules! with_scheduler {
    ($self:expr, $scheduler:ident => $call:expr, kyber $kyber:ident => $by_kyber:expr, none => $none:expr) => {
        match $self {
            Elevator::None => $none,
            Elevator::Kyber($kyber) => $by_kyber,
            Elevator::MqDeadline($scheduler) => $call,
            Elevator::Bfq($scheduler) => $call,
            Elevator::Custom($scheduler) => $call,
        }
    };
    ($self:expr, $scheduler:ident => $call:expr, none => $none:expr) => {
        with_scheduler!($self, $scheduler => $call, kyber $scheduler => $call, none => $none)
    };
}

impl<Sh: Sharing> Elevator<Sh> {
    /// Puts mq-deadline behind a lock; it will be given request ids below `capacity`.
    #[must_use]
    pub fn mq_deadline(policy: MqDeadline, capacity: u32) -> Self {
        Elevator::MqDeadline(Box::new(Serialized::new(policy, capacity)))
    }

    /// kyber, which needs no lock around it.
    #[must_use]
    pub fn kyber(kyber: Kyber<Sh>) -> Self {
        Elevator::Kyber(Box::new(kyber))
    }

    /// Puts bfq behind a lock; it will be given request ids below `capacity`.
    #[must_use]
    pub fn bfq(policy: Bfq, capacity: u32) -> Self {
        Elevator::Bfq(Box::new(Serialized::new(policy, capacity)))
    }

    /// Puts a policy of one's own behind a lock.
    #[must_use]
    pub fn custom(policy: BoxedScheduler, capacity: u32) -> Self {
        Elevator::Custom(Box::new(Serialized::new(policy, capacity)))
    }

    /// Whether there is no scheduler.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Elevator::None)
    }

    /// Its name, "none" without one.
    #[must_use]
    pub fn name(&self) -> &'static str {
        with_scheduler!(self, s => s.name(), none => "none")
    }

    /// Whether "run all" may run a single hardware queue.
    #[must_use]
    pub fn is_single_dispatch(&self) -> bool {
        with_scheduler!(self, s => s.needs().single_dispatch, kyber _kyber => false, none => false)
    }

    /// Whether it wants no write-back throttling.
    #[must_use]
    pub fn disables_wbt(&self) -> bool {
        with_scheduler!(self, s => s.needs().disables_wbt, kyber _kyber => false, none => false)
    }

    /// The smallest shallow depth it will ask for.
    #[must_use]
    pub fn min_shallow(&self) -> Option<u32> {
        with_scheduler!(self, s => s.needs().min_shallow, kyber k => k.min_shallow(), none => None)
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
            none => None
        )
    }

    /// Takes requests in; see [`Serialized::insert`].
    #[inline]
    pub fn insert(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        list: impl Iterator<Item = Rq>,
        place: Place,
    ) {
        with_scheduler!(
            self,
            s => s.insert(meter, cx, rules, list, place),
            kyber k => k.insert(meter, list, place),
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
            none => (None, Reason::Empty)
        )
    }

    /// Whether dispatching for `hctx` is worth asking.
    #[inline]
    #[must_use]
    pub fn has_work(&self, hctx: HctxId) -> bool {
        with_scheduler!(self, s => s.has_work(), kyber k => k.has_work(hctx), none => false)
    }

    /// How many scheduler tags an allocation may use.
    #[inline]
    pub fn limit_depth(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, bio: &Bio) -> Depth {
        with_scheduler!(
            self,
            s => s.limit_depth(meter, cx, bio),
            kyber k => k.limit_depth(bio),
            none => Depth::Full
        )
    }

    /// A request was allocated.
    #[inline]
    pub fn prepare(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, rq: &Request) {
        with_scheduler!(self, s => s.prepare(meter, cx, rq), kyber _kyber => {}, none => {});
    }

    /// A request that this scheduler manages has completed on `cpu`. Its release follows.
    #[inline]
    pub fn completed(&self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        if let Elevator::Kyber(kyber) = self {
            kyber.completed(cx, rq);
        }
    }

    /// A request that was inserted has been released.
    #[inline]
    pub fn finish(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_scheduler!(self, s => s.finish(meter, cx, id), kyber k => k.finish(meter, cx, id), none => {});
    }

    /// A request that was given out comes back.
    pub fn requeued(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_scheduler!(self, s => s.requeued(meter, cx, id), kyber k => k.requeued(meter, cx, id), none => {});
    }

    /// Its timer has come.
    pub fn timer(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>) {
        with_scheduler!(self, s => s.timer(meter, cx), none => {});
    }

    /// `nr_requests` has changed.
    pub fn depth_updated(&self, nr_requests: u32) {
        with_scheduler!(self, s => s.depth_updated(nr_requests), none => {});
    }

    /// Request ids below `capacity` will come from now on. It holds none.
    pub fn grow(&mut self, capacity: u32) {
        with_scheduler!(self, s => s.grow(capacity), none => {});
    }

    /// Tells the policy of something that happened to a process or cgroup. kyber knows of neither.
    pub fn tell(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        what: impl FnOnce(&mut dyn Scheduler, &mut PolicyCx<'_>),
    ) {
        with_scheduler!(
            self,
            s => s.tell(meter, cx, |policy, cx| what(policy, cx)),
            kyber _kyber => {},
            none => {}
        );
    }

    /// Its tunables.
    #[must_use]
    pub fn tunables(&self) -> &'static [Tunable] {
        with_scheduler!(self, s => s.tunables(), none => &[])
    }

    /// A tunable's value.
    ///
    /// # Errors
    /// If there is no such tunable.
    pub fn tunable(&self, name: &str) -> Result<i128, StoreError> {
        with_scheduler!(self, s => s.tunable(name), none => Err(StoreError::Unknown))
    }

    /// Writes a tunable.
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
            none => Err(StoreError::Unknown)
        )
    }
}
