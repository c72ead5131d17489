//! BL-27, BL-73 to BL-83, BL-85 to BL-90, BL-95, BL-99: which request a run takes next, and which hardware queues run.

use super::*;

/// With mq-deadline, depth 2 and both tags taken: `waiting` requests are queued.
fn full(kernel: Kernel, waiting: &[u64]) -> Bench {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 2, ..config(kernel) }, "mq-deadline");
    bench.occupy(2);
    bench.submit_all(waiting.iter().map(|&sector| read(sector)));
    bench.work();
    bench.forget();
    bench
}

#[test]
fn the_scheduler_is_not_asked_while_the_dispatch_list_has_requests() {
    for kernel in [Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_12, Kernel::V6_18] {
        let mut bench = full(kernel, &[900]);
        assert!(
            bench.hctx(0).has_dispatch_list() && !bench.queue.elevator(|elevator| elevator.has_work(HctxId(0))),
            "{kernel}"
        );
        bench.submit(read(100));
        bench.asked();
        bench.run(0);
        assert!(bench.queue.elevator(|elevator| elevator.has_work(HctxId(0))), "{kernel}: not asked");
        bench.complete(1_000_000);
        bench.work();
        assert_eq!(bench.issued(), [900], "{kernel}");
        bench.complete(1_001_000);
        bench.work();
        assert_eq!(bench.issued(), [100], "{kernel}");
        bench.drain();
    }
}

#[test]
fn in_4_12_the_scheduler_is_asked_only_if_the_dispatch_list_has_requests() {
    let mut bench = full(Kernel::V4_12, &[900]);
    bench.submit(read(100));
    bench.asked();
    bench.run(0);
    assert!(!bench.queue.elevator(|elevator| elevator.has_work(HctxId(0))), "one more was dispatched, and is stuck");
    bench.complete(1_000_000);
    bench.complete(1_001_000);
    bench.asked();
    bench.submit(read(50));
    bench.asked();
    bench.run(0);
    assert!(
        bench.issued().len() == 2 && bench.queue.elevator(|elevator| elevator.has_work(HctxId(0))),
        "all sent: not asked"
    );
    bench.drain();
}

#[test]
fn the_dispatch_list_grows_at_the_tail_and_until_4_20_at_the_head() {
    for (kernel, order) in [
        (Kernel::V6_18, [300, 400, 100, 200]),
        (Kernel::V5_10, [300, 400, 100, 200]),
        (Kernel::V4_19, [100, 200, 300, 400]),
    ] {
        let mut bench = Bench::new(kernel, "none");
        let mut requests: VecDeque<Rq> = VecDeque::new();
        for sector in [100, 200, 300, 400] {
            bench.plug();
            bench.submit(read(sector));
            requests.extend(bench.plug.take().unwrap().list);
        }
        let mut later = requests.split_off(2);
        // While 100 and 200 are being sent, 300 and 400 come into the dispatch list.
        bench.hctx(0).append_to_dispatch_list(&NoMeter, &mut later, false);
        bench.refuse([Some(Refusal::UntilCompletion)]);
        bench.call(|queue, cx, _| queue.during(cx.cpu, |queue| queue.send(cx, HctxId(0), &mut requests)));
        bench.forget();
        bench.run(0);
        assert_eq!(bench.issued(), order, "{kernel}");
        bench.drain();
    }
}

#[test]
fn a_quiesced_queue_or_stopped_hardware_queue_takes_requests_in_but_sends_none() {
    for scheduler in SCHEDULERS {
        for stopped in [false, true] {
            let mut bench = Bench::new(Kernel::V6_18, scheduler);
            bench.queue.set_quiesced(!stopped);
            bench.hctx(0).set_stopped(stopped);
            bench.submit_all([read(0), read(1000)]);
            bench.run(0);
            assert!(bench.issued().is_empty(), "{scheduler}");
            assert_eq!(bench.queue.requests_in_use(), 2, "{scheduler}");
            bench.queue.set_quiesced(false);
            bench.hctx(0).set_stopped(false);
            bench.run(0);
            assert_eq!(bench.issued(), [0, 1000], "{scheduler}");
            bench.drain();
        }
    }
}

