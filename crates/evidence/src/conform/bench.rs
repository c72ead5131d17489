//! The test bench of conformance replays: requests in the scheduler, the mapping of requests to recorded ones, the
//! policy under test (which continues from the kernel's decision after a difference), and the score. Each scheduler has
//! a file with its own handling of events.
//!
//! [`baseline`] has simple policies that tell hard decisions from easy ones, [`doubts`] finds decisions whose position
//! in the recording is uncertain.

pub(crate) mod baseline;
pub(crate) mod doubts;

use std::collections::{HashMap, HashSet};

use hoistway_blk::bio::{Bio, Limits};
use hoistway_blk::ground::{CgroupId, HctxId, Instant, IoContextId, Local, Now, RqId, Sector};
use hoistway_blk::policy::{Place, PolicyCx, Replayable, RequestedActions, Requests};
use hoistway_blk::request::{Edge, Merging, RequestPool, Rq};
use hoistway_trace::iosched::bounds::SECTORS_MAX;
use hoistway_trace::iosched::{Dispatch, Event, Insert, Io, QueueSettings, RqMerge, RqNumber};

use crate::conform::rules::rule_of;
use crate::conform::score::{AppliedRule, ReplayOutcome};
use baseline::{Baseline, DecisionCandidate};

/// The length of a request after a merge, in sectors. Saturates, since a merge into a request that was recorded
/// incompletely may exceed the maximum.
pub(crate) fn grown_sectors(sectors: u32, by: u32) -> u32 {
    sectors.saturating_add(by).min(SECTORS_MAX)
}

/// The recorded bio. Its physical segments are pages of 4 KiB.
pub(crate) fn bio_of(io: &Io, pid: u32) -> Bio {
    Bio {
        flags: io.flags,
        ioprio: io.prio,
        io_context: IoContextId(pid),
        cgroup: io.cg.unwrap_or(CgroupId::ROOT),
        segments: u16::try_from(io.sectors.div_ceil(8)).unwrap_or(u16::MAX).max(1),
        ..Bio::new(io.op, io.sector, io.sectors)
    }
}

/// The limits of merging. Bios are recorded after splitting.
pub(crate) fn limits_of(queue: &QueueSettings) -> (Limits, Merging) {
    let block = (queue.logical_block_size / 512).max(1);
    let segments = queue.max_segments.min(u32::from(u16::MAX)) as u16;
    let merging = match queue.nomerges {
        0 => Merging::Full,
        1 => Merging::Simple,
        _ => Merging::Off,
    };
    (Limits::new(block, block, queue.max_sectors_kb * 2, u32::MAX, segments), merging)
}

/// Maps our requests to recorded ones.
pub(crate) struct Slots {
    pool: RequestPool<Local>,
    /// Free slots.
    free: Vec<RqId>,
    by_number: HashMap<RqNumber, RqId>,
    by_id: Vec<Option<RqNumber>>,
}

impl Slots {
    pub(crate) fn new(capacity: u32) -> Self {
        Slots {
            pool: RequestPool::new(capacity),
            free: (0..capacity).rev().map(RqId).collect(),
            by_number: HashMap::new(),
            by_id: vec![None; capacity as usize],
        }
    }

    pub(crate) fn id(&self, number: RqNumber) -> Option<RqId> {
        self.by_number.get(&number).copied()
    }

    pub(crate) fn number(&self, id: RqId) -> Option<RqNumber> {
        self.by_id[id.index()]
    }

    /// Creates a request from a bio, in the slot that it already has or in a free one; `None` if there is none.
    pub(crate) fn allocate(&mut self, number: RqNumber, bio: Bio, start: Instant) -> Option<Rq> {
        let id = self.id(number).or_else(|| self.free.pop())?;
        let mut rq = self.pool.take(id);
        rq.found(bio, start);
        self.by_number.insert(number, id);
        self.by_id[id.index()] = Some(number);
        Some(rq)
    }

    /// Returns a request to the pool; its slot stays in use.
    pub(crate) fn put(&mut self, rq: Rq) {
        self.pool.put(rq);
    }

    /// Forgets a request. Its slot becomes free only with [`recycle`](Self::recycle).
    pub(crate) fn forget(&mut self, number: RqNumber) -> Option<RqId> {
        let id = self.by_number.remove(&number)?;
        self.by_id[id.index()] = None;
        Some(id)
    }

