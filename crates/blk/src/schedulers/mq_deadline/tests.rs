//! mq-deadline against its rules. The bench plays a device of a given depth and service time; requests are written as
//! in docs/rules/mq-deadline.md and docs/rules/deadline.md: `R100` reads and `W100` writes 8 sectors at sector 100,
//! `rt/R100` and `idle/R100` do so in another priority class, and times are milliseconds.

mod deadline_examples;
mod depth_limit;
mod examples;
mod files;
mod merging;
mod model;
mod rules;

use std::collections::VecDeque;

use super::{MqDeadline, MqDeadlineConfig};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, Op};
use crate::ground::ids::{HctxId, RqId, Sector};
use crate::ground::kernel::{DeadlineGeneration, ShallowRule};
use crate::ground::sharing::Local;
use crate::ground::time::{Hz, Instant};
use crate::policy::{Choice, Place, PolicyCx, RequestedActions, Requests, Scheduler};
use crate::request::{RequestPool, Rq};
use DeadlineGeneration::{A, B1, B2, C, CPrime};

const GENERATIONS: [DeadlineGeneration; 5] = [A, B1, B2, C, CPrime];
/// Those whose sweep is a pointer, and those whose sweep is a position.
const BY_POINTER: [DeadlineGeneration; 3] = [A, B1, B2];
const BY_POSITION: [DeadlineGeneration; 2] = [C, CPrime];

const CAPACITY: u32 = 128;

fn config(generation: DeadlineGeneration, hz: Hz) -> MqDeadlineConfig {
    MqDeadlineConfig {
        generation,
        hz,
        shallow: ShallowRule::WholeMap,
        limits_async: false,
        queue_async_depth: false,
        nr_requests: CAPACITY,
    }
}

fn moment(ms: f64) -> Instant {
    Instant((ms * 1e6) as u64)
}

/// `R100`, `rt/W8`, ... as a bio.
fn bio(text: &str) -> Bio {
    let (class, text) = text.split_once('/').unwrap_or(("be", text));
    let class = match class {
        "rt" => PriorityClass::RealTime,
        "be" => PriorityClass::BestEffort,
        "idle" => PriorityClass::Idle,
        unknown => panic!("class {unknown}"),
    };
    let op = match text.as_bytes()[0] {
        b'R' => Op::Read,
        b'W' => Op::Write,
        b'D' => Op::Discard,
        unknown => panic!("operation {unknown}"),
    };
    Bio { ioprio: IoPriority::new(class, 4), ..Bio::new(op, Sector(text[1..].parse().unwrap()), 8) }
}

/// A run of requests `R0 R10 R20 ...` of this operation.
fn run_of(op: char, from: u64, step: u64, count: u64) -> String {
    let names: Vec<String> = (0..count).map(|n| format!("{op}{}", from + n * step)).collect();
    names.join(" ")
}

/// A device with mq-deadline in front of it.
struct Bench {
    policy: MqDeadline,
    requests: Requests,
    pool: RequestPool<Local>,
    free: Vec<u32>,
    arrivals: VecDeque<(Instant, Bio, Place)>,
    in_flight: VecDeque<(Instant, Rq)>,
    depth: usize,
    service_ms: f64,
    now: Instant,
    /// When which request went to the device.
    log: Vec<(Instant, String)>,
}

impl Bench {
    /// Depth 1, service 1 ms, ticks of 1 ms.
    fn new(generation: DeadlineGeneration) -> Self {
        Bench {
            policy: MqDeadline::new(config(generation, Hz(1000)), CAPACITY),
            requests: Requests::new(CAPACITY),
            pool: RequestPool::new(CAPACITY),
            free: (0..CAPACITY).rev().collect(),
            arrivals: VecDeque::new(),
            in_flight: VecDeque::new(),
            depth: 1,
            service_ms: 1.0,
            now: Instant::ZERO,
            log: Vec::new(),
        }
    }

    fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    fn service(mut self, ms: f64) -> Self {
        self.service_ms = ms;
        self
    }

