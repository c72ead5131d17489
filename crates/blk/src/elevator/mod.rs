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

pub(crate) use custody::Custody;
pub use reason::Reason;
pub use scheduler::{Calls, Choice, Completions, MayQueue, Needs, Place, PolicyCx, Requests, Scheduler};
pub use serialized::Serialized;
pub use woken::WokenHctxs;

use crate::bio::Bio;
use crate::ids::{CpuId, HctxId, RqId};
use crate::merge::{Edge, MergeRules};
use crate::request::{Request, Rq};
use crate::schedulers::{Bfq, Kyber, MqDeadline};
use crate::sharing::Sharing;
use crate::tags::Depth;
use crate::time::Now;
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
        now: Now,
        cpu: CpuId,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
        freed: &mut Vec<Rq>,
        calls: &mut Calls,
    ) -> Option<Edge> {
        with_scheduler!(
            self,
            s => s.merge_bio(now, rules, bio, freed, calls),
            kyber k => k.merge_bio(cpu, rules, bio),
            none => None
        )
    }

    /// Takes requests in; see [`Serialized::insert`].
    #[inline]
    pub fn insert(
        &self,
        now: Now,
        rules: &MergeRules,
        list: impl Iterator<Item = Rq>,
        place: Place,
        freed: &mut Vec<Rq>,
        calls: &mut Calls,
    ) {
        with_scheduler!(
            self,
            s => s.insert(now, rules, list, place, freed, calls),
            kyber k => k.insert(list, place),
            none => debug_assert!(false, "without a scheduler requests go to the software queues")
        );
    }

    /// Asks for the next request for `hctx`.
    #[inline]
    pub fn dispatch(&self, now: Now, hctx: HctxId, calls: &mut Calls) -> (Option<Rq>, Reason) {
        with_scheduler!(
            self,
            s => s.dispatch(now, hctx, calls),
            kyber k => k.dispatch(hctx),
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
    pub fn limit_depth(&self, now: Now, bio: &Bio, calls: &mut Calls) -> Depth {
        with_scheduler!(
            self,
            s => s.limit_depth(now, bio, calls),
            kyber k => k.limit_depth(bio),
            none => Depth::Full
        )
    }

    /// A request was allocated.
    #[inline]
    pub fn prepare(&self, now: Now, rq: &Request, calls: &mut Calls) {
        with_scheduler!(self, s => s.prepare(now, rq, calls), kyber _kyber => {}, none => {});
    }

    /// A request that this scheduler manages has completed on `cpu`. Its release follows.
    #[inline]
    pub fn completed(&self, now: Now, cpu: CpuId, rq: &Request, calls: &mut Calls) {
        if let Elevator::Kyber(kyber) = self {
            kyber.completed(now, cpu, rq, calls);
        }
    }

    /// A request that was inserted has been released.
    #[inline]
    pub fn finish(&self, now: Now, id: RqId, calls: &mut Calls) {
        with_scheduler!(self, s => s.finish(now, id, calls), kyber k => k.finish(id, calls), none => {});
    }

    /// A request that was given out comes back.
    pub fn requeued(&self, now: Now, id: RqId, calls: &mut Calls) {
        with_scheduler!(self, s => s.requeued(now, id, calls), kyber k => k.requeued(id, calls), none => {});
    }

    /// Its timer has come.
    pub fn timer(&self, now: Now, calls: &mut Calls) {
        with_scheduler!(self, s => s.timer(now, calls), none => {});
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
    pub fn tell(&self, now: Now, calls: &mut Calls, what: impl FnOnce(&mut dyn Scheduler, &mut PolicyCx<'_>)) {
        with_scheduler!(
            self,
            s => s.tell(now, calls, |policy, cx| what(policy, cx)),
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
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, calls: &mut Calls) -> Result<(), StoreError> {
        with_scheduler!(
            self,
            s => s.set_tunable(now, name, text, calls),
            kyber k => k.set_tunable(name, text),
            none => Err(StoreError::Unknown)
        )
    }
}
