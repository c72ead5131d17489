//! A policy behind its own lock.
//!
//! It contains the lock around the policy's store, hints that the hot path reads without the lock (is there work? which depth limits
//! apply?), and deferred completions. Every public call takes the policy's lock at most once and no other lock meanwhile, so it is
//! one atomic step.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::bio::{Bio, BioFlags, Op, is_sync};
use crate::ground::ids::{HctxId, RqId, Sector};
use crate::ground::meter::{Meter, NoMeter, Site};
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::ground::time::Now;
use crate::ground::tunables::{StoreError, Tunable};
use crate::request::merge::{Edge, MergeRules};
use crate::request::{Marks, Request, Rq};
use crate::tags::Depth;

use super::buckets::Buckets;
use super::contention_options::ContentionOptions;
use super::finished::FinishedSet;
use super::pending::Pending;
use super::request_store::{OwnedPolicy, RequestStore};
use super::scheduler::{Completions, ElevatorCx, Needs, PolicyCx, Scheduler as _, SchedulerEvent};
use crate::watch::reason::Reason;

mod insertion;

/// A policy with its lock, hints and deferred completions.
pub struct Serialized<S, Sh: Sharing> {
    needs: Needs,
    store: Sh::Lock<RequestStore<S>>,
    /// Whether there is work to dispatch. `Relaxed`: it is written under the lock, so a CPU that has inserted a request sees it, or
    /// the value of a later holder of the lock. Other CPUs may see it late; the inserting CPU dispatches afterwards or requests a
    /// run.
    has_work: Sh::Word,
    /// Whether a bio might be merged. `Relaxed`: a bio that misses a request gets its own.
    meets_bios: Sh::Word,
    /// Shallow depth for reads, sync others and async others; [`NO_LIMIT`] for none. Three independent hints.
    depths: [Sh::Word; 3],
    finished: FinishedSet<Sh>,
    options: ContentionOptions,
    /// Whether a CPU is dispatching, with [`ContentionOptions::single_dispatcher`]. `SeqCst`, like the set of finished requests: if a
    /// CPU completes a request and then finds this set, the dispatching CPU clears it and then finds the request in the set.
    dispatching: Sh::Word,
    buckets: Buckets<Sh>,
    pending: Pending<Sh>,
}

/// The turn of the dispatching CPU; also ends if the policy panics.
struct DispatchTurn<'a, W: Word>(&'a W);

impl<W: Word> Drop for DispatchTurn<'_, W> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

/// Dispatches requests under one hold of the lock.
pub trait DispatchBatch {
    /// Whether another request can be dispatched.
    fn may_dispatch(&mut self) -> bool;

    /// Handles the result of a dispatch. Returns whether to continue.
    fn on_dispatched(&mut self, rq: Option<Rq>, reason: Reason) -> bool;
}

const NO_LIMIT: u64 = u64::MAX;

/// Index of the published depth that applies to an allocation.
fn depth_kind(bio: &Bio) -> usize {
    match bio.op {
        Op::Read => 0,
        op if is_sync(op, bio.flags) => 1,
        _ => 2,
    }
}

impl<S: OwnedPolicy, Sh: Sharing> Serialized<S, Sh> {
    /// Puts a policy behind a lock, for request ids below `capacity`.
    #[must_use]
    pub fn new(policy: S, capacity: u32) -> Self {
        let needs = policy.policy().needs();
        let serialized: Self = Serialized {
            needs,
            store: Sh::Lock::new(RequestStore::new(policy, capacity)),
            has_work: Sh::Word::new(0),
            meets_bios: Sh::Word::new(1),
            depths: [NO_LIMIT; 3].map(Sh::Word::new),
            finished: FinishedSet::new(capacity),
            options: ContentionOptions::default(),
            dispatching: Sh::Word::new(0),
            buckets: Buckets::default(),
            pending: Pending::default(),
        };
        serialized.store.aside(|store| serialized.publish_depths(store));
        serialized
    }

