//! Replay of the block layer without a scheduler.
//!
//! The whole [`Queue`] runs, driven by the recording: bios are submitted, plugs are flushed, hardware queues run and
//! tags are released at the recorded times, and the driver refuses the recorded requests. The order in which *queued*
//! requests reach the driver is compared; direct issues are not decisions. After a difference the replay continues from
//! the kernel's order.

use std::collections::{HashMap, HashSet, VecDeque};

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::caller::{Caller, Cx};
use hoistway_blk::drive::{Answer, Driver, Effects, Refusal};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Local, NoMeter, Now, Tick, Waiter};
use hoistway_blk::queue::{PlugFlush, Queue, QueueConfig, QueueSubmission};
use hoistway_blk::request::{Plug, Rq};
use hoistway_blk::watch::NoProbe;
use hoistway_trace::iosched::{BioNumber, Event, EventKind, InsertedBy, QueueSettings, RqNumber, Submitted, Trace};

use crate::conform::bench::baseline::{Baseline, DecisionCandidate};
use crate::conform::bench::{bio_of, limits_of};
use crate::conform::consistency::{Consistent, Inconsistency};
use crate::conform::kernel_of;
use crate::conform::plugs::{hctx_of_cpu, unplugged};
use crate::conform::score::{AppliedRule, ReplayOutcome};

/// Maximum driver tags of all hardware queues together in a replay.
const TAGS_MAX: u32 = 1 << 19;
/// The only rule by which requests that wait are ordered.
const ORDER: AppliedRule = AppliedRule { rule: "NONE-5", reason: "the order of dispatch list and software queues" };
/// Maximum pairs of a hardware queue and a CPU, each of which takes memory.
const PAIRS_MAX: u32 = 1 << 20;

/// Checks that the queue described by the header is not too large.
fn check_size(queue: &QueueSettings, cpus: u16) -> Result<(), Inconsistency> {
    let hctxs = u32::from(queue.nr_hw_queues);
    let (tags, pairs) = (hctxs.saturating_mul(queue.queue_depth), hctxs * u32::from(cpus));
    let problem = if tags > TAGS_MAX {
        format!("expected at most {TAGS_MAX} driver tags in all hardware queues, found {tags}")
    } else if pairs > PAIRS_MAX {
        format!("expected at most {PAIRS_MAX} pairs of hardware queue and CPU, found {pairs}")
    } else {
        return Ok(());
    };
    Err(Inconsistency { line: 1, problem })
}

/// Replays a recording through the block layer.
///
/// # Errors
/// If the header describes a queue that is too large.
pub fn replay(recording: &Consistent<'_>) -> Result<ReplayOutcome, Inconsistency> {
    let mut replay = NoneReplay::new(recording.trace())?;
    for event in &recording.trace().events {
        replay.event(event);
    }
    Ok(replay.outcome)
}

/// A driver that accepts and refuses requests as the recorded one did.
#[derive(Default)]
struct ScriptedDriver {
    /// The request that each bio became part of.
    number_of: HashMap<u64, RqNumber>,
    /// For each request, whether its next starts succeed.
    start_results: HashMap<RqNumber, VecDeque<bool>>,
    in_flight: HashMap<RqNumber, Rq>,
    /// Empty flushes: they occupy a tag and never reach a queue.
    flushes: VecDeque<Rq>,
    /// Started requests in order, not yet compared.
    started: VecDeque<(HctxId, RqNumber)>,
    /// The hardware queue whose request was refused in the current call.
    refused: Option<HctxId>,
}

impl Driver for ScriptedDriver {
    fn queue_rq(&mut self, _now: Now, rq: Rq, _last: bool) -> Answer {
        if rq.sectors == 0 {
            self.flushes.push_back(rq);
            return Answer::Queued;
        }
        let number = rq.bios.iter().find_map(|bio| self.number_of.get(&bio.owner)).copied();
        let Some(number) = number else {
            // End a bio that the recording never shows in a request.
            return Answer::Done(rq, Status::IoError);
        };
        if self.in_flight.contains_key(&number) {
            // The recording has one request for two of ours, so it may be altered: end one of them.
            return Answer::Done(rq, Status::IoError);
        }
        let accepted = self.start_results.get_mut(&number).and_then(VecDeque::pop_front).unwrap_or(true);
        if !accepted {
            self.refused = Some(rq.hctx);
            return Answer::Refused(rq, Refusal::Busy);
        }
        self.started.push_back((rq.hctx, number));
        self.in_flight.insert(number, rq);
        Answer::Queued
    }
}

