//! A policy behind one lock of its own.
//!
//! The lock around the policy's custody, what the hot path may know without the lock (is there work? how deep may it
//! allocate?), and how completions get in. Every public call takes the policy's lock at most once and no other lock
//! meanwhile, so that it is one *step* of the way.

use crate::bio::{Bio, BioFlags, Op, is_sync};
use crate::ids::{HctxId, RqId, Sector};
use crate::merge::{Edge, MergeRules};
use crate::request::{Marks, Request, Rq};
use crate::sharing::{Lock, Sharing, Word};
use crate::tags::Depth;
use crate::time::Now;
use crate::tunables::{StoreError, Tunable};

use super::custody::Custody;
use super::finished::FinishedSet;
use super::reason::Reason;
use super::scheduler::{Calls, Completions, Needs, Place, PolicyCx, Scheduler};

/// A policy and what it needs around it.
pub struct Serialized<S, Sh: Sharing> {
    name: &'static str,
    needs: Needs,
    custody: Sh::Lock<Custody<S>>,
    /// Whether dispatching is worth the lock.
    has_work: Sh::Word,
    /// Shallow depth for reads, sync others and async others; [`NO_LIMIT`] for none.
    depths: [Sh::Word; 3],
    finished: FinishedSet<Sh>,
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

impl<S: Scheduler, Sh: Sharing> Serialized<S, Sh> {
    /// Puts a policy behind a lock; it will be given request ids below `capacity`.
    #[must_use]
    pub fn new(policy: S, capacity: u32) -> Self {
        let needs = policy.needs();
        let serialized: Self = Serialized {
            name: policy.name(),
            needs,
            custody: Sh::Lock::new(Custody::new(policy, capacity)),
            has_work: Sh::Word::new(0),
            depths: [NO_LIMIT; 3].map(Sh::Word::new),
            finished: FinishedSet::new(capacity),
        };
        serialized.custody.with(|custody| serialized.publish_depths(custody));
        serialized
    }

    /// The policy's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the policy needs.
    #[must_use]
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Takes the lock, lets the policy learn what has ended meanwhile, runs `body`, publishes whether there is work.
    #[inline]
    fn locked<R>(&self, now: Now, calls: &mut Calls, body: impl FnOnce(&mut Custody<S>, &mut Calls) -> R) -> R {
        self.custody.with(|custody| {
            if self.defers() {
                self.finished.drain(|id| custody.call(now, calls, |policy, cx| policy.finish(cx, id)));
            }
            let answer = body(custody, calls);
            self.has_work.store(u64::from(custody.policy().has_work()));
            answer
        })
    }

    /// Publishes the tag limits, so that allocation need not ask under the lock.
    fn publish_depths(&self, custody: &mut Custody<S>) {
        let probes = [(Op::Read, false), (Op::Write, true), (Op::Write, false)];
        for (word, (op, sync)) in self.depths.iter().zip(probes) {
            let flags = if sync { BioFlags::SYNC } else { BioFlags::NONE };
            let bio = Bio { flags, ..Bio::new(op, Sector(0), 0) };
            let mut calls = Calls::default();
            let limit = custody.call(Now::default(), &mut calls, |policy, cx| policy.limit_depth(cx, &bio));
            word.store(limit.map_or(NO_LIMIT, u64::from));
        }
    }

    /// Tries to merge a bio into a queued request. It is taken out of its option exactly when that succeeded.
    /// Requests that were absorbed on the way are added to `freed`.
    pub fn merge_bio(
        &self,
        now: Now,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
        freed: &mut Vec<Rq>,
        calls: &mut Calls,
    ) -> Option<Edge> {
        self.locked(now, calls, |custody, calls| custody.merge_bio(now, rules, bio, freed, calls))
    }

    /// Takes a list of requests in, in order and under one lock hold. Requests that were absorbed on the way are
    /// added to `freed`.
    pub fn insert(
        &self,
        now: Now,
        rules: &MergeRules,
        list: impl Iterator<Item = Rq>,
        place: Place,
        freed: &mut Vec<Rq>,
        calls: &mut Calls,
    ) {
        self.locked(now, calls, |custody, calls| {
            for rq in list {
                custody.insert(now, rules, rq, place, freed, calls);
            }
        });
    }

