//! The replay of a scheduler's policy, bare: no lock, no merge index, no queue around it. The recording says what was
//! inserted, merged, asked and released.

use std::collections::HashMap;

use hoistway_blk::{
    Bio, Calls, CgroupId, Edge, HctxId, Instant, IoContextId, Local, Now, Place, PolicyCx, Reason, RequestPool,
    Requests, RqId, Scheduler, Tick,
};
use hoistway_trace::iosched::{
    Dispatch, Event, EventKind, Insert, InsertedBy, Io, Mark, Merge, RqMerge, RqNumber, Trace,
};

use crate::fifo::{Baseline, Candidate};
use crate::score::{Mismatch, Outcome};

/// How many requests of the inside a mismatch lists.
const INSIDE_SHOWN: usize = 8;

/// Replays `trace` with the policy that `make` builds for so many request ids.
pub fn replay<S: Scheduler + Clone>(trace: &Trace, make: impl FnOnce(u32) -> S) -> Outcome {
    let mut replay = Replay::new(trace, make);
    for event in &trace.events {
        replay.event(event);
    }
    replay.outcome
}

struct Replay<S> {
    policy: S,
    pool: RequestPool<Local>,
    requests: Requests,
    calls: Calls,
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
    fn new(trace: &Trace, make: impl FnOnce(u32) -> S) -> Self {
        let queue = &trace.header.queue;
        let tags = u32::from(queue.nr_hw_queues) * queue.nr_requests;
        // A released request may be told of a little later than its successor: leave room.
        let capacity = 2 * tags + 64;
        let mut replay = Replay {
            policy: make(capacity),
            pool: RequestPool::new(capacity),
            requests: Requests::new(capacity),
            calls: Calls::default(),
            free: (0..capacity).rev().map(RqId).collect(),
            live: HashMap::new(),
            by_id: vec![None; capacity as usize],
            baseline: Baseline::default(),
            tick: Tick(0),
            releases_at_completion: matches!(trace.header.scheduler.as_str(), "noop" | "deadline"),
            outcome: Outcome::default(),
        };
        for (name, value) in &trace.header.tunables {
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
        body(&mut self.policy, &mut PolicyCx { now, requests: &self.requests, calls: &mut self.calls })
    }

    fn set_tunable(&mut self, at: Instant, name: &str, text: &str) {
        let tunables = self.policy.tunables();
        let Some(index) = tunables.iter().position(|tunable| tunable.name == name) else { return };
        // What the kernel refused it did not show, so a text that we refuse is a difference of parsing: it changes
        // nothing and shows in the decisions.
        if let Ok(value) = tunables[index].parse(self.policy.grammar(), text) {
            self.call(at, |policy, cx| policy.set_tunable(cx, index, value));
        }
    }

    fn insert(&mut self, event: &Event, insert: &Insert) {
        self.tick = insert.io.j.unwrap_or(self.tick);
        let Some(id) = self.free.pop() else { return };
        let mut rq = self.pool.take(id);
        let pid = event.pid.unwrap_or(0);
        rq.found(bio_of(&insert.io, pid), event.t);
        self.live.insert(insert.rq, id);
        self.by_id[id.index()] = Some(insert.rq);
        self.requests.hold(rq);
        self.baseline.inside.push(Candidate {
            rq: insert.rq,
            sector: insert.io.sector,
            sectors: insert.io.sectors,
            pid,
        });
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
        rq.sectors += io.sectors;
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
        let survivor = match &merge.survivor {
            Some(survivor) => Some(survivor.rq),
            None => self.baseline.inside.iter().find_map(|candidate| {
                let adjacent = candidate.sector + candidate.sectors == merge.sector && candidate.rq != merge.absorbed;
                let alike = merge.io.as_ref().is_none_or(|io| {
                    let op = self.live.get(&candidate.rq).map(|&id| self.requests.get(id).op);
                    op == Some(io.op)
                });
                (adjacent && alike).then_some(candidate.rq)
            }),
        };
        let Some(survivor) = survivor else { return };
        let Some(survivor_id) = self.inside(survivor) else { return };
        match self.inside(merge.absorbed) {
            Some(absorbed) => {
                self.call(event.t, |policy, cx| policy.absorbed(cx, survivor_id, absorbed));
                let rq = self.requests.join(survivor_id, absorbed, |_, _| {});
                self.pool.put(rq);
                self.baseline.remove(merge.absorbed);
                self.lengthen(survivor, survivor_id, merge.sectors);
            }
            // Absorbed on its way in: for the policy the survivor just grew.
            None => {
                self.lengthen(survivor, survivor_id, merge.sectors);
                self.call(event.t, |policy, cx| policy.grown(cx, survivor_id, Edge::Back));
            }
        }
    }

    fn lengthen(&mut self, number: RqNumber, id: RqId, sectors: u32) {
        self.requests.get_mut(id).sectors += sectors;
        if let Some(candidate) = self.baseline.candidate(number) {
            candidate.sectors += sectors;
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
            let mismatch = self.explain(event, kernel, ours, choice.reason);
            self.outcome.note(|| mismatch);
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

    fn explain(&self, event: &Event, kernel: Option<RqNumber>, ours: Option<RqNumber>, reason: Reason) -> Mismatch {
        let show = |candidate: &Candidate| {
            let op = self.live.get(&candidate.rq).map(|&id| self.requests.get(id));
            let what = op.map_or_else(String::new, |rq| format!("{:?} {:?} ", rq.op, rq.ioprio));
            format!("rq {} {what}{}+{} of {}", candidate.rq.0, candidate.sector.0, candidate.sectors, candidate.pid)
        };
        let name = |rq: Option<RqNumber>| {
            let found = self.baseline.inside.iter().find(|candidate| Some(candidate.rq) == rq);
            found.map_or_else(|| "nothing".to_owned(), show)
        };
        Mismatch {
            line: event.line,
            t_ns: event.t.0,
            inside: self.baseline.inside.iter().take(INSIDE_SHOWN).map(show).collect(),
            more: self.baseline.inside.len().saturating_sub(INSIDE_SHOWN),
            kernel: name(kernel),
            ours: name(ours),
            reason: reason.text(),
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
