//! The elevators of a legacy queue. There is always one (`legacy-queue.md` 1 and 11).

use hoistway_blk::kit::Custody;
use hoistway_blk::{
    Bio, BoxedScheduler, Edge, ElevatorCx, MayQueue, MergeRules, MqDeadline, MqDeadlineConfig, Noop, Now, Place,
    PolicyCx, Reason, Request, Rq, RqId, Scheduler, StoreError, Tunable,
};

use crate::cfq::{Cfq, CfqConfig};

use super::{HCTX, LegacyConfig};

/// The schedulers of a legacy queue, in the order in which `queue/scheduler` lists them.
pub const LEGACY_SCHEDULERS: [&str; 3] = ["noop", "deadline", "cfq"];

/// The scheduler that a text names, in `queue/scheduler` or after `elevator=`; none of the names is too long for either.
#[must_use]
pub(crate) fn legacy_scheduler(text: &str) -> Option<&'static str> {
    LEGACY_SCHEDULERS.into_iter().find(|&name| name == text.trim())
}

/// The scheduler of a legacy queue, with the requests that it holds.
pub struct LegacyElevator(Kind);

enum Kind {
    Noop(Box<Custody<Noop>>),
    /// mq-deadline of generation A makes deadline's choices.
    Deadline(Box<Custody<MqDeadline>>),
    Cfq(Box<Custody<Cfq>>),
    Custom(Box<Custody<BoxedScheduler>>),
}

macro_rules! with_custody {
    ($self:expr, $custody:ident => $call:expr) => {
        match &mut $self.0 {
            Kind::Noop($custody) => $call,
            Kind::Deadline($custody) => $call,
            Kind::Cfq($custody) => $call,
            Kind::Custom($custody) => $call,
        }
    };
}

impl LegacyElevator {
    /// The scheduler of this name for a queue, attached now; nothing if there is no such legacy scheduler.
    #[must_use]
    pub fn named(name: &str, config: &LegacyConfig, now: Now) -> Option<Self> {
        let (generation, capacity) = (config.generation(), config.capacity());
        let kind = match name {
            "noop" => Kind::Noop(Box::new(Custody::new(Noop::new(capacity), capacity))),
            "deadline" => {
                let policy = MqDeadlineConfig::new(generation, config.nr_requests);
                Kind::Deadline(Box::new(Custody::new(MqDeadline::new(policy, capacity), capacity)))
            }
            "cfq" => {
                let policy = CfqConfig::new(generation, config.limits.rotational);
                Kind::Cfq(Box::new(Custody::new(Cfq::new(policy, now, capacity), capacity)))
            }
            _ => return None,
        };
        Some(LegacyElevator(kind))
    }

    /// A policy of one's own for request ids below [`LegacyConfig::capacity`].
    #[must_use]
    pub fn custom(policy: BoxedScheduler, config: &LegacyConfig) -> Self {
        LegacyElevator(Kind::Custom(Box::new(Custody::new(policy, config.capacity()))))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Kind::Noop(_) => LEGACY_SCHEDULERS[0],
            Kind::Deadline(_) => LEGACY_SCHEDULERS[1],
            Kind::Cfq(_) => LEGACY_SCHEDULERS[2],
            Kind::Custom(custody) => custody.policy().name(),
        }
    }

    /// Whether what it gives out is sorted into the dispatch queue, and not appended.
    #[inline]
    pub(super) fn dispatches_sorted(&self) -> bool {
        matches!(self.0, Kind::Noop(_) | Kind::Cfq(_))
    }

    /// Tries to merge a bio into a request that it holds.
    pub(super) fn merge_bio(
        &mut self,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        with_custody!(self, custody => custody.merge_bio(cx, rules, bio))
    }

    /// May a request be allocated?
    #[inline]
    pub(super) fn may_queue(&mut self, cx: &mut ElevatorCx<'_>, bio: &Bio) -> MayQueue {
        with_custody!(self, custody => custody.call(cx, |policy, cx| policy.may_queue(cx, bio)))
    }

    /// A request was allocated that it will manage.
    #[inline]
    pub(super) fn prepare(&mut self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        with_custody!(self, custody => custody.call(cx, |policy, cx| policy.prepare(cx, rq)));
    }

    /// Takes a request in; one that comes from a plug may be absorbed by another.
    pub(super) fn insert(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, rq: Rq, may_join: bool) {
        with_custody!(self, custody => if may_join {
            custody.insert(cx, rules, rq, Place::Sorted);
        } else {
            custody.call(cx, |policy, cx| policy.arrived(cx, &rq));
            custody.take_in(cx, rq, Place::Sorted);
        });
    }

    /// Asks for the next request.
    #[inline]
    pub(super) fn dispatch(&mut self, cx: &mut ElevatorCx<'_>) -> (Option<Rq>, Reason) {
        with_custody!(self, custody => custody.dispatch(cx, HCTX))
    }

    /// Has it give out everything into `out`, ignoring idling and time slices. `ids` is a buffer.
    pub(super) fn drain(&mut self, cx: &mut ElevatorCx<'_>, ids: &mut Vec<RqId>, out: impl FnMut(Rq)) {
        with_custody!(self, custody => custody.drain(cx, ids, out));
    }

    /// The driver has looked at a request for the first time since it was given out or came back.
    #[inline]
    pub(super) fn started(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_custody!(self, custody => custody.call(cx, |policy, cx| policy.started(cx, id)));
    }

    /// The driver has given a request back.
    pub(super) fn requeued(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_custody!(self, custody => custody.call(cx, |policy, cx| policy.requeued(cx, id)));
    }

    /// A request that it took in has been released.
    #[inline]
    pub(super) fn finish(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_custody!(self, custody => custody.call(cx, |policy, cx| policy.finish(cx, id)));
    }

    /// Request ids below `capacity` will come from now on.
    pub(super) fn grow(&mut self, capacity: u32) {
        with_custody!(self, custody => custody.grow(capacity));
    }

    /// Its timer has come.
    pub(super) fn timer(&mut self, cx: &mut ElevatorCx<'_>) {
        with_custody!(self, custody => custody.call(cx, |policy, cx| policy.timer(cx)));
    }

    /// Something happened to a process or cgroup.
    pub(super) fn tell(&mut self, cx: &mut ElevatorCx<'_>, what: impl FnOnce(&mut dyn Scheduler, &mut PolicyCx<'_>)) {
        with_custody!(self, custody => custody.call(cx, |policy, cx| what(policy, cx)));
    }

    pub(super) fn tunables(&mut self) -> &'static [Tunable] {
        with_custody!(self, custody => custody.policy().tunables())
    }

    pub(super) fn tunable(&mut self, name: &str) -> Result<i128, StoreError> {
        with_custody!(self, custody => custody.tunable(name))
    }

    pub(super) fn set_tunable(&mut self, cx: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        with_custody!(self, custody => custody.set_tunable(cx, name, text))
    }

    /// Whether anything waits in it.
    #[cfg(test)]
    pub(super) fn has_work(&mut self) -> bool {
        with_custody!(self, custody => custody.policy().has_work())
    }
}
