//! Plain bios have the same effects on the fast path as on the way through the stages.

use proptest::prelude::*;

use super::*;

/// Something that happens to a queue.
#[derive(Clone, Debug)]
enum Step {
    /// On this CPU; the sector is counted in bios of 8.
    Submit {
        cpu: u32,
        is_write: bool,
        place: u64,
        bios: u32,
    },
    /// The request that is at this place among those at the driver ends.
    Complete(usize),
    /// The next request is refused.
    Refuse(Refusal),
    Run(u16),
    /// Effects are carried out.
    Work,
    RunDelayed,
    /// The submission at this place among those that sleep is taken back.
    Cancel(usize),
    Plug,
    Unplug,
    Quiesce(bool),
    Freeze,
    Unfreeze,
    Stop(u16, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let submit = || {
        (0..4u32, any::<bool>(), 0..40u64, 1..3u32).prop_map(|(cpu, is_write, place, bios)| Step::Submit {
            cpu,
            is_write,
            place,
            bios,
        })
    };
    prop_oneof![
        12 => submit(),
        8 => (0..8usize).prop_map(Step::Complete),
        1 => Just(Step::Refuse(Refusal::Busy)),
        1 => Just(Step::Refuse(Refusal::UntilCompletion)),
        1 => (0..2u16).prop_map(Step::Run),
        8 => Just(Step::Work),
        1 => Just(Step::RunDelayed),
        1 => (0..4usize).prop_map(Step::Cancel),
        1 => Just(Step::Plug),
        2 => Just(Step::Unplug),
        1 => any::<bool>().prop_map(Step::Quiesce),
        1 => Just(Step::Freeze),
        2 => Just(Step::Unfreeze),
        1 => (0..2u16, any::<bool>()).prop_map(|(hctx, stops)| Step::Stop(hctx, stops)),
    ]
}

/// A queue, and the modifier that its bios have: any makes them go through the stages.
struct Way {
    bench: Bench,
    modifier: BioFlags,
    frozen: u32,
}

impl Way {
    fn new(config: &QueueConfig, budget: Option<u32>, modifier: BioFlags) -> Way {
        let mut bench = Bench::with(config, "none");
        bench.driver.budget = budget;
        Way { bench, modifier, frozen: 0 }
    }

    fn take(&mut self, waiter: u32, step: &Step) {
        let bench = &mut self.bench;
        match *step {
            Step::Submit { cpu, is_write, place, bios } => {
                let (op, direct) = match is_write {
                    true => (Op::Write, BioFlags::SYNC.with(BioFlags::IDLE)),
                    false => (Op::Read, BioFlags::NONE),
                };
                let flags = direct.with(self.modifier);
                bench.on(cpu).submit_as(waiter, Bio { flags, ..Bio::new(op, Sector(place * 8), bios * 8) });
            }
            Step::Complete(place) => {
                if let Some(rq) = bench.driver.in_flight.remove(place) {
                    if bench.driver.budget.is_some() {
                        bench.driver.put_budget(rq.hctx);
                    }
                    bench.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
                }
            }
            Step::Refuse(why) => bench.refuse([Some(why)]),
            Step::Run(hctx) => bench.run(hctx % bench.queue.hw_queues()),
            Step::Work => bench.work(),
            Step::RunDelayed => bench.run_delayed(),
            Step::Cancel(place) => {
                if let Some(waiter) = bench.parked.keys().nth(place).copied() {
                    let mut submission = bench.parked.remove(&waiter).expect("it waits");
                    bench.call(|queue, cx, _| queue.cancel(cx, &mut submission));
                }
            }
            Step::Plug if bench.plug.is_none() => bench.plug(),
            Step::Unplug if bench.plug.is_some() => bench.unplug(),
            Step::Plug | Step::Unplug => {}
            Step::Quiesce(quiesced) => bench.queue.set_quiesced(quiesced),
            Step::Freeze => {
                self.frozen += 1;
                bench.call(|queue, cx, _| queue.freeze(cx));
            }
            Step::Unfreeze if self.frozen > 0 => {
                self.frozen -= 1;
                bench.call(|queue, cx, _| queue.unfreeze(cx));
            }
            Step::Unfreeze => {}
            Step::Stop(hctx, stops) => bench.hctx(hctx % bench.queue.hw_queues()).set_stopped(stops),
        }
    }

    /// All that has come of it since the last look.
    fn seen(&mut self) -> String {
        let (calls, events) = (self.bench.calls(), self.bench.events());
        let ended = std::mem::take(&mut self.bench.ended);
        let sleeping: Vec<u32> = self.bench.parked.keys().copied().collect();
        format!("{calls:?}; {events}; {ended:?}; {sleeping:?}; {}", self.bench.queue.driver_tags_in_use())
    }

    /// Nothing is in the way any more, and everything ends.
    fn finish(&mut self) {
        self.bench.queue.set_quiesced(false);
        (0..self.bench.queue.hw_queues()).for_each(|hctx| self.bench.hctx(hctx).set_stopped(false));
        self.take(0, &Step::Unplug);
        (0..self.frozen).for_each(|_| self.take(0, &Step::Unfreeze));
        self.bench.driver.budget = None;
        self.bench.driver.replies.clear();
        self.bench.work();
        (0..self.bench.queue.hw_queues()).for_each(|hctx| self.bench.run(hctx));
        self.bench.drain();
    }
}

/// A release of each row of rules without a scheduler.
const KERNELS: [&str; 8] = ["4.12", "4.19", "5.10", "5.15", "6.3", "6.6", "6.18", "7.2"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_fast_path_has_the_effects_of_the_stages(
        kernel in prop::sample::select(&KERNELS[..]),
        hw_queues in 1..3u16,
        queue_depth in 1..5u32,
        budget in prop::option::of(1..5u32),
        merging in prop::sample::select(vec![Merging::Full, Merging::Simple, Merging::Off]),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let config =
            QueueConfig { hw_queues, queue_depth, merging, ..config(kernel.parse().expect("a release")) };
        let mut fast = Way::new(&config, budget, BioFlags::NONE);
        let mut staged = Way::new(&config, budget, BioFlags::META);
        for (waiter, step) in (0..).zip(&steps) {
            fast.take(waiter, step);
            staged.take(waiter, step);
            prop_assert_eq!(fast.seen(), staged.seen(), "{:?}", step);
        }
        fast.finish();
        staged.finish();
        prop_assert_eq!(fast.seen(), staged.seen());
    }
}

#[test]
fn a_plain_bio_takes_the_fast_path_unless_there_is_a_plug_or_a_scheduler() {
    for (scheduler, flags, is_plugged, is_fast) in [
        ("none", BioFlags::NONE, false, true),
        ("none", BioFlags::META, false, false),
        ("none", BioFlags::NONE, true, false),
        ("mq-deadline", BioFlags::NONE, false, false),
    ] {
        let config = QueueConfig { queue_depth: 4, nr_requests: Some(4), ..config(Kernel::V6_18) };
        let mut bench = Bench::with(&config, scheduler);
        bench.occupy(4);
        bench.plug = is_plugged.then(Plug::new);
        assert_eq!(bench.submit_as(1, Bio { flags, ..read(100) }), Submitted::Parked);
        assert_eq!(bench.parked[&1].is_plain, is_fast, "{scheduler}, {flags:?}, {is_plugged}");
        bench.plug = None;
        bench.drain();
    }
}
