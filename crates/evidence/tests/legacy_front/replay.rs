//! Feeds a recording to the front, and compares the events.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;

use hoistway_blk::bio::{Bio, IoPriority, Limits, Op, Status};
use hoistway_blk::ground::{CgroupId, Instant, IoContextId, Kernel, Nanos, Now, RqId, Tick, Waiter};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::queue::Step;
use hoistway_blk::request::{Edge, Merging};
use hoistway_legacy::{LegacyConfig, LegacyElevator, LegacySubmission, Tagging, all_schedulers};
use hoistway_trace::iosched::{Event, EventKind, InsertedBy, Io, Mark, RqNumber, Submitted, Trace};

use crate::legacy_front::host::{Happened, Host};

/// How long the scheduler had been active when a recording began, as the recorder was written.
pub const ATTACHED_BEFORE: Nanos = Nanos::from_millis(150);
/// The recorded machine is slow: it reads its clock this long after an event.
const UNTIL_ASKED: Nanos = Nanos::from_micros(4);
const UNTIL_COMPLETED: Nanos = Nanos::from_micros(20);
/// Length of a recorded tick.
const TICK_NS: u64 = 4_000_000;

/// A recording, and the front to compare with it.
pub struct Replay<'a> {
    trace: &'a Trace,
    config: LegacyConfig,
    pub host: Host,
    /// Our request for each recorded one.
    ids: HashMap<RqNumber, RqId>,
    plugging: HashSet<u32>,
    processes: HashMap<u32, (CgroupId, IoPriority)>,
    tick: Tick,
    /// A change of scheduler that has begun, and the requests allocated since.
    switching: bool,
    since_switch: HashSet<RqId>,
}

/// Replays a recording. The error names the first recorded event that did not happen here, or the first event here that
/// was not recorded.
pub fn replay(trace: &Trace) -> Result<(), String> {
    let mut replay = Replay::new(trace);
    for (index, event) in trace.events.iter().enumerate() {
        replay.event(index, event).map_err(|difference| format!("line {}: {difference}", event.line))?;
    }
    let left = &replay.host.seen.0;
    if left.is_empty() || trace.header.truncated {
        Ok(())
    } else {
        Err(format!("not recorded: {:?}", left.iter().take(6).collect::<Vec<_>>()))
    }
}

