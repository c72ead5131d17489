//! A policy behind one lock of its own.
//!
//! The lock around the policy's store, what the hot path may know without the lock (is there work? how deep may it
//! allocate?), and how completions get in. Every public call takes the policy's lock at most once and no other lock
//! meanwhile, so that it is one *step* of the way.

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

/// A policy and what it needs around it.
pub struct Serialized<S, Sh: Sharing> {
    needs: Needs,
    store: Sh::Lock<RequestStore<S>>,
    /// Whether dispatching is worth the lock. `Relaxed`: it is written under the lock, so a CPU that has inserted something
    /// sees that there is work, or what a later holder of the lock has made of it. Others may overlook work for a while:
    /// the CPU that brings it dispatches afterwards, or asks for a run.
    has_work: Sh::Word,
    /// Whether it is worth the lock to look whether a bio can be merged. `Relaxed`: a bio that overlooks a request becomes one of its
    /// own.
    meets_bios: Sh::Word,
    /// Shallow depth for reads, sync others and async others; [`NO_LIMIT`] for none. Three hints, each for itself.
    depths: [Sh::Word; 3],
    finished: FinishedSet<Sh>,
    techniques: ContentionOptions,
    /// Whether some CPU asks for requests, with [`ContentionOptions::single_dispatcher`]. `SeqCst`, as is the set of those that have
    /// finished: a CPU that ends a request and then finds this set is seen by the one that clears this and then looks into the set.
    dispatching: Sh::Word,
    buckets: Buckets<Sh>,
    pending: Pending<Sh>,
}

/// The turn of the CPU that dispatches. A policy that panics ends it, too.
struct Turn<'a, W: Word>(&'a W);

impl<W: Word> Drop for Turn<'_, W> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

/// Dispatches requests under one hold of the lock.
pub trait DispatchBatch {
    /// Whether another one can be taken.
    fn may_dispatch(&mut self) -> bool;

    /// One was dispatched, or none. Returns whether to go on.
    fn on_dispatched(&mut self, rq: Option<Rq>, reason: Reason) -> bool;
}

const NO_LIMIT: u64 = u64::MAX;

/// Which of the published depths an allocation falls under.
fn depth_kind(bio: &Bio) -> usize {
    match bio.op {
        Op::Read => 0,
        op if is_sync(op, bio.flags) => 1,
        _ => 2,
    }
}