    pub(crate) fn recycle(&mut self, id: RqId) {
        self.free.push(id);
    }
}

/// A policy under replay, without a lock, a merge index or a queue.
pub(crate) struct Bench<S> {
    pub(crate) policy: S,
    /// The name of the scheduler, whose rules are counted.
    scheduler: &'static str,
    /// The time of the next calls.
    pub(crate) now: Now,
    /// When the policy's timer is due; `None` if it is not armed.
    pub(crate) timer: Option<Instant>,
    pub(crate) requests: Requests,
    pub(crate) slots: Slots,
    /// Requests that are not in the scheduler.
    pub(crate) outside: HashMap<RqNumber, Rq>,
    pub(crate) baseline: Baseline,
    pub(crate) outcome: ReplayOutcome,
    /// Lines of decisions that were made before their position in the recording.
    decided_early: HashSet<u64>,
}

impl<S: Replayable + Clone> Bench<S> {
    pub(crate) fn new(scheduler: &'static str, policy: S, capacity: u32) -> Self {
        Bench {
            policy,
            scheduler,
            now: Now::default(),
            timer: None,
            requests: Requests::new(capacity),
            slots: Slots::new(capacity),
            outside: HashMap::new(),
            baseline: Baseline::default(),
            outcome: ReplayOutcome::default(),
            decided_early: HashSet::new(),
        }
    }

