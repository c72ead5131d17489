//! The way of a request with a driver that does as it is asked and a probe that writes down blktrace's letters.

mod appendix;
mod async_depth;
mod attributes;
mod bounded;
mod cancelling;
mod completion;
mod dispatch;
mod fast_path;
mod flushing;
mod freezing;
mod merging;
mod plugging;
mod sending;
mod sharing;
mod splitting;
mod statistics;
mod steering;
mod tagging;
mod techniques;
mod timeouts;
mod types;
mod wbt;

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, BioFlags, Op, Status};
use crate::caller::Caller;
use crate::caller::agenda::{Action, Agenda, Due};
use crate::caller::block_queue::Submitted;
use crate::caller::env::Cx;
use crate::drive::driver::{Answer, Driver, Expired, Refusal};
use crate::drive::effects::Effect;
use crate::ground::ids::{RqId, Sector, Waiter};
use crate::ground::meter::NoMeter;
use crate::ground::sharing::Local;
use crate::ground::time::{Hz, Instant, Nanos};
use crate::request::Marks;
use crate::request::merge::Edge;
use crate::request::plug::Plug;
use crate::watch::probe::{Event, Probe};

/// What one call of the driver looked like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Call {
    sector: u64,
    sectors: u32,
    hctx: u16,
    last: bool,
    taken: bool,
}

/// What the driver is to do with a request.
#[derive(Clone, Copy)]
enum Reply {
    Take,
    Refuse(Refusal),
    End(Status),
}

/// A driver that takes everything unless it is set to do otherwise.
#[derive(Default)]
struct Script {
    in_flight: VecDeque<Rq>,
    /// Answers to the next calls; what comes after them is taken.
    replies: VecDeque<Reply>,
    /// Budget left, if there is such a thing.
    budget: Option<u32>,
    calls: Vec<Call>,
    /// What has been too long here, and when that was reported.
    expired: Vec<(Instant, RqId)>,
    /// Whether it takes care of that itself.
    keeps_expired: bool,
    commits: Vec<HctxId>,
    /// The weights that it was given.
    arbitrations: Vec<Option<[u16; 3]>>,
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
        if let Some(left) = &mut self.budget {
            *left += 1;
        }
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, last: bool) -> Answer {
        let reply = self.replies.pop_front().unwrap_or(Reply::Take);
        let taken = matches!(reply, Reply::Take);
        self.calls.push(Call { sector: rq.sector.0, sectors: rq.sectors, hctx: rq.hctx.0, last, taken });
        match reply {
            Reply::Take => {
                self.in_flight.push_back(rq);
                Answer::Queued
            }
            Reply::Refuse(why) => Answer::Refused(rq, why),
            Reply::End(status) => Answer::Done(rq, status),
        }
    }

    fn timed_out(&mut self, now: Instant, id: RqId) -> Expired {
        self.expired.push((now, id));
        if self.keeps_expired { Expired::Handled } else { Expired::RestartTimeout }
    }

    fn commit(&mut self, hctx: HctxId) {
        self.commits.push(hctx);
    }

    fn arbitrate(&mut self, weights: Option<[u16; 3]>) {
        self.arbitrations.push(weights);
    }
}

/// Writes events as `Q G P U1 I D C`, with start sectors where a test wants them.
#[derive(Default)]
struct Letters {
    events: Vec<(char, Option<u64>)>,
    /// What a scheduler has answered: the sector of its request.
    answers: Vec<Option<u64>>,
}

impl Probe for Letters {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        self.events.push(match event {
            Event::Queue(bio) => ('Q', Some(bio.sector.0)),
            Event::Split(bio) => ('X', Some(bio.sector.0)),
            Event::GetRq(rq) => ('G', Some(rq.sector.0)),
            Event::Plug => ('P', None),
            Event::Unplug { count, .. } => ('U', Some(count as u64)),
            Event::Merge(Edge::Back, _) => ('M', None),
            Event::Merge(Edge::Front, _) => ('F', None),
            Event::Insert(rq) => ('I', Some(rq.sector.0)),
            Event::Dispatch { rq, .. } => return self.answers.push(rq.map(|rq| rq.sector.0)),
            Event::Absorbed(_) | Event::End(_) | Event::BioComplete(..) => return,
            Event::Issue(rq) => ('D', Some(rq.sector.0)),
            Event::Requeue(rq) => ('R', Some(rq.sector.0)),
            Event::Complete(rq, _) => ('C', Some(rq.sector.0)),
        });
    }
}

/// A queue, its driver and what carries out its effects.
struct Bench {
    queue: Queue<Local>,
    driver: Script,
    probe: Letters,
    caller: Caller,
    /// What its calls have asked for and is not done.
    agenda: Agenda,
    cpu: CpuId,
    now: Instant,
    /// The plug of the submitter, if it has one open.
    plug: Option<Plug>,
    parked: BTreeMap<u32, QueueSubmission>,
    ended: Vec<(u64, Status)>,
}

