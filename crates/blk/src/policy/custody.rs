//! A policy with the requests that it decides on: merging, insertion and giving out, whatever the policy and whoever
//! locks.
//!
//! The requests themselves, the merge cache and hash, and the order in which the policy is told. [`Serialized`] puts a
//! custody behind a lock of its own; a queue with one lock for everything keeps it under that.
//!
//! [`Serialized`]: super::Serialized

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};
use crate::request::merge::{self, Edge, Merge, MergeRules, NoMerges};
use crate::request::{Marks, Request, Rq};

use super::merge_index::MergeIndex;
use super::scheduler::{ElevatorCx, Place, PolicyCx, Requests, Scheduler};
use crate::watch::reason::Reason;

/// A policy of somebody's own, whose type is not known here.
pub type BoxedScheduler = Box<dyn Scheduler + Send>;

/// What a custody owns: a policy, or a box with one. Calls go to what is in the box, so that no function of [`Scheduler`]
/// has to be forwarded.
pub trait OwnedPolicy {
    /// The policy, known by its type or not.
    type Policy: Scheduler + ?Sized;

    /// To be asked.
    fn policy(&self) -> &Self::Policy;

    /// To be told.
    fn policy_mut(&mut self) -> &mut Self::Policy;
}

impl<S: Scheduler> OwnedPolicy for S {
    type Policy = S;

    #[inline(always)]
    fn policy(&self) -> &S {
        self
    }

    #[inline(always)]
    fn policy_mut(&mut self) -> &mut S {
        self
    }
}

impl OwnedPolicy for BoxedScheduler {
    type Policy = dyn Scheduler + Send;

    fn policy(&self) -> &Self::Policy {
        &**self
    }

    fn policy_mut(&mut self) -> &mut Self::Policy {
        &mut **self
    }
}

/// A policy and the requests that it has been given.
pub struct Custody<S> {
    policy: S,
    requests: Requests,
    index: MergeIndex,
    /// Whether the policy wants to know of every bio.
    tells_bios: bool,
}

impl<S: OwnedPolicy> Custody<S> {
    /// Takes requests with ids below `capacity` for this policy.
    pub fn new(policy: S, capacity: u32) -> Self {
        let tells_bios = policy.policy().needs().bios;
        Custody { policy, requests: Requests::new(capacity), index: MergeIndex::new(capacity), tells_bios }
    }

    /// The policy, to be asked what needs no surroundings.
    #[inline]
    pub fn policy(&self) -> &S::Policy {
        self.policy.policy()
    }

    /// Whether a bio could meet anything here: a request to be merged with, or a policy that wants to know of it.
    #[inline]
    pub fn meets_bios(&self) -> bool {
        self.tells_bios || !self.requests.is_empty()
    }

    /// Makes room for requests with ids below `capacity`.
    pub fn grow(&mut self, capacity: u32) {
        self.requests.grow(capacity);
        self.index.grow(capacity);
        self.policy.policy_mut().grow(capacity);
    }

