//! A device that serves requests with a fixed or computed time, and processes that keep it busy, in virtual time.

use super::super::contexts::ContextQueues;
use super::super::entity::QueueId;
use super::super::ncq::Ncq;
use super::super::{Bfq, BfqConfig, BfqVariant, StateChange, StateLine};
use crate::bio::ioprio::IoPriority;
use crate::bio::{Bio, BioFlags, Op};
use crate::ground::ids::{CgroupId, HctxId, IoContextId, RqId, Sector};
use crate::ground::kernel::Kernel;
use crate::ground::sharing::Local;
use crate::ground::time::{Hz, Instant};
use crate::ground::tunables::value_of;
use crate::policy::{Place, PolicyCx, RequestedActions, Requests, Scheduler};
use crate::request::merge::Edge;
use crate::request::{RequestPool, Rq};

pub(super) const MS: u64 = 1_000_000;

/// What a process does.
#[derive(Clone)]
pub(super) struct Job {
    pub pid: u32,
    pub ioprio: IoPriority,
    pub cgroup: CgroupId,
    pub op: Op,
    pub flags: BioFlags,
    /// Where it starts.
    pub sector: u64,
    pub sectors: u32,
    /// From the start of a request to that of the next; the length for a sequential process.
    pub stride: u64,
    /// Requests that it keeps going.
    pub depth: u32,
    /// From a completion to the next request, ns.
    pub think: u64,
    /// When it starts, ns.
    pub start: u64,
}

impl Job {
    /// Sequential reads of `sectors`, four at a time.
    pub fn sequential(pid: u32, sectors: u32) -> Self {
        Job {
            pid,
            ioprio: IoPriority::DEFAULT,
            cgroup: CgroupId::ROOT,
            op: Op::Read,
            flags: BioFlags::NONE,
            sector: u64::from(pid) << 32,
            sectors,
            stride: u64::from(sectors),
            depth: 4,
            think: 0,
            start: 0,
        }
    }

    /// Reads of 8 sectors far from each other.
    pub fn random(pid: u32, depth: u32) -> Self {
        Job { stride: 10_000, depth, ..Job::sequential(pid, 8) }
    }
}

/// bfq as of 6.x with a real clock, low latency off, and budgets of 16384 sectors.
pub(super) fn config(rotational: bool) -> BfqConfig {
    let generation = Kernel::V6_18.generation();
    let variant = BfqVariant { first_elapsed_is_minus_one: false, ..BfqVariant::of(Kernel::V6_18) };
    BfqConfig { hz: Hz(1000), variant, ..BfqConfig::new(&generation, 256, rotational) }
}

/// A device with bfq before it.
pub(super) struct Machine {
    pub bfq: Bfq,
    pub now: u64,
    pool: RequestPool<Local>,
    requests: Requests,
    free: Vec<RqId>,
    timer: Option<u64>,
    /// Requests that the device takes at once.
    pub device_depth: usize,
    /// Requests in the device and when each completes, in this order.
    pub in_device: Vec<(u64, RqId)>,
    /// Service time of a number of sectors of a process, ns.
    pub service: fn(u32, u32) -> u64,
    jobs: Vec<Job>,
    /// Arrivals to come: when, and of which job.
    arrivals: Vec<(u64, usize)>,
    /// Job of each request in use.
    job_of: Vec<Option<usize>>,
    /// Sectors served, by job.
    pub served: Vec<u64>,
    /// Requests given out: when, which process, which sector.
    pub dispatches: Vec<(u64, u32, u64)>,
    pub lines: Vec<(u64, StateLine)>,
}

impl Machine {
    /// A machine whose device takes one request at a time, 4 us for each sector.
    pub fn new(config: BfqConfig) -> Self {
        let capacity = 512;
        let mut machine = Machine {
            bfq: Bfq::new(config, capacity),
            now: 0,
            pool: RequestPool::new(capacity),
            requests: Requests::new(capacity),
            free: (0..capacity).rev().map(RqId).collect(),
            timer: None,
            device_depth: 1,
            in_device: Vec::new(),
            service: |_, sectors| u64::from(sectors) * 4_000,
            jobs: Vec::new(),
            arrivals: Vec::new(),
            job_of: vec![None; capacity as usize],
            served: Vec::new(),
            dispatches: Vec::new(),
            lines: Vec::new(),
        };
        machine.bfq.observe(true);
        machine.set("low_latency", 0);
        machine.set("max_budget", 16_384);
        machine
    }