fn config(kernel: Kernel) -> QueueConfig {
    QueueConfig {
        kernel,
        cpus: 4,
        hw_queues: 1,
        queue_depth: 32,
        nr_requests: None,
        merging: Merging::Full,
        limits: Limits::default(),
        ..QueueConfig::new(kernel)
    }
}

fn bio(op: Op, sector: u64) -> Bio {
    Bio::new(op, Sector(sector), 8)
}

fn read(sector: u64) -> Bio {
    bio(Op::Read, sector)
}

fn write(sector: u64) -> Bio {
    bio(Op::Write, sector)
}

impl Bench {
    fn new(kernel: Kernel, scheduler: &str) -> Self {
        Bench::with(&config(kernel), scheduler)
    }

    fn with(config: &QueueConfig, scheduler: &str) -> Self {
        Bench::around(Queue::new(config, scheduler).expect("a valid configuration"))
    }

    /// Changes the scheduler of a queue that is not in use.
    fn around_nothing(queue: &mut Queue<Local>, scheduler: &str) {
        let (mut driver, mut probe, mut caller) = (Script::default(), Letters::default(), Caller::new());
        let mut cx: Cx<'_, (Script, Letters)> = caller.cx(Now::default(), CpuId(0), &mut driver, &mut probe, &NoMeter);
        queue.freeze(&mut cx);
        queue.switch_scheduler(scheduler, cx.effects).expect("a scheduler");
        queue.unfreeze(&mut cx);
    }

