//! A policy that chooses the hardware queue of each request before it has a tag.

use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::ground::sharing::Word;
use crate::policy::{ElevatorCx, Steering, SteeringFamily};
use crate::request::Request;
use crate::schedulers::Policy;
use crate::watch::reason::Reason;

/// Steers to the hardware queue with the number of the bio's I/O context, and counts.
struct ByContext<Sh: Sharing> {
    asked: Sh::Word,
    issued: Sh::Word,
    ended: Sh::Word,
}

struct ByContextFamily;

impl SteeringFamily for ByContextFamily {
    type Of<Sh: Sharing> = ByContext<Sh>;

    fn make<Sh: Sharing>(&self, _: &CpuMap) -> ByContext<Sh> {
        ByContext { asked: Sh::Word::new(0), issued: Sh::Word::new(0), ended: Sh::Word::new(0) }
    }
}

impl<Sh: Sharing> Steering<Sh> for ByContext<Sh> {
    fn place(&self, _: &mut ElevatorCx<'_>, bio: &Bio, _: HctxId) -> (HctxId, Reason) {
        self.asked.fetch_add(1, Relaxed);
        (HctxId(bio.io_context.0 as u16), Reason::Own)
    }

    fn on_issued(&self, _: &mut ElevatorCx<'_>, rq: &Request) {
        assert_eq!(u32::from(rq.hctx.0), rq.io_context.0);
        self.issued.fetch_add(1, Relaxed);
    }

    fn on_ended(&self, _: &mut ElevatorCx<'_>, _: &Request) {
        self.ended.fetch_add(1, Relaxed);
    }
}

const BY_CONTEXT: Row = Row::new("by-context", |_| Policy::steered(ByContextFamily));

fn by_context(context: u32, bio: Bio) -> Bio {
    Bio { io_context: crate::ground::ids::IoContextId(context), ..bio }
}

fn bench(kernel: Kernel) -> Bench {
    let schedulers = Registry::multi_queue().with(&[BY_CONTEXT]);
    Bench::with(&QueueConfig { hw_queues: 4, queue_depth: 2, schedulers, ..config(kernel) }, "by-context")
}

/// How often the policy was asked, and how many requests it has heard of: issued, ended.
fn counts(bench: &Bench) -> [u64; 3] {
    bench.queue.elevator(|elevator| {
        let policy: &dyn std::any::Any = elevator.steering().expect("it steers");
        let policy: &ByContext<Local> = policy.downcast_ref().expect("this one");
        [&policy.asked, &policy.issued, &policy.ended].map(|word| word.load(Relaxed))
    })
}

#[test]
fn a_steered_request_gives_its_tag_back_to_the_queue_that_it_took_it_from() {
    for kernel in [Kernel::V4_19, Kernel::V5_10, Kernel::V6_18] {
        let mut bench = bench(kernel);
        // From the CPU of hardware queue 0, both tags of hardware queue 3.
        for sector in [0, 1000] {
            assert_eq!(bench.submit(by_context(3, read(sector))), Submitted::Done);
        }
        bench.work();
        assert_eq!(bench.calls().iter().map(|call| call.hctx).collect::<Vec<_>>(), [3, 3], "{kernel}");
        assert_eq!(bench.submit_as(1, by_context(3, read(2000))), Submitted::Parked, "{kernel}: it has no other");
        assert_eq!(bench.submit(by_context(0, read(3000))), Submitted::Done, "{kernel}: the CPU's own has");
        bench.complete(3000);
        bench.work();
        assert_eq!(bench.parked.len(), 1, "{kernel}: not woken by a tag of another queue");
        bench.complete(0);
        bench.work();
        assert_eq!(bench.driver.in_flight.back().map(|rq| (rq.sector.0, rq.hctx.0)), Some((2000, 3)), "{kernel}");
        bench.drain();
        let [_, issued, ended] = counts(&bench);
        assert_eq!((issued, ended), (4, 4), "{kernel}");
    }
}

#[test]
fn a_placement_holds_while_the_submission_sleeps_and_is_made_anew_after_it() {
    let mut bench = bench(Kernel::V6_18);
    for sector in [0, 1000] {
        bench.submit(by_context(2, read(sector)));
    }
    bench.submit_as(1, by_context(2, read(2000)));
    assert_eq!(counts(&bench), [3, 2, 0]);
    let submission = bench.parked.get_mut(&1).unwrap();
    assert_eq!(submission.wait_position.map(|(hctx, _)| hctx), Some(HctxId(2)), "it waits for tags of this one");
    // Another placement next time: the wake-up for hardware queue 2 is then passed on.
    submission.bio.as_mut().unwrap().io_context.0 = 1;
    bench.submit_as(2, by_context(2, read(3000)));
    bench.complete(0);
    bench.work();
    let mut at_driver: Vec<_> = bench.driver.in_flight.iter().map(|rq| (rq.sector.0, rq.hctx.0)).collect();
    at_driver.sort_unstable();
    assert_eq!(at_driver, [(1000, 2), (2000, 1), (3000, 2)]);
    bench.drain();
    assert_eq!(counts(&bench), [6, 4, 4]);
}

