//! The replay of a scheduler's policy, bare: no lock, no merge index, no queue around it. The recording says what was
//! inserted, merged, asked and released.

use std::collections::HashMap;

use hoistway_blk::{
    Bio, CgroupId, Edge, HctxId, Instant, IoContextId, Local, Now, Place, PolicyCx, RequestPool, Requests, RqId,
    Scheduler, Tick, Wishes,
};
use hoistway_trace::iosched::{Dispatch, Event, EventKind, Insert, InsertedBy, Io, Mark, Merge, RqMerge, RqNumber};

use crate::consistency::Consistent;
use crate::fifo::{Baseline, Candidate, longer};
use crate::score::Outcome;

/// Replays a recording with the policy that `make` builds for so many request ids.
pub fn replay<S: Scheduler + Clone>(recording: &Consistent<'_>, make: impl FnOnce(u32) -> S) -> Outcome {
    let mut replay = Replay::new(recording, make);
    for event in &recording.trace().events {
        replay.event(event);
    }
    replay.outcome
}

struct Replay<S> {
    policy: S,
    pool: RequestPool<Local>,
    requests: Requests,
    wishes: Wishes,
    /// Slots that no request has.
    free: Vec<RqId>,
    /// Requests that the scheduler has been told of and that are not released yet.
    live: HashMap<RqNumber, RqId>,
    by_id: Vec<Option<RqNumber>>,
    baseline: Baseline,
    tick: Tick,
    /// Legacy kernels release a request as it completes, and do not say so.
    releases_at_completion: bool,
    outcome: Outcome,
}

