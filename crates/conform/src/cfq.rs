//! The replay of cfq, which is more than a policy's: its recordings say when a request was allocated, when a process
//! left and when the driver looked, and cfq depends on all of that and on the time to the microsecond.
//!
//! The kernel reads its clock some way into the handling of an event, so each kind of event has a delay of its own
//! here. Where the clock is the host's (two CPUs), the kernel's own message that follows an event tells the moment.
//!
//! [`replay`] scores; [`first_difference`] drives cfq freely and compares what it says about itself with what the
//! kernel's said.

mod messages;

pub use messages::first_difference;

use std::collections::HashMap;

use hoistway_blk::{
    Bio, CgroupId, Edge, HctxId, Instant, IoContextId, IoPriority, Local, Nanos, News, Now, Place, PolicyCx,
    RequestPool, Requests, Rq, RqId, Scheduler, Tick, Wishes,
};
use hoistway_legacy::{Cfq, CfqConfig, CfqEvent, CfqMessage, CfqQueueName};
use hoistway_trace::iosched::{
    Clock, Complete, Dispatch, Event, EventKind, Insert, InsertedBy, Io, Issue, Mark, Merge, QueueName, RqMerge,
    RqNumber, Trace,
};

use crate::consistency::Consistent;
use crate::fifo::{Baseline, Candidate, longer};
use crate::kernel_of;
use crate::score::Outcome;

/// How long before the first event the scheduler was attached. Anything from 100 to 199 ms fits all recordings.
const ATTACHED_BEFORE: Nanos = Nanos::from_millis(150);

// When the kernel reads its clock, after the time of an event (4 ns an instruction).
const AFTER_QUEUE: Nanos = Nanos::from_micros(5);
const AFTER_INSERT: Nanos = Nanos::from_micros(8);
const AFTER_ASKED: Nanos = Nanos::from_micros(4);
const AFTER_COMPLETE: Nanos = Nanos::from_micros(10);
const COMPLETION_STEP: Nanos = Nanos::from_micros(10);
const AFTER_EXIT: Nanos = Nanos::from_micros(2);

/// Replays a recording and compares every decision; after a different one it goes on from the kernel's.
#[must_use]
pub fn replay(recording: &Consistent<'_>) -> Outcome {
    let mut replay = Replay::new(recording);
    for (index, event) in recording.trace().events.iter().enumerate() {
        replay.event(index, event);
    }
    replay.outcome.slices = Some(replay.slices.score);
    replay.outcome
}

struct Replay<'a> {
    trace: &'a Trace,
    policy: Cfq<Vec<CfqMessage>>,
    pool: RequestPool<Local>,
    requests: Requests,
    wishes: Wishes,
    /// When cfq's timer is due.
    timer: Option<Instant>,
    /// Slots that no request has.
    free: Vec<RqId>,
    live: HashMap<RqNumber, Live>,
    by_id: Vec<Option<RqNumber>>,
    /// Cgroup and priority of each process.
    processes: HashMap<u32, (CgroupId, IoPriority)>,
    pids: Pids,
    baseline: Baseline,
    slices: Slices,
    /// What cfq has said during the present event.
    said: Vec<CfqMessage>,
    outcome: Outcome,
}

/// A request that was allocated and has not completed.
struct Live {
    id: RqId,
    /// The request itself, unless the scheduler holds it.
    outside: Option<Rq>,
}

impl<'a> Replay<'a> {
    fn new(recording: &Consistent<'a>) -> Self {
        let (trace, capacity) = (recording.trace(), recording.at_once());
        let header = &trace.header;
        let config = CfqConfig {
            hz: header.hz,
            completion_step: COMPLETION_STEP,
            ..CfqConfig::new(&kernel_of(header).generation(), header.queue.rotational)
        };
        let processes =
            header.processes.iter().map(|process| (process.pid, (process.cgroup, process.effective_ioprio())));
        let mut replay = Replay {
            trace,
            policy: Cfq::with_log(config, Now::default(), capacity, Vec::new()),
            pool: RequestPool::new(capacity),
            requests: Requests::new(capacity),
            wishes: Wishes::default(),
            timer: None,
            free: (0..capacity).rev().map(RqId).collect(),
            live: HashMap::new(),
            by_id: vec![None; capacity as usize],
            processes: processes.collect(),
            pids: Pids::default(),
            baseline: Baseline::default(),
            slices: Slices::default(),
            said: Vec::new(),
            outcome: Outcome::default(),
        };
        for (index, cgroup) in header.cgroups.iter().enumerate() {
            let id = CgroupId(index as u32);
            let weight = cgroup.weight.and_then(|weight| u16::try_from(weight).ok());
            replay.call(Instant::ZERO, |policy, cx| {
                policy.told(cx, News::CgroupAdded { cgroup: id, parent: cgroup.parent.unwrap_or_default() });
                if let Some(weight) = weight {
                    policy.told(cx, News::Weight { cgroup: id, weight });
                }
            });
        }
        for (name, value) in &header.tunables {
            replay.set_tunable(Instant::ZERO, name, &value.to_string());
        }
        replay
    }