struct NoneReplay {
    queue: Queue<Local>,
    driver: ScriptedDriver,
    caller: Caller,
    plugs: HashMap<u32, Plug>,
    /// Plug flushes in progress.
    flushes: HashMap<u32, PlugFlush>,
    /// Bios submitted outside of any plug.
    unplugged: HashSet<BioNumber>,
    /// Bios whose request was queued before it was issued.
    queued_first: HashSet<BioNumber>,
    /// Bios that were merged.
    merging: HashSet<BioNumber>,
    /// Lines of runs in which the kernel issued a request: the hardware queue was not stopped then.
    issuing_runs: HashSet<u64>,
    /// Requests that went through a queue: their order is compared.
    queued: HashSet<RqNumber>,
    /// Requests that the kernel issued before we did.
    early: HashSet<RqNumber>,
    baseline: Baseline,
    outcome: ReplayOutcome,
    tick: Tick,
}

impl NoneReplay {
    fn new(trace: &Trace) -> Result<Self, Inconsistency> {
        let queue = &trace.header.queue;
        check_size(queue, trace.header.cpus)?;
        let (limits, merging) = limits_of(queue);
        let kernel = kernel_of(&trace.header);
        let hctx_of_cpu = hctx_of_cpu(trace);
        let config = QueueConfig {
            kernel,
            cpus: hctx_of_cpu.len() as u16,
            hw_queues: queue.nr_hw_queues,
            hctx_of_cpu: Some(hctx_of_cpu),
            queue_depth: queue.queue_depth,
            nr_requests: None,
            merging,
            limits,
            ..QueueConfig::new(kernel)
        };
        let queue = Queue::new(&config, "none");
        let queue = queue.map_err(|error| Inconsistency { line: 1, problem: error.to_string() })?;
        if kernel.generation().wbt {
            // Recorded bios have already passed write-back throttling.
            let disabled = queue.set_attribute(Now::default(), "wbt_lat_usec", "0", &mut Effects::new());
            disabled.map_err(|error| Inconsistency { line: 1, problem: error.to_string() })?;
        }
        let mut driver = ScriptedDriver::default();
        let mut last_start: HashMap<RqNumber, bool> = HashMap::new();
        let mut queued = HashSet::new();
        let (mut merging, mut queued_first) = (HashSet::new(), HashSet::new());
        let mut issuing_runs = HashSet::new();
        let mut open_runs: HashMap<(Option<CpuId>, Option<u32>), u64> = HashMap::new();
        for event in &trace.events {
            match &event.kind {
                EventKind::Insert(insert) => {
                    driver.number_of.insert(u64::from(insert.bio.0), insert.rq);
                    if insert.by == InsertedBy::Core {
                        queued.insert(insert.rq);
                        queued_first.insert(insert.bio);
                    }
                }
                EventKind::Issue(issue) => {
                    if let Some(bio) = issue.bio {
                        driver.number_of.insert(u64::from(bio.0), issue.rq);
                    }
                    driver.start_results.entry(issue.rq).or_default().push_back(true);
                    issuing_runs.extend(open_runs.get(&(event.cpu, event.pid)));
                    last_start.insert(issue.rq, true);
                }
                EventKind::Requeue { rq, .. } => {
                    // A requeue after a start cancels the start; otherwise the driver refused the request.
                    let start_results = driver.start_results.entry(*rq).or_default();
                    if last_start.remove(rq).is_some() {
                        start_results.pop_back();
                    }
                    start_results.push_back(false);
                }
                EventKind::Complete(complete) => {
                    last_start.remove(&complete.rq);
                }
                EventKind::Run { .. } => {
                    open_runs.insert((event.cpu, event.pid), event.line);
                }
                EventKind::RunEnd => {
                    open_runs.remove(&(event.cpu, event.pid));
                }
                EventKind::Backmerge(merge) | EventKind::Frontmerge(merge) => {
                    driver.number_of.insert(u64::from(merge.bio.0), merge.rq);
                    merging.insert(merge.bio);
                }
                _ => {}
            }
        }
        Ok(NoneReplay {
            queue,
            driver,
            caller: Caller::new(),
            plugs: HashMap::new(),
            flushes: HashMap::new(),
            unplugged: unplugged(trace),
            queued_first,
            merging,
            issuing_runs,
            queued,
            early: HashSet::new(),
            baseline: Baseline::default(),
            outcome: ReplayOutcome::default(),
            tick: Tick(0),
        })
    }