impl<S: OwnedPolicy, Sh: Sharing> Serialized<S, Sh> {
    /// Puts a policy behind a lock; it will be given request ids below `capacity`.
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
            techniques: ContentionOptions::default(),
            dispatching: Sh::Word::new(0),
            buckets: Buckets::default(),
            pending: Pending::default(),
        };
        serialized.store.aside(|store| serialized.publish_depths(store));
        serialized
    }

    /// With these techniques against contention.
    #[must_use]
    pub fn with(mut self, techniques: ContentionOptions) -> Self {
        self.techniques = techniques;
        self
    }

    /// Whether requests are dispatched [in batches](Self::dispatch_batch).
    #[inline]
    #[must_use]
    pub fn dispatches_batches(&self) -> bool {
        self.techniques.batch_dispatch
    }

    /// What the policy needs.
    #[must_use]
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Takes the lock, notifies the policy of completions meanwhile, runs `body`, publishes whether there is work.
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
        let answer = body(store, cx);
        self.has_work.store(u64::from(store.policy().has_work()), Relaxed);
        self.meets_bios.store(u64::from(store.meets_bios()), Relaxed);
        answer
    }

    /// Publishes the tag limits, so that allocation need not ask under the lock.
    fn publish_depths(&self, store: &mut RequestStore<S>) {
        let probes = [(Op::Read, false), (Op::Write, true), (Op::Write, false)];
        for (word, (op, sync)) in self.depths.iter().zip(probes) {
            let flags = if sync { BioFlags::SYNC } else { BioFlags::NONE };
            let bio = Bio { flags, ..Bio::new(op, Sector(0), 0) };
            let limit =
                ElevatorCx::alone(Now::default(), |cx| store.call(cx, |policy, cx| policy.limit_depth(cx, &bio)));
            word.store(limit.map_or(NO_LIMIT, u64::from), Relaxed);
        }
    }

    /// Tries to merge a bio into a queued request. It is taken out of its option exactly when that succeeded.
    /// Requests that were absorbed on the way are [freed](ElevatorCx::freed).
    pub fn merge_bio(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        let merge = |store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>| {
            // Only what the policy has can be found.
            self.take_pending(meter, store, cx);
            store.merge_bio(cx, rules, bio)
        };
        if self.techniques.try_merge {
            if self.meets_bios.load(Relaxed) == 0 && !self.pending.is_filled() {
                return None;
            }
            let merged = self.store.try_with(meter, Site::Merge, |store| self.under_lock(store, cx, merge));
            return merged.flatten();
        }
        self.locked(meter, Site::Merge, cx, merge)
    }

    /// Asks the policy for the next request.
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

    /// Asks the policy for at most `most` requests under one hold of the lock.
    pub fn dispatch_batch(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        hctx: HctxId,
        most: u32,
        batch: &mut impl DispatchBatch,
    ) {
        let mut left = most;
        let dispatch_all = |store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>| {
            while left > 0 {
                if !store.policy().has_work() {
                    return true;
                }
                if !batch.may_dispatch() {
                    return false;
                }
                if left < most {
                    meter.another();
                }
                left -= 1;
                let (rq, reason) = Self::dispatch_one(store, cx, hctx);
                let is_nothing = rq.is_none();
                if !batch.on_dispatched(rq, reason) {
                    return is_nothing;
                }
            }
            false
        };
        self.as_dispatcher(meter, cx, |is_nothing| *is_nothing, dispatch_all);
    }

    #[inline]
    fn dispatch_one(store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        let (mut rq, reason) = store.dispatch(cx, hctx);
        if let Some(rq) = &mut rq {
            rq.marks.set(Marks::STARTED);
        }
        (rq, reason)
    }

    /// Takes the lock to ask for requests, unless another CPU does and there is one dispatcher at a time (CL-2).
    #[inline]
    fn as_dispatcher<R>(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        is_nothing: impl Fn(&R) -> bool,
        mut body: impl FnMut(&mut RequestStore<S>, &mut ElevatorCx<'_>) -> R,
    ) -> Option<R> {
        if !self.techniques.single_dispatcher {
            return Some(self.locked(meter, Site::Dispatch, cx, |store, cx| {
                self.take_pending(meter, store, cx);
                body(store, cx)
            }));
        }
        if !self.store.may_become_dispatcher(meter) {
            return None;
        }
        // Looked at first, so that those who come in vain leave the cache line where it is.
        if self.dispatching.load(SeqCst) != 0 || self.dispatching.swap(1, SeqCst) != 0 {
            return None;
        }
        let turn = Turn(&self.dispatching);
        Some(self.locked(meter, Site::Dispatch, cx, |store, cx| {
            self.take_pending(meter, store, cx);
            let mut answer = body(store, cx);
            drop(turn);
            // What ended or came meanwhile may be what the policy waits for, and the CPU that brought it has met the turn.
            while is_nothing(&answer) && self.deliver_pending_events(meter, store, cx) {
                answer = body(store, cx);
            }
            answer
        }))
    }

    /// Passes on to the policy what ended and came without its lock. Returns whether anything did.
    fn deliver_pending_events(&self, meter: &impl Meter, store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>) -> bool {
        let (has_ended, has_come) = (self.defers() && !self.finished.is_empty(), self.pending.is_filled());
        if has_ended {
            self.deliver_completions(store, cx);
        }
        self.take_pending(meter, store, cx);
        has_ended || has_come
    }

    /// Notifies the policy of completions.
    #[inline]
    fn deliver_completions(&self, store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>) {
        self.finished.drain(|id| store.call(cx, |policy, cx| policy.finish(cx, id)));
    }

    /// Whether dispatching is worth the lock. Never takes it.
    #[inline]
    #[must_use]
    pub fn has_work(&self) -> bool {
        // In this order: the taker of the lists says that there is work before they are empty.
        self.pending.is_filled() || self.has_work.load(Relaxed) != 0
    }

    /// How many scheduler tags an allocation may use.
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
        let tell = |store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>| {
            store.call(cx, |policy, cx| policy.finish(cx, id));
        };
        match self.needs.completions {
            Completions::AtOnce => self.locked(meter, Site::Finish, cx, tell),
            // There is no contention, so it need not wait; but it is not what a completion pays for.
            Completions::Deferred => self.locked(&NoMeter, Site::Finish, cx, tell),
        }
    }

    /// Whether completions wait for the next lock hold: if the policy allows it, and if there can be contention.
    #[inline]
    fn defers(&self) -> bool {
        Sh::CONTENDS && self.needs.completions == Completions::Deferred
    }

    /// A request that was given out comes back; its insertion follows.
    pub fn on_requeued(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        self.locked(meter, Site::Elevator, cx, |store, cx| store.call(cx, |policy, cx| policy.on_requeued(cx, id)));
    }

    /// The policy's timer has come.
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

    /// The smallest shallow depth that the policy will ask for now.
    #[must_use]
    pub fn min_shallow(&self) -> Option<u32> {
        self.store.aside(|store| store.policy().needs().min_shallow)
    }

    /// Calls the policy itself: for a replay or a test that stands in for the block layer.
    pub fn with_policy(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        what: impl FnOnce(&mut S::Policy, &mut PolicyCx<'_>),
    ) {
        self.locked(meter, Site::Elevator, cx, |store, cx| store.call(cx, what));
    }

    /// Request ids below `capacity` will come from now on. Nothing is held, and no other CPU is here.
    pub fn grow(&mut self, capacity: u32) {
        // Completions that the policy does not know of yet.
        ElevatorCx::alone(Now::default(), |cx| self.locked(&NoMeter, Site::Elevator, cx, |_, _| {}));
        self.finished = FinishedSet::new(capacity);
        self.store.aside(|store| store.grow(capacity));
    }

    /// The policy's tunables, and what each shows now.
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
