//! Replay of bfq's policy without a queue. More than other policies, bfq depends on facts that a recording only
//! implies: the clock that a plug stops, tick boundaries, exits of processes, and the exact time of a decision.
//!
//! In addition to the scores, it compares bfq's internal state, line by line.

mod clock;
mod exits;
mod lines;

use std::collections::{HashMap, HashSet};

use hoistway_blk::bio::{Bio, BioFlags};
use hoistway_blk::ground::{CgroupId, Hz, Instant, IoContextId, Now, RqId, Sector};
use hoistway_blk::policy::{Scheduler, SchedulerEvent};
use hoistway_blk::schedulers::{Bfq, BfqConfig, BfqGroup};
use hoistway_trace::iosched::{
    BioNumber, Dispatch, Event, EventKind, Insert, InsertedBy, Io, Mark, RqMerge, RqNumber, Submitted, Trace,
};

use crate::conform::bench::baseline::DecisionCandidate;
use crate::conform::bench::{Bench, bio_of};
use crate::conform::consistency::Consistent;
use crate::conform::kernel_of;
use crate::conform::score::ReplayOutcome;
use clock::{PlugClocks, TickPhase};

pub use lines::{ComparedLine, LineDifference};

/// Without a plug: time from an insertion event until the scheduler reads its clock, ns (BFQ-6); assumed.
const INSERTION_TO_CLOCK_NS: u64 = 4_000;
/// Without a plug: how much earlier than that the scheduler has read its clock to create the queue, ns; assumed.
const QUEUE_CREATION_LEAD_NS: u64 = 6_000;

/// Time from the start of a dispatch to the scheduler's reading of its clock, ns; assumed.
const DISPATCH_TO_CLOCK_NS: u64 = 4_000;

/// Bios with one of these flags never merge.
const UNMERGEABLE: BioFlags = BioFlags::NOMERGE.with(BioFlags::PREFLUSH).with(BioFlags::FUA);
/// A completion and its consequences belong to one interrupt if they are at most this far apart, ns; assumed.
const INTERRUPT_SPAN_NS: u64 = 50_000;
/// Time from the start of an interrupt to its completion event, ns; assumed.
const INTERRUPT_ENTRY_NS: u64 = 8_000;

/// Replays a recording.
#[must_use]
pub fn replay(recording: &Consistent<'_>) -> ReplayOutcome {
    replay_with_lines(recording).0
}

/// Replays a recording and returns all differences between our internal state and the recorded one, in order.
#[must_use]
pub fn replay_with_lines(recording: &Consistent<'_>) -> (ReplayOutcome, Vec<LineDifference>) {
    let trace = recording.trace();
    let mut replay = BfqReplay::new(recording);
    for step in schedule(trace, &replay.pid_of, &replay.running_clock) {
        replay.step(&step);
    }
    let recorded: Vec<(u64, ComparedLine)> = trace
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Bfq(state) => lines::recorded(state).map(|line| (event.t.0, line)),
            _ => None,
        })
        .collect();
    let (equal, differences) = lines::compare(&recorded, &replay.lines);
    let mut outcome = replay.bench.outcome;
    outcome.state_lines = Some(super::score::Matches { total: recorded.len() as u64, identical: equal });
    (outcome, differences)
}

/// An event that the policy is notified of.
struct PolicyNotification<'a> {
    /// Position in time, ns.
    at_ns: u64,
    /// The reading of the policy's nanosecond clock.
    clock_ns: u64,
    /// The time that determines the tick, ns.
    tick_time_ns: u64,
    kind: PolicyEvent<'a>,
}