#[test]
fn a_batch_is_of_one_request_while_the_queue_is_busy_and_of_all_otherwise() {
    let batches = |busy: bool| {
        let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
        bench.queue.set_quiesced(true);
        bench.submit_all((0..4).map(|n| read(n * 1000)));
        bench.queue.set_quiesced(false);
        if busy {
            for _ in 0..10 {
                bench.hctx(0).update_busy(true);
            }
        }
        bench.run(0);
        bench.calls().into_iter().map(|call| call.last).collect::<Vec<_>>()
    };
    assert_eq!(batches(true), [true, true, true, true], "each is the last of its list");
    assert_eq!(batches(false), [false, false, false, true]);
}

#[test]
fn until_4_20_every_batch_is_of_one_request() {
    for kernel in [Kernel::V4_12, Kernel::V4_19] {
        let mut bench = Bench::new(kernel, "mq-deadline");
        bench.submit_all((0..4).map(|n| read(n * 1000)));
        bench.run(0);
        assert!(bench.calls().into_iter().all(|call| call.last), "{kernel}");
    }
}

/// NONE-4: A on c2, B on c0, C on c1, D on c0, E on c2, while the queue is quiesced.
fn arrivals() -> Bench {
    let mut bench = Bench::with(&QueueConfig { cpus: 3, ..config(Kernel::V6_18) }, "none");
    bench.queue.set_quiesced(true);
    for (cpu, sector) in [(2, 0xA00), (0, 0xB00), (1, 0xC00), (0, 0xD00), (2, 0xE00)] {
        bench.on(cpu).submit(read(sector));
    }
    bench.queue.set_quiesced(false);
    bench
}

#[test]
fn without_a_scheduler_an_idle_queue_sends_all_software_queues_in_order_as_one_list() {
    let mut bench = arrivals();
    bench.run(0);
    let calls = bench.calls();
    assert_eq!(calls.iter().map(|call| call.sector).collect::<Vec<_>>(), [0xB00, 0xD00, 0xC00, 0xA00, 0xE00]);
    assert_eq!(calls.iter().map(|call| call.last).collect::<Vec<_>>(), [false, false, false, false, true]);
}

#[test]
fn a_busy_hardware_queue_takes_one_request_per_software_queue_in_turn() {
    let mut bench = arrivals();
    bench.hctx(0).update_busy(true);
    // One request alone, from c0, leaves the turn at c1.
    bench.refuse([None, Some(Refusal::UntilCompletion)]);
    bench.run(0);
    assert_eq!(bench.issued(), [0xB00, 0xC00]);
    bench.hctx(0).mark_restart();
    bench.run(0);
    assert_eq!(bench.issued(), [0xC00, 0xA00, 0xD00, 0xE00], "the left-over, then c2, c0, c2");
}

#[test]
fn the_dispatch_list_goes_first_and_then_one_request_at_a_time() {
    let mut bench = arrivals();
    bench.refuse([None, None, Some(Refusal::UntilCompletion)]);
    bench.run(0);
    assert_eq!(bench.issued(), [0xB00, 0xD00, 0xC00]);
    bench.asked();
    bench.queue.set_quiesced(true);
    bench.on(0).submit(read(0xF00));
    bench.on(1).submit(read(0x1000));
    bench.queue.set_quiesced(false);
    bench.refuse([None, None, None, None, Some(Refusal::UntilCompletion)]);
    bench.run(0);
    assert_eq!(bench.issued(), [0xC00, 0xA00, 0xE00, 0xF00, 0x1000], "the last one is refused");
    bench.drain();
}

#[test]
fn without_budget_nothing_is_dequeued() {
    for kernel in [Kernel::V4_19, Kernel::V6_18] {
        let mut bench = Bench::new(kernel, "mq-deadline");
        bench.driver.budget = Some(0);
        bench.submit(read(8));
        bench.work();
        assert!(bench.queue.elevator(|elevator| elevator.has_work(HctxId(0))), "{kernel}: it can still merge");
        bench.submit(read(16));
        assert_eq!(bench.queue.requests_in_use(), 1, "{kernel}");
    }
    let mut bench = arrivals();
    bench.driver.budget = Some(0);
    bench.hctx(0).update_busy(true);
    bench.run(0);
    assert!(!bench.hctx(0).has_dispatch_list() && bench.hctx(0).has_queued());
}