    /// Sets the contention options.
    #[must_use]
    pub fn with(mut self, options: ContentionOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether requests are dispatched [in batches](Self::dispatch_batch).
    #[inline]
    #[must_use]
    pub fn dispatches_batches(&self) -> bool {
        self.options.batch_dispatch
    }

    /// The policy's requirements.
    #[must_use]
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Takes the lock, delivers deferred completions to the policy, runs `body`, and publishes whether there is work.
    #[inline]
    fn locked<R>(
        &self,
        meter: &impl Meter,
        site: Site,
        cx: &mut ElevatorCx<'_>,
        body: impl FnOnce(&mut RequestStore<S>, &mut ElevatorCx<'_>) -> R,
    ) -> R {
        self.store.with(meter, site, |store| self.under_lock(store, cx, body))
    }

    #[inline]
    fn under_lock<R>(
        &self,
        store: &mut RequestStore<S>,
        cx: &mut ElevatorCx<'_>,
        body: impl FnOnce(&mut RequestStore<S>, &mut ElevatorCx<'_>) -> R,
    ) -> R {
        if self.defers() {
            self.deliver_completions(store, cx);
        }
        let result = body(store, cx);
        self.has_work.store(u64::from(store.policy().has_work()), Relaxed);
        self.meets_bios.store(u64::from(store.meets_bios()), Relaxed);
        result
    }

    /// Publishes the tag limits, so that allocation need not ask under the lock.
    fn publish_depths(&self, store: &mut RequestStore<S>) {
        let samples = [(Op::Read, false), (Op::Write, true), (Op::Write, false)];
        for (word, (op, sync)) in self.depths.iter().zip(samples) {
            let flags = if sync { BioFlags::SYNC } else { BioFlags::NONE };
            let bio = Bio { flags, ..Bio::new(op, Sector(0), 0) };
            let limit =
                ElevatorCx::alone(Now::default(), |cx| store.call(cx, |policy, cx| policy.limit_depth(cx, &bio)));
            word.store(limit.map_or(NO_LIMIT, u64::from), Relaxed);
        }
    }

    /// Tries to merge a bio into a queued request; on success the bio is taken out of its option. Requests that were merged into
    /// others are added to [`freed`](ElevatorCx::freed).
    pub fn merge_bio(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        let merge = |store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>| {
            // Only inserted requests can be found.
            self.take_pending(meter, store, cx);
            store.merge_bio(cx, rules, bio)
        };
        if self.options.try_merge {
            if self.meets_bios.load(Relaxed) == 0 && !self.pending.is_filled() {
                return None;
            }
            let merged = self.store.try_with(meter, Site::Merge, |store| self.under_lock(store, cx, merge));
            return merged.flatten();
        }
        self.locked(meter, Site::Merge, cx, merge)
    }

    /// Dispatches the next request.
    #[inline]
    pub fn dispatch(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        let dispatched = self.as_dispatcher(
            meter,
            cx,
            |(rq, _): &(Option<Rq>, Reason)| rq.is_none(),
            |store, cx| Self::dispatch_one(store, cx, hctx),
        );
        dispatched.unwrap_or((None, Reason::Elsewhere))
    }

    /// Dispatches several requests under one hold of the lock.
    pub fn dispatch_batch(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        hctx: HctxId,
        requests_max: u32,
        batch: &mut impl DispatchBatch,
    ) {
        let mut remaining = requests_max;
        let dispatch_all = |store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>| {
            while remaining > 0 {
                if !store.policy().has_work() {
                    return true;
                }
                if !batch.may_dispatch() {
                    return false;
                }
                if remaining < requests_max {
                    meter.another();
                }
                remaining -= 1;
                let (rq, reason) = Self::dispatch_one(store, cx, hctx);
                let found_nothing = rq.is_none();
                if !batch.on_dispatched(rq, reason) {
                    return found_nothing;
                }
            }
            false
        };
        self.as_dispatcher(meter, cx, |found_nothing| *found_nothing, dispatch_all);
    }

    #[inline]
    fn dispatch_one(store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        let (mut rq, reason) = store.dispatch(cx, hctx);
        if let Some(rq) = &mut rq {
            rq.marks.set(Marks::STARTED);
        }
        (rq, reason)
    }

    /// Takes the lock to dispatch, unless only one CPU may dispatch at a time and another does (CL-2).
    #[inline]
    fn as_dispatcher<R>(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        found_nothing: impl Fn(&R) -> bool,
        mut body: impl FnMut(&mut RequestStore<S>, &mut ElevatorCx<'_>) -> R,
    ) -> Option<R> {
        if !self.options.single_dispatcher {
            return Some(self.locked(meter, Site::Dispatch, cx, |store, cx| {
                self.take_pending(meter, store, cx);
                body(store, cx)
            }));
        }
        if !self.store.may_become_dispatcher(meter) {
            return None;
        }
        // Read first, so that CPUs that cannot dispatch do not invalidate the cache line.
        if self.dispatching.load(SeqCst) != 0 || self.dispatching.swap(1, SeqCst) != 0 {
            return None;
        }
        let turn = DispatchTurn(&self.dispatching);
        Some(self.locked(meter, Site::Dispatch, cx, |store, cx| {
            self.take_pending(meter, store, cx);
            let mut result = body(store, cx);
            drop(turn);
            // The policy may be waiting for requests that completed or arrived meanwhile, whose CPUs found this turn active.
            while found_nothing(&result) && self.deliver_pending_events(meter, store, cx) {
                result = body(store, cx);
            }
            result
        }))
    }

    /// Delivers completions and insertions that were made without the lock. Returns whether there were any.
    fn deliver_pending_events(&self, meter: &impl Meter, store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>) -> bool {
        let (has_completions, has_insertions) = (self.defers() && !self.finished.is_empty(), self.pending.is_filled());
        if has_completions {
            self.deliver_completions(store, cx);
        }
        self.take_pending(meter, store, cx);
        has_completions || has_insertions
    }

    /// Delivers deferred completions to the policy.
    #[inline]
    fn deliver_completions(&self, store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>) {
        self.finished.drain(|id| store.call(cx, |policy, cx| policy.finish(cx, id)));
    }

    /// Whether there may be work to dispatch. Does not take the lock.
    #[inline]
    #[must_use]
    pub fn has_work(&self) -> bool {
        // In this order: `has_work` is set before the pending lists are emptied.
        self.pending.is_filled() || self.has_work.load(Relaxed) != 0
    }

    /// The same for a run, which in virtual time also sees a request that another call is only about to take.
    #[inline]
    pub fn shows_work(&self, meter: &impl Meter) -> bool {
        self.has_work() || self.store.sees_work_being_taken(meter)
    }

    /// Number of scheduler tags that an allocation may use.
    #[inline]
    pub fn limit_depth(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, bio: &Bio) -> Depth {
        let limit = if self.needs.depth_by_context {
            self.locked(meter, Site::Elevator, cx, |store, cx| store.call(cx, |policy, cx| policy.limit_depth(cx, bio)))
        } else {
            match self.depths[depth_kind(bio)].load(Relaxed) {
                NO_LIMIT => None,
                depth => Some(depth as u32),
            }
        };
        limit.map_or(Depth::Full, Depth::Shallow)
    }

    /// A request was allocated.
    #[inline]
    pub fn prepare(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, rq: &Request) {
        if self.needs.preparation {
            self.locked(meter, Site::Elevator, cx, |store, cx| store.call(cx, |policy, cx| policy.prepare(cx, rq)));
        }
    }

    /// A request that was inserted has been released.
    #[inline]
    pub fn finish(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        if self.defers() {
            return self.finished.add(id);
        }
        let deliver = |store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>| {
            store.call(cx, |policy, cx| policy.finish(cx, id));
        };
        match self.needs.completions {
            Completions::AtOnce => self.locked(meter, Site::Finish, cx, deliver),
            // There is no contention, so it is delivered at once, but not charged to the completion.
            Completions::Deferred => self.locked(&NoMeter, Site::Finish, cx, deliver),
        }
    }

    /// Whether completions are deferred to the next lock hold: if the policy allows it and there can be contention.
    #[inline]
    fn defers(&self) -> bool {
        Sh::CONTENDS && self.needs.completions == Completions::Deferred
    }

    /// A dispatched request comes back; its insertion follows.
    pub fn on_requeued(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        self.locked(meter, Site::Elevator, cx, |store, cx| store.call(cx, |policy, cx| policy.on_requeued(cx, id)));
    }

    /// The policy's timer has expired.
    pub fn on_timer(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>) {
        self.locked(meter, Site::Elevator, cx, |store, cx| store.call(cx, |policy, cx| policy.on_timer(cx)));
    }

    /// Notifies the policy of an event.
    pub fn notify(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        self.locked(meter, Site::Elevator, cx, |store, cx| {
            store.call(cx, |policy, cx| policy.on_event(cx, event));
            if matches!(event, SchedulerEvent::Depths { .. }) {
                self.publish_depths(store);
            }
        });
    }

    /// The smallest shallow depth that the policy uses now.
    #[must_use]
    pub fn min_shallow(&self) -> Option<u32> {
        self.store.aside(|store| store.policy().needs().min_shallow)
    }

    /// Calls the policy itself: for a replay or a test that stands in for the block layer.
    pub fn with_policy(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        body: impl FnOnce(&mut S::Policy, &mut PolicyCx<'_>),
    ) {
        self.locked(meter, Site::Elevator, cx, |store, cx| store.call(cx, body));
    }

    /// Grows to request ids below `capacity`. No request is held, and no other CPU is in a call.
    pub fn grow(&mut self, capacity: u32) {
        // Delivers deferred completions.
        ElevatorCx::alone(Now::default(), |cx| self.locked(&NoMeter, Site::Elevator, cx, |_, _| {}));
        self.finished = FinishedSet::new(capacity);
        self.store.aside(|store| store.grow(capacity));
    }

    /// The policy's tunables with their current values.
    #[must_use]
    pub fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        self.store.aside(|store| store.policy().tunables())
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
        self.locked(meter, Site::Elevator, cx, |store, cx| {
            store.call(cx, |policy, cx| policy.set_tunable(cx, name, text))?;
            self.publish_depths(store);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
