//! The environment of the queue: its device, the processes, and the events that it reports.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use hoistway_blk::bio::Op;
use hoistway_blk::caller::{Action, Agenda, Caller, Cx, Due, Submitted};
use hoistway_blk::drive::{Answer, Driver};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Local, NoMeter, Now, RqId, Tick};
use hoistway_blk::request::{Edge, Plug, Request, Rq};
use hoistway_blk::watch::{Event, Probe, Reason};
use hoistway_legacy::{LegacyConfig, LegacyQueue, LegacySubmission};

/// Something that happened in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happened {
    /// The bio with this number got a request.
    GetRq(u64, RqId),
    Insert(RqId),
    Merge(Edge),
    Plug,
    Unplug(usize),
    /// The elevator was asked, and returned this request.
    Gave(RqId),
    /// It was asked and declined, though it had requests.
    Declined,
    Issue(RqId),
    /// The flush command was issued.
    IssueFlush,
    Requeue(RqId),
}

/// Events that have not yet been found in the recording, oldest first.
#[derive(Default)]
pub struct Seen(pub VecDeque<Happened>);

fn issued(rq: &Request) -> Happened {
    if rq.op == Op::Flush { Happened::IssueFlush } else { Happened::Issue(rq.id()) }
}

impl Probe for Seen {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        self.0.push_back(match event {
            Event::GetRq(rq) => Happened::GetRq(rq.bios[0].owner, rq.id()),
            Event::Insert(rq) => Happened::Insert(rq.id()),
            Event::Merge(edge, _) => Happened::Merge(edge),
            Event::Plug => Happened::Plug,
            Event::Unplug { count, .. } => Happened::Unplug(count),
            Event::Dispatch { rq: Some(rq), .. } => Happened::Gave(rq.id()),
            // Calls of an empty elevator are not recorded.
            Event::Dispatch { rq: None, reason: Reason::Empty, .. } => return,
            Event::Dispatch { rq: None, .. } => Happened::Declined,
            Event::Issue(rq) => issued(rq),
            Event::Requeue(rq) => Happened::Requeue(rq.id()),
            Event::Queue(_) | Event::Split(_) | Event::Absorbed(_) | Event::Complete(..) | Event::End(_) => return,
            Event::BioComplete(..) => return,
        });
    }
}

/// The recorded driver stops its queue when it holds its maximum number of requests.
pub struct Device {
    queue: Rc<LegacyQueue<Local>>,
    depth: usize,
    pub in_flight: Vec<Rq>,
}

impl Driver for Device {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        self.in_flight.push(rq);
        if self.in_flight.len() >= self.depth {
            self.queue.set_stopped(true);
        }
        Answer::Queued
    }
}

/// The queue and its environment.
pub struct Host {
    pub queue: Rc<LegacyQueue<Local>>,
    pub device: Device,
    pub caller: Caller,
    agenda: Agenda,
    pub seen: Seen,
    /// Open plugs by process.
    pub plugs: HashMap<u32, Plug>,
    parked: HashMap<u32, LegacySubmission>,
    /// Processes that were woken and have not continued yet.
    woken: Vec<u32>,
    pub now: Now,
}

impl Host {
    pub fn new(config: &LegacyConfig, scheduler: &str, depth: usize) -> Self {
        let queue = Rc::new(LegacyQueue::new(config, scheduler).expect("a recorded configuration"));
        Host {
            device: Device { queue: Rc::clone(&queue), depth, in_flight: Vec::new() },
            queue,
            caller: Caller::new(),
            agenda: Agenda::new(1),
            seen: Seen::default(),
            plugs: HashMap::new(),
            parked: HashMap::new(),
            woken: Vec::new(),
            now: Now::default(),
        }
    }

    /// Calls the queue, and stores its requests. Runs on a worker take place when the recording shows them.
    pub fn call<R>(&mut self, body: impl FnOnce(&LegacyQueue<Local>, &mut Cx<'_, (Device, Seen)>) -> R) -> R {
        let queue = Rc::clone(&self.queue);
        let mut cx = self.caller.cx(self.now, CpuId(0), &mut self.device, &mut self.seen, &NoMeter);
        let result = body(&queue, &mut cx);
        self.note_effects();
        result
    }

    pub fn note_effects(&mut self) {
        let effects = &mut self.caller.effects;
        while let Some(action) = self.agenda.take(&*self.queue, CpuId(0), effects, &mut self.now.at) {
            if let Action::Wake(waiter) = action {
                self.woken.push(waiter.0);
            }
        }
        self.agenda.cancel(Due::Run(HctxId(0)));
        self.agenda.cancel(Due::Timeouts);
    }

    /// When the scheduler's timer is due.
    pub fn timer(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// Advances time; the scheduler's timer fires if it is due before.
    pub fn advance(&mut self, at: Instant, tick: Tick) {
        while let Some(due) = self.agenda.next_at().filter(|&due| due <= at) {
            self.agenda.cancel(Due::Timer);
            self.now = Now { at: due, tick };
            self.call(|queue, cx| queue.timer(cx));
        }
        self.now = Now { at, tick };
    }

    pub fn submit(&mut self, pid: u32, mut submission: LegacySubmission) {
        let mut plug = self.plugs.remove(&pid);
        let submitted = self.call(|queue, cx| queue.submit(cx, &mut submission, plug.as_mut()));
        if submitted == Submitted::Parked {
            self.parked.insert(pid, submission);
        }
        self.plugs.extend(plug.map(|plug| (pid, plug)));
    }

    /// A process that was woken continues.
    pub fn make_progress(&mut self, pid: u32) {
        let Some(at) = self.woken.iter().position(|&woken| woken == pid) else { return };
        self.woken.remove(at);
        if let Some(submission) = self.parked.remove(&pid) {
            self.submit(pid, submission);
        }
    }

    pub fn flush_plug(&mut self, pid: u32) {
        if let Some(mut plug) = self.plugs.remove(&pid) {
            self.call(|queue, cx| queue.flush_plug(cx, &mut plug));
        }
    }

    /// Takes a request, or the flush command, from the device.
    pub fn take(&mut self, id: Option<RqId>) -> Option<Rq> {
        let is_it = |rq: &Rq| id.map_or(rq.op == Op::Flush, |id| rq.id() == id && rq.op != Op::Flush);
        let at = self.device.in_flight.iter().position(is_it)?;
        self.queue.set_stopped(false);
        Some(self.device.in_flight.remove(at))
    }
}
