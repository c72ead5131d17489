//! The replay of kyber: not only a policy, but the whole scheduler, on one thread.
//!
//! It runs twice. First only dispatching is tested: the depths are the recorded ones, and so is the token that a
//! request takes, because which free number a CPU picks depends on random hints. That gives the score. Then kyber's own
//! controller gets the recorded samples and must find the recorded percentiles and depths itself: [`OwnController`].

mod clock;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};

use hoistway_blk::elevator::Elevator;
use hoistway_blk::ground::{CpuId, Hz, Instant, Local, NoMeter, Now, Tick};
use hoistway_blk::policy::{ElevatorCx, Place};
use hoistway_blk::request::{CpuMap, MergeRules, Rq};
use hoistway_blk::schedulers::{ControllerRound, Domain, Kyber, KyberChoice, KyberConfig};
use hoistway_trace::iosched::{
    BioNumber, Dispatch, Event, EventKind, Insert, InsertedBy, Io, KyberLatency, LatencyKind, Mark, RqNumber,
    Submitted, Trace,
};

use crate::conform::bench::baseline::{Baseline, DecisionCandidate};
use crate::conform::bench::{Slots, bio_of, grown_sectors, limits_of};
use crate::conform::consistency::Consistent;
use crate::conform::kernel_of;
use crate::conform::kyber_domains::domain_of;
use crate::conform::plugs::hctx_of_cpu;
use crate::conform::rules::rule_of;
use crate::conform::score::{AppliedRule, Matches, OwnController, ReplayOutcome};
use clock::{Moment, PlugClocks, moments};

/// Replays a recording, with the recorded depths and then with the controller's own.
#[must_use]
pub fn replay(recording: &Consistent<'_>) -> ReplayOutcome {
    let trace = recording.trace();
    let mut outcome = KyberReplay::new(recording, Depths::Recorded, Elevator::from).run(trace).outcome;
    let own = KyberReplay::new(recording, Depths::Own, Elevator::from).run(trace);
    let (recorded, own_findings) = (recorded_findings(trace), own.findings);
    let compare_findings = |is_compared: fn(&Finding) -> bool| {
        let select = |findings: &[Finding]| findings.iter().copied().filter(is_compared).collect::<Vec<_>>();
        identical(&select(&recorded), &select(&own_findings))
    };
    outcome.own_controller = Some(OwnController {
        score: own.outcome.score,
        latencies: compare_findings(|finding| matches!(finding, Finding::Latency { .. })),
        depth_changes: compare_findings(|finding| matches!(finding, Finding::Depth { .. })),
    });
    outcome
}

/// Which depths are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depths {
    Recorded,
    Own,
}

/// A message of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Finding {
    Latency { domain: Domain, kind: LatencyKind, bucket: u8, samples: u32 },
    Depth { domain: Domain, depth: u32 },
}

fn recorded_findings(trace: &Trace) -> Vec<Finding> {
    let finding = |event: &Event| match &event.kind {
        EventKind::KyberLatency(KyberLatency { domain, kind, bucket, samples, .. }) => {
            // Recorded buckets count from 1.
            Some(Finding::Latency { domain: domain_of(*domain), kind: *kind, bucket: bucket - 1, samples: *samples })
        }
        EventKind::KyberAdjust { domain, depth } => Some(Finding::Depth { domain: domain_of(*domain), depth: *depth }),
        _ => None,
    };
    trace.events.iter().filter_map(finding).collect()
}

/// Compares two sequences position by position.
fn identical(recorded: &[Finding], own: &[Finding]) -> Matches {
    let identical = recorded.iter().zip(own).filter(|(recorded, own)| recorded == own).count();
    Matches { total: recorded.len().max(own.len()) as u64, identical: identical as u64 }
}

