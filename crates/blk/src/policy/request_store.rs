//! A policy together with its requests: merging, insertion and dispatch, for any policy under any lock.
//!
//! It holds the requests and the merge cache and hash, and determines the order of notifications to the policy. [`Serialized`]
//! gives a store its own lock; a queue with a single lock keeps the store under that.
//!
//! [`Serialized`]: super::Serialized

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};
use crate::request::merge::{self, Edge, Merge, MergeRules, Merging};
use crate::request::{Marks, Request, Rq};

use super::merge_index::MergeIndex;
use super::scheduler::{ElevatorCx, Place, PolicyCx, Requests, Scheduler};
use crate::watch::reason::Reason;

/// A policy of a dynamic type.
pub type BoxedScheduler = Box<dyn Scheduler + Send>;

/// The policy that a request store owns, boxed or not. Calls go to the contents of the box, so [`Scheduler`] need not be
/// implemented for boxes.
pub trait OwnedPolicy {
    /// The type of the policy, possibly dynamic.
    type Policy: Scheduler + ?Sized;

    /// The policy, for queries.
    fn policy(&self) -> &Self::Policy;

    /// The policy, for commands and notifications.
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

/// A policy and its requests.
pub struct RequestStore<S> {
    policy: S,
    requests: Requests,
    index: MergeIndex,
    /// Whether the policy is notified of every bio.
    wants_bio_events: bool,
}

impl<S: OwnedPolicy> RequestStore<S> {
    /// A store for this policy and requests with ids below `capacity`.
    pub fn new(policy: S, capacity: u32) -> Self {
        let wants_bio_events = policy.policy().needs().bios;
        RequestStore { policy, requests: Requests::new(capacity), index: MergeIndex::new(capacity), wants_bio_events }
    }

    /// The policy, for queries without a context.
    #[inline]
    pub fn policy(&self) -> &S::Policy {
        self.policy.policy()
    }

    /// Whether a bio is relevant here: there are requests that it might merge with, or the policy is notified of bios.
    #[inline]
    pub fn meets_bios(&self) -> bool {
        self.wants_bio_events || !self.requests.is_empty()
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
        body(self.policy.policy_mut(), &mut PolicyCx { now: cx.now, requests: &self.requests, requested: cx.requested })
    }

    // --- merging ---

