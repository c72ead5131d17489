//! A custom scheduler and a comparison of it with the schedulers of Linux: one file, and one row that registers it.
//!
//! `cargo run --release -p hoistway-experiment --example turns`

use std::collections::VecDeque;

use hoistway_answer::Analysis;
use hoistway_blk::ground::{Grammar, HctxId, IoContextId, RqId, StoreError, Tunable, TunableRow, Tunables, Unit};
use hoistway_blk::policy::{Choice, Place, PolicyCx, Scheduler};
use hoistway_blk::schedulers::{Policy, Registry, Row};
use hoistway_blk::watch::Reason;
use hoistway_experiment::{self as lab, CallerEnvironment, Comparison, Load};
use hoistway_legacy::all_schedulers;

/// **Promises**: processes take turns, so a process with few requests does not wait behind all requests of another one.
/// **Costs**: no ordering by sector, and O(processes) to find the queue of a process.
struct Turns {
    /// Processes with waiting requests, in the order of their turns.
    waiting: VecDeque<(IoContextId, VecDeque<RqId>)>,
    /// Requests dispatched per turn.
    quantum: u32,
    /// Requests dispatched for the first process in this turn.
    given: u32,
}

static TUNABLES: Tunables<Turns> = Tunables {
    grammar: Grammar::CInt32,
    rows: &[TunableRow::new(
        "quantum",
        (Unit::Requests, 1, 1, 1024),
        "Requests of a process before it is the next one's turn.",
        |turns| i128::from(turns.quantum),
        |turns, requests| turns.quantum = requests as u32,
    )],
};

impl Turns {
    fn remove(&mut self, id: RqId) {
        self.waiting.iter_mut().for_each(|(_, queue)| queue.retain(|&other| other != id));
        self.waiting.retain(|(_, queue)| !queue.is_empty());
    }
}

impl Scheduler for Turns {
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        let process = cx.rq(id).io_context;
        if place == Place::Head {
            self.waiting.push_front((process, VecDeque::from([id])));
        } else if let Some((_, queue)) = self.waiting.iter_mut().find(|(other, _)| *other == process) {
            queue.push_back(id);
        } else {
            self.waiting.push_back((process, VecDeque::from([id])));
        }
    }

    fn dispatch(&mut self, _: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        if self.given >= self.quantum {
            self.given = 0;
            self.waiting.rotate_left(self.waiting.len().min(1));
        }
        let rq = self.waiting.front_mut().and_then(|(_, queue)| queue.pop_front());
        self.given += 1;
        if self.waiting.front().is_some_and(|(_, queue)| queue.is_empty()) {
            self.waiting.pop_front();
            self.given = 0;
        }
        Choice { rq, reason: if rq.is_some() { Reason::Fifo } else { Reason::Empty } }
    }

    fn finish(&mut self, _: &mut PolicyCx<'_>, _: RqId) {}

    fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn on_absorbed(&mut self, _: &mut PolicyCx<'_>, _: RqId, absorbed: RqId) {
        self.remove(absorbed);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(self)
    }

    fn set_tunable(&mut self, _: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store(self, name, text)
    }
}

/// The row that registers the scheduler.
const TURNS: Row = Row::new("turns", |_| Policy::boxed(Turns { waiting: VecDeque::new(), quantum: 1, given: 0 }));

/// The schedulers of Linux and this one.
struct Workshop;

impl CallerEnvironment for Workshop {
    fn schedulers(&self) -> Registry {
        all_schedulers().with(&[TURNS])
    }
}

/// A process with one read at a time, and another one that floods the device.
const JOB: &str = "[global]\nfilename=/dev/sda\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\nruntime=1\ntime_based\n\
                   [quiet]\niodepth=1\n[flood]\niodepth=256\n";

/// I/Os per second of a job under each of these schedulers, and under this scheduler with a quantum.
pub fn iops(job: &str, schedulers: &[&str], quantum: u32) -> Result<Vec<(String, f64)>, Box<dyn std::error::Error>> {
    let tunables =
        vec![lab::Tunable { scheduler: TURNS.name.into(), name: "quantum".into(), text: quantum.to_string() }];
    let document = Comparison {
        load: Load::text(JOB),
        devices: vec!["intel-s3520-1600gb".into()],
        schedulers: schedulers.iter().map(|&name| name.to_owned()).collect(),
        tunables,
        ..Comparison::default()
    }
    .run(&Workshop)?;
    let figures = Analysis::of(&document).figure(&format!("{job}:read:iops").parse()?)?;
    Ok(figures.into_iter().map(|(label, iops)| (label, iops.mean)).collect())
}

#[allow(dead_code, reason = "the test of this example has its own")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (scheduler, iops) in iops("quiet", &["none", "mq-deadline", "kyber", "bfq", TURNS.name], 1)? {
        println!("{scheduler}: {iops:.0} IOPS beside the flood");
    }
    Ok(())
}
