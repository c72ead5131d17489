//! A scheduler of one's own, and what a comparison with those of Linux takes: this file, with one row at its end.
//!
//! `cargo run --release -p hoistway-sim --example turns`

use std::collections::VecDeque;

use hoistway_blk::{
    Choice, Grammar, HctxId, IoContextId, Kernel, Nanos, Place, Policy, PolicyCx, Reason, Row, RqId, Scheduler,
    StoreError, Tunable, TunableRow, Tunables, Unit, all_schedulers,
};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario, run};

/// **Promises**: processes take turns, so that one that sends little does not wait behind all that another has queued.
/// **Costs**: it knows no order by sector, and O(processes) to find the queue of one.
struct Turns {
    /// Processes with requests that wait, in the order of their turns.
    waiting: VecDeque<(IoContextId, VecDeque<RqId>)>,
    /// Requests of a turn.
    quantum: u32,
    /// Requests that the first process has been given in this turn.
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

    fn absorbed(&mut self, _: &mut PolicyCx<'_>, _: RqId, absorbed: RqId) {
        self.remove(absorbed);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(self)
    }

    fn set_tunable(&mut self, _: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store(self, name, text)
    }

    fn adopt(&mut self, _: &mut PolicyCx<'_>, _: HctxId, id: RqId) {
        self.remove(id);
    }
}

/// All that the block layer needs to know of it.
const TURNS: Row = Row::new("turns", |_| Policy::boxed(Turns { waiting: VecDeque::new(), quantum: 1, given: 0 }));

/// One process with one read at a time, beside one that floods the device.
const JOB: &str = "[global]\nfilename=/dev/sda\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\n\
                   [quiet]\niodepth=1\n[flood]\niodepth=256\n";

/// I/Os per second of the quiet process and of the flood.
pub fn iops(scheduler: &str, tunables: &[(&str, &str)]) -> [u64; 2] {
    let load = JobFile::parse(JOB, "quiet-and-flood.fio", &Environment::empty()).expect("a job file").load;
    let device = Preset::builtin("intel-s3520-1600gb").expect("a built-in device");
    let schedulers = all_schedulers().with(&[TURNS]);
    let scenario = Scenario {
        workload: &load,
        devices: vec![&device],
        guests: None,
        queue: QueueSettings { schedulers, ..QueueSettings::new(Kernel::DEFAULT, 4) },
        host: Host::builtin(Host::DEFAULT).expect("a built-in host"),
        runtime: Some(Nanos::from_secs(1)),
    };
    let tunables = tunables.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
    let spec = RunSpec { scheduler: scheduler.to_owned(), tunables, guest: None, seed: 1 };
    let result = run(&scenario, &spec, &Control::default()).expect("a run of one second");
    [0, 1].map(|process| result.processes[process].total_ios())
}

#[allow(dead_code, reason = "the test of this example has its own")]
fn main() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "turns"] {
        let [quiet, flood] = iops(scheduler, &[]);
        println!("{scheduler:12} {quiet:6} IOPS beside {flood:6}");
    }
}
