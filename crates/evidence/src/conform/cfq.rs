//! Replay of cfq. Beyond the calls of other policies, cfq depends on when a request was allocated, when a process
//! exited and when the driver asked for requests, which its recordings show, and on the time to the microsecond.
//!
//! The kernel reads its clock at some point while it handles an event, so each kind of event has its own delay here. If
//! the clock is the host's (two CPUs), the time of the kernel's own message after the event is used.
//!
//! [`replay`] computes scores; [`first_difference`] replays without corrections and compares cfq's messages with the
//! kernel's.

mod messages;

pub use messages::first_difference;

use std::collections::HashMap;

use hoistway_blk::bio::{Bio, IoPriority};
use hoistway_blk::ground::{CgroupId, HctxId, Instant, IoContextId, Nanos, Now, RqId, Sector};
use hoistway_blk::policy::{LegacyHooks, Replayable, Scheduler, SchedulerEvent};
use hoistway_legacy::{Cfq, CfqConfig, CfqEvent, CfqMessage, CfqQueueName};
use hoistway_trace::iosched::{
    Clock, Complete, Dispatch, Event, EventKind, Insert, InsertedBy, Io, Issue, Mark, QueueName, RqMerge, RqNumber,
    Trace,
};

use crate::conform::bench::baseline::DecisionCandidate;
use crate::conform::bench::{Bench, bio_of};
use crate::conform::consistency::Consistent;
use crate::conform::kernel_of;
use crate::conform::score::{Matches, ReplayOutcome};

/// Time from the attachment of the scheduler to the first event. Anything from 100 to 199 ms fits all recordings.
const ATTACHED_BEFORE: Nanos = Nanos::from_millis(150);

// Time from an event to the kernel's reading of its clock (4 ns per instruction).
const AFTER_QUEUE: Nanos = Nanos::from_micros(5);
const AFTER_INSERT: Nanos = Nanos::from_micros(8);
const AFTER_DISPATCH_CALL: Nanos = Nanos::from_micros(4);
const AFTER_COMPLETE: Nanos = Nanos::from_micros(10);
const COMPLETION_STEP: Nanos = Nanos::from_micros(10);
const AFTER_EXIT: Nanos = Nanos::from_micros(2);

/// Replays a recording and compares every decision; after a difference it continues from the kernel's.
#[must_use]
pub fn replay(recording: &Consistent<'_>) -> ReplayOutcome {
    let mut replay = CfqReplay::new(recording);
    for (index, event) in recording.trace().events.iter().enumerate() {
        replay.event(index, event);
    }
    replay.bench.outcome.slices = Some(replay.slices.score);
    replay.bench.outcome
}

struct CfqReplay<'a> {
    trace: &'a Trace,
    bench: Bench<Cfq<Vec<CfqMessage>>>,
    /// Cgroup and priority of each process.
    processes: HashMap<u32, (CgroupId, IoPriority)>,
    pids: Pids,
    slices: Slices,
    /// Messages of cfq for the current event.
    logged: Vec<CfqMessage>,
}

impl<'a> CfqReplay<'a> {
    fn new(recording: &Consistent<'a>) -> Self {
        let (trace, capacity) = (recording.trace(), recording.slots_needed());
        let header = &trace.header;
        let config = CfqConfig {
            hz: header.hz,
            completion_step: COMPLETION_STEP,
            ..CfqConfig::new(&kernel_of(header).generation(), header.queue.rotational)
        };
        let processes =
            header.processes.iter().map(|process| (process.pid, (process.cgroup, process.effective_ioprio())));
        let mut replay = CfqReplay {
            trace,
            bench: Bench::new("cfq", Cfq::with_log(config, Now::default(), capacity, Vec::new()), capacity),
            processes: processes.collect(),
            pids: Pids::default(),
            slices: Slices::default(),
            logged: Vec::new(),
        };
        replay.advance_to(Instant::ZERO);
        for (index, cgroup) in header.cgroups.iter().enumerate() {
            let id = CgroupId(index as u32);
            let weight = cgroup.weight.and_then(|weight| u16::try_from(weight).ok());
            replay.bench.call(|policy, cx| {
                policy.on_event(
                    cx,
                    SchedulerEvent::CgroupAdded { cgroup: id, parent: cgroup.parent.unwrap_or_default() },
                );
                if let Some(weight) = weight {
                    policy.on_event(cx, SchedulerEvent::Weight { cgroup: id, weight });
                }
            });
        }
        for (name, value) in &header.tunables {
            replay.bench.set_tunable(name, &value.to_string());
        }
        replay
    }