    fn event(&mut self, event: &Event) {
        let (pid, cpu) = (event.pid.unwrap_or(0), event.cpu.unwrap_or(CpuId(0)));
        let at = event.t;
        match &event.kind {
            // A merged bio was merged on arrival; one that got a request may have slept for it.
            EventKind::Queue(submitted) if self.merging.contains(&submitted.bio) => {
                self.submit(at, cpu, pid, submitted);
            }
            EventKind::Getrq { bio, .. } => self.submit(at, cpu, pid, bio),
            EventKind::Unplug { explicit, .. } => {
                self.finish_flush(at, cpu, pid);
                let mut flush = None;
                self.with_plug(at, cpu, pid, |queue, cx, plug| flush = Some(queue.begin_flush(cx, plug, *explicit)));
                if let Some(flush) = flush {
                    self.flushes.insert(pid, flush);
                }
                if !*explicit {
                    self.finish_flush(at, cpu, pid);
                }
            }
            EventKind::Run { hctx } => self.run(event, cpu, *hctx),
            EventKind::Insert(insert) if insert.by == InsertedBy::Core => {
                // A plug flush issues directly unless the hardware queue is stopped, so the driver had stopped it.
                self.step_flush(event, cpu, pid, insert.rq, true);
                self.baseline.inside.push(DecisionCandidate::new(insert, pid));
            }
            EventKind::Issue(issue) if !issue.io.flushseq => {
                self.tick = issue.io.j.unwrap_or(self.tick);
                self.step_flush(event, cpu, pid, issue.rq, false);
                self.compare(event, issue.io.context.map(|context| context.hctx), issue.rq);
            }
            EventKind::Free(free) => self.release(at, cpu, free.rq),
            EventKind::Unknown(_) => self.outcome.unknown_events += 1,
            _ => {}
        }
    }

