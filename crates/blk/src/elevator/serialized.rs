//! A policy behind one lock: everything around a policy that does not depend on which policy it is.
//!
//! The lock, the requests themselves, the merge cache and hash, what the hot path may know without the lock
//! (is there work? how deep may it allocate?), and how completions get in. Every public call takes the policy's
//! lock at most once and no other lock meanwhile, so that it is one *step* of the way.

use crate::bio::{Bio, Op, is_sync};
use crate::ids::{CgroupId, HctxId, IoContextId, RqId};
use crate::ioprio::IoPriority;
use crate::merge::{self, Edge, Merge, MergeRules, NoMerges};
use crate::request::{Marks, Request, Rq};
use crate::sharing::{Lock, Sharing, Word};
use crate::tags::Depth;
use crate::time::Now;
use crate::tunables::{StoreError, Tunable};

use super::finished::FinishedSet;
use super::merge_index::MergeIndex;
use super::reason::Reason;
use super::scheduler::{Allocation, Calls, Completions, Needs, Place, PolicyCx, Requests, Scheduler};

/// A policy and what it needs around it.
pub struct Serialized<S, Sh: Sharing> {
    name: &'static str,
    needs: Needs,
    inner: Sh::Lock<Inner<S>>,
    /// Whether dispatching is worth the lock.
    has_work: Sh::Word,
    /// Shallow depth for reads, sync others and async others; [`NO_LIMIT`] for none.
    depths: [Sh::Word; 3],
    finished: FinishedSet<Sh>,
}

struct Inner<S> {
    policy: S,
    requests: Requests,
    index: MergeIndex,
}

const NO_LIMIT: u64 = u64::MAX;

/// Which of the published depths an allocation falls under.
fn depth_kind(allocation: &Allocation) -> usize {
    match allocation.op {
        Op::Read => 0,
        op if is_sync(op, allocation.flags) => 1,
        _ => 2,
    }
}

