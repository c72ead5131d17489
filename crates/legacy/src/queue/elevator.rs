//! The elevators of a legacy queue, which always has one (LQ-1 to LQ-3, LQ-32 to LQ-34).

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::{Now, RqId, StoreError, Tunable};
use hoistway_blk::kit::RequestStore;
use hoistway_blk::policy::{BoxedScheduler, ElevatorCx, MayQueue, Place, Scheduler as _, SchedulerEvent};
use hoistway_blk::request::{Edge, MergeRules, Request, Rq};
use hoistway_blk::schedulers::{Attachment, Layer, MqDeadline, Policy};
use hoistway_blk::watch::Reason;

use super::{HCTX, LegacyConfig};

/// The scheduler of a legacy queue with its requests.
pub struct LegacyElevator {
    name: &'static str,
    /// Whether dispatched requests are sorted into the dispatch queue instead of appended.
    pub(super) dispatches_sorted: bool,
    kind: Kind,
}

enum Kind {
    Deadline(Box<RequestStore<MqDeadline>>),
    Boxed(Box<RequestStore<BoxedScheduler>>),
}

macro_rules! with_store {
    ($self:expr, $store:ident => $call:expr) => {
        match &mut $self.kind {
            Kind::Deadline($store) => $call,
            Kind::Boxed($store) => $call,
        }
    };
}

impl LegacyElevator {
    /// The scheduler with this name for a queue, attached now; None if there is no such legacy scheduler.
    #[must_use]
    pub fn named(name: &str, config: &LegacyConfig, now: Now) -> Option<Self> {
        let row = config.schedulers.of(Layer::SingleQueue).find(|row| row.name == name)?;
        let capacity = config.capacity();
        let queue = Attachment {
            generation: &config.generation(),
            limits: &config.limits,
            nr_requests: config.nr_requests,
            default_nr_requests: config.nr_requests,
            async_depth: config.nr_requests,
            queue_depth: config.queue_depth,
            capacity,
            arbitration: None,
            transport: None,
            seed: 0,
            now,
        };
        match config.schedulers.make(row, &queue) {
            Policy::MqDeadline(policy) => Some(LegacyElevator {
                name: row.name,
                dispatches_sorted: false,
                kind: Kind::Deadline(Box::new(RequestStore::new(MqDeadline::new(policy, capacity), capacity))),
            }),
            Policy::Boxed(policy) => Some(LegacyElevator::custom(row.name, policy, config)),
            Policy::None | Policy::Kyber(_) | Policy::Bfq(_) | Policy::Concurrent(_) | Policy::Steered(_) => None,
        }
    }

    /// A custom policy for request ids below [`LegacyConfig::capacity`].
    #[must_use]
    pub fn custom(name: &'static str, mut policy: BoxedScheduler, config: &LegacyConfig) -> Self {
        let dispatches_sorted = policy.legacy_hooks().is_some_and(|hooks| hooks.dispatches_sorted());
        let kind = Kind::Boxed(Box::new(RequestStore::new(policy, config.capacity())));
        LegacyElevator { name, dispatches_sorted, kind }
    }

    /// The scheduler's name in `queue/scheduler`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Tries to merge a bio into one of its requests.
    pub(super) fn merge_bio(
        &mut self,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        with_store!(self, store => store.merge_bio(cx, rules, bio))
    }

    /// Whether a request may be allocated.
    #[inline]
    pub(super) fn may_queue(&mut self, cx: &mut ElevatorCx<'_>, bio: &Bio) -> MayQueue {
        with_store!(self, store => store.call(cx, |policy, cx| {
            policy.legacy_hooks().map_or(MayQueue::May, |hooks| hooks.may_queue(cx, bio))
        }))
    }

    /// A request that it will manage was allocated.
    #[inline]
    pub(super) fn prepare(&mut self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        with_store!(self, store => store.call(cx, |policy, cx| policy.prepare(cx, rq)));
    }

    /// Inserts a request; one from a plug may be merged into another one.
    pub(super) fn insert(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, rq: Rq, may_join: bool) {
        with_store!(self, store => if may_join {
            store.insert(cx, rules, rq, Place::Sorted);
        } else {
            store.call(cx, |policy, cx| policy.on_arrived(cx, &rq));
            store.take_in(cx, rq, Place::Sorted);
        });
    }

    /// Asks for the next request.
    #[inline]
    pub(super) fn dispatch(&mut self, cx: &mut ElevatorCx<'_>) -> (Option<Rq>, Reason) {
        with_store!(self, store => store.dispatch(cx, HCTX))
    }

    /// Makes it dispatch everything into `out`, regardless of idling and time slices. `ids` is a buffer.
    pub(super) fn drain(&mut self, cx: &mut ElevatorCx<'_>, ids: &mut Vec<RqId>, out: impl FnMut(Rq)) {
        with_store!(self, store => store.drain(cx, ids, out));
    }

    /// The driver has looked at a request for the first time since it was dispatched or returned.
    #[inline]
    pub(super) fn on_started(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_store!(self, store => store.call(cx, |policy, cx| {
            if let Some(hooks) = policy.legacy_hooks() {
                hooks.on_started(cx, id);
            }
        }));
    }

    /// The driver has returned a request.
    pub(super) fn on_requeued(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_store!(self, store => store.call(cx, |policy, cx| policy.on_requeued(cx, id)));
    }

    /// An inserted request has been released.
    #[inline]
    pub(super) fn finish(&mut self, cx: &mut ElevatorCx<'_>, id: RqId) {
        with_store!(self, store => store.call(cx, |policy, cx| policy.finish(cx, id)));
    }

    /// Request ids below `capacity` may occur from now on.
    pub(super) fn grow(&mut self, capacity: u32) {
        with_store!(self, store => store.grow(capacity));
    }

    /// Its timer has fired.
    pub(super) fn on_timer(&mut self, cx: &mut ElevatorCx<'_>) {
        with_store!(self, store => store.call(cx, |policy, cx| policy.on_timer(cx)));
    }

    /// Notifies the scheduler of an event.
    pub(super) fn notify(&mut self, cx: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        with_store!(self, store => store.call(cx, |policy, cx| policy.on_event(cx, event)));
    }

    pub(super) fn tunables(&mut self) -> Vec<(&'static Tunable, i128)> {
        with_store!(self, store => store.policy().tunables())
    }

    pub(super) fn set_tunable(&mut self, cx: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        with_store!(self, store => store.call(cx, |policy, cx| policy.set_tunable(cx, name, text)))
    }

    /// Whether it has waiting requests.
    #[cfg(test)]
    pub(super) fn has_work(&mut self) -> bool {
        with_store!(self, store => store.policy().has_work())
    }
}