#[test]
fn if_the_scheduler_gives_nothing_the_budget_is_returned_and_all_run_in_3_ms() {
    use crate::bio::ioprio::{IoPriority, PriorityClass};
    let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
    bench.driver.budget = Some(5);
    let class = |class, sector| Bio { ioprio: IoPriority::new(class, 0), ..read(sector) };
    bench.submit(class(PriorityClass::RealTime, 8));
    assert!(bench.asked().is_empty());
    bench.submit(class(PriorityClass::Idle, 800));
    assert_eq!(bench.asked(), ["run all in 3 ms"], "the idle class waits for the request in flight");
    assert_eq!((bench.issued(), bench.driver.budget), (vec![8], Some(4)));
}

#[test]
fn a_completion_takes_the_restart_mark_away_and_runs_its_queue_once() {
    let mut bench = full(Kernel::V6_18, &[100]);
    assert!(bench.hctx(0).wants_restart());
    bench.complete(1_000_000);
    assert_eq!(bench.asked(), ["end 1000000", "run 0"]);
    assert!(!bench.hctx(0).wants_restart());
    bench.complete(1_001_000);
    assert_eq!(bench.asked(), ["end 1001000"]);
    bench.run(0);
    bench.drain();
}

#[test]
fn requests_reach_their_hardware_queue_whichever_one_dispatched_them() {
    let mut bench = Bench::with(&QueueConfig { hw_queues: 4, ..config(Kernel::V6_18) }, "mq-deadline");
    bench.queue.set_quiesced(true);
    for (cpu, sector) in [(3, 100), (1, 200), (3, 300), (0, 400), (1, 500)] {
        bench.on(cpu).submit(read(sector));
    }
    bench.queue.set_quiesced(false);
    bench.on(0).run(0);
    let calls = bench.calls();
    let order: Vec<(u16, u64)> = calls.iter().map(|call| (call.hctx, call.sector)).collect();
    assert_eq!(order, [(0, 400), (1, 200), (1, 500), (3, 100), (3, 300)], "in order inside each queue");
    assert_eq!(calls.iter().map(|call| call.last).collect::<Vec<_>>(), [true, false, true, false, true]);
    bench.drain();
}

#[test]
fn requeued_requests_are_inserted_at_the_head_and_those_with_driver_data_skip_the_scheduler() {
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = Bench::new(Kernel::V6_18, scheduler);
        bench.submit_all([read(100), read(200), read(300)]);
        bench.queue.set_quiesced(true);
        bench.submit(read(50));
        for sector in [100, 200, 300] {
            let mut rq = bench.take(sector);
            if sector == 300 {
                rq.marks.set(Marks::DONTPREP);
            }
            bench.call(|queue, cx, _| queue.requeue(cx, rq));
        }
        bench.forget();
        assert_eq!(bench.asked(), ["kick", "kick", "kick"], "{scheduler}");
        bench.call(|queue, cx, _| queue.kick_requeue(cx));
        assert_eq!(bench.events(), "I100 I200", "{scheduler}");
        assert_eq!(bench.asked(), ["run all"], "{scheduler}");
        bench.queue.set_quiesced(false);
        bench.run(0);
        assert_eq!(bench.issued(), [300, 200, 100, 50], "{scheduler}");
        bench.drain();
    }
}

#[test]
fn a_requeued_request_gives_its_driver_tag_back_if_it_has_a_scheduler_tag() {
    for (scheduler, tags) in [("none", 1), ("mq-deadline", 0)] {
        let mut bench = Bench::new(Kernel::V6_18, scheduler);
        bench.submit(read(8));
        let rq = bench.take(8);
        bench.call(|queue, cx, _| queue.requeue(cx, rq));
        assert_eq!(bench.queue.driver_tags_in_use(), tags, "{scheduler}");
        assert_eq!(bench.letters().chars().last(), Some('R'), "{scheduler}");
        bench.drain();
        assert_eq!(bench.ended, [(8, Status::Ok)], "{scheduler}");
    }
}

/// The hardware queues that a "run all" on this CPU runs.
fn run_by_all(bench: &Bench, cpu: u32) -> Vec<u16> {
    let all = 0..bench.queue.hw_queues();
    all.filter(|&hctx| bench.queue.is_run_by_run_all(CpuId(cpu), HctxId(hctx))).collect()
}