    fn with_cx<R>(
        &mut self,
        at: Instant,
        cpu: CpuId,
        body: impl FnOnce(&Queue<Local>, &mut Cx<'_, (ScriptedDriver, NoProbe)>) -> R,
    ) -> R {
        let (now, mut probe) = (Now { at, tick: self.tick }, NoProbe);
        let result = body(&self.queue, &mut self.caller.cx(now, cpu, &mut self.driver, &mut probe, &NoMeter));
        // The recorded driver stops a queue after refusing a request, and restarts it later.
        if let Some(hctx) = self.driver.refused.take() {
            self.queue.hctx(hctx).set_stopped(true);
        }
        // The recording determines what happens next, so effects are dropped.
        while self.caller.effects.pop().is_some() {}
        result
    }

    fn with_plug(
        &mut self,
        at: Instant,
        cpu: CpuId,
        pid: u32,
        body: impl FnOnce(&Queue<Local>, &mut Cx<'_, (ScriptedDriver, NoProbe)>, &mut Plug),
    ) {
        let mut plug = self.plugs.remove(&pid).unwrap_or_default();
        self.with_cx(at, cpu, |queue, cx| body(queue, cx, &mut plug));
        self.plugs.insert(pid, plug);
    }

    fn submit(&mut self, at: Instant, cpu: CpuId, pid: u32, submitted: &Submitted) {
        let io = &submitted.io;
        let bio = Bio { owner: u64::from(submitted.bio.0), ..bio_of(io, pid) };
        self.finish_flush(at, cpu, pid);
        let mut submission = QueueSubmission::new(bio, Waiter(submitted.bio.0));
        if self.unplugged.contains(&submitted.bio) {
            // It is issued directly, or queued if the driver had stopped the hardware queue.
            let stopped = self.queued_first.contains(&submitted.bio);
            self.with_cx(at, cpu, |queue, cx| {
                queue.hctx(queue.hctx_of(cpu)).set_stopped(stopped);
                if queue.submit(cx, &mut submission, None) == hoistway_blk::caller::Submitted::Parked {
                    queue.cancel(cx, &mut submission);
                }
            });
            return;
        }
        self.with_plug(at, cpu, pid, |queue, cx, plug| {
            // An empty flush bypasses the plug on its way to the flush machinery; here it only occupies its tag.
            let plug = (io.sectors > 0).then_some(plug);
            if queue.submit(cx, &mut submission, plug) == hoistway_blk::caller::Submitted::Parked {
                // The kernel had a tag, but we have none: cancel the bio, which shows as a difference.
                queue.cancel(cx, &mut submission);
            }
        });
    }

    /// Advances the flush of `pid`'s plug if `rq` is next, with the hardware queue `stopped` or not.
    fn step_flush(&mut self, event: &Event, cpu: CpuId, pid: u32, rq: RqNumber, stopped: bool) {
        let Some(mut flush) = self.flushes.remove(&pid) else { return };
        self.with_cx(event.t, cpu, |queue, cx| {
            let next = flush.next().map(|next| (next.hctx, next.bios.iter().map(|bio| bio.owner).collect::<Vec<_>>()));
            let Some((hctx, bios)) = next else { return };
            if bios.iter().any(|bio| cx.driver.number_of.get(bio) == Some(&rq)) {
                queue.hctx(hctx).set_stopped(stopped);
                flush.step(queue, cx);
            }
        });
        self.flushes.insert(pid, flush);
    }

    /// Completes the flush of `pid`'s plug.
    fn finish_flush(&mut self, at: Instant, cpu: CpuId, pid: u32) {
        if let Some(flush) = self.flushes.remove(&pid) {
            self.with_cx(at, cpu, |queue, cx| flush.finish(queue, cx));
        }
    }

    fn run(&mut self, event: &Event, cpu: CpuId, hctx: HctxId) {
        if self.issuing_runs.contains(&event.line) {
            self.queue.hctx(hctx).set_stopped(false);
        }
        self.with_cx(event.t, cpu, |queue, cx| queue.run_hctx(cx, hctx));
    }

    /// Compares `rq`, which the kernel issued, with the next request of our hardware queue. Hardware queues share no lock
    /// (NONE-8): which of two that run at the same time is first is chance.
    fn compare(&mut self, event: &Event, hctx: Option<HctxId>, rq: RqNumber) {
        if !self.queued.contains(&rq) || self.baseline.candidate(rq).is_none() {
            // A direct issue is not a decision.
            self.driver.started.retain(|&(_, started)| started != rq);
            return;
        }
        let (queued, early) = (&self.queued, &self.early);
        self.driver.started.retain(|(_, started)| queued.contains(started) && !early.contains(started));
        let mut started = self.driver.started.iter().filter(|(of, _)| hctx.is_none_or(|hctx| hctx == *of));
        let ours = started.next().map(|&(_, started)| started);
        if ours != Some(rq) {
            let mut mismatch = self.baseline.explain(event, Some(rq), ours, ORDER, DecisionCandidate::to_string);
            if ours.and_then(|ours| self.baseline.candidate(ours)).is_none() {
                mismatch.ours = "nothing yet".to_owned();
            }
            self.outcome.note(|| mismatch);
        }
        self.outcome.rules.entry(ORDER).or_default().count(ours == Some(rq));
        self.baseline.judge(&mut self.outcome.score, Some(rq), ours);
        match self.driver.started.iter().position(|&(_, started)| started == rq) {
            Some(index) => drop(self.driver.started.remove(index)),
            None => drop(self.early.insert(rq)),
        }
    }

    fn release(&mut self, at: Instant, cpu: CpuId, rq: RqNumber) {
        let released = self.driver.in_flight.remove(&rq);
        let released = released.or_else(|| {
            let has_number = self.driver.start_results.contains_key(&rq);
            if has_number { None } else { self.driver.flushes.pop_front() }
        });
        if let Some(rq) = released {
            self.with_cx(at, cpu, |queue, cx| queue.complete(cx, rq, Status::Ok));
        }
    }
}