impl<S: Scheduler> Inner<S> {
    /// Calls the policy.
    #[inline]
    fn call<R>(&mut self, now: Now, calls: &mut Calls, body: impl FnOnce(&mut S, &mut PolicyCx<'_>) -> R) -> R {
        body(&mut self.policy, &mut PolicyCx { now, requests: &self.requests, calls })
    }

    /// The request that `bio` should try to join, by cache, hash and the policy's own index, in this order.
    fn candidate(&mut self, now: Now, rules: &MergeRules, bio: &Bio, calls: &mut Calls) -> Option<RqId> {
        // The policy is asked about the last merged request wherever that lies: bfq merges queues on that occasion.
        if let Some(last) = self.index.last()
            && rules.alike(self.requests.get(last), bio)
            && self.allows(now, last, bio, calls)
            && rules.edge(self.requests.get(last), bio).is_some()
        {
            return Some(last);
        }
        if rules.nomerges != NoMerges::All {
            return None;
        }
        let requests = &self.requests;
        let by_end = self.index.find(bio.sector, |id| merge::mergeable(requests.get(id)));
        if let Some(id) = by_end
            && rules.edge(self.requests.get(id), bio).is_some()
            && self.allows(now, id, bio, calls)
        {
            return Some(id);
        }
        let front = self.call(now, calls, |policy, cx| policy.front_candidate(cx, bio))?;
        (rules.edge(self.requests.get(front), bio) == Some(Edge::Front) && self.allows(now, front, bio, calls))
            .then_some(front)
    }

    fn allows(&mut self, now: Now, id: RqId, bio: &Bio, calls: &mut Calls) -> bool {
        self.call(now, calls, |policy, cx| policy.allow_merge(cx, id, bio))
    }

    /// After `id` grew at `edge`: joins it with its neighbour if the gap between them is closed.
    fn after_growth(
        &mut self,
        now: Now,
        rules: &MergeRules,
        id: RqId,
        edge: Edge,
        freed: &mut Vec<Rq>,
        calls: &mut Calls,
    ) {
        let (first, second) = match edge {
            Edge::Back => (Some(id), self.policy.next(id)),
            Edge::Front => (self.policy.previous(id), Some(id)),
        };
        if let (Some(first), Some(second)) = (first, second)
            && rules.may_absorb(self.requests.get(first), self.requests.get(second))
        {
            freed.push(self.absorb(now, first, second, calls));
            return;
        }
        self.call(now, calls, |policy, cx| policy.grown(cx, id, edge));
        if edge == Edge::Back {
            self.index.hash(id, self.requests.get(id).end());
        }
        self.index.set_last(id);
    }

    /// Lets `first` absorb `second`; both are inserted and adjacent.
    fn absorb(&mut self, now: Now, first: RqId, second: RqId, calls: &mut Calls) -> Rq {
        self.call(now, calls, |policy, cx| policy.absorbed(cx, first, second));
        self.index.forget(second);
        let absorbed = self.requests.join(first, second, merge::absorb);
        self.index.hash(first, self.requests.get(first).end());
        self.index.set_last(first);
        absorbed
    }

    /// Appends a request on its way in to one that is queued, if one ends where it starts, and goes on with the
    /// grown one. Answers the newcomer if it found no such request.
    fn insertion_merge(
        &mut self,
        now: Now,
        rules: &MergeRules,
        mut rq: Rq,
        freed: &mut Vec<Rq>,
        calls: &mut Calls,
    ) -> Option<Rq> {
        if rules.nomerges == NoMerges::Nothing || !merge::mergeable(&rq) {
            return Some(rq);
        }
        let last = self.index.last().filter(|&last| rules.may_absorb(self.requests.get(last), &rq));
        let mut survivor = match last {
            Some(last) => last,
            None if rules.nomerges == NoMerges::All => match self.appendable(rules, &rq) {
                Some(id) => id,
                None => return Some(rq),
            },
            None => return Some(rq),
        };
        merge::absorb(self.requests.get_mut(survivor), &mut rq);
        self.call(now, calls, |policy, cx| policy.dropped(cx, rq.id()));
        freed.push(rq);
        self.call(now, calls, |policy, cx| policy.grown(cx, survivor, Edge::Back));
        self.index.hash(survivor, self.requests.get(survivor).end());
        self.index.set_last(survivor);
        if last.is_none() {
            while let Some(first) = self.appendable_id(rules, survivor) {
                freed.push(self.absorb(now, first, survivor, calls));
                survivor = first;
            }
        }
        None
    }

    /// The hashed request that may absorb `rq`.
    fn appendable(&mut self, rules: &MergeRules, rq: &Request) -> Option<RqId> {
        let requests = &self.requests;
        let id = self.index.find(rq.sector, |id| merge::mergeable(requests.get(id)))?;
        rules.may_absorb(self.requests.get(id), rq).then_some(id)
    }

    fn appendable_id(&mut self, rules: &MergeRules, id: RqId) -> Option<RqId> {
        let requests = &self.requests;
        let first = self.index.find(requests.get(id).sector, |id| merge::mergeable(requests.get(id)))?;
        (first != id && rules.may_absorb(requests.get(first), requests.get(id))).then_some(first)
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
            inner: Sh::Lock::new(Inner { policy, requests: Requests::new(capacity), index: MergeIndex::new(capacity) }),
            has_work: Sh::Word::new(0),
            depths: [NO_LIMIT; 3].map(Sh::Word::new),
            finished: FinishedSet::new(capacity),
        };
        serialized.inner.with(|inner| serialized.publish_depths(inner));
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
    fn locked<R>(&self, now: Now, calls: &mut Calls, body: impl FnOnce(&mut Inner<S>, &mut Calls) -> R) -> R {
        self.inner.with(|inner| {
            if self.needs.completions == Completions::Deferred {
                self.finished.drain(|id| inner.call(now, calls, |policy, cx| policy.finish(cx, id)));
            }
            let answer = body(inner, calls);
            self.has_work.store(u64::from(inner.policy.has_work()));
            answer
        })
    }

    /// Publishes the tag limits, so that allocation need not ask under the lock.
    fn publish_depths(&self, inner: &mut Inner<S>) {
        let probes = [(Op::Read, false), (Op::Write, true), (Op::Write, false)];
        for (word, (op, sync)) in self.depths.iter().zip(probes) {
            let flags = if sync { crate::bio::BioFlags::SYNC } else { crate::bio::BioFlags::NONE };
            let allocation = Allocation {
                op,
                flags,
                io_context: IoContextId::default(),
                ioprio: IoPriority::UNSET,
                cgroup: CgroupId::ROOT,
            };
            let mut calls = Calls::default();
            let limit = inner.call(Now::default(), &mut calls, |policy, cx| policy.limit_depth(cx, &allocation));
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
        self.locked(now, calls, |inner, calls| {
            let candidate = bio.as_ref()?;
            if self.needs.bios {
                inner.call(now, calls, |policy, cx| policy.bio_arrived(cx, candidate));
            }
            let id = inner.candidate(now, rules, candidate, calls)?;
            match rules.merge(inner.requests.get_mut(id), bio) {
                Merge::Merged(edge) => {
                    inner.after_growth(now, rules, id, edge, freed, calls);
                    Some(edge)
                }
                Merge::TooLong => {
                    inner.index.uncache(id);
                    None
                }
                Merge::No => None,
            }
        })
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
        self.locked(now, calls, |inner, calls| {
            for rq in list {
                inner.call(now, calls, |policy, cx| policy.arrived(cx, &rq));
                let Some(mut rq) = inner.insertion_merge(now, rules, rq, freed, calls) else { continue };
                rq.marks.set(Marks::INSERTED);
                let (id, end) = (rq.id(), rq.end());
                let findable = place == Place::Sorted && merge::mergeable(&rq);
                inner.requests.hold(rq);
                inner.call(now, calls, |policy, cx| policy.insert(cx, id, place));
                if findable {
                    inner.index.hash(id, end);
                    inner.index.set_last_if_none(id);
                }
            }
        });
    }

    /// Asks the policy for the next request.
    #[inline]
    pub fn dispatch(&self, now: Now, hctx: HctxId, calls: &mut Calls) -> (Option<Rq>, Reason) {
        self.locked(now, calls, |inner, calls| {
            let choice = inner.call(now, calls, |policy, cx| policy.dispatch(cx, hctx));
            let rq = choice.rq.map(|id| {
                inner.index.forget(id);
                let mut rq = inner.requests.release(id);
                rq.marks.set(Marks::STARTED);
                rq
            });
            (rq, choice.reason)
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
    pub fn limit_depth(&self, now: Now, allocation: &Allocation, calls: &mut Calls) -> Depth {
        let limit = if self.needs.depth_by_context {
            self.locked(now, calls, |inner, calls| {
                inner.call(now, calls, |policy, cx| policy.limit_depth(cx, allocation))
            })
        } else {
            match self.depths[depth_kind(allocation)].load() {
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
            self.locked(now, calls, |inner, calls| inner.call(now, calls, |policy, cx| policy.prepare(cx, rq)));
        }
    }

    /// A request that was inserted has been released.
    #[inline]
    pub fn finish(&self, now: Now, id: RqId, calls: &mut Calls) {
        match self.needs.completions {
            Completions::Deferred => self.finished.add(id),
            Completions::AtOnce => {
                self.locked(now, calls, |inner, calls| inner.call(now, calls, |policy, cx| policy.finish(cx, id)));
            }
        }
    }

    /// A request that was given out comes back; its insertion follows.
    pub fn requeued(&self, now: Now, id: RqId, calls: &mut Calls) {
        self.locked(now, calls, |inner, calls| inner.call(now, calls, |policy, cx| policy.requeued(cx, id)));
    }

    /// The policy's timer has come.
    pub fn timer(&self, now: Now, calls: &mut Calls) {
        self.locked(now, calls, |inner, calls| inner.call(now, calls, |policy, cx| policy.timer(cx)));
    }

    /// Something happened to a process or cgroup.
    pub fn tell(&self, now: Now, calls: &mut Calls, what: impl FnOnce(&mut S, &mut PolicyCx<'_>)) {
        self.locked(now, calls, |inner, calls| inner.call(now, calls, what));
    }

    /// `nr_requests` has changed.
    pub fn depth_updated(&self, nr_requests: u32) {
        self.inner.with(|inner| {
            inner.policy.depth_updated(nr_requests);
            self.publish_depths(inner);
        });
    }

    /// Request ids below `capacity` will come from now on. Nothing is held, and nobody else is here.
    pub fn grow(&mut self, capacity: u32) {
        // What has ended and was not told of yet.
        self.locked(Now::default(), &mut Calls::default(), |_, _| {});
        self.finished = FinishedSet::new(capacity);
        self.inner.with(|inner| {
            inner.requests.grow(capacity);
            inner.index.grow(capacity);
            inner.policy.grow(capacity);
        });
    }

    /// The policy's tunables.
    #[must_use]
    pub fn tunables(&self) -> &'static [Tunable] {
        self.inner.with(|inner| inner.policy.tunables())
    }

    /// A tunable's value as its file shows it.
    ///
    /// # Errors
    /// If there is no such tunable.
    pub fn tunable(&self, name: &str) -> Result<i128, StoreError> {
        self.inner.with(|inner| {
            let index = inner.policy.tunables().iter().position(|tunable| tunable.name == name);
            index.map(|index| inner.policy.tunable(index)).ok_or(StoreError::Unknown)
        })
    }

    /// Writes a tunable, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, calls: &mut Calls) -> Result<(), StoreError> {
        self.locked(now, calls, |inner, calls| {
            let tunables = inner.policy.tunables();
            let index = tunables.iter().position(|tunable| tunable.name == name).ok_or(StoreError::Unknown)?;
            let value = tunables[index].parse(inner.policy.grammar(), text)?;
            inner.call(now, calls, |policy, cx| policy.set_tunable(cx, index, value));
            self.publish_depths(inner);
            Ok(())
        })
    }
}