impl<'a> Replay<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        let header = &trace.header;
        let number = |key: &str| header.device.get(key).and_then(serde_json::Value::as_u64);
        let cache = number("write_cache").unwrap_or(0);
        let queue = &header.queue;
        let config = LegacyConfig {
            kernel: Kernel::V4_19,
            cpus: 1,
            // The recorded driver counts its requests itself, and stops its queue.
            queue_depth: 1024,
            nr_requests: queue.nr_requests,
            tagging: Tagging::Driver,
            merging: [Merging::Full, Merging::Simple, Merging::Off][usize::from(queue.nomerges.min(2))],
            limits: Limits {
                max_sectors: queue.max_sectors_kb * 2,
                max_segments: queue.max_segments as u16,
                max_discard_sectors: queue.discard_max_bytes.map_or(u32::MAX >> 9, |bytes| (bytes / 512) as u32),
                rotational: queue.rotational,
                write_cache: cache > 0,
                fua: cache == 2,
                ..Limits::default()
            },
            schedulers: all_schedulers(),
        };
        let depth = number("queue_depth").unwrap_or(1) as usize;
        let mut host = Host::new(&config, &header.scheduler, depth);
        for (index, cgroup) in header.cgroups.iter().enumerate() {
            let (id, parent) = (CgroupId(index as u32), cgroup.parent.unwrap_or_default());
            let weight = cgroup.weight.and_then(|weight| u16::try_from(weight).ok());
            host.queue.notify(
                Now::default(),
                &mut host.caller.effects,
                SchedulerEvent::CgroupAdded { cgroup: id, parent },
            );
            if let Some(weight) = weight {
                host.queue.notify(
                    Now::default(),
                    &mut host.caller.effects,
                    SchedulerEvent::Weight { cgroup: id, weight },
                );
            }
        }
        for (name, value) in &header.tunables {
            // A file that shows a value in another unit is not written.
            let _ = host.queue.set_tunable(Now::default(), name, &value.to_string(), &mut host.caller.effects);
        }
        host.note_effects();
        let processes = &header.processes;
        Replay {
            trace,
            config,
            host,
            ids: HashMap::new(),
            plugging: processes.iter().filter(|process| process.job.contains("plug=1")).map(|p| p.pid).collect(),
            processes: processes.iter().map(|p| (p.pid, (p.cgroup, p.effective_ioprio()))).collect(),
            tick: Tick(0),
            switching: false,
            since_switch: HashSet::new(),
        }
    }

    /// Advances time to that of a recorded event.
    pub fn advance(&mut self, t: Instant, recorded: Option<Tick>) {
        self.tick = recorded.unwrap_or(self.tick);
        let edge = self.trace.header.jiffy_edge_ns.filter(|_| self.trace.header.cpus == 1);
        let tick = edge.map_or(self.tick, |edge| Tick((t.0 + TICK_NS - edge) / TICK_NS));
        self.host.advance(t + ATTACHED_BEFORE, tick);
    }

    fn id(&self, rq: RqNumber) -> Option<RqId> {
        self.ids.get(&rq).copied()
    }

    fn event(&mut self, index: usize, event: &Event) -> Result<(), String> {
        let (t, pid) = (event.t, event.pid.unwrap_or(0));
        match &event.kind {
            // What comes from outside.
            EventKind::Queue(submitted) => self.bio_arrives(t, pid, submitted),
            EventKind::Complete(complete) => {
                self.advance(t + UNTIL_COMPLETED, complete.io.j);
                self.switch_if_that_is_why(index);
                self.completes(complete.rq, &complete.io)?;
            }
            EventKind::Exit => {
                self.advance(t, None);
                let now = self.host.now;
                self.host.queue.notify(
                    now,
                    &mut self.host.caller.effects,
                    SchedulerEvent::IoContextExited(IoContextId(pid)),
                );
                self.host.note_effects();
            }
            EventKind::Mark(Mark::Tunable { name, value }) => {
                let now = self.host.now;
                let _ = self.host.queue.set_tunable(now, name, value, &mut self.host.caller.effects);
                self.host.note_effects();
            }
            EventKind::Msg { text, .. } => {
                if let Some(name) = text.strip_prefix("elv switch: ") {
                    self.advance(t, None);
                    self.switch_ends(name)?;
                }
            }
            // What the queue does.
            EventKind::Requeue { rq, io } => {
                self.advance(t, io.j);
                let taken = self.id(*rq).and_then(|id| self.host.take(Some(id)));
                let taken = taken.ok_or_else(|| format!("{rq:?} is not at our device"))?;
                let id = taken.id();
                self.host.call(|queue, cx| queue.requeue(cx, taken));
                self.find(t, pid, &event.kind, |seen| *seen == Happened::Requeue(id))?;
            }
            EventKind::Getrq { bio, rq, .. } => {
                let owner = u64::from(bio.bio.0);
                let found =
                    self.find(t, pid, &event.kind, |seen| matches!(seen, Happened::GetRq(of, _) if *of == owner))?;
                if let Happened::GetRq(_, id) = found {
                    self.ids.extend(rq.map(|rq| (rq, id)));
                    if self.switching {
                        self.since_switch.insert(id)
                    } else {
                        self.since_switch.remove(&id)
                    };
                }
            }
            EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => {
                self.tick = insert.io.j.unwrap_or(self.tick);
                let id = self.id(insert.rq);
                self.find(t, pid, &event.kind, |seen| matches!(seen, Happened::Insert(ours) if Some(*ours) == id))?;
            }
            EventKind::Insert(insert) => {
                // A requeued request is inserted again; a request taken by the flush machinery is reported here when it
                // is issued.
                let id = self.id(insert.rq);
                let seen = &mut self.host.seen.0;
                if let Some(at) =
                    seen.iter().position(|seen| matches!(seen, Happened::Insert(ours) if Some(*ours) == id))
                {
                    seen.remove(at);
                }
            }
            EventKind::Backmerge(_) => self.find_this(t, pid, &event.kind, Happened::Merge(Edge::Back))?,
            EventKind::Frontmerge(_) => self.find_this(t, pid, &event.kind, Happened::Merge(Edge::Front))?,
            EventKind::Plug => self.find_this(t, pid, &event.kind, Happened::Plug)?,
            EventKind::Unplug { nr, .. } => self.find_this(t, pid, &event.kind, Happened::Unplug(*nr as usize))?,
            EventKind::Dispatch(dispatch) => {
                self.tick = dispatch.j;
                let gave = dispatch.chosen.as_ref().map(|chosen| self.id(chosen.rq));
                let wanted = move |seen: &Happened| match (seen, gave) {
                    (Happened::Gave(ours), Some(theirs)) => Some(*ours) == theirs,
                    (Happened::Declined, None) => true,
                    _ => false,
                };
                self.find(dispatch.called_at, pid, &event.kind, wanted)?;
            }
            EventKind::Issue(issue) => {
                self.tick = issue.io.j.unwrap_or(self.tick);
                let id = self.id(issue.rq);
                let is_flush = is_flush_command(&issue.io);
                self.find(t, pid, &event.kind, |seen| match seen {
                    Happened::IssueFlush => is_flush,
                    Happened::Issue(ours) => !is_flush && Some(*ours) == id,
                    _ => false,
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn bio_arrives(&mut self, t: Instant, pid: u32, submitted: &Submitted) {
        self.advance(t, submitted.io.j);
        if self.plugging.contains(&pid) {
            self.host.plugs.entry(pid).or_default();
        }
        self.submit(pid, submitted);
    }

    /// A process submits a recorded bio.
    pub fn submit(&mut self, pid: u32, submitted: &Submitted) {
        let io = &submitted.io;
        let (cgroup, of_process) = self.processes.get(&pid).copied().unwrap_or_default();
        let is_cfq = self.trace.header.scheduler == "cfq";
        let bio = Bio {
            flags: io.flags,
            // cfq derives the priority of a process that set none from its nice level.
            ioprio: if is_cfq && io.prio == IoPriority::UNSET { of_process } else { io.prio },
            io_context: IoContextId(pid),
            cgroup,
            owner: u64::from(submitted.bio.0),
            segments: if io.op == Op::Discard { 1 } else { io.sectors.div_ceil(8).max(1) as u16 },
            ..Bio::new(io.op, io.sector, io.sectors)
        };
        self.host.submit(pid, LegacySubmission::new(bio, Waiter(pid)));
    }

    fn completes(&mut self, rq: RqNumber, io: &Io) -> Result<(), String> {
        if io.op == Op::Write && io.sectors == 0 {
            // The end of a flush sequence is recorded, too, although it does not involve the device.
            return Ok(());
        }
        let id = if io.op == Op::Flush { None } else { Some(self.id(rq).ok_or_else(|| format!("{rq:?} is unknown"))?) };
        let taken = self.host.take(id).ok_or_else(|| format!("{rq:?} is not at our device"))?;
        self.host.call(|queue, cx| queue.complete(cx, taken, Status::Ok));
        Ok(())
    }

    /// The start of a change of scheduler is not recorded, but it is visible: the scheduler's requests are issued
    /// without a call of it.
    fn switch_if_that_is_why(&mut self, index: usize) {
        if self.switching || !self.trace.header.name.starts_with("switch") {
            return;
        }
        let is_next = |event: &&Event| matches!(event.kind, EventKind::Issue(_) | EventKind::Dispatch(_));
        let next = self.trace.events[index + 1..].iter().find(is_next);
        if let Some(EventKind::Issue(issue)) = next.map(|event| &event.kind)
            && self.id(issue.rq).is_none_or(|id| !self.since_switch.contains(&id))
        {
            self.switching = true;
            self.host.call(|queue, cx| queue.begin_switch(cx));
        }
    }

    fn switch_ends(&mut self, name: &str) -> Result<(), String> {
        if !self.switching {
            self.host.call(|queue, cx| queue.begin_switch(cx));
        }
        self.switching = false;
        if self.host.call(|queue, cx| queue.poll_switch(cx)) == Step::More {
            return Err("the old scheduler still manages requests".into());
        }
        let next = LegacyElevator::named(name, &self.config, self.host.now);
        self.host.call(|queue, cx| queue.end_switch(cx, next));
        Ok(())
    }

    fn find_this(&mut self, t: Instant, pid: u32, kind: &EventKind, wanted: Happened) -> Result<(), String> {
        self.find(t, pid, kind, |seen| *seen == wanted).map(drop)
    }

    /// Finds a recorded event among ours. If it has not happened, anything that is not triggered by the queue takes
    /// place now: a plug is flushed, a sleeping process continues, or a worker runs the queue.
    fn find(
        &mut self,
        t: Instant,
        pid: u32,
        kind: &EventKind,
        wanted: impl Fn(&Happened) -> bool,
    ) -> Result<Happened, String> {
        let seen = &mut self.host.seen.0;
        if let Some(at) = seen.iter().position(&wanted) {
            return seen.remove(at).ok_or_else(String::new);
        }
        match kind {
            // The tick is that at the time of the decision.
            EventKind::Dispatch(_) => self.host.advance(t + ATTACHED_BEFORE + UNTIL_ASKED, self.tick),
            _ => self.advance(t, None),
        }
        match kind {
            EventKind::Insert(_) | EventKind::Unplug { .. } => self.host.flush_plug(pid),
            EventKind::Getrq { .. } => self.host.make_progress(pid),
            EventKind::Dispatch(_) | EventKind::Issue(_) => self.host.call(|queue, cx| queue.run(cx)),
            _ => {}
        }
        let seen = &mut self.host.seen.0;
        let at = seen.iter().position(wanted).ok_or_else(|| differs(kind, seen.iter().take(6)))?;
        seen.remove(at).ok_or_else(String::new)
    }
}

/// The flush command has no data; a flush-type write that is issued for its data has.
fn is_flush_command(io: &Io) -> bool {
    io.op == Op::Flush
}

fn differs(recorded: &EventKind, ours: impl Iterator<Item = impl Debug>) -> String {
    format!("recorded {recorded:?}; ours: {:?}", ours.collect::<Vec<_>>())
}