    /// Writes a tunable.
    fn set(mut self, name: &str, value: i128) -> Self {
        self.write(name, value);
        self
    }

    fn write(&mut self, name: &str, value: i128) {
        self.call(|policy, cx| policy.set_tunable(cx, name, &value.to_string())).expect(name);
    }

    /// Requests that arrive at this time, in this order; times must not fall.
    fn at(mut self, ms: f64, requests: &str) -> Self {
        self.arrivals.extend(requests.split_whitespace().map(|text| (moment(ms), bio(text), Place::Sorted)));
        self
    }

    /// The same, inserted at the head.
    fn at_head(mut self, ms: f64, requests: &str) -> Self {
        self.arrivals.extend(requests.split_whitespace().map(|text| (moment(ms), bio(text), Place::Head)));
        self
    }

    /// Calls the policy, which never asks for a timer or a run.
    fn call<R>(&mut self, body: impl FnOnce(&mut MqDeadline, &mut PolicyCx<'_>) -> R) -> R {
        let mut requested = RequestedActions::default();
        let now = self.policy.config.hz.now(self.now);
        let answer = body(&mut self.policy, &mut PolicyCx { now, requests: &self.requests, requested: &mut requested });
        assert_eq!(requested, RequestedActions::default(), "mq-deadline needs no timer");
        answer
    }

    fn insert(&mut self, bio: Bio, place: Place) -> RqId {
        let id = RqId(self.free.pop().expect("the bench has a free slot"));
        let mut rq = self.pool.take(id);
        rq.found(bio, self.now);
        self.requests.hold(rq);
        self.call(|policy, cx| policy.insert(cx, id, place));
        id
    }

    fn dispatch(&mut self) -> (Option<Rq>, Choice) {
        let choice = self.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
        (choice.rq.map(|id| self.requests.release(id)), choice)
    }

    fn complete(&mut self, rq: Rq) {
        let id = rq.id();
        self.pool.put(rq);
        self.call(|policy, cx| policy.finish(cx, id));
        self.free.push(id.0);
    }

    /// Lets everything arrive and be served; returns what was dispatched as `TIME REQUEST, ...`.
    fn schedule(mut self) -> String {
        self.play();
        let line = |(at, name): &(Instant, String)| format!("{} {name}", at.0 as f64 / 1e6);
        self.log.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    /// The same without times.
    fn order(mut self) -> String {
        self.play();
        self.log.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn play(&mut self) {
        loop {
            let arrival = self.arrivals.front().map(|&(at, ..)| at);
            let completion = self.in_flight.front().map(|&(at, _)| at);
            let Some(next) = arrival.into_iter().chain(completion).min() else { break };
            self.now = next;
            while self.in_flight.front().is_some_and(|&(at, _)| at == next) {
                let (_, rq) = self.in_flight.pop_front().unwrap();
                self.complete(rq);
            }
            while self.arrivals.front().is_some_and(|&(at, ..)| at == next) {
                let (_, bio, place) = self.arrivals.pop_front().unwrap();
                self.insert(bio, place);
            }
            while self.in_flight.len() < self.depth && self.policy.has_work() {
                let (Some(rq), _) = self.dispatch() else { break };
                self.log.push((self.now, name(&rq)));
                self.in_flight.push_back((Instant(self.now.0 + moment(self.service_ms).0), rq));
            }
        }
        assert!(!self.policy.has_work(), "everything has been dispatched");
        assert_eq!(self.policy.classes.each_ref().map(|class| class.queued), [0; 3], "nothing is left counted");
    }
}

fn name(rq: &Rq) -> String {
    let op = match rq.op {
        Op::Read => 'R',
        Op::Discard => 'D',
        _ => 'W',
    };
    let length = if rq.sectors == 8 { String::new() } else { format!("+{}", rq.sectors) };
    format!("{op}{}{length}", rq.sector.0)
}

/// The order in which requests that all wait at time 0 are dispatched one by one.
fn order(generation: DeadlineGeneration, requests: &str) -> String {
    Bench::new(generation).at(0.0, requests).order()
}
