//! The replay of bfq's policy, bare. More than other policies it depends on what a recording does not say outright:
//! the clock that stands still under a plug, the edges of ticks, the exits of processes, the moment of a decision.
//!
//! Beside the scores it compares the inner state, line by line.

mod clock;
mod exits;
mod lines;

use std::collections::{HashMap, HashSet};

use hoistway_blk::{
    Bfq, BfqConfig, BfqGroup, Bio, BioFlags, CgroupId, Edge, Hz, Instant, IoContextId, Local, News, Now, Place,
    PolicyCx, RequestPool, Requests, RqId, Scheduler, Wishes,
};
use hoistway_trace::iosched::{
    BioNumber, Dispatch, Event, EventKind, Insert, InsertedBy, Io, Mark, RqMerge, RqNumber, Submitted, Trace,
};

use crate::consistency::Consistent;
use crate::fifo::{Baseline, Candidate, longer};
use crate::kernel_of;
use crate::plugs::unplugged;
use crate::score::Outcome;
use clock::{PlugClocks, TickPhase};

pub use lines::{Difference, Line};

/// Outside of a plug, from the event of an insertion to the moment at which the scheduler reads its clock for it, and from
/// the making of a new queue to that, ns.
const INSERTION: u64 = 4_000;
const QUEUE_MADE_BEFORE: u64 = 6_000;

/// Questions on one CPU that follow each other so closely are one inside the other: the task was pre-empted, ns.
const PRE_EMPTED: u64 = 10_000;

/// The code between the question and the moment at which the scheduler reads its clock, ns.
const QUESTION: u64 = 4_000;

/// What has one of these flags never merges.
const UNMERGEABLE: BioFlags = BioFlags::NOMERGE.with(BioFlags::PREFLUSH).with(BioFlags::FUA);
/// A completion and its consequences are one interrupt if they are no further apart, ns.
const INTERRUPT: u64 = 50_000;
/// From the beginning of an interrupt to its completion event, ns.
const INTERRUPT_ENTRY: u64 = 8_000;

/// Replays a recording.
#[must_use]
pub fn replay(recording: &Consistent<'_>) -> Outcome {
    replay_with_lines(recording).0
}

/// Replays a recording and answers where our inner state differs from the recorded one, in order.
#[must_use]
pub fn replay_with_lines(recording: &Consistent<'_>) -> (Outcome, Vec<Difference>) {
    let trace = recording.trace();
    let mut replay = Replay::new(recording);
    for step in schedule(trace, &replay.pid_of, &replay.unplugged) {
        replay.step(&step);
    }
    let recorded: Vec<(u64, Line)> = trace
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Bfq(state) => lines::recorded(state).map(|line| (event.t.0, line)),
            _ => None,
        })
        .collect();
    let (equal, differences) = lines::compare(&recorded, &replay.lines);
    let mut outcome = replay.outcome;
    outcome.state_lines = Some((equal, recorded.len() as u64));
    (outcome, differences)
}

/// Something that is told to the policy.
struct Step<'a> {
    /// When, for the order, ns.
    at: u64,
    /// What the policy's nanosecond clock shows.
    ns: u64,
    /// The moment whose tick counts, ns.
    tick_at: u64,
    what: What<'a>,
}

enum What<'a> {
    Event(&'a Event),
    Exit(u32),
}