    fn event(&mut self, index: usize, event: &Event) {
        let t = event.t;
        match &event.kind {
            EventKind::Queue(bio) if reaches_cfq(&bio.io) => self.meet(event, &bio.io),
            EventKind::Getrq { bio, rq: Some(rq) } if reaches_cfq(&bio.io) => self.allocate(event, &bio.io, *rq),
            EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => self.insert(index, event, insert),
            EventKind::Backmerge(merge) => self.grow(t, merge, Edge::Back),
            EventKind::Frontmerge(merge) => self.grow(t, merge, Edge::Front),
            EventKind::Rqmerge(merge) => self.absorb(t, merge),
            EventKind::Dispatch(dispatch) => self.ask(index, event, dispatch),
            EventKind::Issue(issue) => self.start(t, issue),
            EventKind::Requeue { rq, .. } => {
                if let Some(id) = self.live.get(rq).map(|live| live.id) {
                    self.call(t, |policy, cx| policy.requeued(cx, id));
                }
            }
            EventKind::Complete(complete) => self.complete(index, event, complete),
            EventKind::Exit => {
                let at = self.moment(index, t + AFTER_EXIT, |_| true);
                let io_context = self.pids.context(event.pid.unwrap_or(0));
                self.call(at, |policy, cx| policy.told(cx, News::IoContextExited(io_context)));
            }
            EventKind::Mark(Mark::Tunable { name, value }) => self.set_tunable(t, name, value),
            EventKind::Msg { text, .. } => self.slices.recorded(text),
            EventKind::Unknown(_) => self.outcome.unknown_events += 1,
            _ => {}
        }
    }