    pub fn call<R>(&mut self, body: impl FnOnce(&mut Bfq, &mut PolicyCx<'_>) -> R) -> R {
        let now = Hz(1000).now(Instant(self.now));
        let mut requested = RequestedActions::default();
        let answer = body(&mut self.bfq, &mut PolicyCx { now, requests: &self.requests, requested: &mut requested });
        if let Some(at) = requested.set_timer {
            self.timer = Some(at.0);
        } else if requested.cancel_timer {
            self.timer = None;
        }
        let now = self.now;
        self.lines.extend(self.bfq.take_lines().into_iter().map(|line| (now, line)));
        answer
    }

    pub fn set(&mut self, name: &str, value: i128) {
        self.call(|bfq, cx| bfq.set_tunable(cx, name, &value.to_string())).unwrap();
    }

    pub fn get(&self, name: &str) -> i128 {
        value_of(&self.bfq.tunables(), name).unwrap()
    }

    /// Adds a process; returns its number.
    pub fn add(&mut self, job: Job) -> usize {
        self.arrivals.extend((0..job.depth).map(|_| (job.start, self.jobs.len())));
        self.jobs.push(job);
        self.served.push(0);
        self.jobs.len() - 1
    }

    /// Inserts one request, without asking for one.
    pub fn insert(&mut self, bio: Bio) -> RqId {
        self.insert_at(bio, Place::Sorted)
    }

    /// The same, at a place.
    pub fn insert_at(&mut self, bio: Bio, place: Place) -> RqId {
        let id = self.announce(bio);
        self.call(|bfq, cx| bfq.insert(cx, id, place));
        id
    }

    /// Makes a request, which is not inserted yet.
    pub fn announce(&mut self, bio: Bio) -> RqId {
        let rq = self.make(bio);
        let id = rq.id();
        self.call(|bfq, cx| bfq.on_arrived(cx, &rq));
        self.requests.hold(rq);
        id
    }

    /// Inserts a request that has not been announced.
    pub fn insert_unannounced(&mut self, bio: Bio) -> RqId {
        let rq = self.make(bio);
        let id = rq.id();
        self.requests.hold(rq);
        self.call(|bfq, cx| bfq.insert(cx, id, Place::Sorted));
        id
    }

    fn make(&mut self, bio: Bio) -> Rq {
        let id = self.free.pop().unwrap();
        let mut rq = self.pool.take(id);
        rq.found(bio, Instant(self.now));
        rq
    }

    /// Inserts a read of a process.
    pub fn read(&mut self, pid: u32, sector: u64, sectors: u32) -> RqId {
        self.insert(Bio { io_context: IoContextId(pid), ..Bio::new(Op::Read, Sector(sector), sectors) })
    }

    /// Asks for the next request: where it starts.
    pub fn dispatch(&mut self) -> Option<(RqId, u64)> {
        let id = self.call(|bfq, cx| bfq.dispatch(cx, HctxId(0))).rq?;
        let rq = self.requests.release(id);
        let sector = rq.sector.0;
        self.dispatches.push((self.now, rq.io_context.0, sector));
        let took = (self.service)(rq.io_context.0, rq.sectors);
        self.in_device.push((self.now + took, id));
        self.in_device.sort_unstable();
        self.pool.put(rq);
        Some((id, sector))
    }

    /// A request has ended.
    pub fn finish(&mut self, id: RqId) {
        self.in_device.retain(|&(_, other)| other != id);
        self.call(|bfq, cx| bfq.finish(cx, id));
        self.free.push(id);
    }

    fn run_queue(&mut self) {
        while self.in_device.len() < self.device_depth && self.bfq.has_work() && self.dispatch().is_some() {}
    }

    fn arrive(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        let bio = Bio {
            ioprio: job.ioprio,
            cgroup: job.cgroup,
            flags: job.flags,
            io_context: IoContextId(job.pid),
            ..Bio::new(job.op, Sector(job.sector), job.sectors)
        };
        job.sector += job.stride;
        let id = self.insert(bio);
        self.job_of[id.index()] = Some(number);
        self.run_queue();
    }

    /// Runs all processes until `end`, ns.
    pub fn run_until(&mut self, end: u64) {
        loop {
            let arrival = self.arrivals.iter().enumerate().min_by_key(|(at, arrival)| (arrival.0, *at));
            let arrival = arrival.map(|(at, &(when, _))| (when, at));
            let completion = self.in_device.first().copied();
            // At the same moment: completions, then arrivals in order, then the timer.
            let moments = [completion.map(|(t, _)| t), arrival.map(|(t, _)| t), self.timer];
            let Some(next) = moments.into_iter().flatten().min().filter(|&next| next <= end) else { break };
            self.now = next;
            if completion.is_some_and(|(t, _)| t == next) {
                let (_, id) = self.in_device[0];
                self.complete(id);
            } else if let Some((when, at)) = arrival
                && when == next
            {
                let (_, number) = self.arrivals.remove(at);
                self.arrive(number);
            } else {
                self.timer = None;
                self.call(|bfq, cx| bfq.on_timer(cx));
                self.run_queue();
            }
        }
        self.now = end;
    }

    fn complete(&mut self, id: RqId) {
        self.finish(id);
        if let Some(number) = self.job_of[id.index()].take() {
            let job = &self.jobs[number];
            self.served[number] += u64::from(job.sectors);
            if job.think == 0 {
                self.arrive(number);
            } else {
                self.arrivals.push((self.now + job.think, number));
            }
        }
        self.run_queue();
    }

    /// Inserts an async write of a process.
    pub fn write(&mut self, pid: u32, sector: u64, sectors: u32) -> RqId {
        self.insert(Bio { io_context: IoContextId(pid), ..Bio::new(Op::Write, Sector(sector), sectors) })
    }

    /// Inserts a read of a process in a cgroup.
    pub fn read_in(&mut self, cgroup: u32, pid: u32, sector: u64) -> RqId {
        let bio = Bio::new(Op::Read, Sector(sector), 8);
        self.insert(Bio { io_context: IoContextId(pid), cgroup: CgroupId(cgroup), ..bio })
    }

    /// Gives out the next request and lets it complete at once.
    pub fn serve(&mut self) -> u64 {
        let (id, sector) = self.dispatch().expect("a request");
        self.finish(id);
        sector
    }

    /// Whether there can be more requests.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// A request grows at its front and begins at `sector` then.
    pub fn grow_front(&mut self, id: RqId, sector: u64) {
        let rq = self.requests.get_mut(id);
        rq.sectors += (rq.sector.0 - sector) as u32;
        rq.sector = Sector(sector);
        self.call(|bfq, cx| bfq.on_grown(cx, id, Edge::Front));
    }

    /// Gives everything out, and lets it and what was out complete; returns how many were given out.
    pub fn drain(&mut self) -> usize {
        let mut given = 0;
        while self.bfq.has_work() {
            match (self.dispatch(), self.in_device.first()) {
                (Some(_), _) => given += 1,
                (None, Some(&(_, id))) => self.finish(id),
                (None, None) => self.fire_timer(),
            }
        }
        while let Some(&(_, id)) = self.in_device.first() {
            self.finish(id);
        }
        given
    }

    /// Tells the detector that the device queues commands, or does not.
    pub fn decide_ncq(&mut self, queues: bool) {
        self.bfq.ncq = Ncq::default();
        self.bfq.ncq.note(if queues { 32 } else { 1 });
        (0..33).for_each(|_| {
            self.bfq.ncq.sample(4, false, 3);
        });
    }

    /// Calls the policy without its interface, as within a hook.
    pub fn inside<R>(&mut self, body: impl FnOnce(&mut Bfq) -> R) -> R {
        self.call(|bfq, cx| bfq.call(cx, body))
    }

    /// The time of the idle timer comes.
    pub fn fire_timer(&mut self) {
        self.now = self.timer.take().expect("a timer");
        self.call(|bfq, cx| bfq.on_timer(cx));
    }

    /// The sync queue that a process uses on the first actuator.
    pub fn sync_queue(&self, pid: u32) -> QueueId {
        self.queues_of(pid).sync.unwrap()
    }

    /// The async queue that a process uses on the first actuator.
    pub fn async_queue(&self, pid: u32) -> QueueId {
        self.queues_of(pid).async_.unwrap()
    }

    /// What a process has on the first actuator.
    pub fn queues_of(&self, pid: u32) -> &ContextQueues {
        let context = self.bfq.contexts.find(IoContextId(pid)).unwrap();
        &self.bfq.contexts[context].queues[0]
    }

    /// For how long the timer is set, ns.
    pub fn timer_left(&self) -> Option<u64> {
        self.timer.map(|at| at - self.now)
    }

    /// The share of a process in what was served.
    pub fn share(&self, number: usize) -> f64 {
        self.served[number] as f64 / self.served.iter().sum::<u64>() as f64
    }

    /// State lines of a kind about a process's queue.
    pub fn lines_of(&self, pid: u32, wanted: fn(&StateChange) -> bool) -> Vec<(u64, StateChange)> {
        let context = Some(IoContextId(pid));
        let lines = self
            .lines
            .iter()
            .filter(|(_, line)| line.queue.is_some_and(|queue| queue.io_context == context) && wanted(&line.what));
        lines.map(|(t, line)| (*t, line.what.clone())).collect()
    }

    /// When and why slots of a process ended.
    pub fn expirations(&self, pid: u32) -> Vec<(u64, &'static str)> {
        let lines = self.lines_of(pid, |what| matches!(what, StateChange::Expire { .. }));
        lines
            .into_iter()
            .filter_map(|(t, what)| match what {
                StateChange::Expire { reason, .. } => Some((t, reason.text())),
                _ => None,
            })
            .collect()
    }

    /// Start and finish as last computed for a process.
    pub fn stamps(&self, pid: u32) -> Vec<(u64, u64)> {
        let lines = self.lines_of(pid, |what| matches!(what, StateChange::Vtime { .. }));
        lines
            .into_iter()
            .filter_map(|(_, what)| match what {
                StateChange::Vtime { start, finish, .. } => Some((start, finish)),
                _ => None,
            })
            .collect()
    }
}
