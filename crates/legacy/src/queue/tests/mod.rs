//! The legacy queue against docs/rules/legacy-queue.md, docs/rules/noop.md, and what of docs/rules/deadline.md concerns
//! the front, with a driver that does as it is asked and a probe that writes down blktrace's letters.

mod allocation;
mod cancelling;
mod dispatching;
mod driving;
mod flushing;
mod hooks;
mod merging;
mod plugging;
mod switching;

use std::collections::{BTreeMap, VecDeque};

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::caller::{Action, Agenda, Caller, Cx, Submitted};
use hoistway_blk::drive::{Answer, Driver, Refusal};
use hoistway_blk::ground::{CpuId, Instant, IoContextId, Local, NoMeter, Sector, Waiter};
use hoistway_blk::policy::{PolicyCx, Scheduler};
use hoistway_blk::request::{Edge, Marks, Plug};
use hoistway_blk::watch::{Event, Probe};

use super::*;

use crate::schedulers::{LEGACY_SCHEDULERS, all_schedulers};

/// A driver that takes everything unless it is set to do otherwise.
#[derive(Default)]
struct Script {
    in_flight: VecDeque<Rq>,
    /// Answers to the next calls; what comes after them is taken.
    refusals: VecDeque<Option<Refusal>>,
    /// The next one that it takes ends at once.
    ends_next: Option<Status>,
    /// Budget left, if there is such a thing.
    budget: Option<u32>,
    /// What it was given, as [`name`] writes it.
    calls: Vec<String>,
}

impl Driver for Script {
    fn get_budget(&mut self, _: HctxId) -> bool {
        match &mut self.budget {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    fn put_budget(&mut self, _: HctxId) {
        self.budget = self.budget.map(|left| left + 1);
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        if let Some(why) = self.refusals.pop_front().flatten() {
            return Answer::Refused(rq, why);
        }
        if let Some(status) = self.ends_next.take() {
            return Answer::Done(rq, status);
        }
        let tag = rq.driver_tag.expect("what the driver gets has a tag");
        assert!(self.in_flight.iter().all(|other| other.driver_tag != Some(tag)), "tag {tag} twice");
        self.calls.push(name(&rq));
        self.in_flight.push_back(rq);
        Answer::Queued
    }
}

/// `R500+8`.
fn name(rq: &Rq) -> String {
    let letter = match rq.op {
        Op::Read => 'R',
        Op::Discard => 'D',
        Op::Flush => return "F".into(),
        _ => 'W',
    };
    format!("{letter}{}+{}", rq.sector.0, rq.sectors)
}

/// The bio that `R500+8` names; 8 sectors unless said.
fn bio(text: &str) -> Bio {
    let op = match &text[..1] {
        "R" => Op::Read,
        "D" => Op::Discard,
        _ => Op::Write,
    };
    let (sector, sectors) = text[1..].split_once('+').unwrap_or((&text[1..], "8"));
    Bio::new(op, Sector(sector.parse().unwrap()), sectors.parse().unwrap())
}

/// Writes events as blktrace's letters with start sectors.
#[derive(Default)]
struct Letters(Vec<String>);

impl Probe for Letters {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        self.0.push(match event {
            Event::Queue(bio) => format!("Q{}", bio.sector.0),
            Event::Split(bio) => format!("X{}", bio.sector.0),
            Event::GetRq(rq) => format!("G{}", rq.sector.0),
            Event::Plug => "P".into(),
            Event::Unplug { count, .. } => format!("U{count}"),
            Event::Merge(Edge::Back, _) => "M".into(),
            Event::Merge(Edge::Front, _) => "F".into(),
            Event::Absorbed(_) | Event::End(_) | Event::BioComplete(..) => return,
            Event::Insert(rq) => format!("I{}", rq.sector.0),
            Event::Dispatch { rq: Some(rq), .. } => format!("ask:{}", rq.sector.0),
            Event::Dispatch { rq: None, .. } => "ask:-".into(),
            Event::Issue(rq) => format!("D{}", rq.sector.0),
            Event::Requeue(rq) => format!("R{}", rq.sector.0),
            Event::Complete(rq, _) => format!("C{}", rq.sector.0),
        });
    }
}

/// A queue, its driver and what carries out its effects.
struct Bench {
    config: LegacyConfig,
    queue: LegacyQueue<Local>,
    driver: Script,
    probe: Letters,
    caller: Caller,
    agenda: Agenda,
    now: Instant,
    /// The plug of the submitter, if it has one open.
    plug: Option<Plug>,
    parked: BTreeMap<u32, LegacySubmission>,
}

/// Ticks of 1 ms.
fn config(kernel: Kernel) -> LegacyConfig {
    LegacyConfig {
        kernel,
        cpus: 4,
        queue_depth: 32,
        nr_requests: 128,
        tagging: Tagging::Driver,
        merging: Merging::Full,
        limits: Limits { rotational: true, write_cache: true, fua: true, ..Limits::default() },
        schedulers: all_schedulers(),
    }
}

impl Bench {
    fn new(scheduler: &str) -> Self {
        Bench::with(config(Kernel::V4_12), scheduler)
    }

    fn with(config: LegacyConfig, scheduler: &str) -> Self {
        let queue = LegacyQueue::new(&config, scheduler).expect("a valid configuration");
        Bench::around(config, queue)
    }