struct KyberReplay {
    /// kyber, as a queue calls it.
    elevator: Elevator<Local>,
    rules: MergeRules,
    depths: Depths,
    hz: Hz,
    plugs: PlugClocks,
    slots: Slots,
    /// The domains of requests that are not released.
    domains: HashMap<RqNumber, Domain>,
    /// Lines of decisions that were made before their position in the recording.
    decided_early: HashSet<u64>,
    /// Requests that kyber has dispatched or has never seen.
    outside: HashMap<RqNumber, Rq>,
    baseline: Baseline,
    /// When the controller's timer is due.
    due: Option<Instant>,
    /// When it last fired.
    last_round: Option<Tick>,
    findings: Vec<Finding>,
    outcome: ReplayOutcome,
    /// What kyber itself decided: the line, the request and its token.
    #[cfg(test)]
    decisions: Vec<(u64, Option<RqNumber>, Option<u32>)>,
}

impl KyberReplay {
    fn new(recording: &Consistent<'_>, depths: Depths, elevator: impl FnOnce(Kyber<Local>) -> Elevator<Local>) -> Self {
        let (trace, capacity) = (recording.trace(), recording.slots_needed());
        let (queue, kernel) = (&trace.header.queue, kernel_of(&trace.header));
        let config = KyberConfig {
            hz: Hz(trace.header.hz.0),
            ..KyberConfig::new(&kernel.generation(), queue.nr_requests, queue.queue_depth)
        };
        let (limits, merging) = limits_of(queue);
        let replay = KyberReplay {
            elevator: elevator(Kyber::new(config, &CpuMap::of_one_type(&hctx_of_cpu(trace)), capacity)),
            rules: MergeRules::new(&kernel.generation(), limits, merging),
            depths,
            hz: Hz(trace.header.hz.0),
            plugs: PlugClocks::default(),
            slots: Slots::new(capacity),
            domains: HashMap::new(),
            decided_early: HashSet::new(),
            outside: HashMap::new(),
            baseline: Baseline::default(),
            due: None,
            last_round: None,
            findings: Vec::new(),
            outcome: ReplayOutcome::default(),
            #[cfg(test)]
            decisions: Vec::new(),
        };
        for (name, value) in &trace.header.tunables {
            replay.set_tunable(name, &value.to_string());
        }
        replay
    }

    /// kyber, for the calls that only a replay makes.
    fn kyber(&self) -> &Kyber<Local> {
        self.elevator.as_kyber().expect("it was made of one")
    }

    fn run(mut self, trace: &Trace) -> Self {
        for moment in moments(trace) {
            self.replay_event(&moment);
        }
        self
    }

    fn replay_event(&mut self, &Moment { now, event, in_doubt }: &Moment<'_>) {
        self.fire_timer_until(now.tick);
        let at = now.at;
        let (cpu, pid) = (event.cpu.unwrap_or(CpuId(0)), event.pid.unwrap_or(0));
        match &event.kind {
            EventKind::Queue(_) => self.plugs.enter(pid, at),
            EventKind::Getrq { bio, .. } => self.plugs.allocate(pid, at, bio.bio),
            EventKind::Unplug { explicit: false, .. } | EventKind::RunEnd => self.plugs.restart(pid),
            EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => self.insert(at, event, insert),
            EventKind::Backmerge(merge) | EventKind::Frontmerge(merge) => {
                self.merge(cpu, pid, merge.rq, Submitted { bio: merge.bio, io: merge.io });
            }
            EventKind::Dispatch(dispatch) => self.replay_dispatch(event, dispatch, in_doubt),
            EventKind::Issue(issue) => self.issue(at, pid, issue.rq, issue.bio, &issue.io),
            EventKind::Sample { rq } => self.sample(now, cpu, *rq),
            EventKind::Finish { rq } => {
                if let Some(id) = self.slots.id(*rq) {
                    // The recording shows what is woken by the token.
                    ElevatorCx::alone(now, |cx| self.elevator.finish(&NoMeter, cx, id));
                }
            }
            EventKind::Free(free) => self.release(free.rq),
            EventKind::KyberAdjust { domain, depth } if self.depths == Depths::Recorded => {
                self.kyber().adopt_depth(domain_of(*domain), *depth);
            }
            EventKind::KyberLatency(_) if self.depths == Depths::Own => self.recorded_round(now),
            EventKind::Mark(Mark::Tunable { name, value }) => self.set_tunable(name, value),
            EventKind::Unknown(_) => self.outcome.unknown_events += 1,
            _ => {}
        }
    }