    /// Calls cfq at a moment of the recording; its timer comes first if it is due before.
    fn call<R>(&mut self, at: Instant, body: impl FnOnce(&mut Cfq<Vec<CfqMessage>>, &mut PolicyCx<'_>) -> R) -> R {
        let at = at + ATTACHED_BEFORE;
        while let Some(due) = self.timer.filter(|&due| due <= at) {
            self.timer = None;
            self.call_at(due, |policy, cx| policy.timer(cx));
        }
        self.call_at(at, body)
    }

    fn call_at<R>(&mut self, at: Instant, body: impl FnOnce(&mut Cfq<Vec<CfqMessage>>, &mut PolicyCx<'_>) -> R) -> R {
        let now = Now { at, tick: Tick(0) };
        let answer = body(&mut self.policy, &mut PolicyCx { now, requests: &self.requests, wishes: &mut self.wishes });
        let wishes = std::mem::take(&mut self.wishes);
        if wishes.cancel_timer {
            self.timer = None;
        }
        self.timer = wishes.set_timer.or(self.timer);
        let mut said = std::mem::take(self.policy.log_mut());
        said.iter_mut().filter_map(|message| message.queue.as_mut()).for_each(|queue| self.pids.restore(queue));
        self.slices.said(&said);
        self.said.extend(said);
        answer
    }

    /// The moment of the event at `index`, which is `by_constant` where instructions are the clock. Otherwise it is
    /// that of the first fitting message behind the event.
    fn moment(&self, index: usize, by_constant: Instant, fits: impl Fn(&str) -> bool) -> Instant {
        if self.trace.header.clock == Clock::Icount {
            return by_constant;
        }
        let following = self.trace.events[index + 1..].iter().map_while(|event| match &event.kind {
            EventKind::Msg { text, .. } => Some((event.t, text)),
            _ => None,
        });
        following.into_iter().find(|(_, text)| fits(text)).map_or(by_constant, |(t, _)| t)
    }

    /// The moment of a decision: its messages stand before it.
    fn moment_of_decision(&self, index: usize, asked: Instant) -> Instant {
        if self.trace.header.clock == Clock::Icount {
            return asked + AFTER_ASKED;
        }
        let before = self.trace.events[..index].iter().rev().take_while(|event| event.t >= asked);
        let messages = before.filter(|event| matches!(event.kind, EventKind::Msg { .. }));
        messages.last().map_or(asked + AFTER_ASKED, |event| event.t)
    }

    fn set_tunable(&mut self, at: Instant, name: &str, text: &str) {
        let _ = self.call(at, |policy, cx| policy.set_tunable(cx, name, text));
    }

    /// The bio that the recording shows, with what its process is.
    fn bio(&mut self, event: &Event, io: &Io) -> Bio {
        let pid = event.pid.unwrap_or(0);
        let io_context = self.pids.context(pid);
        let (cgroup, ioprio) = self.processes.get(&pid).copied().unwrap_or_default();
        let ioprio = if io.prio == IoPriority::UNSET { ioprio } else { io.prio };
        Bio { flags: io.flags, ioprio, io_context, cgroup, ..Bio::new(io.op, io.sector, io.sectors) }
    }

    fn meet(&mut self, event: &Event, io: &Io) {
        let bio = self.bio(event, io);
        self.call(event.t + AFTER_QUEUE, |policy, cx| policy.bio_arrived(cx, &bio));
    }

    fn allocate(&mut self, event: &Event, io: &Io, number: RqNumber) {
        let Some(id) = self.free.pop() else { return };
        let bio = self.bio(event, io);
        let mut rq = self.pool.take(id);
        rq.found(bio.clone(), event.t + ATTACHED_BEFORE);
        self.call(event.t, |policy, cx| {
            policy.may_queue(cx, &bio);
            policy.prepare(cx, &rq);
        });
        self.by_id[id.index()] = Some(number);
        self.live.insert(number, Live { id, outside: Some(rq) });
    }

    fn insert(&mut self, index: usize, event: &Event, insert: &Insert) {
        let Some(live) = self.live.get_mut(&insert.rq) else { return };
        let Some(mut rq) = live.outside.take() else { return };
        let id = live.id;
        rq.sector = insert.io.sector;
        rq.sectors = insert.io.sectors;
        self.requests.hold(rq);
        self.baseline.inside.push(Candidate::new(insert, insert.queue.map_or(0, served_as)));
        let at = self.moment(index, event.t + AFTER_INSERT, |text| text.ends_with("add_to_rr"));
        self.call(at, |policy, cx| policy.insert(cx, id, Place::Sorted));
    }

    /// A bio joined a request, which may still be on a plug list.
    fn grow(&mut self, at: Instant, merge: &Merge, edge: Edge) {
        let front = (edge == Edge::Front).then_some(merge.io.sector);
        self.lengthen(at, merge.rq, merge.io.sectors, front);
    }

    fn lengthen(&mut self, at: Instant, number: RqNumber, sectors: u32, front: Option<hoistway_blk::Sector>) {
        let Some(live) = self.live.get_mut(&number) else { return };
        let id = live.id;
        let inside = live.outside.is_none();
        let rq = match &mut live.outside {
            Some(rq) => &mut **rq,
            None if self.requests.holds(id) => self.requests.get_mut(id),
            None => return,
        };
        rq.sectors = longer(rq.sectors, sectors);
        rq.sector = front.unwrap_or(rq.sector);
        if let Some(candidate) = self.baseline.candidate(number) {
            (candidate.sector, candidate.sectors) = (rq.sector, rq.sectors);
        }
        if inside {
            let edge = if front.is_some() { Edge::Front } else { Edge::Back };
            self.call(at, |policy, cx| policy.grown(cx, id, edge));
        }
    }

    fn absorb(&mut self, at: Instant, merge: &RqMerge) {
        let Some(survivor) = merge.survivor else { return };
        let (Some(first), Some(second)) = (self.live.get(&survivor.rq), self.live.get(&merge.absorbed)) else {
            return;
        };
        let (first, second, was_inside) = (first.id, second.id, second.outside.is_none());
        if was_inside {
            self.call(at, |policy, cx| {
                if policy.allow_join(first, second) {
                    policy.absorbed(cx, first, second);
                } else {
                    // Ours are in different queues, so the second one leaves by itself.
                    policy.adopt(cx, HctxId(0), second);
                }
            });
            let rq = self.requests.join(first, second, |_, _| {});
            self.pool.put(rq);
            self.baseline.remove(merge.absorbed);
            self.call(at, |policy, cx| policy.finish(cx, second));
        }
        let begins = self.sector_of(survivor.rq);
        let front = (begins != Some(survivor.sector)).then_some(survivor.sector);
        self.lengthen(at, survivor.rq, merge.sectors, front);
        if !was_inside {
            self.call(at, |policy, cx| policy.dropped(cx, second));
            if let Some(rq) = self.live.get_mut(&merge.absorbed).and_then(|live| live.outside.take()) {
                self.pool.put(rq);
            }
        }
        self.forget(merge.absorbed);
    }

    /// The name of the queue that a request is in.
    fn queue_of(&self, number: RqNumber) -> String {
        let queue = self.live.get(&number).and_then(|live| self.policy.queue_of(live.id));
        queue.map_or_else(String::new, |mut name| {
            self.pids.restore(&mut name);
            name.to_string()
        })
    }

    fn sector_of(&self, number: RqNumber) -> Option<hoistway_blk::Sector> {
        let live = self.live.get(&number)?;
        match &live.outside {
            Some(rq) => Some(rq.sector),
            None => Some(self.requests.get(live.id).sector),
        }
    }

    fn inside(&self, rq: RqNumber) -> Option<RqId> {
        self.live.get(&rq).map(|live| live.id).filter(|&id| self.requests.holds(id))
    }

    fn ask(&mut self, index: usize, event: &Event, dispatch: &Dispatch) {
        let kernel = dispatch.chosen.as_ref().map(|chosen| chosen.rq);
        // A request that never went in (flush machinery) is no decision of the scheduler's.
        if kernel.is_some_and(|rq| self.inside(rq).is_none()) {
            return;
        }
        let at = self.moment_of_decision(index, dispatch.asked);
        // What is due before the question is not undone with it.
        self.call(at, |_, _| ());
        let before = (self.policy.clone(), self.timer);
        let choice = self.call(at, |policy, cx| policy.dispatch(cx, dispatch.hctx));
        let ours = choice.rq.and_then(|id| self.by_id[id.index()]);
        if ours != kernel {
            let mismatch = self.baseline.explain(event, kernel, ours, choice.reason.text(), |candidate| {
                let Candidate { rq, sector, sectors, .. } = candidate;
                format!("rq {} {}+{sectors} of {}", rq.0, sector.0, self.queue_of(*rq))
            });
            self.outcome.note(|| mismatch);
            (self.policy, self.timer) = before;
            if let Some(id) = kernel.and_then(|rq| self.inside(rq)) {
                self.call(at, |policy, cx| policy.adopt(cx, HctxId(0), id));
            }
        }
        self.baseline.judge(&mut self.outcome.score, kernel, ours);
        if let Some(number) = kernel
            && let Some(id) = self.inside(number)
        {
            let rq = self.requests.release(id);
            if let Some(live) = self.live.get_mut(&number) {
                live.outside = Some(rq);
            }
        }
    }

    fn start(&mut self, at: Instant, issue: &Issue) {
        let Some(id) = self.live.get(&issue.rq).map(|live| live.id) else { return };
        if self.requests.holds(id) {
            // Drained some other way: the question was not recorded.
            self.call(at, |policy, cx| policy.adopt(cx, HctxId(0), id));
            self.baseline.remove(issue.rq);
            let rq = self.requests.release(id);
            if let Some(live) = self.live.get_mut(&issue.rq) {
                live.outside = Some(rq);
            }
        }
        self.call(at, |policy, cx| policy.started(cx, id));
    }

    fn complete(&mut self, index: usize, event: &Event, complete: &Complete) {
        let Some(id) = self.live.get(&complete.rq).map(|live| live.id) else { return };
        let tells = ["set_slice", "arm_idle", "slice expired", "schedule dispatch"];
        let at = self.moment(index, event.t + AFTER_COMPLETE, |text| tells.iter().any(|told| text.contains(told)));
        self.slices.begin();
        self.call(at, |policy, cx| policy.finish(cx, id));
        if let Some(rq) = self.live.get_mut(&complete.rq).and_then(|live| live.outside.take()) {
            self.pool.put(rq);
        }
        self.forget(complete.rq);
    }

    fn forget(&mut self, number: RqNumber) {
        if let Some(live) = self.live.remove(&number) {
            self.by_id[live.id.index()] = None;
            self.free.push(live.id);
        }
    }
}

/// Processes are numbered from 0 for cfq, which has a table of them: pids may be millions.
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

    /// Names a queue by the pid of its owner.
    fn restore(&self, queue: &mut CfqQueueName) {
        if let Some(&pid) = self.pids.get(queue.owner.index()) {
            queue.owner = IoContextId(pid);
        }
    }
}

/// Flush and FUA requests go past the scheduler.
fn reaches_cfq(io: &Io) -> bool {
    use hoistway_blk::{BioFlags, Op};
    io.op != Op::Flush && !io.flags.intersects(BioFlags::FUA.with(BioFlags::PREFLUSH))
}

/// What the baselines take for the served process: the queue.
fn served_as(queue: QueueName) -> u32 {
    queue.owner.unwrap_or(0) * 2 + u32::from(queue.sync)
}

/// The comparison of slice lengths.
#[derive(Default)]
struct Slices {
    /// What we set with the last completion.
    ours: Option<i64>,
    /// Equal ones, and all that the kernel set.
    score: (u64, u64),
}

impl Slices {
    fn begin(&mut self) {
        self.ours = None;
    }

    fn said(&mut self, messages: &[CfqMessage]) {
        for message in messages {
            if let CfqEvent::SetSlice(length) = message.event {
                self.ours = Some(length);
            }
        }
    }

    fn recorded(&mut self, text: &str) {
        if let Some((_, length)) = text.split_once(" set_slice=") {
            self.score.1 += 1;
            self.score.0 += u64::from(self.ours.take().is_some_and(|ours| length.parse() == Ok(ours)));
        }
    }
}