    /// Calls the policy.
    #[inline]
    pub fn call<R>(&mut self, cx: &mut ElevatorCx<'_>, body: impl FnOnce(&mut S::Policy, &mut PolicyCx<'_>) -> R) -> R {
        body(self.policy.policy_mut(), &mut PolicyCx { now: cx.now, requests: &self.requests, wishes: cx.wishes })
    }

    // --- merging ---

    /// Tries to merge a bio into a request. It is taken out of its option exactly when that succeeded. Requests that
    /// were absorbed on the way are [freed](ElevatorCx::freed).
    #[inline]
    pub fn merge_bio(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        let candidate = bio.as_ref()?;
        if self.tells_bios {
            self.call(cx, |policy, cx| policy.bio_arrived(cx, candidate));
        }
        let id = self.candidate(cx, rules, candidate)?;
        match rules.merge(self.requests.get_mut(id), bio) {
            Merge::Merged(edge) => {
                self.after_growth(cx, rules, id, edge);
                Some(edge)
            }
            Merge::TooLong => {
                self.index.uncache(id);
                None
            }
            Merge::No => None,
        }
    }

    /// The request that `bio` should try to join, by cache, hash and the policy's own index, in this order.
    #[inline(always)]
    fn candidate(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, bio: &Bio) -> Option<RqId> {
        // The policy is asked about the last merged request wherever that lies: bfq merges queues on that occasion.
        if let Some(last) = self.index.last()
            && rules.alike(self.requests.get(last), bio)
            && self.allows(cx, last, bio)
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
            && self.allows(cx, id, bio)
        {
            return Some(id);
        }
        let front = self.call(cx, |policy, cx| policy.front_candidate(cx, bio))?;
        (rules.edge(self.requests.get(front), bio) == Some(Edge::Front) && self.allows(cx, front, bio)).then_some(front)
    }

    fn allows(&mut self, cx: &mut ElevatorCx<'_>, id: RqId, bio: &Bio) -> bool {
        self.call(cx, |policy, cx| policy.allow_merge(cx, id, bio))
    }

    /// After `id` grew at `edge`: joins it with its neighbour if the gap between them is closed.
    fn after_growth(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, id: RqId, edge: Edge) {
        let (first, second) = match edge {
            Edge::Back => (Some(id), self.policy().next(id)),
            Edge::Front => (self.policy().previous(id), Some(id)),
        };
        if let (Some(first), Some(second)) = (first, second)
            && rules.may_absorb(self.requests.get(first), self.requests.get(second))
        {
            self.absorb(cx, first, second);
            return;
        }
        self.call(cx, |policy, cx| policy.grown(cx, id, edge));
        if edge == Edge::Back {
            self.index.hash(id, self.requests.get(id).end());
        }
        self.index.set_last(id);
    }

    /// Lets `first` absorb `second`; both are inserted and adjacent.
    fn absorb(&mut self, cx: &mut ElevatorCx<'_>, first: RqId, second: RqId) {
        self.call(cx, |policy, cx| policy.absorbed(cx, first, second));
        self.index.forget(second);
        let absorbed = self.requests.join(first, second, merge::absorb);
        self.index.hash(first, self.requests.get(first).end());
        self.index.set_last(first);
        cx.freed.push(absorbed);
    }

    // --- the way in and out ---

    /// Takes a request in, unless a queued one absorbs it.
    #[inline]
    pub fn insert(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, rq: Rq, place: Place) {
        self.call(cx, |policy, cx| policy.arrived(cx, &rq));
        if let Some(rq) = self.insertion_merge(cx, rules, rq) {
            self.take_in(cx, rq, place);
        }
    }

    /// Takes a request in that joins no other.
    #[inline]
    pub fn take_in(&mut self, cx: &mut ElevatorCx<'_>, mut rq: Rq, place: Place) {
        rq.marks.set(Marks::INSERTED);
        let (id, end) = (rq.id(), rq.end());
        let findable = place == Place::Sorted && merge::mergeable(&rq);
        self.requests.hold(rq);
        self.call(cx, |policy, cx| policy.insert(cx, id, place));
        if findable {
            self.index.hash(id, end);
            self.index.set_last_if_none(id);
        }
    }

    /// Appends a request on its way in to one that is queued, if one ends where it starts, and goes on with the
    /// grown one. Answers the newcomer if it found no such request.
    #[inline]
    fn insertion_merge(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, mut rq: Rq) -> Option<Rq> {
        if rules.nomerges == NoMerges::Nothing || !merge::mergeable(&rq) {
            return Some(rq);
        }
        let last = self
            .index
            .last()
            .filter(|&last| rules.may_absorb(self.requests.get(last), &rq) && self.policy().allow_join(last, rq.id()));
        let mut survivor = match last {
            Some(last) => last,
            None if rules.nomerges == NoMerges::All => match self.appendable(rules, &rq) {
                Some(id) => id,
                None => return Some(rq),
            },
            None => return Some(rq),
        };
        merge::absorb(self.requests.get_mut(survivor), &mut rq);
        self.call(cx, |policy, cx| policy.dropped(cx, rq.id()));
        cx.freed.push(rq);
        self.call(cx, |policy, cx| policy.grown(cx, survivor, Edge::Back));
        self.index.hash(survivor, self.requests.get(survivor).end());
        self.index.set_last(survivor);
        if last.is_none() {
            while let Some(first) = self.appendable_id(rules, survivor) {
                self.absorb(cx, first, survivor);
                survivor = first;
            }
        }
        None
    }

    /// The hashed request that may absorb `rq`.
    #[inline(always)]
    fn appendable(&mut self, rules: &MergeRules, rq: &Request) -> Option<RqId> {
        let requests = &self.requests;
        let id = self.index.find(rq.sector, |id| merge::mergeable(requests.get(id)))?;
        (rules.may_absorb(self.requests.get(id), rq) && self.policy().allow_join(id, rq.id())).then_some(id)
    }

    fn appendable_id(&mut self, rules: &MergeRules, id: RqId) -> Option<RqId> {
        let requests = &self.requests;
        let first = self.index.find(requests.get(id).sector, |id| merge::mergeable(requests.get(id)))?;
        (first != id && rules.may_absorb(requests.get(first), requests.get(id)) && self.policy().allow_join(first, id))
            .then_some(first)
    }

    /// Asks the policy for the next request.
    #[inline]
    pub fn dispatch(&mut self, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        let choice = self.call(cx, |policy, cx| policy.dispatch(cx, hctx));
        (choice.rq.map(|id| self.give_out(id)), choice.reason)
    }

    /// Has the policy give out everything, in its order, into `out`. `ids` is a buffer.
    pub fn drain(&mut self, cx: &mut ElevatorCx<'_>, ids: &mut Vec<RqId>, mut out: impl FnMut(Rq)) {
        self.call(cx, |policy, cx| policy.drain(cx, HctxId(0), ids));
        for id in ids.drain(..) {
            out(self.give_out(id));
        }
    }

    /// Lets a request go that the policy has given out.
    #[inline]
    fn give_out(&mut self, id: RqId) -> Rq {
        self.index.forget(id);
        self.requests.release(id)
    }
}