    fn set_tunable(&self, name: &str, text: &str) {
        // The recording does not show values that the kernel rejected. A text that only we reject is a difference in
        // parsing: it changes nothing here and shows in the decisions.
        let _ = ElevatorCx::alone(Now::default(), |cx| self.elevator.set_tunable(&NoMeter, cx, name, text));
    }

    // --- insertion ---

    /// A slot for a request with the recorded bio.
    fn allocate(&mut self, number: RqNumber, start: Instant, io: &Io, pid: u32) -> Option<Rq> {
        let mut rq = self.slots.allocate(number, bio_of(io, pid), start)?;
        if let Some(context) = io.context {
            (rq.ctx, rq.hctx) = (context.ctx, context.hctx);
        }
        self.domains.insert(number, self.kyber().domain_of(&rq));
        Some(rq)
    }

    fn insert(&mut self, at: Instant, event: &Event, insert: &Insert) {
        let pid = event.pid.unwrap_or(0);
        let start = self.plugs.allocation(insert.bio).unwrap_or(at);
        // A requeued request is known already.
        let known = self.outside.remove(&insert.rq);
        let Some(rq) = known.or_else(|| self.allocate(insert.rq, start, &insert.io, pid)) else { return };
        self.baseline.inside.push(DecisionCandidate::new(insert, pid));
        let place = if insert.head { Place::Head } else { Place::Sorted };
        ElevatorCx::alone(Now::default(), |cx| {
            self.elevator.insert(&NoMeter, cx, &self.rules, std::iter::once(rq), place);
        });
    }

    /// A bio was merged into a request. If that is not in the scheduler, it is still on a plug list.
    fn merge(&mut self, cpu: CpuId, pid: u32, number: RqNumber, bio: Submitted) {
        let Some(candidate) = self.baseline.candidate(number) else { return };
        candidate.sector = candidate.sector.min(bio.io.sector);
        candidate.sectors = grown_sectors(candidate.sectors, bio.io.sectors);
        let merged = ElevatorCx::alone(Now::default(), |cx| {
            cx.cpu = cpu;
            self.elevator.merge_bio(&NoMeter, cx, &self.rules, &mut Some(bio_of(&bio.io, pid)))
        });
        self.outcome.merges.count(merged.is_some());
    }

    // --- dispatch ---

    /// Replays the recorded dispatch. A decision whose position is in doubt was made here if our decision is the
    /// recorded one.
    fn replay_dispatch(&mut self, event: &Event, dispatch: &Dispatch, in_doubt: bool) {
        let kernel = dispatch.chosen.as_ref().map(|chosen| chosen.rq);
        // A request that was never inserted (flush machinery) is not a decision of the scheduler.
        if kernel.is_some_and(|rq| self.baseline.candidate(rq).is_none()) || self.decided_early.remove(&event.line) {
            return;
        }
        let hctx = dispatch.hctx;
        let before = self.kyber().turn(hctx);
        let (rq, reason) = ElevatorCx::alone(Now::default(), |cx| self.elevator.dispatch(&NoMeter, cx, hctx));
        let ours = rq.as_ref().and_then(|rq| self.slots.number(rq.id()));
        #[cfg(test)]
        {
            let token = rq.as_ref().and_then(|rq| self.kyber().token_of(rq.id()));
            self.decisions.push((event.line, ours, token));
        }
        if in_doubt {
            if ours != kernel {
                self.kyber().undo(hctx, before, rq);
                return;
            }
            self.decided_early.insert(event.line);
        }
        let choice = dispatch.chosen.as_ref().zip(dispatch.token).and_then(|(chosen, token)| {
            let (id, domain) = (self.slots.id(chosen.rq)?, *self.domains.get(&chosen.rq)?);
            Some(KyberChoice { id, domain, token })
        });
        let applied = AppliedRule { rule: rule_of("kyber", reason), reason: reason.text() };
        self.outcome.rules.entry(applied).or_default().count(ours == kernel);
        let rq = if ours == kernel {
            if let Some(choice) = choice {
                self.kyber().adopt_token(choice.id, choice.token);
            }
            rq
        } else {
            self.outcome.note(|| self.baseline.explain(event, kernel, ours, applied, DecisionCandidate::to_string));
            self.kyber().undo(hctx, before, rq);
            self.kyber().adopt(hctx, choice)
        };
        self.baseline.judge(&mut self.outcome.score, kernel, ours);
        if let (Some(number), Some(rq)) = (kernel, rq) {
            let is_identical = self.kyber().token_of(rq.id()) == dispatch.token;
            self.outcome.tokens.count(is_identical);
            self.outside.insert(number, rq);
        }
    }