    /// Write-back throttling, which has tests of its own, is switched off.
    fn around(queue: Queue<Local>) -> Self {
        if queue.generation().wbt {
            queue.set_attribute(Now::default(), "wbt_lat_usec", "0", &mut Effects::new()).expect("0 is a target");
        }
        Bench {
            agenda: Agenda::new(queue.hw_queues()),
            queue,
            driver: Script::default(),
            probe: Letters::default(),
            caller: Caller::new(),
            cpu: CpuId(0),
            now: Instant::ZERO,
            plug: None,
            parked: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    /// Calls the queue from the current CPU.
    fn call<R>(
        &mut self,
        body: impl FnOnce(&Queue<Local>, &mut Cx<'_, (Script, Letters)>, Option<&mut Plug>) -> R,
    ) -> R {
        let now = Hz(1000).now(self.now);
        let mut cx = self.caller.cx(now, self.cpu, &mut self.driver, &mut self.probe, &NoMeter);
        body(&self.queue, &mut cx, self.plug.as_mut())
    }

    fn on(&mut self, cpu: u32) -> &mut Self {
        self.cpu = CpuId(cpu);
        self
    }

    fn submit(&mut self, bio: Bio) -> Submitted {
        self.submit_as(u32::MAX, bio)
    }

    /// Submits for this waiter, and keeps the submission if it sleeps.
    fn submit_as(&mut self, waiter: u32, bio: Bio) -> Submitted {
        let submission = QueueSubmission::new(bio, Waiter(waiter));
        self.make_progress(waiter, submission)
    }

    fn make_progress(&mut self, waiter: u32, mut submission: QueueSubmission) -> Submitted {
        let submitted = self.call(|queue, cx, plug| queue.submit(cx, &mut submission, plug));
        if submitted == Submitted::Parked {
            self.parked.insert(waiter, submission);
        }
        submitted
    }

    fn submit_all(&mut self, bios: impl IntoIterator<Item = Bio>) {
        for bio in bios {
            self.submit(bio);
        }
    }

    fn plug(&mut self) {
        self.plug = Some(Plug::new());
    }

    fn unplug(&mut self) {
        self.call(|queue, cx, plug| queue.flush_plug(cx, plug.expect("a plug is open")));
        self.plug = None;
    }

    fn run(&mut self, hctx: u16) {
        self.call(|queue, cx, _| queue.run_hctx(cx, HctxId(hctx)));
    }

    /// The request at this sector, which is at the driver.
    fn take(&mut self, sector: u64) -> Rq {
        let at = self.driver.in_flight.iter().position(|rq| rq.sector.0 == sector).expect("it is at the driver");
        self.driver.in_flight.remove(at).unwrap()
    }

    /// Ends the request at this sector.
    fn complete(&mut self, sector: u64) {
        let rq = self.take(sector);
        self.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
    }

    /// Ends everything that is at the driver, oldest first, without looking at the effects.
    fn complete_all(&mut self) {
        while let Some(rq) = self.driver.in_flight.pop_front() {
            self.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
        }
    }

    /// The effects since the last look, in words: what is asked for but not done.
    fn asked(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(effect) = self.caller.effects.pop() {
            let in_time = |delay: Nanos| if delay == Nanos::ZERO { String::new() } else { format!(" in {delay}") };
            out.push(match effect {
                Effect::EndBio { bio, status } => {
                    self.ended.push((bio.sector.0, status));
                    format!("end {}", bio.sector.0)
                }
                Effect::Wake(waiter) => format!("wake {}", waiter.0),
                Effect::RunHctx { hctx, delay } => format!("run {}{}", hctx.0, in_time(delay)),
                Effect::RunOther { queue, hctx } => format!("run {} of {}", hctx.0, queue.0),
                Effect::RunAll { delay } => format!("run all{}", in_time(delay)),
                Effect::KickRequeue => "kick".into(),
                Effect::SetTimer(_) => "set timer".into(),
                Effect::CancelTimer => "cancel timer".into(),
                Effect::Arbitrate(weights) => format!("arbitrate {weights:?}"),
                Effect::MoveSubmitter { io_context, cpu } => format!("move {} to {}", io_context.0, cpu.0),
                Effect::TimedOut { cpu, id } => format!("timed out on {}: {}", cpu.0, id.0),
                Effect::SetTimeout(_) | Effect::SetWindow(_) => continue,
            });
        }
        out
    }

    /// Carries out what is due now, and what comes of it.
    fn work(&mut self) {
        let now = Hz(1000).now(self.now);
        let Bench { queue, agenda, parked, ended, plug, .. } = self;
        let mut cx = self.caller.cx::<(Script, Letters)>(now, self.cpu, &mut self.driver, &mut self.probe, &NoMeter);
        agenda.carry_out(queue, &mut cx, |cx, action| match action {
            Action::End { bio, status } => ended.push((bio.sector.0, status)),
            Action::Wake(waiter) => {
                if let Some(mut submission) = parked.remove(&waiter.0)
                    && queue.submit(cx, &mut submission, plug.as_mut()) == Submitted::Parked
                {
                    parked.insert(waiter.0, submission);
                }
            }
            Action::TimedOut { cpu, id } => {
                cx.cpu = cpu;
                queue.timed_out(cx, id);
            }
            Action::RunOther { .. } | Action::Arbitrate(_) | Action::MoveSubmitter { .. } => {
                unreachable!("its tags are not shared, and the agenda arbitrates")
            }
        });
    }

    /// Delayed runs take place now.
    fn run_delayed(&mut self) {
        for hctx in (0..self.queue.hw_queues()).map(HctxId) {
            if self.agenda.cancel(Due::Run(hctx)).is_some() {
                self.run(hctx.0);
            }
        }
        self.work();
    }

    /// Serves everything until nothing is left.
    fn drain(&mut self) {
        self.work();
        while !self.driver.in_flight.is_empty() || self.queue.requests_in_use() > 0 {
            self.complete_all();
            self.work();
            self.run_delayed();
        }
        assert_eq!((self.queue.requests_in_use(), self.queue.driver_tags_in_use()), (0, 0), "nothing is left");
        assert!(self.parked.is_empty(), "none sleeps");
    }

    /// The letters since the last look, `U` with its count.
    fn letters(&mut self) -> String {
        let letter = |(letter, n): (char, Option<u64>)| match (letter, n) {
            ('U', Some(count)) => format!("U{count}"),
            (letter, _) => letter.to_string(),
        };
        std::mem::take(&mut self.probe.events).into_iter().map(letter).collect::<Vec<_>>().join(" ")
    }

    /// The letters since the last look, with their sectors.
    fn events(&mut self) -> String {
        let event = |(letter, n): (char, Option<u64>)| n.map_or(letter.to_string(), |n| format!("{letter}{n}"));
        std::mem::take(&mut self.probe.events).into_iter().map(event).collect::<Vec<_>>().join(" ")
    }

    /// The sectors of the driver's calls since the last look.
    fn issued(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.driver.calls).into_iter().map(|call| call.sector).collect()
    }

    fn calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.driver.calls)
    }

    /// Has this many requests, at sectors from 1,000,000 up, at the driver.
    fn occupy(&mut self, requests: u64) {
        for n in 0..requests {
            self.submit(read(1_000_000 + n * 1000));
        }
        self.work();
        assert_eq!(self.driver.in_flight.len() as u64, requests);
        self.forget();
    }

    /// Forgets what was recorded so far.
    fn forget(&mut self) {
        self.probe.events.clear();
        self.driver.calls.clear();
        self.ended.clear();
    }

    fn refuse(&mut self, answers: impl IntoIterator<Item = Option<Refusal>>) {
        self.reply(answers.into_iter().map(|refusal| refusal.map_or(Reply::Take, Reply::Refuse)));
    }

    /// Says what becomes of the next requests.
    fn reply(&mut self, replies: impl IntoIterator<Item = Reply>) {
        self.driver.replies.extend(replies);
    }

    fn hctx(&self, hctx: u16) -> &HardwareQueue<Local> {
        self.queue.hctx(HctxId(hctx))
    }

    fn set(&mut self, tunable: &str, text: &str) {
        let now = Hz(1000).now(self.now);
        self.queue.set_tunable(now, tunable, text, &mut self.caller.effects).expect("a valid value");
    }
}