    fn event(&mut self, index: usize, event: &Event) {
        let t = event.t;
        match &event.kind {
            EventKind::Queue(bio) if reaches_cfq(&bio.io) => self.submit_bio(event, &bio.io),
            EventKind::Getrq { bio, rq: Some(rq) } if reaches_cfq(&bio.io) => self.allocate(event, &bio.io, *rq),
            EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => self.insert(index, event, insert),
            // The request may still be on a plug list.
            EventKind::Backmerge(merge) => self.grow(t, merge.rq, merge.io.sectors, None),
            EventKind::Frontmerge(merge) => self.grow(t, merge.rq, merge.io.sectors, Some(merge.io.sector)),
            EventKind::Rqmerge(merge) => self.absorb(t, merge),
            EventKind::Dispatch(dispatch) => self.replay_dispatch(index, event, dispatch),
            EventKind::Issue(issue) => self.start(t, issue),
            EventKind::Requeue { rq, .. } => {
                if let Some(id) = self.bench.slots.id(*rq) {
                    self.advance_to(t);
                    self.bench.call(|policy, cx| policy.on_requeued(cx, id));
                }
            }
            EventKind::Complete(complete) => self.complete(index, event, complete),
            EventKind::Exit => {
                self.advance_to(self.clock_reading(index, t + AFTER_EXIT, |_| true));
                let io_context = self.pids.context(event.pid.unwrap_or(0));
                self.bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::IoContextExited(io_context)));
            }
            EventKind::Mark(Mark::Tunable { name, value }) => {
                self.advance_to(t);
                self.bench.set_tunable(name, value);
            }
            EventKind::Msg { text, .. } => self.slices.compare(text),
            EventKind::Unknown(_) => self.bench.outcome.unknown_events += 1,
            _ => {}
        }
        let mut logged = std::mem::take(self.bench.policy.log_mut());
        logged.iter_mut().filter_map(|message| message.queue.as_mut()).for_each(|queue| self.pids.restore_pid(queue));
        self.slices.note_ours(&logged);
        self.logged.extend(logged);
    }

    /// Advances the clock to a time of the recording; fires cfq's timer if it is due earlier.
    fn advance_to(&mut self, at: Instant) {
        let at = at + ATTACHED_BEFORE;
        while let Some(due) = self.bench.timer.filter(|&due| due <= at) {
            self.bench.timer = None;
            self.bench.now.at = due;
            self.bench.call(|policy, cx| policy.on_timer(cx));
        }
        self.bench.now.at = at;
    }

    /// The kernel's clock reading for the event at `index`: `by_constant` if the clock counts instructions, otherwise
    /// the time of the first matching message after the event.
    fn clock_reading(&self, index: usize, by_constant: Instant, matches: impl Fn(&str) -> bool) -> Instant {
        if self.trace.header.clock == Clock::Icount {
            return by_constant;
        }
        let following = self.trace.events[index + 1..].iter().map_while(|event| match &event.kind {
            EventKind::Msg { text, .. } => Some((event.t, text)),
            _ => None,
        });
        following.into_iter().find(|(_, text)| matches(text)).map_or(by_constant, |(t, _)| t)
    }

    /// The kernel's clock reading for a decision, whose messages precede it.
    fn decision_clock(&self, index: usize, called_at: Instant) -> Instant {
        if self.trace.header.clock == Clock::Icount {
            return called_at + AFTER_DISPATCH_CALL;
        }
        let before = self.trace.events[..index].iter().rev().take_while(|event| event.t >= called_at);
        let messages = before.filter(|event| matches!(event.kind, EventKind::Msg { .. }));
        messages.last().map_or(called_at + AFTER_DISPATCH_CALL, |event| event.t)
    }

    /// The recorded bio with the attributes of its process.
    fn bio(&mut self, event: &Event, io: &Io) -> Bio {
        let pid = event.pid.unwrap_or(0);
        let io_context = self.pids.context(pid);
        let (cgroup, ioprio) = self.processes.get(&pid).copied().unwrap_or_default();
        let ioprio = if io.prio == IoPriority::UNSET { ioprio } else { io.prio };
        Bio { ioprio, io_context, cgroup, ..bio_of(io, pid) }
    }

    fn submit_bio(&mut self, event: &Event, io: &Io) {
        let bio = self.bio(event, io);
        self.advance_to(event.t + AFTER_QUEUE);
        self.bench.call(|policy, cx| policy.on_bio(cx, &bio));
    }

    fn allocate(&mut self, event: &Event, io: &Io, number: RqNumber) {
        let bio = self.bio(event, io);
        self.advance_to(event.t);
        let Some(rq) = self.bench.slots.allocate(number, bio.clone(), self.bench.now.at) else { return };
        self.bench.call(|policy, cx| {
            policy.may_queue(cx, &bio);
            policy.prepare(cx, &rq);
        });
        self.bench.outside.insert(number, rq);
    }

    fn insert(&mut self, index: usize, event: &Event, insert: &Insert) {
        let Some(rq) = self.bench.outside.get_mut(&insert.rq) else { return };
        (rq.sector, rq.sectors) = (insert.io.sector, insert.io.sectors);
        self.advance_to(self.clock_reading(index, event.t + AFTER_INSERT, |text| text.ends_with("add_to_rr")));
        self.bench.insert(insert, insert.queue.map_or(0, queue_number));
    }

    fn grow(&mut self, at: Instant, number: RqNumber, by: u32, front: Option<Sector>) {
        self.advance_to(at);
        self.bench.grow(number, by, front);
    }

    fn absorb(&mut self, at: Instant, merge: &RqMerge) {
        let Some(survivor) = merge.survivor else { return };
        let ids = (self.bench.slots.id(survivor.rq), self.bench.slots.id(merge.absorbed));
        let (Some(survivor_id), Some(absorbed_id)) = ids else { return };
        let was_inside = self.bench.inside(merge.absorbed).is_some();
        self.advance_to(at);
        if was_inside {
            self.bench.call(|policy, cx| {
                if policy.allow_request_merge(survivor_id, absorbed_id) {
                    policy.on_absorbed(cx, survivor_id, absorbed_id);
                } else {
                    // Our requests are in different queues, so the second one is dispatched separately.
                    policy.adopt(cx, HctxId(0), absorbed_id);
                }
            });
            self.bench.join(survivor_id, absorbed_id, merge.absorbed);
            self.bench.call(|policy, cx| policy.finish(cx, absorbed_id));
        }
        let own_start = self.sector_of(survivor.rq);
        let front = (own_start != Some(survivor.sector)).then_some(survivor.sector);
        self.bench.grow(survivor.rq, merge.sectors, front);
        if !was_inside {
            self.bench.call(|policy, cx| policy.on_dropped(cx, absorbed_id));
        }
        self.bench.forget(merge.absorbed);
    }

    fn sector_of(&self, number: RqNumber) -> Option<Sector> {
        let outside = self.bench.outside.get(&number).map(|rq| rq.sector);
        outside.or_else(|| self.bench.inside(number).map(|id| self.bench.requests.get(id).sector))
    }

    fn replay_dispatch(&mut self, index: usize, event: &Event, dispatch: &Dispatch) {
        // Fire earlier timers first, so that they are not undone with the dispatch.
        self.advance_to(self.decision_clock(index, dispatch.called_at));
        let pids = &self.pids;
        self.bench.replay_dispatch(event, dispatch, false, |bench, candidate| {
            let DecisionCandidate { rq, sector, sectors, .. } = candidate;
            let queue = bench.slots.id(*rq).and_then(|id: RqId| bench.policy.queue_of(id));
            let queue = queue.map_or_else(String::new, |mut name| {
                pids.restore_pid(&mut name);
                name.to_string()
            });
            format!("rq {} {}+{sectors} of {queue}", rq.0, sector.0)
        });
    }

    fn start(&mut self, at: Instant, issue: &Issue) {
        let Some(id) = self.bench.slots.id(issue.rq) else { return };
        self.advance_to(at);
        // If the recording has no dispatch of the request, it was drained in another way.
        self.bench.drain(issue.rq);
        self.bench.call(|policy, cx| policy.on_started(cx, id));
    }

    fn complete(&mut self, index: usize, event: &Event, complete: &Complete) {
        let markers = ["set_slice", "arm_idle", "slice expired", "schedule dispatch"];
        let at = self
            .clock_reading(index, event.t + AFTER_COMPLETE, |text| markers.iter().any(|marker| text.contains(marker)));
        self.slices.reset();
        if self.bench.slots.id(complete.rq).is_some() {
            self.advance_to(at);
            self.bench.release(complete.rq);
        }
    }
}