enum PolicyEvent<'a> {
    Event(&'a Event),
    /// A decision that may have been made here; if not, it is replayed again at its event.
    InDoubt(&'a Event),
    Exit(u32),
}

/// All steps in the order in which the scheduler saw them.
fn schedule<'a>(
    trace: &'a Trace,
    pid_of: &HashMap<RqNumber, u32>,
    running_clock: &HashSet<BioNumber>,
) -> Vec<PolicyNotification<'a>> {
    let mut clocks = PlugClocks::new(running_clock);
    let mut steps = Vec::new();
    let mut completed = 0;
    for (index, event) in trace.events.iter().enumerate() {
        let (at_ns, real_ns) = match &event.kind {
            EventKind::Dispatch(dispatch) if encloses_another(&trace.events[..index], event, dispatch) => {
                let (at, real) = (dispatch.called_at.0 + DISPATCH_TO_CLOCK_NS, dispatch.called_at.0);
                steps.push(PolicyNotification {
                    at_ns: at,
                    clock_ns: clocks.read(event, real),
                    tick_time_ns: at,
                    kind: PolicyEvent::InDoubt(event),
                });
                (event.t.0, event.t.0)
            }
            EventKind::Insert(insert) if running_clock.contains(&insert.bio) => {
                (event.t.0, event.t.0 + INSERTION_TO_CLOCK_NS)
            }
            // An interrupt may be recorded during a dispatch whose decision was already made.
            EventKind::Dispatch(dispatch) => (dispatch.called_at.0 + DISPATCH_TO_CLOCK_NS, dispatch.called_at.0),
            _ => (event.t.0, event.t.0),
        };
        let clock_ns = clocks.read(event, real_ns);
        let tick_time_ns = match &event.kind {
            EventKind::Complete(_) => {
                completed = event.t.0;
                at_ns
            }
            // An interrupt that began before a tick boundary does not see the tick.
            EventKind::Finish { .. } if at_ns - completed < INTERRUPT_SPAN_NS => {
                completed.saturating_sub(INTERRUPT_ENTRY_NS)
            }
            _ => at_ns,
        };
        steps.push(PolicyNotification { at_ns, clock_ns, tick_time_ns, kind: PolicyEvent::Event(event) });
    }
    for (at, pid) in exits::exits(trace, pid_of) {
        steps.push(PolicyNotification { at_ns: at, clock_ns: at, tick_time_ns: at, kind: PolicyEvent::Exit(pid) });
    }
    steps.sort_by_key(|step| step.at_ns);
    steps
}

/// Whether a dispatch encloses another one on the same CPU: its task was preempted, before or after the decision.
fn encloses_another(before: &[Event], outer: &Event, dispatch: &Dispatch) -> bool {
    let mut within = before.iter().rev().take_while(|event| event.t >= dispatch.called_at);
    within.any(|event| match &event.kind {
        EventKind::Dispatch(inner) => event.cpu == outer.cpu && inner.called_at > dispatch.called_at,
        _ => false,
    })
}

struct BfqReplay<'a> {
    trace: &'a Trace,
    phase: TickPhase,
    bench: Bench<Bfq>,
    /// Requests that were absorbed during insertion: bfq has set them up, and counts them until they are released.
    absorbed_on_insert: HashSet<RqNumber>,
    /// Bios that merged, with their request.
    merged_into: HashMap<BioNumber, RqNumber>,
    /// The process that allocated each request, even if another one inserted it.
    pid_of: HashMap<RqNumber, u32>,
    /// Bios whose request was not inserted yet: the process and the bio.
    allocated: Vec<(u32, Submitted)>,
    /// The cgroup that a bio is charged to, if the recording shows it.
    cgroup_of: HashMap<BioNumber, CgroupId>,
    /// Bios whose requests see the running clock.
    running_clock: HashSet<BioNumber>,
    /// The request of the last merge, or the first one inserted since that request left.
    last_merged: Option<RqNumber>,
    lines: Vec<ComparedLine>,
}