#[test]
fn run_all_runs_this_cpus_queue_and_those_with_a_dispatch_list() {
    let hctxs = |kernel, scheduler: &str| {
        let config = QueueConfig { cpus: 64, hw_queues: 64, ..config(kernel) };
        let mut bench = Bench::with(&config, scheduler);
        bench.plug();
        bench.on(9).submit(read(100));
        let mut list = bench.plug.take().unwrap().list;
        bench.hctx(9).append_to_dispatch_list(&NoMeter, &mut list, false);
        let all = run_by_all(&bench, 5);
        bench.run(9);
        assert_eq!(bench.issued(), [100], "a given queue runs");
        bench.drain();
        all
    };
    for kernel in [Kernel::V6_3, Kernel::V6_18] {
        assert_eq!(hctxs(kernel, "mq-deadline"), [5, 9], "{kernel}");
        for scheduler in ["none", "kyber"] {
            assert_eq!(hctxs(kernel, scheduler).len(), 64, "{kernel} {scheduler}");
        }
    }
    assert_eq!(hctxs(Kernel::V5_10, "mq-deadline").len(), 64, "before the rule");
}

#[test]
fn if_this_cpus_queue_is_stopped_all_others_run() {
    let config = QueueConfig { hw_queues: 4, ..config(Kernel::V6_18) };
    let bench = Bench::with(&config, "mq-deadline");
    bench.hctx(2).set_stopped(true);
    assert_eq!(run_by_all(&bench, 2), [0, 1, 3]);
    assert_eq!(run_by_all(&bench, 1), [1]);
}

#[test]
fn an_unplugged_insertion_is_marked_clock_ran_where_plugs_stop_the_clock() {
    for (kernel, ran) in [(Kernel::V4_12, false), (Kernel::V6_3, false), (Kernel::V6_18, false), (Kernel::V7_2, true)] {
        let mut bench = Bench::new(kernel, "mq-deadline");
        bench.submit(read(8));
        bench.work();
        assert_eq!(bench.driver.in_flight[0].marks.contains(Marks::CLOCK_RAN), ran, "{kernel}");
        bench.drain();
    }
}

#[test]
fn a_refusal_on_another_hardware_queue_ends_the_run_that_dispatched_it() {
    let mut bench = Bench::with(&QueueConfig { hw_queues: 4, ..config(Kernel::V6_18) }, "mq-deadline");
    bench.queue.set_quiesced(true);
    bench.on(1).submit_all([read(100), read(200)]);
    bench.queue.set_quiesced(false);
    // Batches are of one.
    (0..10).for_each(|_| bench.hctx(0).update_busy(true));
    bench.refuse([Some(Refusal::UntilCompletion)]);
    bench.on(0).run(0);
    assert_eq!(bench.issued(), [100]);
    bench.run(1);
    bench.drain();
}

/// Takes everything; in the middle of each call something comes into the dispatch list.
struct Interrupted<'a> {
    queue: &'a Queue<Local>,
    coming: VecDeque<Rq>,
    taken: VecDeque<Rq>,
}

impl Driver for Interrupted<'_> {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        if let Some(coming) = self.coming.pop_front() {
            self.queue.hctx(HctxId(0)).append_to_dispatch_list(&NoMeter, &mut VecDeque::from([coming]), false);
        }
        self.taken.push_back(rq);
        Answer::Queued
    }
}

#[test]
fn a_run_that_meets_new_requests_restarts_once_and_defers_to_a_worker() {
    for (coming, issued, asked) in [(1, vec![100, 300], vec![]), (2, vec![100, 300], vec!["run 0"])] {
        let mut bench = Bench::new(Kernel::V6_18, "none");
        bench.queue.set_quiesced(true);
        bench.submit(read(100));
        bench.plug();
        bench.submit_all([read(300), read(400)].into_iter().take(coming));
        bench.queue.set_quiesced(false);
        // One by one.
        bench.hctx(0).update_busy(true);
        let coming = bench.plug.take().unwrap().list;
        bench.asked();
        let mut driver = Interrupted { queue: &bench.queue, coming, taken: VecDeque::new() };
        let now = Hz(1000).now(bench.now);
        let mut cx: Cx<'_, (Interrupted<'_>, Letters)> =
            bench.caller.cx(now, bench.cpu, &mut driver, &mut bench.probe, &NoMeter);
        bench.queue.run_hctx(&mut cx, HctxId(0));
        bench.driver.in_flight = driver.taken;
        assert_eq!(bench.driver.in_flight.iter().map(|rq| rq.sector.0).collect::<Vec<_>>(), issued);
        assert_eq!(bench.asked(), asked);
        bench.run(0);
        bench.drain();
    }
}
