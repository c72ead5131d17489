//! The bench: processes, a queue, a device, and a record of what happened.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op, PriorityClass};
use hoistway_blk::ground::{CgroupId, HctxId, Instant, IoContextId, Kernel, Local, RqId, Sector};
use hoistway_blk::kit::attributes::value_of;
use hoistway_blk::policy::{
    LegacyHooks, MayQueue, Place, PolicyCx, RequestedActions, Requests, Scheduler, SchedulerEvent,
};
use hoistway_blk::request::{RequestPool, Rq};

use super::super::context::ContextId;
use super::super::queue::{Queue, QueueId};
use super::super::{Cfq, CfqConfig, CfqEvent, CfqMessage};

pub(super) const US: u64 = 1_000;
pub(super) const MS: u64 = 1_000_000;

const CAPACITY: u32 = 512;

/// A process that keeps this many requests outstanding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) pid: u32,
    pub(super) cgroup: CgroupId,
    pub(super) ioprio: IoPriority,
    pub(super) op: Op,
    pub(super) flags: BioFlags,
    pub(super) outstanding: u32,
    /// From a completion to the next request, ns.
    pub(super) think: u64,
    /// How many requests it issues.
    pub(super) count: u32,
    /// When it begins and when it issues no more, ns.
    pub(super) start: u64,
    pub(super) stop: u64,
    /// Where it continues, and how it moves after each request. Sectors.
    pub(super) sector: u64,
    pub(super) step: i64,
    pub(super) sectors: u32,
}

impl Job {
    /// A sequential reader of level 4 in the root group.
    pub(super) fn new(pid: u32, outstanding: u32) -> Job {
        Job {
            pid,
            cgroup: CgroupId::ROOT,
            ioprio: IoPriority::DEFAULT,
            op: Op::Read,
            flags: BioFlags::NONE,
            outstanding,
            think: 20 * US,
            count: u32::MAX,
            start: 0,
            stop: u64::MAX,
            sector: u64::from(pid) << 24,
            step: 64,
            sectors: 64,
        }
    }

    pub(super) fn class(self, class: PriorityClass, level: u8) -> Job {
        Job { ioprio: IoPriority::new(class, level), ..self }
    }

    pub(super) fn level(self, level: u8) -> Job {
        self.class(PriorityClass::BestEffort, level)
    }

    pub(super) fn asynchronous(self) -> Job {
        Job { op: Op::Write, ..self }
    }
}