impl<'a> BfqReplay<'a> {
    fn new(recording: &Consistent<'a>) -> Self {
        let (trace, capacity) = (recording.trace(), recording.slots_needed());
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
        let (mut merged_into, mut pid_of_bio, mut pid_of) = (HashMap::new(), HashMap::new(), HashMap::new());
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
                    merged_into.insert(merge.bio, merge.rq);
                }
                _ => {}
            }
        }
        let mut replay = BfqReplay {
            trace,
            phase: TickPhase::fit(trace, header.hz),
            bench: Bench::new("bfq", policy, capacity),
            absorbed_on_insert: HashSet::new(),
            merged_into,
            pid_of,
            allocated: Vec::new(),
            cgroup_of,
            running_clock: clock::with_running_clock(trace),
            last_merged: None,
            lines: Vec::new(),
        };
        replay.bench.now.tick = replay.phase.tick_at(0);
        // Values that differ from the default must have been written after the scheduler was created.
        for (name, value) in &header.tunables {
            let tunables = replay.bench.policy.tunables();
            let written = tunables.iter().find(|(tunable, _)| tunable.name == name);
            if written.is_some_and(|(tunable, _)| tunable.default != i128::from(*value)) {
                replay.bench.set_tunable(name, &value.to_string());
            }
        }
        replay
    }

    fn step(&mut self, step: &PolicyNotification<'_>) {
        self.bench.now = Now { at: Instant(step.clock_ns), tick: self.phase.tick_at(step.tick_time_ns) };
        match step.kind {
            PolicyEvent::Exit(pid) => {
                self.bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(pid))))
            }
            PolicyEvent::Event(event) => self.event(event, false),
            PolicyEvent::InDoubt(event) => self.event(event, true),
        }
        self.lines.extend(self.bench.policy.take_lines().iter().filter_map(lines::ours));
    }

    fn event(&mut self, event: &Event, in_doubt: bool) {
        match &event.kind {
            EventKind::Queue(bio) => self.bio_arrives(event, bio),
            EventKind::Getrq { bio, .. } => self.allocated.push((event.pid.unwrap_or(0), *bio)),
            EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => self.insert(event, insert),
            EventKind::Backmerge(merge) => self.grow(merge.rq, merge.io.sectors, None),
            EventKind::Frontmerge(merge) => self.grow(merge.rq, merge.io.sectors, Some(merge.io.sector)),
            EventKind::Rqmerge(merge) => self.absorb(merge),
            EventKind::Dispatch(dispatch) => self.replay_dispatch(event, dispatch, in_doubt),
            EventKind::Finish { rq } if !self.absorbed_on_insert.contains(rq) => self.bench.release(*rq),
            EventKind::Free(free) => self.release(free.rq),
            EventKind::BfqIdleTimer => self.bench.call(|policy, cx| policy.on_timer(cx)),
            EventKind::Mark(Mark::Tunable { name, value }) => self.bench.set_tunable(name, value),
            EventKind::Unknown(_) => self.bench.outcome.unknown_events += 1,
            _ => {}
        }
    }

    /// A bio is submitted. Unless the plug absorbs it, bfq decides whether it may merge with the last merged request,
    /// or with an adjacent one.
    fn bio_arrives(&mut self, event: &Event, bio: &Submitted) {
        let in_plug = self.merged_into.get(&bio.bio).is_some_and(|&rq| self.bench.inside(rq).is_none());
        if in_plug || bio.io.flags.intersects(UNMERGEABLE) || bio.io.sectors == 0 {
            return;
        }
        let is_mergeable = |id: RqId| {
            let rq = self.bench.requests.get(id);
            rq.op == bio.io.op && !rq.flags.intersects(UNMERGEABLE)
        };
        let is_adjacent = |id: RqId| {
            let rq = self.bench.requests.get(id);
            rq.end() == bio.io.sector || bio.io.end() == rq.sector
        };
        let last = self.last_merged.and_then(|rq| self.bench.inside(rq)).filter(|&id| is_mergeable(id));
        let mut inside = self.bench.baseline.inside.iter().filter_map(|candidate| self.bench.inside(candidate.rq));
        if let Some(id) = last.or_else(|| inside.find(|&id| is_mergeable(id) && is_adjacent(id))) {
            let bio = self.bio_of(&bio.io, event.pid.unwrap_or(0), Some(bio.bio));
            self.bench.call(|policy, cx| policy.on_bio(cx, &bio));
            self.bench.call(|policy, cx| policy.allow_merge(cx, id, &bio));
        }
    }

    fn insert(&mut self, event: &Event, insert: &Insert) {
        if let Some(tick) = insert.io.j {
            self.bench.now.tick = TickPhase::from_recorded(tick);
        }
        let number = insert.rq;
        self.allocated.retain(|(_, bio)| bio.bio != insert.bio);
        // A requeued request may still be in our scheduler, because a decision is replayed at the start of its
        // dispatch.
        let pid = self.pid_of.get(&number).copied().unwrap_or(0);
        if self.bench.inside(number).is_some()
            || !self.bench.arrive(number, self.bio_of(&insert.io, pid, Some(insert.bio)))
        {
            return;
        }
        let arrived_at = self.bench.now.at;
        if self.running_clock.contains(&insert.bio) {
            self.bench.now.at = Instant(arrived_at.0.saturating_sub(QUEUE_CREATION_LEAD_NS));
        }
        self.notify_arrival(number);
        self.bench.now.at = arrived_at;
        if !insert.head && !insert.io.flags.intersects(UNMERGEABLE) {
            self.last_merged = self.last_merged.or(Some(number));
        }
        self.bench.insert(insert, event.pid.unwrap_or(0));
    }

    /// Notifies the scheduler of a new request.
    fn notify_arrival(&mut self, number: RqNumber) {
        if let Some(rq) = self.bench.outside.remove(&number) {
            self.bench.call(|policy, cx| policy.on_arrived(cx, &rq));
            self.bench.outside.insert(number, rq);
        }
    }

    /// A bio was merged into a request, which is still on a plug list if it is not in the scheduler.
    fn grow(&mut self, number: RqNumber, by: u32, front: Option<Sector>) {
        if self.bench.inside(number).is_some() {
            self.last_merged = Some(number);
            self.bench.grow(number, by, front);
        }
    }

    /// A request was merged into the one that ends where it starts, in the scheduler or during insertion.
    fn absorb(&mut self, merge: &RqMerge) {
        if let (None, Some(io)) = (self.bench.inside(merge.absorbed), &merge.io) {
            let index = self.allocated.iter().position(|(_, bio)| {
                bio.io.op == io.op && (merge.sector..merge.sector + merge.sectors).contains(&bio.io.sector)
            });
            let (pid, bio) = index.map_or((0, None), |index| {
                let (pid, bio) = self.allocated.remove(index);
                (pid, Some(bio.bio))
            });
            if self.bench.arrive(merge.absorbed, self.bio_of(io, pid, bio)) {
                self.notify_arrival(merge.absorbed);
                self.absorbed_on_insert.insert(merge.absorbed);
            }
        }
        self.last_merged = self.bench.absorb(merge).or(self.last_merged);
    }

    fn replay_dispatch(&mut self, event: &Event, dispatch: &Dispatch, in_doubt: bool) {
        self.bench.replay_dispatch(event, dispatch, in_doubt, |_, candidate| {
            let DecisionCandidate { rq, sector, sectors, op, pid, .. } = candidate;
            format!("rq {} {op:?} {}+{sectors} of {pid}", rq.0, sector.0)
        });
        self.last_merged = self.last_merged.filter(|&last| self.bench.inside(last).is_some());
    }

    /// A request is released. For bfq, one absorbed during insertion ends only now.
    fn release(&mut self, number: RqNumber) {
        if !self.absorbed_on_insert.remove(&number) {
            return self.bench.release(number);
        }
        if let Some(id) = self.bench.slots.id(number) {
            self.bench.call(|policy, cx| policy.on_dropped(cx, id));
            self.bench.forget(number);
        }
    }

    /// The recorded bio.
    fn bio_of(&self, io: &Io, pid: u32, bio: Option<BioNumber>) -> Bio {
        let process = self.trace.header.processes.iter().find(|process| process.pid == pid);
        let charged = bio.and_then(|bio| self.cgroup_of.get(&bio).copied()).or(io.cg);
        let cgroup = charged.or(process.map(|process| process.cgroup)).unwrap_or(CgroupId::ROOT);
        Bio { cgroup, ..bio_of(io, pid) }
    }
}