    pub(crate) fn call<R>(&mut self, body: impl FnOnce(&mut S, &mut PolicyCx<'_>) -> R) -> R {
        let mut requested = RequestedActions::default();
        let mut cx = PolicyCx { now: self.now, requests: &self.requests, requested: &mut requested };
        let result = body(&mut self.policy, &mut cx);
        if requested.cancel_timer {
            self.timer = None;
        }
        self.timer = requested.set_timer.or(self.timer);
        result
    }

    pub(crate) fn set_tunable(&mut self, name: &str, text: &str) {
        // The recording does not show values that the kernel rejected. A text that only we reject is a difference in
        // parsing: it changes nothing here and shows in the decisions.
        let _ = self.call(|policy, cx| policy.set_tunable(cx, name, text));
    }

    /// The slot of a request; `None` if it is not in the scheduler.
    pub(crate) fn inside(&self, number: RqNumber) -> Option<RqId> {
        self.slots.id(number).filter(|&id| self.requests.holds(id))
    }

    /// Creates a request, or takes a requeued one back. Returns whether there is a slot for it.
    pub(crate) fn arrive(&mut self, number: RqNumber, bio: Bio) -> bool {
        if let Some(id) = self.slots.id(number) {
            self.call(|policy, cx| policy.on_requeued(cx, id));
            self.return_to_pool(number);
        }
        let Some(rq) = self.slots.allocate(number, bio, self.now.at) else { return false };
        self.outside.insert(number, rq);
        true
    }

    /// Inserts a request into the scheduler.
    pub(crate) fn insert(&mut self, insert: &Insert, pid: u32) {
        let Some(rq) = self.outside.remove(&insert.rq) else { return };
        let id = rq.id();
        self.requests.hold(rq);
        self.baseline.inside.push(DecisionCandidate::new(insert, pid));
        let place = if insert.head { Place::Head } else { Place::Sorted };
        self.call(|policy, cx| policy.insert(cx, id, place));
    }

    /// Lengthens a request after a merge; after a front merge its new start is `front`. Returns its slot if it is in
    /// the scheduler.
    pub(crate) fn lengthen(&mut self, number: RqNumber, by: u32, front: Option<Sector>) -> Option<RqId> {
        let inside = self.inside(number);
        let rq = match inside {
            Some(id) => self.requests.get_mut(id),
            None => &mut **self.outside.get_mut(&number)?,
        };
        rq.sectors = grown_sectors(rq.sectors, by);
        rq.sector = front.unwrap_or(rq.sector);
        if let Some(candidate) = self.baseline.candidate(number) {
            (candidate.sector, candidate.sectors) = (rq.sector, rq.sectors);
        }
        inside
    }

    /// Lengthens a request after a merge, and notifies the scheduler if the request is in it.
    pub(crate) fn grow(&mut self, number: RqNumber, by: u32, front: Option<Sector>) {
        let edge = if front.is_some() { Edge::Front } else { Edge::Back };
        if let Some(id) = self.lengthen(number, by, front) {
            self.call(|policy, cx| policy.on_grown(cx, id, edge));
        }
    }

    /// Merges two requests in the scheduler. [`grow`](Self::grow) or [`lengthen`](Self::lengthen) must follow.
    pub(crate) fn join(&mut self, survivor: RqId, absorbed: RqId, number: RqNumber) {
        let rq = self.requests.join(survivor, absorbed, |_, _| {});
        self.slots.put(rq);
        self.baseline.remove(number);
    }

    /// Merges a request into the one that ends where it starts: a neighbour in the scheduler, or during insertion,
    /// which the policy sees as a growing request. Returns the surviving request.
    pub(crate) fn absorb(&mut self, merge: &RqMerge) -> Option<RqNumber> {
        let survivor = self.baseline.survivor(merge)?;
        let id = self.inside(survivor)?;
        match self.inside(merge.absorbed) {
            Some(absorbed) => {
                self.call(|policy, cx| policy.on_absorbed(cx, id, absorbed));
                self.join(id, absorbed, merge.absorbed);
                self.lengthen(survivor, merge.sectors, None);
            }
            None => self.grow(survivor, merge.sectors, None),
        }
        Some(survivor)
    }

    /// Calls dispatch at a recorded decision, compares both decisions, and continues from the kernel's; `describe`
    /// formats a request. A decision in doubt counts as made here if ours equals the recorded one.
    pub(crate) fn replay_dispatch(
        &mut self,
        event: &Event,
        dispatch: &Dispatch,
        in_doubt: bool,
        describe: impl Fn(&Self, &DecisionCandidate) -> String,
    ) {
        let kernel = dispatch.chosen.as_ref().map(|chosen| chosen.rq);
        // A request that was never inserted (flush machinery) is not a decision of the scheduler.
        if self.decided_early.remove(&event.line) || kernel.is_some_and(|rq| self.inside(rq).is_none()) {
            return;
        }
        let saved = (self.policy.clone(), self.timer);
        let choice = self.call(|policy, cx| policy.dispatch(cx, dispatch.hctx));
        let ours = choice.rq.and_then(|id| self.slots.number(id));
        let applied = AppliedRule { rule: rule_of(self.scheduler, choice.reason), reason: choice.reason.text() };
        if ours != kernel {
            if !in_doubt {
                let mismatch =
                    self.baseline.explain(event, kernel, ours, applied, |candidate| describe(self, candidate));
                self.outcome.note(|| mismatch);
            }
            (self.policy, self.timer) = saved;
            if in_doubt {
                return;
            }
            if let Some(id) = kernel.and_then(|rq| self.inside(rq)) {
                self.call(|policy, cx| policy.adopt(cx, dispatch.hctx, id));
            }
        } else if in_doubt {
            self.decided_early.insert(event.line);
        }
        self.outcome.rules.entry(applied).or_default().count(ours == kernel);
        self.baseline.judge(&mut self.outcome.score, kernel, ours);
        if let Some(number) = kernel
            && let Some(id) = self.inside(number)
        {
            self.outside.insert(number, self.requests.release(id));
        }
    }

    /// Removes a request that left the scheduler without a dispatch in the recording.
    pub(crate) fn drain(&mut self, number: RqNumber) {
        if let Some(id) = self.inside(number) {
            self.baseline.remove(number);
            self.call(|policy, cx| policy.adopt(cx, HctxId(0), id));
            self.outside.insert(number, self.requests.release(id));
        }
    }

    /// Releases a request.
    pub(crate) fn release(&mut self, number: RqNumber) {
        let Some(id) = self.slots.id(number) else { return };
        self.drain(number);
        self.call(|policy, cx| policy.finish(cx, id));
        self.forget(number);
    }

    /// Frees the slot of a request.
    pub(crate) fn forget(&mut self, number: RqNumber) {
        self.return_to_pool(number);
        if let Some(id) = self.slots.forget(number) {
            self.slots.recycle(id);
        }
    }

    fn return_to_pool(&mut self, number: RqNumber) {
        if let Some(rq) = self.outside.remove(&number) {
            self.slots.put(rq);
        }
    }
}