    /// Tries to merge a bio into a request; on success the bio is taken out of its option. Requests that were merged into
    /// others are added to [`freed`](ElevatorCx::freed).
    #[inline]
    pub fn merge_bio(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        let candidate = bio.as_ref()?;
        if self.wants_bio_events {
            self.call(cx, |policy, cx| policy.on_bio(cx, candidate));
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

    /// The merge candidate for `bio`, from the cache, the hash, and the policy's own index, in this order.
    #[inline(always)]
    fn candidate(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, bio: &Bio) -> Option<RqId> {
        // The policy is asked about the last merged request wherever it is: bfq merges queues as a side effect.
        if let Some(last) = self.index.cached()
            && rules.alike(self.requests.get(last), bio)
            && self.allows(cx, last, bio)
            && rules.edge(self.requests.get(last), bio).is_some()
        {
            return Some(last);
        }
        if rules.merging != Merging::Full {
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

    /// Merges `id`, which has grown at `edge`, with its neighbour if they are now adjacent.
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
        self.call(cx, |policy, cx| policy.on_grown(cx, id, edge));
        if edge == Edge::Back {
            self.index.hash(id, self.requests.get(id).end());
        }
        self.index.cache(id);
    }

    /// Merges `second` into `first`; both are inserted and adjacent.
    fn absorb(&mut self, cx: &mut ElevatorCx<'_>, first: RqId, second: RqId) {
        self.call(cx, |policy, cx| policy.on_absorbed(cx, first, second));
        self.index.forget(second);
        let absorbed = self.requests.join(first, second, merge::absorb);
        self.index.hash(first, self.requests.get(first).end());
        self.index.cache(first);
        cx.freed.push(absorbed);
    }

    // --- insertion and dispatch ---

    /// Inserts a request, unless it is merged into a queued one.
    #[inline]
    pub fn insert(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, rq: Rq, place: Place) {
        self.call(cx, |policy, cx| policy.on_arrived(cx, &rq));
        if let Some(rq) = self.insertion_merge(cx, rules, rq) {
            self.take_in(cx, rq, place);
        }
    }

    /// Inserts a request without merging.
    #[inline]
    pub fn take_in(&mut self, cx: &mut ElevatorCx<'_>, mut rq: Rq, place: Place) {
        rq.marks.set(Marks::INSERTED);
        let (id, end) = (rq.id(), rq.end());
        let findable = place == Place::Sorted && merge::mergeable(&rq);
        self.requests.hold(rq);
        self.call(cx, |policy, cx| policy.insert(cx, id, place));
        if findable {
            self.index.hash(id, end);
            self.index.cache_if_empty(id);
        }
    }

    /// Merges a new request into a queued one that ends where it starts, and continues with the grown one. Returns the request
    /// if there is no such candidate.
    #[inline]
    fn insertion_merge(&mut self, cx: &mut ElevatorCx<'_>, rules: &MergeRules, mut rq: Rq) -> Option<Rq> {
        if rules.merging == Merging::Off || !merge::mergeable(&rq) {
            return Some(rq);
        }
        let last = self.index.cached().filter(|&last| {
            rules.may_absorb(self.requests.get(last), &rq) && self.policy().allow_request_merge(last, rq.id())
        });
        let mut survivor = match last {
            Some(last) => last,
            None if rules.merging == Merging::Full => match self.appendable(rules, &rq) {
                Some(id) => id,
                None => return Some(rq),
            },
            None => return Some(rq),
        };
        merge::absorb(self.requests.get_mut(survivor), &mut rq);
        self.call(cx, |policy, cx| policy.on_dropped(cx, rq.id()));
        cx.freed.push(rq);
        self.call(cx, |policy, cx| policy.on_grown(cx, survivor, Edge::Back));
        self.index.hash(survivor, self.requests.get(survivor).end());
        self.index.cache(survivor);
        if last.is_none() {
            while let Some(first) = self.appendable_id(rules, survivor) {
                self.absorb(cx, first, survivor);
                survivor = first;
            }
        }
        None
    }

    /// The hashed request that `rq` can be merged into.
    #[inline(always)]
    fn appendable(&mut self, rules: &MergeRules, rq: &Request) -> Option<RqId> {
        let requests = &self.requests;
        let id = self.index.find(rq.sector, |id| merge::mergeable(requests.get(id)))?;
        (rules.may_absorb(self.requests.get(id), rq) && self.policy().allow_request_merge(id, rq.id())).then_some(id)
    }

    fn appendable_id(&mut self, rules: &MergeRules, id: RqId) -> Option<RqId> {
        let requests = &self.requests;
        let first = self.index.find(requests.get(id).sector, |id| merge::mergeable(requests.get(id)))?;
        (first != id
            && rules.may_absorb(requests.get(first), requests.get(id))
            && self.policy().allow_request_merge(first, id))
        .then_some(first)
    }

    /// Dispatches the next request.
    #[inline]
    pub fn dispatch(&mut self, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        let choice = self.call(cx, |policy, cx| policy.dispatch(cx, hctx));
        (choice.rq.map(|id| self.release_dispatched(id)), choice.reason)
    }

    /// Dispatches all requests into `out`, in the policy's order. `ids` is a buffer.
    pub fn drain(&mut self, cx: &mut ElevatorCx<'_>, ids: &mut Vec<RqId>, mut out: impl FnMut(Rq)) {
        self.call(cx, |policy, cx| match policy.legacy_hooks() {
            Some(hooks) => hooks.drain(cx, HctxId(0), ids),
            None => ids.extend(std::iter::from_fn(|| policy.dispatch(cx, HctxId(0)).rq)),
        });
        for id in ids.drain(..) {
            out(self.release_dispatched(id));
        }
    }

    /// Removes a request that the policy has dispatched.
    #[inline]
    fn release_dispatched(&mut self, id: RqId) -> Rq {
        self.index.forget(id);
        self.requests.release(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Op;
    use crate::bio::limits::Limits;
    use crate::ground::ids::Sector;
    use crate::ground::kernel::Kernel;
    use crate::ground::sharing::Local;
    use crate::ground::time::{Instant, Now};
    use crate::policy::{Choice, Needs};
    use crate::request::RequestPool;

    /// A policy that dispatches what came first, and names one request for front merges.
    #[derive(Default)]
    struct Table {
        bios: bool,
        queue: Vec<RqId>,
        front: Option<RqId>,
        refuses: bool,
        /// Neighbours by sector: the one before and the one behind.
        neighbours: Option<(RqId, RqId)>,
        arrived: u32,
    }

    impl Scheduler for Table {
        fn needs(&self) -> Needs {
            Needs { bios: self.bios, ..Needs::default() }
        }
        fn insert(&mut self, _: &mut PolicyCx<'_>, id: RqId, _: Place) {
            self.queue.push(id);
        }
        fn dispatch(&mut self, _: &mut PolicyCx<'_>, _: HctxId) -> Choice {
            let rq = (!self.queue.is_empty()).then(|| self.queue.remove(0));
            Choice { rq, reason: Reason::Empty }
        }
        fn finish(&mut self, _: &mut PolicyCx<'_>, _: RqId) {}
        fn has_work(&self) -> bool {
            !self.queue.is_empty()
        }
        fn on_arrived(&mut self, _: &mut PolicyCx<'_>, _: &Request) {
            self.arrived += 1;
        }
        fn allow_merge(&mut self, _: &mut PolicyCx<'_>, _: RqId, _: &Bio) -> bool {
            !self.refuses
        }
        fn front_candidate(&self, _: &PolicyCx<'_>, _: &Bio) -> Option<RqId> {
            self.front
        }
        fn next(&self, id: RqId) -> Option<RqId> {
            self.neighbours.filter(|&(before, _)| before == id).map(|(_, behind)| behind)
        }
        fn on_absorbed(&mut self, _: &mut PolicyCx<'_>, _: RqId, absorbed: RqId) {
            self.queue.retain(|&id| id != absorbed);
            self.neighbours = None;
        }
    }

    struct Bench {
        pool: RequestPool<Local>,
        store: RequestStore<Table>,
        rules: MergeRules,
        next: u32,
    }

    impl Bench {
        fn new(table: Table) -> Self {
            let limits = Limits { max_sectors: 32, ..Limits::default() };
            let rules = MergeRules::new(&Kernel::V6_18.generation(), limits, Merging::Full);
            Bench { pool: RequestPool::new(8), store: RequestStore::new(table, 8), rules, next: 0 }
        }

        fn with<R>(&mut self, body: impl FnOnce(&mut RequestStore<Table>, &mut ElevatorCx<'_>, &MergeRules) -> R) -> R {
            ElevatorCx::alone(Now::default(), |cx| {
                let result = body(&mut self.store, cx, &self.rules);
                cx.freed.drain(..).for_each(|rq| self.pool.put(rq));
                result
            })
        }

        fn insert(&mut self, sector: u64, sectors: u32) -> RqId {
            let id = RqId(self.next);
            self.next += 1;
            let mut rq = self.pool.take(id);
            rq.found(Bio::new(Op::Write, Sector(sector), sectors), Instant::ZERO);
            self.with(|store, cx, rules| store.insert(cx, rules, rq, Place::Sorted));
            id
        }

        fn merges(&mut self, sector: u64) -> Option<Edge> {
            let mut bio = Some(Bio::new(Op::Write, Sector(sector), 8));
            self.with(|store, cx, rules| store.merge_bio(cx, rules, &mut bio))
        }

        /// Start and end of each request, in dispatch order.
        fn drain(mut self) -> Vec<(u64, u64)> {
            let mut dispatched = Vec::new();
            while let Some(rq) = self.with(|store, cx, _| store.dispatch(cx, HctxId(0)).0) {
                dispatched.push((rq.sector.0, rq.end().0));
                self.pool.put(rq);
            }
            dispatched
        }
    }

    #[test]
    fn a_bio_may_merge_if_requests_are_held_or_the_policy_asks_for_bios() {
        let mut bench = Bench::new(Table::default());
        assert!(!bench.store.meets_bios());
        bench.insert(100, 8);
        assert!(bench.store.meets_bios());
        assert_eq!(bench.drain(), [(100, 108)]);
        assert!(Bench::new(Table { bios: true, ..Table::default() }).store.meets_bios());
    }

    #[test]
    fn every_incoming_request_is_announced_whether_absorbed_or_not() {
        let mut bench = Bench::new(Table::default());
        [100, 108, 300].into_iter().for_each(|sector| {
            bench.insert(sector, 8);
        });
        assert_eq!(bench.store.policy().arrived, 3);
        assert_eq!(bench.drain(), [(100, 116), (300, 308)]);
    }

    #[test]
    fn a_front_merge_needs_a_request_that_begins_there_and_the_policys_consent() {
        for (refuses, sector, merged) in [(false, 192, true), (true, 192, false), (false, 191, false)] {
            let mut bench = Bench::new(Table { refuses, ..Table::default() });
            bench.store.policy.front = Some(bench.insert(200, 8));
            // Not found by the cache, which holds the one that came last.
            let last = bench.insert(5000, 8);
            bench.store.index.cache(last);
            assert_eq!(bench.merges(sector), merged.then_some(Edge::Front), "{sector}");
            bench.drain();
        }
    }

    #[test]
    fn a_request_that_was_absorbed_into_is_found_by_its_new_end_and_is_the_last_merged_one() {
        let mut bench = Bench::new(Table::default());
        let first = bench.insert(100, 8);
        let second = bench.insert(116, 8);
        bench.store.policy.neighbours = Some((first, second));
        assert_eq!(bench.merges(108), Some(Edge::Back), "it closes the gap");
        assert_eq!(bench.store.index.cached(), Some(first));
        let last = bench.insert(5000, 8);
        bench.store.index.cache(last);
        assert_eq!(bench.merges(124), Some(Edge::Back));
        assert_eq!(bench.drain(), [(100, 132), (5000, 5008)]);
    }

    #[test]
    fn a_request_that_absorbs_a_newcomer_becomes_the_last_merged_one() {
        let mut bench = Bench::new(Table::default());
        let first = bench.insert(100, 8);
        let last = bench.insert(5000, 8);
        bench.store.index.cache(last);
        bench.insert(108, 8);
        assert_eq!(bench.store.index.cached(), Some(first));
        assert_eq!(bench.drain(), [(100, 116), (5000, 5008)]);
    }

    #[test]
    fn a_full_request_yields_the_merge_cache_to_the_next_one() {
        let mut bench = Bench::new(Table::default());
        bench.rules.merging = Merging::Simple;
        bench.insert(100, 32);
        assert_eq!(bench.merges(132), None);
        bench.insert(132, 8);
        assert_eq!(bench.merges(140), Some(Edge::Back));
        assert_eq!(bench.drain(), [(100, 132), (132, 148)]);
    }
}