/// Numbers processes from 0 for cfq's table, since pids may be in the millions.
#[derive(Default)]
struct Pids {
    contexts: HashMap<u32, IoContextId>,
    pids: Vec<u32>,
}

impl Pids {
    /// The number of a process.
    fn context(&mut self, pid: u32) -> IoContextId {
        let Pids { contexts, pids } = self;
        *contexts.entry(pid).or_insert_with(|| {
            pids.push(pid);
            IoContextId(pids.len() as u32 - 1)
        })
    }

    /// Replaces the number of a queue's owner by its pid.
    fn restore_pid(&self, queue: &mut CfqQueueName) {
        if let Some(&pid) = self.pids.get(queue.owner.index()) {
            queue.owner = IoContextId(pid);
        }
    }
}

/// Whether a request enters the scheduler: flush and FUA requests bypass it.
fn reaches_cfq(io: &Io) -> bool {
    use hoistway_blk::bio::{BioFlags, Op};
    io.op != Op::Flush && !io.flags.intersects(BioFlags::FUA.with(BioFlags::PREFLUSH))
}

/// A number for the queue, which the baselines treat as the served process.
fn queue_number(queue: QueueName) -> u32 {
    queue.owner.unwrap_or(0) * 2 + u32::from(queue.sync)
}

/// Compares slice lengths.
#[derive(Default)]
struct Slices {
    /// Our slice length at the last completion.
    ours: Option<i64>,
    /// Slice lengths that the kernel set.
    score: Matches,
}

impl Slices {
    fn reset(&mut self) {
        self.ours = None;
    }

    fn note_ours(&mut self, messages: &[CfqMessage]) {
        for message in messages {
            if let CfqEvent::SetSlice(length) = message.event {
                self.ours = Some(length);
            }
        }
    }

    fn compare(&mut self, text: &str) {
        if let Some((_, length)) = text.split_once(" set_slice=") {
            let is_identical = self.ours.take().is_some_and(|ours| length.parse() == Ok(ours));
            self.score.count(is_identical);
        }
    }
}