#[test]
fn a_policy_that_steers_hears_of_the_end_of_every_request_once() {
    for kernel in [Kernel::V4_19, Kernel::V6_18] {
        let limits = Limits { write_cache: true, ..Limits::default() };
        let schedulers = Registry::multi_queue().with(&[BY_CONTEXT]);
        let config = QueueConfig { hw_queues: 4, limits, schedulers, ..config(kernel) };
        let mut bench = Bench::with(&config, "by-context");
        let sync = Bio { flags: BioFlags::PREFLUSH, ..write(0) };
        let flush = Bio { sectors: 0, ..sync.clone() };
        bench.submit_all([sync, flush, read(5000)].map(|bio| by_context(1, bio)));
        bench.plug();
        bench.submit_all([6000, 6008, 9000].map(|sector| by_context(2, read(sector))));
        bench.unplug();
        bench.reply([Reply::End(Status::IoError)]);
        bench.submit(by_context(3, read(7000)));
        bench.refuse([Some(Refusal::Busy)]);
        bench.submit(by_context(3, read(8000)));
        bench.drain();
        let [_, issued, ended] = counts(&bench);
        // Two of those under the plug are one request.
        assert_eq!((issued, ended), (7, 7), "{kernel}");
    }
}

#[test]
fn a_policy_that_steers_is_none_to_everything_but_the_name() {
    let mut bench = bench(Kernel::V6_18);
    assert_eq!(bench.queue.scheduler(), "by-context");
    assert!(bench.queue.elevator(Elevator::is_none));
    assert_eq!(bench.queue.nr_requests(), 2, "the driver's tags");
    bench.submit(by_context(1, read(0)));
    assert_eq!(bench.probe.answers, [Some(0)], "a choice is reported");
    bench.drain();
    Bench::around_nothing(&mut bench.queue, "none");
    bench.submit(by_context(3, read(0)));
    assert_eq!(bench.driver.in_flight[0].hctx, HctxId(0), "nothing steers now");
    bench.drain();
}

fn with_classes(hw_queues: u16) -> QueueConfig {
    let arbitration = Some(crate::request::Arbitration { weight_max: 256 });
    QueueConfig { hw_queues, arbitration, ..config(Kernel::V6_18) }
}

#[test]
fn d2fq_is_refused_where_the_device_has_no_classes_and_says_what_is_missing() {
    let refused = |config: &QueueConfig| Queue::<Local>::new(config, "d2fq").err().map(|error| error.why);
    let missing = [
        (config(Kernel::V6_18), "d2fq needs weighted round robin, which this device does not have"),
        (with_classes(2), "d2fq needs three hardware queues, but this device has 2"),
        (
            QueueConfig { read_queues: 1, ..with_classes(12) },
            "d2fq needs hardware queues of one type, spread by the kernel",
        ),
    ];
    for (config, why) in missing {
        assert_eq!(refused(&config).as_deref(), Some(why));
    }
    assert_eq!(refused(&with_classes(3)), None);
    let queue: Queue<Local> = Queue::new(&config(Kernel::V6_18), "none").unwrap();
    let mut bench = Bench::around(queue);
    bench.call(|queue, cx, _| queue.freeze(cx));
    let switched = bench.call(|queue, cx, _| queue.switch_scheduler("d2fq", cx.effects));
    assert!(matches!(switched, Err(ChangeError::Failed(_))), "{switched:?}");
    bench.call(|queue, cx, _| queue.unfreeze(cx));
    assert_eq!(bench.queue.scheduler(), "none");
}

#[test]
fn nothing_waits_in_software_under_d2fq() {
    let mut bench = Bench::with(&with_classes(12), "d2fq");
    for n in 0..30 {
        let process = 1 + n % 3;
        bench.submit(by_context(process as u32, read(n * 1000)));
        assert_eq!(bench.driver.in_flight.len() as u64, n + 1, "each goes to the driver at once");
    }
    bench.drain();
    // Until the hardware queue of its class has no tag left: 32 are all that one holds.
    for n in 0..40 {
        bench.submit_as(n as u32, by_context(1, read(n * 1000)));
    }
    assert_eq!((bench.driver.in_flight.len(), bench.parked.len()), (32, 8));
    bench.drain();
}

#[test]
fn the_drive_hears_of_weights_when_the_scheduler_changes_and_when_a_tunable_does() {
    let mut bench = Bench::with(&with_classes(12), "none");
    assert_eq!(bench.queue.arbitration(), None);
    let switch = |bench: &mut Bench, scheduler: &str| {
        bench.call(|queue, cx, _| {
            queue.freeze(cx);
            queue.switch_scheduler(scheduler, cx.effects).unwrap();
            queue.unfreeze(cx);
        });
        bench.work();
        std::mem::take(&mut bench.driver.arbitrations)
    };
    assert_eq!(switch(&mut bench, "mq-deadline"), []);
    assert_eq!(switch(&mut bench, "d2fq"), [Some([252, 126, 42])]);
    assert_eq!(bench.queue.arbitration(), Some([252, 126, 42]));
    bench.set("ratio", "3");
    bench.work();
    assert_eq!(std::mem::take(&mut bench.driver.arbitrations), [Some([255, 170, 85])]);
    assert_eq!(switch(&mut bench, "none"), [None]);
    assert_eq!(switch(&mut bench, "none"), []);
}

#[test]
fn blk_switch_is_refused_where_nothing_can_be_steered_and_says_what_is_missing() {
    let transport = Some(crate::request::Transport { batch: 16 });
    let behind = |cpus, hw_queues| QueueConfig { cpus, hw_queues, transport, ..config(Kernel::V6_18) };
    let refused = |config: &QueueConfig| Queue::<Local>::new(config, "blk-switch").err().map(|error| error.why);
    let missing = [
        (
            config(Kernel::V6_18),
            "blk-switch needs a transport with a worker on each CPU, which this device does not have",
        ),
        (behind(1, 2), "blk-switch needs at least two CPUs, between which it moves work"),
        (behind(2, 3), "blk-switch needs two hardware queues for each CPU, 4 here, but this device has 3"),
    ];
    for (config, why) in missing {
        assert_eq!(refused(&config).as_deref(), Some(why));
    }
    assert_eq!(refused(&behind(2, 4)), None);
}