    fn issue(&mut self, at: Instant, pid: u32, number: RqNumber, bio: Option<BioNumber>, io: &Io) {
        let clock = self.plugs.read(pid, at);
        if !self.outside.contains_key(&number) && self.slots.id(number).is_none() && !io.flushseq {
            // It bypassed the scheduler, but its latency is sampled anyway.
            let start = bio.and_then(|bio| self.plugs.allocation(bio)).unwrap_or(clock);
            if let Some(rq) = self.allocate(number, start, io, pid) {
                self.outside.insert(number, rq);
            }
        }
        if let Some(rq) = self.outside.get_mut(&number) {
            rq.issued = clock;
        }
    }

    fn release(&mut self, number: RqNumber) {
        let Some(id) = self.slots.forget(number) else { return };
        self.domains.remove(&number);
        self.baseline.remove(number);
        // A request that was not dispatched stays where it is, with its slot.
        if let Some(rq) = self.outside.remove(&number) {
            self.slots.put(rq);
            self.slots.recycle(id);
        }
    }

    // --- the controller ---

    fn sample(&mut self, now: Now, cpu: CpuId, number: RqNumber) {
        let Some(rq) = self.outside.get(&number) else { return };
        if self.depths == Depths::Recorded {
            return;
        }
        let timer = ElevatorCx::alone(now, |cx| {
            cx.cpu = cpu;
            self.elevator.on_completed(cx, rq);
            cx.requested.set_timer
        });
        self.due = timer.or(self.due);
    }

    /// Fires the timer if it is due by this tick.
    fn fire_timer_until(&mut self, tick: Tick) {
        while let Some(due) = self.due.map(|due| self.hz.now(due)).filter(|due| due.tick <= tick) {
            self.round(due);
        }
    }

    /// A recorded round of the controller. With several CPUs, whose ticks come when they are scheduled, it may come at
    /// another time than ours: then ours is moved. Its results are still its own.
    fn recorded_round(&mut self, now: Now) {
        if self.last_round != Some(now.tick) {
            self.round(now);
        }
    }

    fn round(&mut self, now: Now) {
        self.due = ElevatorCx::alone(now, |cx| {
            self.elevator.on_timer(&NoMeter, cx);
            cx.requested.set_timer
        });
        self.last_round = Some(now.tick);
        let findings: Vec<Finding> = self.kyber().last_round().iter().flat_map(findings_of).collect();
        self.findings.extend(findings);
    }
}

/// The messages of a round, in the kernel's order.
fn findings_of(round: &ControllerRound) -> Vec<Finding> {
    let mut findings = VecDeque::new();
    let latency = |domain: Domain, kind: LatencyKind| {
        let readings = if kind == LatencyKind::Io { &round.io } else { &round.total };
        let reading = readings[domain.index()]?;
        Some(Finding::Latency { domain, kind, bucket: reading.bucket, samples: reading.samples })
    };
    findings.extend(Domain::ALL.into_iter().filter_map(|domain| latency(domain, LatencyKind::Io)));
    for domain in Domain::ALL {
        findings.extend(latency(domain, LatencyKind::Total));
        findings.extend(round.depths[domain.index()].map(|depth| Finding::Depth { domain, depth }));
    }
    findings.into()
}