    /// Asks the policy for the next request.
    #[inline]
    pub fn dispatch(&self, now: Now, hctx: HctxId, calls: &mut Calls) -> (Option<Rq>, Reason) {
        self.locked(now, calls, |custody, calls| {
            let (mut rq, reason) = custody.dispatch(now, hctx, calls);
            if let Some(rq) = &mut rq {
                rq.marks.set(Marks::STARTED);
            }
            (rq, reason)
        })
    }

    /// Whether dispatching is worth the lock. Never takes it.
    #[inline]
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.has_work.load() != 0
    }

    /// How many scheduler tags an allocation may use.
    #[inline]
    pub fn limit_depth(&self, now: Now, bio: &Bio, calls: &mut Calls) -> Depth {
        let limit = if self.needs.depth_by_context {
            self.locked(now, calls, |custody, calls| custody.call(now, calls, |policy, cx| policy.limit_depth(cx, bio)))
        } else {
            match self.depths[depth_kind(bio)].load() {
                NO_LIMIT => None,
                depth => Some(depth as u32),
            }
        };
        limit.map_or(Depth::Full, Depth::Shallow)
    }

    /// A request was allocated.
    #[inline]
    pub fn prepare(&self, now: Now, rq: &Request, calls: &mut Calls) {
        if self.needs.preparation {
            self.locked(now, calls, |custody, calls| custody.call(now, calls, |policy, cx| policy.prepare(cx, rq)));
        }
    }

    /// A request that was inserted has been released.
    #[inline]
    pub fn finish(&self, now: Now, id: RqId, calls: &mut Calls) {
        if self.defers() {
            self.finished.add(id);
        } else {
            self.locked(now, calls, |custody, calls| custody.call(now, calls, |policy, cx| policy.finish(cx, id)));
        }
    }

    /// Whether completions wait for the next lock hold: if the policy allows it, and if there is anybody to contend with.
    #[inline]
    fn defers(&self) -> bool {
        Sh::CONTENDS && self.needs.completions == Completions::Deferred
    }

    /// A request that was given out comes back; its insertion follows.
    pub fn requeued(&self, now: Now, id: RqId, calls: &mut Calls) {
        self.locked(now, calls, |custody, calls| custody.call(now, calls, |policy, cx| policy.requeued(cx, id)));
    }

    /// The policy's timer has come.
    pub fn timer(&self, now: Now, calls: &mut Calls) {
        self.locked(now, calls, |custody, calls| custody.call(now, calls, |policy, cx| policy.timer(cx)));
    }

    /// Something happened to a process or cgroup.
    pub fn tell(&self, now: Now, calls: &mut Calls, what: impl FnOnce(&mut S, &mut PolicyCx<'_>)) {
        self.locked(now, calls, |custody, calls| custody.call(now, calls, what));
    }

    /// `nr_requests` has changed.
    pub fn depth_updated(&self, nr_requests: u32) {
        self.custody.with(|custody| {
            custody.policy_mut().depth_updated(nr_requests);
            self.publish_depths(custody);
        });
    }

    /// Request ids below `capacity` will come from now on. Nothing is held, and nobody else is here.
    pub fn grow(&mut self, capacity: u32) {
        // What has ended and was not told of yet.
        self.locked(Now::default(), &mut Calls::default(), |_, _| {});
        self.finished = FinishedSet::new(capacity);
        self.custody.with(|custody| custody.grow(capacity));
    }

    /// The policy's tunables.
    #[must_use]
    pub fn tunables(&self) -> &'static [Tunable] {
        self.custody.with(|custody| custody.policy().tunables())
    }

    /// A tunable's value as its file shows it.
    ///
    /// # Errors
    /// If there is no such tunable.
    pub fn tunable(&self, name: &str) -> Result<i128, StoreError> {
        self.custody.with(|custody| custody.tunable(name))
    }

    /// Writes a tunable, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, calls: &mut Calls) -> Result<(), StoreError> {
        self.locked(now, calls, |custody, calls| {
            custody.set_tunable(now, name, text, calls)?;
            self.publish_depths(custody);
            Ok(())
        })
    }
}