    fn around(config: LegacyConfig, queue: LegacyQueue<Local>) -> Self {
        Bench {
            config,
            queue,
            driver: Script::default(),
            probe: Letters::default(),
            caller: Caller::new(),
            agenda: Agenda::new(1),
            now: Instant::ZERO,
            plug: None,
            parked: BTreeMap::new(),
        }
    }

    /// One whose driver has stopped the queue, so that everything waits where it was put.
    fn stopped(scheduler: &str) -> Self {
        let bench = Bench::new(scheduler);
        bench.queue.set_stopped(true);
        bench
    }

    fn moment(&self) -> Now {
        self.queue.generation().hz.now(self.now)
    }

    fn call<R>(
        &mut self,
        body: impl FnOnce(&LegacyQueue<Local>, &mut Cx<'_, (Script, Letters)>, Option<&mut Plug>) -> R,
    ) -> R {
        let now = self.moment();
        let mut cx = self.caller.cx(now, CpuId(0), &mut self.driver, &mut self.probe, &NoMeter);
        body(&self.queue, &mut cx, self.plug.as_mut())
    }

    /// Submits as the process `task`, which is also its waiter.
    fn submit_as(&mut self, task: u32, mut bio: Bio) -> Submitted {
        bio.io_context = IoContextId(task);
        self.make_progress(task, LegacySubmission::new(bio, Waiter(task)))
    }

    fn make_progress(&mut self, task: u32, mut submission: LegacySubmission) -> Submitted {
        let submitted = self.call(|queue, cx, plug| queue.submit(cx, &mut submission, plug));
        if submitted == Submitted::Parked {
            self.parked.insert(task, submission);
        }
        submitted
    }

    /// Submits what the words name, in order, as one process.
    fn submit(&mut self, words: &str) {
        for word in words.split_whitespace() {
            assert_eq!(self.submit_as(1, bio(word)), Submitted::Done);
        }
    }

    fn plug(&mut self) {
        self.plug = Some(Plug::new());
    }

    fn unplug(&mut self) {
        self.call(|queue, cx, plug| queue.flush_plug(cx, plug.expect("a plug is open")));
        self.plug = None;
    }

    fn run(&mut self) {
        self.call(|queue, cx, _| queue.run(cx));
    }

    /// Allows the driver's queue again and serves everything, one request at a time; returns the order.
    fn serve(&mut self) -> String {
        self.queue.set_stopped(false);
        self.run();
        while !self.driver.in_flight.is_empty() {
            self.complete_oldest();
        }
        self.calls()
    }

    fn complete_oldest(&mut self) {
        let rq = self.driver.in_flight.pop_front().expect("something is at the driver");
        self.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
    }

    /// What the driver was given since the last look.
    fn calls(&mut self) -> String {
        std::mem::take(&mut self.driver.calls).join(" ")
    }

    /// What was seen since the last look.
    fn events(&mut self) -> String {
        std::mem::take(&mut self.probe.0).join(" ")
    }

    /// The effects since the last look, in words: what is asked for but not done. Ends of bios are left out.
    fn take_effects(&mut self) -> String {
        let mut out = Vec::new();
        while let Some(effect) = self.caller.effects.pop() {
            let in_time = |delay: Nanos| if delay == Nanos::ZERO { String::new() } else { format!(" in {delay}") };
            out.push(match effect {
                Effect::EndBio { .. } => continue,
                Effect::Wake(waiter) => format!("wake {}", waiter.0),
                Effect::RunHctx { delay, .. } => format!("run{}", in_time(delay)),
                Effect::SetTimer(at) => format!("timer {}", at.0),
                Effect::CancelTimer => "no timer".into(),
                Effect::SetTimeout(_) => continue,
                other => format!("{other:?}"),
            });
        }
        out.join(", ")
    }

    /// Carries out what is due, and what comes of it.
    fn work(&mut self) {
        let now = self.moment();
        let Bench { queue, agenda, parked, plug, .. } = self;
        let mut cx = self.caller.cx::<(Script, Letters)>(now, CpuId(0), &mut self.driver, &mut self.probe, &NoMeter);
        agenda.carry_out(queue, &mut cx, |cx, action| {
            if let Action::Wake(waiter) = action {
                let mut submission = parked.remove(&waiter.0).expect("only who sleeps is woken");
                if queue.submit(cx, &mut submission, plug.as_mut()) == Submitted::Parked {
                    parked.insert(waiter.0, submission);
                }
            }
        });
    }

    fn pass(&mut self, ms: u64) {
        self.now += Nanos::from_millis(ms);
    }

    /// The dispatch queue, head first.
    fn dispatch_queue(&self) -> Vec<u64> {
        self.queue.locked.aside(|queue| queue.dispatch.sectors())
    }

    /// Nothing is left anywhere.
    fn assert_empty(&self) {
        assert_eq!((self.queue.requests_in_use(), self.queue.driver_tags_in_use(), self.queue.in_flight()), (0, 0, 0));
        self.queue.locked.aside(|queue| assert!(queue.managed == 0 && !queue.elevator.has_work()));
        assert!(self.parked.is_empty(), "none sleeps");
    }
}