/// Everything in the order in which it happened to the scheduler.
fn schedule<'a>(trace: &'a Trace, pid_of: &HashMap<RqNumber, u32>, unplugged: &HashSet<BioNumber>) -> Vec<Step<'a>> {
    let mut clocks = PlugClocks::new(unplugged);
    let mut steps = Vec::new();
    let mut completed = 0;
    for (index, event) in trace.events.iter().enumerate() {
        let (at, real) = match &event.kind {
            EventKind::Dispatch(dispatch) if holds_another(&trace.events[..index], event, dispatch) => {
                (event.t.0, event.t.0)
            }
            EventKind::Insert(insert) if unplugged.contains(&insert.bio) => (event.t.0, event.t.0 + INSERTION),
            // An interrupt may be logged between the question and the answer although the decision was taken.
            EventKind::Dispatch(dispatch) => (dispatch.asked.0 + QUESTION, dispatch.asked.0),
            _ => (event.t.0, event.t.0),
        };
        let ns = clocks.read(event, real);
        let tick_at = match &event.kind {
            EventKind::Complete(_) => {
                completed = event.t.0;
                at
            }
            // An interrupt that began before a tick's edge does not see the tick.
            EventKind::Finish { .. } if at - completed < INTERRUPT => completed.saturating_sub(INTERRUPT_ENTRY),
            _ => at,
        };
        steps.push(Step { at, ns, tick_at, what: What::Event(event) });
    }
    for (at, pid) in exits::exits(trace, pid_of) {
        steps.push(Step { at, ns: at, tick_at: at, what: What::Exit(pid) });
    }
    steps.sort_by_key(|step| step.at);
    steps
}

/// Whether a question holds another one whole: who asked was pre-empted, and what it decided it decided last.
fn holds_another(before: &[Event], outer: &Event, dispatch: &Dispatch) -> bool {
    let within = before.iter().rev().take_while(|event| event.t >= dispatch.asked);
    within.into_iter().any(|event| match &event.kind {
        EventKind::Dispatch(inner) => {
            event.cpu == outer.cpu && inner.asked > dispatch.asked && inner.asked.0 - dispatch.asked.0 < PRE_EMPTED
        }
        _ => false,
    })
}

struct Replay<'a> {
    trace: &'a Trace,
    phase: TickPhase,
    policy: Bfq,
    pool: RequestPool<Local>,
    requests: Requests,
    wishes: Wishes,
    /// Slots that no request has.
    free: Vec<RqId>,
    /// Requests that the scheduler has been told of and that are not released yet.
    live: HashMap<RqNumber, RqId>,
    by_id: Vec<Option<RqNumber>>,
    /// Bios that joined a request, and which.
    joins: HashMap<BioNumber, RqNumber>,
    /// The process of each request: that which allocated it, whoever inserted it.
    pid_of: HashMap<RqNumber, u32>,
    /// Bios with a request that was not inserted yet: the process, and the bio.
    allocated: Vec<(u32, Submitted)>,
    /// The cgroup that a bio is charged to, where the recording says so.
    cgroup_of: HashMap<BioNumber, CgroupId>,
    /// Bios outside of any plug.
    unplugged: HashSet<BioNumber>,
    baseline: Baseline,
    /// The request that was merged last, or the first one inserted since that left.
    last_merged: Option<RqNumber>,
    now: Now,
    outcome: Outcome,
    lines: Vec<Line>,
}

impl<'a> Replay<'a> {
    fn new(recording: &Consistent<'a>) -> Self {
        let (trace, capacity) = (recording.trace(), recording.at_once());
        let header = &trace.header;
        let queue = &header.queue;
        let groups = (1u32..).zip(header.cgroups.iter().skip(1)).map(|(id, group)| BfqGroup {
            cgroup: CgroupId(id),
            parent: group.parent.unwrap_or(CgroupId::ROOT),
            weight: group.weight.map_or(100, |weight| weight as u16),
        });
        let config = BfqConfig {
            hz: Hz(header.hz.0),
            groups: groups.collect(),
            ..BfqConfig::new(&kernel_of(header).generation(), queue.nr_requests, queue.rotational)
        };
        let mut policy = Bfq::new(config, capacity);
        policy.observe(true);
        let (mut joins, mut pid_of_bio, mut pid_of) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut cgroup_of = HashMap::new();
        for event in &trace.events {
            match &event.kind {
                EventKind::Getrq { bio, .. } => {
                    pid_of_bio.insert(bio.bio, event.pid.unwrap_or(0));
                    if let Some(cg) = bio.io.cg {
                        cgroup_of.insert(bio.bio, cg);
                    }
                }
                EventKind::Insert(insert) => {
                    let pid = pid_of_bio.get(&insert.bio).copied().or(event.pid);
                    pid_of.insert(insert.rq, pid.unwrap_or(0));
                }
                EventKind::Backmerge(merge) | EventKind::Frontmerge(merge) => {
                    joins.insert(merge.bio, merge.rq);
                }
                _ => {}
            }
        }
        let mut replay = Replay {
            trace,
            phase: TickPhase::of(trace, header.hz),
            policy,
            pool: RequestPool::new(capacity),
            requests: Requests::new(capacity),
            wishes: Wishes::default(),
            free: (0..capacity).rev().map(RqId).collect(),
            live: HashMap::new(),
            by_id: vec![None; capacity as usize],
            joins,
            pid_of,
            allocated: Vec::new(),
            cgroup_of,
            unplugged: unplugged(trace),
            baseline: Baseline::default(),
            last_merged: None,
            now: Now::default(),
            outcome: Outcome::default(),
            lines: Vec::new(),
        };
        replay.now.tick = replay.phase.at(0);
        // What differs from the default was written after the scheduler was made.
        for (name, value) in &header.tunables {
            let tunables = replay.policy.tunables();
            let written = tunables.iter().find(|(tunable, _)| tunable.name == name);
            if written.is_some_and(|(tunable, _)| tunable.default != i128::from(*value)) {
                replay.set_tunable(name, &value.to_string());
            }
        }
        replay
    }