/// One request of a process that is not to go on.
pub(super) fn one(pid: u32) -> Job {
    Job { count: 1, ..Job::new(pid, 1) }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Happening {
    Complete,
    Issue(usize),
}

pub(super) struct Bench {
    pub(super) policy: Cfq<Vec<CfqMessage>>,
    pool: RequestPool<Local>,
    pub(super) requests: Requests,
    free: Vec<RqId>,
    pub(super) now: u64,
    pub(super) timer: Option<u64>,
    /// Whether the policy has asked for a run since the queue last ran.
    pub(super) run_wanted: bool,
    jobs: Vec<Job>,
    job_of: Vec<usize>,
    events: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    sequence: u64,
    /// Requests that the device accepts.
    depth: usize,
    /// Service time of a request, ns.
    pub(super) service: u64,
    /// On top of that, if it does not begin where the last one ended, and for each sector. ns.
    pub(super) jump: u64,
    pub(super) transfer: u64,
    last_end: Sector,
    busy_until: u64,
    in_service: VecDeque<Rq>,
    /// Requests that stay out.
    pub(super) out: Vec<Rq>,
    /// What the driver has looked at and cannot pass on yet.
    head: Option<Rq>,
    /// The messages of cfq, with their times.
    pub(super) messages: Vec<(u64, CfqMessage)>,
    /// When a request of which process was given out.
    pub(super) dispatched: Vec<(u64, u32)>,
    /// When a request of which process was completed, and how long it had taken.
    pub(super) completed: Vec<(u64, u32, u64)>,
}

impl Bench {
    /// A rotating device that accepts `depth` requests and takes 1 ms for each.
    pub(super) fn new(depth: usize) -> Bench {
        Bench::with(CfqConfig::new(&Kernel::V4_19.generation(), true), depth)
    }

    pub(super) fn flash(depth: usize) -> Bench {
        Bench::with(CfqConfig::new(&Kernel::V4_19.generation(), false), depth)
    }

    pub(super) fn with(config: CfqConfig, depth: usize) -> Bench {
        Bench {
            policy: Cfq::with_log(config, config.hz.now(Instant::ZERO), CAPACITY, Vec::new()),
            pool: RequestPool::new(CAPACITY),
            requests: Requests::new(CAPACITY),
            free: (0..CAPACITY).rev().map(RqId).collect(),
            now: 0,
            timer: None,
            run_wanted: false,
            jobs: Vec::new(),
            job_of: vec![usize::MAX; CAPACITY as usize],
            events: BinaryHeap::new(),
            sequence: 0,
            depth,
            service: MS,
            jump: 0,
            transfer: 0,
            last_end: Sector(0),
            busy_until: 0,
            in_service: VecDeque::new(),
            out: Vec::new(),
            head: None,
            messages: Vec::new(),
            dispatched: Vec::new(),
            completed: Vec::new(),
        }
    }

    pub(super) fn set(&mut self, tunable: &str, text: &str) {
        self.call(|policy, cx| policy.set_tunable(cx, tunable, text)).expect("writes never fail");
    }

    pub(super) fn get(&self, tunable: &str) -> i128 {
        value_of(&self.policy.tunables(), tunable).expect("a tunable")
    }

    /// Calls the policy now, and does what it asks for, but for running the queue.
    pub(super) fn call<R>(&mut self, body: impl FnOnce(&mut Cfq<Vec<CfqMessage>>, &mut PolicyCx<'_>) -> R) -> R {
        let mut requested = RequestedActions::default();
        let now = self.policy.config.hz.now(Instant(self.now));
        let result = body(&mut self.policy, &mut PolicyCx { now, requests: &self.requests, requested: &mut requested });
        if requested.cancel_timer {
            self.timer = None;
        }
        self.timer = requested.set_timer.map(|at| at.0).or(self.timer);
        self.run_wanted |= requested.run_queues;
        let messages = std::mem::take(self.policy.log_mut());
        self.messages.extend(messages.into_iter().map(|message| (self.now, message)));
        result
    }

    pub(super) fn add(&mut self, job: Job) {
        let index = self.jobs.len();
        self.jobs.push(job);
        for _ in 0..job.outstanding {
            self.schedule(job.start, Happening::Issue(index));
        }
    }

    fn schedule(&mut self, time: u64, happening: Happening) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, happening)));
    }

    /// Lets time pass, up to and with `end`.
    pub(super) fn run_until(&mut self, end: u64) {
        loop {
            let next = self.events.peek().map(|Reverse((time, ..))| *time);
            let timer_first = self.timer.is_some_and(|timer| next.is_none_or(|next| timer <= next));
            let due = if timer_first { self.timer } else { next };
            let Some(due) = due.filter(|&due| due <= end) else { break };
            self.now = due;
            if timer_first {
                self.timer = None;
                self.call(|policy, cx| policy.on_timer(cx));
                self.run_if_wanted();
            } else if let Some(Reverse((_, _, happening))) = self.events.pop() {
                match happening {
                    Happening::Issue(job) => self.issue(job),
                    Happening::Complete => self.complete(),
                }
            }
        }
        self.now = end;
    }

    /// Lets time pass without processes and device.
    pub(super) fn run_timer_until(&mut self, end: u64) {
        while let Some(due) = self.timer.filter(|&due| due <= end) {
            self.now = due.max(self.now);
            self.timer = None;
            self.call(|policy, cx| policy.on_timer(cx));
        }
        self.now = end;
    }

    /// How many more requests there can be.
    pub(super) fn requests_left(&self) -> usize {
        self.free.len()
    }

    fn issue(&mut self, index: usize) {
        let job = self.jobs[index];
        if self.now > job.stop || job.count == 0 {
            return;
        }
        self.jobs[index].count -= 1;
        self.jobs[index].sector = job.sector.wrapping_add_signed(job.step);
        let id = self.insert(job);
        self.job_of[id.index()] = index;
        self.run();
    }

    /// One request of a job arrives. The queue is not run.
    pub(super) fn insert(&mut self, job: Job) -> RqId {
        let rq = self.allocate(job);
        self.enter(rq)
    }

    /// A request of a job is allocated.
    pub(super) fn allocate(&mut self, job: Job) -> Rq {
        let bio = self.bio_of(job);
        self.call(|policy, cx| policy.on_bio(cx, &bio));
        self.may_queue(job);
        let id = self.free.pop().expect("a free slot");
        self.job_of[id.index()] = usize::MAX;
        let mut rq = self.pool.take(id);
        rq.found(bio, Instant(self.now));
        self.call(|policy, cx| policy.prepare(cx, &rq));
        rq
    }

    pub(super) fn may_queue(&mut self, job: Job) -> MayQueue {
        let Job { op, flags, ioprio, cgroup, pid, .. } = job;
        let bio = Bio { flags, io_context: IoContextId(pid), ioprio, cgroup, ..Bio::new(op, Sector(0), 8) };
        self.call(|policy, cx| policy.may_queue(cx, &bio))
    }

    /// An allocated request is inserted.
    pub(super) fn enter(&mut self, rq: Rq) -> RqId {
        let id = rq.id();
        self.requests.hold(rq);
        self.call(|policy, cx| policy.insert(cx, id, Place::Sorted));
        id
    }

    pub(super) fn bio_of(&self, job: Job) -> Bio {
        Bio {
            flags: job.flags,
            ioprio: job.ioprio,
            io_context: IoContextId(job.pid),
            cgroup: job.cgroup,
            ..Bio::new(job.op, Sector(job.sector), job.sectors)
        }
    }

    pub(super) fn exit(&mut self, pid: u32) {
        self.call(|policy, cx| policy.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(pid))));
    }

    pub(super) fn run_if_wanted(&mut self) {
        if self.run_wanted {
            self.run();
        }
    }

    /// The driver takes what it can.
    pub(super) fn run(&mut self) {
        self.run_wanted = false;
        loop {
            let head = match self.head.take() {
                Some(rq) => rq,
                None => match self.pull() {
                    Some(rq) => rq,
                    None => return,
                },
            };
            if self.in_service.len() == self.depth {
                self.head = Some(head);
                return;
            }
            let jump = if head.sector == self.last_end { 0 } else { self.jump };
            let service = self.service + jump + u64::from(head.sectors) * self.transfer;
            self.last_end = head.end();
            self.in_service.push_back(head);
            self.busy_until = self.busy_until.max(self.now) + service;
            self.schedule(self.busy_until, Happening::Complete);
        }
    }

    /// Asks for one request and lets the driver look at it.
    pub(super) fn pull(&mut self) -> Option<Rq> {
        let id = self.call(|policy, cx| policy.dispatch(cx, HctxId(0))).rq?;
        self.dispatched.push((self.now, self.requests.get(id).io_context.0));
        let rq = self.requests.release(id);
        self.call(|policy, cx| policy.on_started(cx, id));
        Some(rq)
    }

    /// Asks for one request, which then stays out.
    pub(super) fn give_out(&mut self) {
        let rq = self.pull().expect("a request");
        self.out.push(rq);
    }

    fn complete(&mut self) {
        let rq = self.in_service.pop_front().expect("a request in service");
        let job = self.job_of[rq.id().index()];
        self.completed.push((self.now, rq.io_context.0, self.now - rq.start.0));
        self.finish(rq);
        self.run();
        if let Some(think) = self.jobs.get(job).map(|job| job.think) {
            self.schedule(self.now + think, Happening::Issue(job));
        }
    }

    /// A request that was given out ends.
    pub(super) fn finish(&mut self, rq: Rq) {
        let id = rq.id();
        self.pool.put(rq);
        self.call(|policy, cx| policy.finish(cx, id));
        self.free.push(id);
    }

    // --- what happened ---

    /// When the turns of which process ended.
    pub(super) fn turns(&self) -> Vec<(u64, u32)> {
        let ended = |(time, message): &(u64, CfqMessage)| match (message.event, message.queue) {
            (CfqEvent::SliceExpired { .. }, Some(queue)) => Some((*time, queue.owner.0)),
            _ => None,
        };
        self.messages.iter().filter_map(ended).collect()
    }

    /// The ends of turns in whole milliseconds.
    pub(super) fn turns_ms(&self) -> Vec<(u64, u32)> {
        self.turns().into_iter().map(|(time, pid)| (time / MS, pid)).collect()
    }

    /// Completions of a process.
    pub(super) fn count(&self, pid: u32) -> usize {
        self.completed.iter().filter(|(_, owner, _)| *owner == pid).count()
    }

    /// The processes in the order of dispatch, run by run.
    pub(super) fn dispatch_runs(&self) -> Vec<(u32, usize)> {
        let mut runs: Vec<(u32, usize)> = Vec::new();
        for &(_, pid) in &self.dispatched {
            match runs.last_mut() {
                Some((last, count)) if *last == pid => *count += 1,
                _ => runs.push((pid, 1)),
            }
        }
        runs
    }

    /// Every event of a process's queues, or of none.
    pub(super) fn events_of(&self, pid: u32) -> Vec<CfqEvent> {
        let about = |message: &CfqMessage| message.queue.is_some_and(|queue| queue.owner.0 == pid);
        self.messages.iter().filter(|(_, message)| about(message)).map(|(_, message)| message.event).collect()
    }

    /// What the turns of a process have left, us.
    pub(super) fn residuals(&self, pid: u32) -> Vec<i64> {
        let residual = |event| if let CfqEvent::Residual(rest) = event { Some((rest + 500) / 1_000) } else { None };
        self.events_of(pid).into_iter().filter_map(residual).collect()
    }

    // --- what is inside ---

    pub(super) fn context(&self, pid: u32) -> ContextId {
        self.policy.contexts.find(IoContextId(pid)).expect("a living process")
    }

    /// The async (0) or sync (1) queue that a process uses.
    pub(super) fn queue_id(&self, pid: u32, sync: usize) -> QueueId {
        self.policy.contexts[self.context(pid)].queues[sync].expect("a queue")
    }

    /// The sync queue of a process.
    pub(super) fn queue(&self, pid: u32) -> &Queue {
        self.policy.queue(self.queue_id(pid, 1))
    }

    pub(super) fn queue_mut(&mut self, pid: u32) -> &mut Queue {
        let id = self.queue_id(pid, 1);
        self.policy.queue_mut(id)
    }

    /// Whose turn it is.
    pub(super) fn active(&self) -> Option<u32> {
        self.policy.active.map(|id| self.policy.queue(id).owner.0)
    }

    /// The key of a process's sync queue, ns.
    pub(super) fn key(&self, pid: u32) -> i64 {
        let key = self.policy.service_nodes.key(self.queue_id(pid, 1).0);
        (key ^ 1 << 63) as i64
    }
}