impl<S: Scheduler + Clone> Replay<S> {
    fn new(recording: &Consistent<'_>, make: impl FnOnce(u32) -> S) -> Self {
        let header = &recording.trace().header;
        let capacity = recording.at_once();
        let mut replay = Replay {
            policy: make(capacity),
            pool: RequestPool::new(capacity),
            requests: Requests::new(capacity),
            wishes: Wishes::default(),
            free: (0..capacity).rev().map(RqId).collect(),
            live: HashMap::new(),
            by_id: vec![None; capacity as usize],
            baseline: Baseline::default(),
            tick: Tick(0),
            releases_at_completion: matches!(header.scheduler.as_str(), "noop" | "deadline"),
            outcome: Outcome::default(),
        };
        for (name, value) in &header.tunables {
            replay.set_tunable(Instant::ZERO, name, &value.to_string());
        }
        replay
    }

    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => self.insert(event, insert),
            EventKind::Backmerge(merge) => self.grow(event, merge, Edge::Back),
            EventKind::Frontmerge(merge) => self.grow(event, merge, Edge::Front),
            EventKind::Rqmerge(merge) => self.absorb(event, merge),
            EventKind::Dispatch(dispatch) => self.ask(event, dispatch),
            EventKind::Free(free) => self.release(event.t, free.rq),
            EventKind::Complete(complete) if self.releases_at_completion => self.release(event.t, complete.rq),
            EventKind::Mark(Mark::Tunable { name, value }) => self.set_tunable(event.t, name, value),
            EventKind::Unknown(_) => self.outcome.unknown_events += 1,
            _ => {}
        }
    }

    fn call<R>(&mut self, at: Instant, body: impl FnOnce(&mut S, &mut PolicyCx<'_>) -> R) -> R {
        let now = Now { at, tick: self.tick };
        body(&mut self.policy, &mut PolicyCx { now, requests: &self.requests, wishes: &mut self.wishes })
    }

    fn set_tunable(&mut self, at: Instant, name: &str, text: &str) {
        // What the kernel refused it did not show, so a text that we refuse is a difference of parsing: it changes
        // nothing and shows in the decisions.
        let _ = self.call(at, |policy, cx| policy.set_tunable(cx, name, text));
    }

    fn insert(&mut self, event: &Event, insert: &Insert) {
        self.tick = insert.io.j.unwrap_or(self.tick);
        // One that the driver gave back comes in again as what it was.
        let known = self.live.get(&insert.rq).copied();
        if let Some(id) = known {
            self.call(event.t, |policy, cx| policy.requeued(cx, id));
        }
        let Some(id) = known.or_else(|| self.free.pop()) else { return };
        let mut rq = self.pool.take(id);
        let pid = event.pid.unwrap_or(0);
        rq.found(bio_of(&insert.io, pid), event.t);
        self.live.insert(insert.rq, id);
        self.by_id[id.index()] = Some(insert.rq);
        self.requests.hold(rq);
        self.baseline.inside.push(Candidate::new(insert, pid));
        let place = if insert.head { Place::Head } else { Place::Sorted };
        self.call(event.t, |policy, cx| policy.insert(cx, id, place));
    }

    /// A bio joined a request. If that is not inside it was still on a plug list.
    fn grow(&mut self, event: &Event, merge: &Merge, edge: Edge) {
        let Some(id) = self.inside(merge.rq) else { return };
        self.extend(merge.rq, id, &merge.io, edge);
        self.call(event.t, |policy, cx| policy.grown(cx, id, edge));
    }

    fn extend(&mut self, number: RqNumber, id: RqId, io: &Io, edge: Edge) {
        let rq = self.requests.get_mut(id);
        rq.sectors = longer(rq.sectors, io.sectors);
        if edge == Edge::Front {
            rq.sector = io.sector;
        }
        let (sector, sectors) = (rq.sector, rq.sectors);
        if let Some(candidate) = self.baseline.candidate(number) {
            (candidate.sector, candidate.sectors) = (sector, sectors);
        }
    }

    /// A request was absorbed by the one that ends where it starts.
    fn absorb(&mut self, event: &Event, merge: &RqMerge) {
        let Some(survivor) = self.baseline.survivor(merge) else { return };
        let Some(survivor_id) = self.inside(survivor) else { return };
        match self.inside(merge.absorbed) {
            Some(absorbed) => {
                self.call(event.t, |policy, cx| policy.absorbed(cx, survivor_id, absorbed));
                let rq = self.requests.join(survivor_id, absorbed, |_, _| {});
                self.pool.put(rq);
                self.baseline.remove(merge.absorbed);
                self.lengthen(survivor, survivor_id, merge.sectors);
                if self.releases_at_completion {
                    self.release(event.t, merge.absorbed);
                }
            }
            // Absorbed on its way in: for the policy the survivor just grew.
            None => {
                self.lengthen(survivor, survivor_id, merge.sectors);
                self.call(event.t, |policy, cx| policy.grown(cx, survivor_id, Edge::Back));
            }
        }
    }

    fn lengthen(&mut self, number: RqNumber, id: RqId, sectors: u32) {
        let rq = self.requests.get_mut(id);
        rq.sectors = longer(rq.sectors, sectors);
        if let Some(candidate) = self.baseline.candidate(number) {
            candidate.sectors = rq.sectors;
        }
    }

    fn inside(&self, rq: RqNumber) -> Option<RqId> {
        self.live.get(&rq).copied().filter(|&id| self.requests.holds(id))
    }

    fn ask(&mut self, event: &Event, dispatch: &Dispatch) {
        self.tick = dispatch.j;
        let kernel = dispatch.chosen.as_ref().map(|chosen| chosen.rq);
        // A request that never went in (flush machinery) is no decision of the scheduler's.
        if kernel.is_some_and(|rq| self.inside(rq).is_none()) {
            return;
        }
        let before = self.policy.clone();
        let choice = self.call(dispatch.asked, |policy, cx| policy.dispatch(cx, dispatch.hctx));
        let ours = choice.rq.and_then(|id| self.by_id[id.index()]);
        if ours != kernel {
            self.outcome.note(|| {
                self.baseline.explain(event, kernel, ours, choice.reason.text(), |candidate| {
                    let Candidate { rq, sector, sectors, op, prio, pid, .. } = candidate;
                    format!("rq {} {op:?} {prio:?} {}+{sectors} of {pid}", rq.0, sector.0)
                })
            });
            self.policy = before;
            if let Some(id) = kernel.and_then(|rq| self.inside(rq)) {
                self.call(dispatch.asked, |policy, cx| policy.adopt(cx, dispatch.hctx, id));
            }
        }
        self.baseline.judge(&mut self.outcome.score, kernel, ours);
        if let Some(id) = kernel.and_then(|rq| self.inside(rq)) {
            self.pool.put(self.requests.release(id));
        }
    }

    fn release(&mut self, at: Instant, rq: RqNumber) {
        let Some(id) = self.live.remove(&rq) else { return };
        if self.requests.holds(id) {
            // Released without having been given out: the recording drained it some other way.
            self.baseline.remove(rq);
            self.call(at, |policy, cx| policy.adopt(cx, HctxId(0), id));
            self.pool.put(self.requests.release(id));
        }
        self.call(at, |policy, cx| policy.finish(cx, id));
        self.by_id[id.index()] = None;
        self.free.push(id);
    }
}

/// The bio that founds a request as the recording shows it.
fn bio_of(io: &Io, pid: u32) -> Bio {
    Bio {
        sector: io.sector,
        sectors: io.sectors,
        segments: 1,
        op: io.op,
        write_hint: 0,
        flags: io.flags,
        ioprio: io.prio,
        io_context: IoContextId(pid),
        cgroup: io.cg.unwrap_or(CgroupId::ROOT),
        owner: 0,
    }
}