    fn step(&mut self, step: &Step<'_>) {
        self.now = Now { at: Instant(step.ns), tick: self.phase.at(step.tick_at) };
        match step.what {
            What::Exit(pid) => self.call(|policy, cx| policy.told(cx, News::IoContextExited(IoContextId(pid)))),
            What::Event(event) => self.event(event),
        }
        self.lines.extend(self.policy.take_lines().iter().filter_map(lines::ours));
    }

    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Queue(bio) => self.bio_arrives(event, bio),
            EventKind::Getrq { bio, .. } => self.allocated.push((event.pid.unwrap_or(0), *bio)),
            EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => self.insert(event, insert),
            EventKind::Backmerge(merge) => self.grow(merge.rq, &merge.io, Edge::Back),
            EventKind::Frontmerge(merge) => self.grow(merge.rq, &merge.io, Edge::Front),
            EventKind::Rqmerge(merge) => self.absorb(merge),
            EventKind::Dispatch(dispatch) => self.ask(event, dispatch),
            EventKind::Finish { rq } => self.finish(*rq),
            EventKind::Free(free) => self.release(free.rq),
            EventKind::BfqIdleTimer => self.call(|policy, cx| policy.timer(cx)),
            EventKind::Mark(Mark::Tunable { name, value }) => self.set_tunable(name, value),
            EventKind::Unknown(_) => self.outcome.unknown_events += 1,
            _ => {}
        }
    }

    fn call<R>(&mut self, body: impl FnOnce(&mut Bfq, &mut PolicyCx<'_>) -> R) -> R {
        let now = self.now;
        body(&mut self.policy, &mut PolicyCx { now, requests: &self.requests, wishes: &mut self.wishes })
    }

    fn set_tunable(&mut self, name: &str, text: &str) {
        let _ = self.call(|policy, cx| policy.set_tunable(cx, name, text));
    }

    fn inside(&self, rq: RqNumber) -> Option<RqId> {
        self.live.get(&rq).copied().filter(|&id| self.requests.holds(id))
    }

    /// A bio enters. If the plug does not absorb it the scheduler is asked about a merge, but only with a request
    /// that it might join: with the one that was merged last wherever that lies, with others if they are adjacent.
    fn bio_arrives(&mut self, event: &Event, bio: &Submitted) {
        let in_plug = self.joins.get(&bio.bio).is_some_and(|&rq| self.inside(rq).is_none());
        if in_plug || bio.io.flags.intersects(UNMERGEABLE) || bio.io.sectors == 0 {
            return;
        }
        let like = |id: RqId| {
            let rq = self.requests.get(id);
            rq.op == bio.io.op && !rq.flags.intersects(UNMERGEABLE)
        };
        let adjacent = |id: RqId| {
            let rq = self.requests.get(id);
            rq.end() == bio.io.sector || bio.io.end() == rq.sector
        };
        let last = self.last_merged.and_then(|rq| self.inside(rq)).filter(|&id| like(id));
        let mut inside = self.baseline.inside.iter().filter_map(|candidate| self.inside(candidate.rq));
        if let Some(id) = last.or_else(|| inside.find(|&id| like(id) && adjacent(id))) {
            let bio = self.bio_of(&bio.io, event.pid.unwrap_or(0), Some(bio.bio));
            self.call(|policy, cx| policy.bio_arrived(cx, &bio));
            self.call(|policy, cx| policy.allow_merge(cx, id, &bio));
        }
    }

    fn insert(&mut self, event: &Event, insert: &Insert) {
        if let Some(tick) = insert.io.j {
            self.now.tick = TickPhase::printed(tick);
        }
        let pid = self.pid_of.get(&insert.rq).copied().unwrap_or(0);
        self.allocated.retain(|(_, bio)| bio.bio != insert.bio);
        // One that the driver gave back comes in again as what it was. That it left may not be known yet: a decision
        // has its place where the question was put.
        let known = self.live.get(&insert.rq).copied();
        if let Some(id) = known {
            if self.requests.holds(id) {
                return;
            }
            self.call(|policy, cx| policy.requeued(cx, id));
        }
        let Some(id) = known.or_else(|| self.free.pop()) else { return };
        let mut rq = self.pool.take(id);
        rq.found(self.bio_of(&insert.io, pid, Some(insert.bio)), self.now.at);
        self.live.insert(insert.rq, id);
        self.by_id[id.index()] = Some(insert.rq);
        self.baseline.inside.push(Candidate::new(insert, event.pid.unwrap_or(0)));
        let arrives = self.now.at;
        if self.unplugged.contains(&insert.bio) {
            self.now.at = Instant(arrives.0.saturating_sub(QUEUE_MADE_BEFORE));
        }
        self.call(|policy, cx| policy.arrived(cx, &rq));
        self.now.at = arrives;
        self.requests.hold(rq);
        let place = if insert.head { Place::Head } else { Place::Sorted };
        if !insert.head && !insert.io.flags.intersects(UNMERGEABLE) {
            self.last_merged = self.last_merged.or(Some(insert.rq));
        }
        self.call(|policy, cx| policy.insert(cx, id, place));
    }

    /// A bio joined a request. If that is not inside it was still on a plug list.
    fn grow(&mut self, number: RqNumber, io: &Io, edge: Edge) {
        let Some(id) = self.inside(number) else { return };
        let rq = self.requests.get_mut(id);
        rq.sectors = longer(rq.sectors, io.sectors);
        if edge == Edge::Front {
            rq.sector = io.sector;
        }
        let (sector, sectors) = (rq.sector, rq.sectors);
        if let Some(candidate) = self.baseline.candidate(number) {
            (candidate.sector, candidate.sectors) = (sector, sectors);
        }
        self.last_merged = Some(number);
        self.call(|policy, cx| policy.grown(cx, id, edge));
    }

    /// A request was absorbed by the one that ends where it starts: by its neighbour, or on its way in.
    fn absorb(&mut self, merge: &RqMerge) {
        let survivor = self.baseline.survivor(merge);
        if let Some(absorbed) = self.inside(merge.absorbed) {
            let Some((survivor, id)) = survivor.and_then(|rq| Some((rq, self.inside(rq)?))) else { return };
            self.call(|policy, cx| policy.absorbed(cx, id, absorbed));
            let rq = self.requests.join(id, absorbed, |_, _| {});
            self.pool.put(rq);
            self.baseline.remove(merge.absorbed);
            self.lengthen(survivor, id, merge.sectors);
            return;
        }
        // It was set up all the same, and counts until it is released.
        if let (Some(io), Some(id)) = (&merge.io, self.free.pop()) {
            let at = self.allocated.iter().position(|(_, bio)| {
                bio.io.op == io.op && (merge.sector..merge.sector + merge.sectors).contains(&bio.io.sector)
            });
            let (pid, bio) = at.map_or((0, None), |at| {
                let (pid, bio) = self.allocated.remove(at);
                (pid, Some(bio.bio))
            });
            let mut rq = self.pool.take(id);
            rq.found(self.bio_of(io, pid, bio), self.now.at);
            self.call(|policy, cx| policy.arrived(cx, &rq));
            self.pool.put(rq);
            self.live.insert(merge.absorbed, id);
        }
        if let Some((survivor, id)) = survivor.and_then(|rq| Some((rq, self.inside(rq)?))) {
            self.lengthen(survivor, id, merge.sectors);
            self.call(|policy, cx| policy.grown(cx, id, Edge::Back));
        }
    }

    fn lengthen(&mut self, number: RqNumber, id: RqId, sectors: u32) {
        self.last_merged = Some(number);
        let rq = self.requests.get_mut(id);
        rq.sectors = longer(rq.sectors, sectors);
        if let Some(candidate) = self.baseline.candidate(number) {
            candidate.sectors = rq.sectors;
        }
    }

    fn ask(&mut self, event: &Event, dispatch: &Dispatch) {
        let kernel = dispatch.chosen.as_ref().map(|chosen| chosen.rq);
        // A request that never went in (flush machinery) is no decision of the scheduler's.
        if kernel.is_some_and(|rq| self.inside(rq).is_none()) {
            return;
        }
        let before = self.policy.clone();
        let choice = self.call(|policy, cx| policy.dispatch(cx, dispatch.hctx));
        let ours = choice.rq.and_then(|id| self.by_id[id.index()]);
        if ours != kernel {
            self.outcome.note(|| {
                self.baseline.explain(event, kernel, ours, choice.reason.text(), |candidate| {
                    let Candidate { rq, sector, sectors, op, pid, .. } = candidate;
                    format!("rq {} {op:?} {}+{sectors} of {pid}", rq.0, sector.0)
                })
            });
            self.policy = before;
            if let Some(id) = kernel.and_then(|rq| self.inside(rq)) {
                self.call(|policy, cx| policy.adopt(cx, dispatch.hctx, id));
            }
        }
        self.baseline.judge(&mut self.outcome.score, kernel, ours);
        self.last_merged = self.last_merged.filter(|&last| Some(last) != kernel);
        if let Some(id) = kernel.and_then(|rq| self.inside(rq)) {
            self.pool.put(self.requests.release(id));
        }
    }

    /// The scheduler is told that a request is over.
    fn finish(&mut self, rq: RqNumber) {
        let Some(&id) = self.live.get(&rq) else { return };
        if self.by_id[id.index()].is_some() {
            self.give_up(rq, id);
        }
    }

    /// A request's slot is free. One that was absorbed is over only now.
    fn release(&mut self, rq: RqNumber) {
        let Some(&id) = self.live.get(&rq) else { return };
        if self.by_id[id.index()].is_some() {
            self.give_up(rq, id);
        } else {
            self.call(|policy, cx| policy.dropped(cx, id));
            self.live.remove(&rq);
            self.free.push(id);
        }
    }

    fn give_up(&mut self, rq: RqNumber, id: RqId) {
        if self.requests.holds(id) {
            // Released without having been given out: the recording drained it some other way.
            self.baseline.remove(rq);
            self.call(|policy, cx| policy.adopt(cx, hoistway_blk::HctxId(0), id));
            self.pool.put(self.requests.release(id));
        }
        self.call(|policy, cx| policy.finish(cx, id));
        self.live.remove(&rq);
        self.by_id[id.index()] = None;
        self.free.push(id);
    }

    /// A bio as the recording shows it.
    fn bio_of(&self, io: &Io, pid: u32, bio: Option<BioNumber>) -> Bio {
        let process = self.trace.header.processes.iter().find(|process| process.pid == pid);
        let charged = bio.and_then(|bio| self.cgroup_of.get(&bio).copied()).or(io.cg);
        Bio {
            sector: io.sector,
            sectors: io.sectors,
            segments: 1,
            op: io.op,
            write_hint: 0,
            flags: io.flags,
            ioprio: io.prio,
            io_context: IoContextId(pid),
            cgroup: charged.or(process.map(|process| process.cgroup)).unwrap_or(CgroupId::ROOT),
            owner: 0,
        }
    }
}
