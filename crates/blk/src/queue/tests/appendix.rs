//! Whole ways of requests, without flushes and without a second queue.

use super::*;

#[test]
fn a1_without_a_scheduler_one_bio_goes_straight_to_the_driver() {
    for kernel in [Kernel::V6_12, Kernel::V6_18] {
        let mut bench = Bench::new(kernel, "none");
        bench.submit(read(8));
        bench.complete(8);
        assert_eq!(bench.letters(), "Q G P U1 D C", "{kernel}");
        assert_eq!(bench.asked(), ["end 8"], "{kernel}");
        bench.drain();
    }
}

#[test]
fn a1_in_4_12_an_unplugged_sync_bio_is_issued_directly_on_many_queues_only() {
    let many = QueueConfig { hw_queues: 4, ..config(Kernel::V4_12) };
    let mut bench = Bench::with(&many, "none");
    bench.submit(read(8));
    assert_eq!(bench.letters(), "Q G D");
    bench.submit(write(80));
    assert_eq!(bench.letters(), "Q G I", "async");
    assert_eq!(bench.asked(), ["run 0"]);
    let mut bench = Bench::new(Kernel::V4_12, "none");
    bench.submit(read(8));
    assert_eq!(bench.letters(), "Q G I", "one hardware queue");
    assert_eq!(bench.asked(), ["run 0"], "a worker issues it");
    bench.run(0);
    assert_eq!(bench.letters(), "D");
}

#[test]
fn a1_in_4_12_a_plug_is_flushed_into_the_software_queue_and_run_by_the_submitter() {
    let many = QueueConfig { hw_queues: 4, ..config(Kernel::V4_12) };
    for config in [config(Kernel::V4_12), many] {
        let mut bench = Bench::with(&config, "none");
        bench.plug();
        bench.submit(write(8));
        bench.unplug();
        assert_eq!(bench.letters(), "Q G P U1 I D");
        assert!(bench.asked().is_empty());
    }
}

#[test]
fn a2_with_mq_deadline_a_bio_is_inserted_and_dispatched_by_its_submitter() {
    for kernel in [Kernel::V6_12, Kernel::V6_18] {
        let mut bench = Bench::new(kernel, "mq-deadline");
        bench.submit(read(8));
        bench.complete(8);
        assert_eq!(bench.letters(), "Q G P U1 I D C", "{kernel}");
    }
    for kernel in [Kernel::V4_12, Kernel::V4_19, Kernel::V5_10] {
        let mut bench = Bench::new(kernel, "mq-deadline");
        bench.plug();
        bench.submit(read(8));
        bench.unplug();
        assert_eq!(bench.letters(), "Q G P U1 I D", "{kernel}: plugged by the system call");
    }
}

#[test]
fn a2_in_6_3_an_unplugged_bio_is_dispatched_by_a_worker() {
    let mut bench = Bench::new(Kernel::V6_3, "mq-deadline");
    bench.submit(read(8));
    assert_eq!(bench.letters(), "Q G I");
    assert_eq!(bench.asked(), ["run 0"]);
    bench.run(0);
    assert_eq!(bench.letters(), "D");
}

#[test]
fn a3_with_the_budget_used_up_a_run_ends_with_an_empty_batch_and_no_delayed_run() {
    let mut bench = Bench::new(Kernel::V6_12, "mq-deadline");
    bench.occupy(32);
    bench.driver.budget = Some(0);
    bench.submit(read(8));
    assert_eq!(bench.letters(), "Q G P U1 I");
    assert!(bench.asked().is_empty(), "no kick in 3 ms");
    bench.complete(1_000_000);
    assert_eq!(bench.asked(), ["end 1000000"]);
    bench.driver.budget = Some(1);
    bench.run(0);
    assert_eq!(bench.letters(), "C D");
}

#[test]
fn a4_with_all_driver_tags_taken_one_request_waits_outside_of_the_scheduler() {
    for kernel in [Kernel::V6_3, Kernel::V6_12, Kernel::V6_18] {
        let mut bench = Bench::with(&QueueConfig { queue_depth: 4, ..config(kernel) }, "mq-deadline");
        bench.occupy(4);
        bench.submit_all([read(300), read(200), read(100)]);
        bench.work();
        assert_eq!(bench.queue.driver_tags_in_use(), 4, "{kernel}");
        assert!(bench.hctx(0).has_dispatch_list() && bench.hctx(0).wants_restart(), "{kernel}");
        assert!(bench.hctx(0).busy() > 0, "{kernel}");
        bench.forget();
        let busy = bench.hctx(0).busy();
        bench.complete(1_000_000);
        assert_eq!(bench.asked(), ["end 1000000", "run 0"], "{kernel}");
        assert!(!bench.hctx(0).wants_restart(), "{kernel}: the mark is cleared");
        bench.run(0);
        assert_eq!(bench.issued(), [300], "{kernel}: the left-over goes first, whatever the sweep would say");
        assert!(
            bench.hctx(0).wants_restart() && bench.hctx(0).has_dispatch_list(),
            "{kernel}: the next one takes its place"
        );
        let after_success = 7 * busy / 8;
        assert_eq!(bench.hctx(0).busy(), (7 * after_success + 16) / 8, "{kernel}");
        bench.drain();
    }
}

#[test]
fn a4_the_first_request_on_the_dispatch_list_sets_the_busy_average_to_2() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 4, ..config(Kernel::V6_12) }, "mq-deadline");
    bench.occupy(4);
    assert_eq!(bench.hctx(0).busy(), 0);
    bench.submit(read(8));
    assert_eq!(bench.hctx(0).busy(), 2);
    assert!(bench.asked().is_empty(), "the mark is enough");
}

#[test]
fn a_direct_issue_that_is_refused_counts_as_busy() {
    for (answer, busy) in [(None, 0), (Some(Refusal::Busy), 7 * 2 / 8)] {
        let mut bench = Bench::new(Kernel::V6_12, "none");
        bench.refuse([answer]);
        bench.submit(read(8));
        bench.work();
        assert_eq!(bench.hctx(0).busy(), busy, "2 for the refusal, which the run after it makes less");
        bench.drain();
    }
}

#[test]
fn a5_without_a_scheduler_a_submitter_sleeps_while_all_tags_are_taken() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 8, ..config(Kernel::V6_12) }, "none");
    bench.occupy(8);
    assert_eq!(bench.submit_as(7, read(8)), Submitted::Parked);
    assert_eq!(bench.letters(), "Q", "no request exists");
    assert_eq!(bench.queue.requests_in_use(), 8);
    bench.complete(1_000_000);
    assert_eq!(bench.asked(), ["end 1000000", "wake 7"]);
    let submission = bench.parked.remove(&7).unwrap();
    assert_eq!(bench.make_progress(7, submission), Submitted::Done);
    assert_eq!(bench.letters(), "C G P U1 D");
    bench.drain();
}

#[test]
fn a5_sleepers_are_woken_in_batches_of_8() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 64, ..config(Kernel::V6_12) }, "none");
    bench.occupy(64);
    for waiter in 0..16 {
        assert_eq!(bench.submit_as(waiter, read(u64::from(waiter) * 100)), Submitted::Parked);
    }
    let mut woken = Vec::new();
    for n in 0..16 {
        bench.complete(1_000_000 + n * 1000);
        let wakes = bench.asked().into_iter().filter(|effect| effect.starts_with("wake")).count();
        woken.push(wakes);
    }
    let expected: Vec<usize> = (1..=16).map(|freed| if freed % 8 == 0 { 8 } else { 0 }).collect();
    assert_eq!(woken, expected);
}

#[test]
fn a6_sequential_writes_in_a_plug_become_one_request() {
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = Bench::new(Kernel::V6_12, scheduler);
        bench.plug();
        bench.submit_all((0..8).map(|n| write(n * 8)));
        bench.unplug();
        let insertion = if scheduler == "none" { "" } else { "I " };
        assert_eq!(bench.letters(), format!("Q G P{} U1 {insertion}D", " Q M".repeat(7)));
        assert_eq!(bench.calls()[0].sectors, 64);
    }
}

#[test]
fn a6_with_nomerges_2_they_stay_apart() {
    let mut bench = Bench::with(&QueueConfig { merging: Merging::Off, ..config(Kernel::V6_18) }, "none");
    bench.plug();
    bench.submit_all((0..8).map(|n| write(n * 8)));
    bench.unplug();
    assert_eq!(bench.letters(), format!("Q G P{} U8{}", " Q G".repeat(7), " D".repeat(8)));
}

#[test]
fn a6_two_interleaved_streams_merge_in_the_plug_up_to_5_15_and_later_only_at_insertion() {
    let streams = || (0..4).flat_map(|n| [write(n * 8), write(1000 + n * 8)]);
    let requests = |kernel, scheduler| {
        let mut bench = Bench::new(kernel, scheduler);
        bench.plug();
        bench.submit_all(streams());
        let plugged = bench.plug.as_ref().unwrap().len();
        bench.unplug();
        (plugged, bench.calls().len())
    };
    assert_eq!(requests(Kernel::V5_10, "none"), (2, 2));
    assert_eq!(requests(Kernel::V5_10, "mq-deadline"), (2, 2));
    for kernel in [Kernel::V6_3, Kernel::V6_12, Kernel::V6_18] {
        assert_eq!(requests(kernel, "none"), (8, 8), "{kernel}");
        assert_eq!(requests(kernel, "mq-deadline"), (8, 2), "{kernel}");
    }
}

#[test]
fn a7_a_plug_without_a_scheduler_is_issued_in_reverse_from_5_16_to_6_12_0() {
    let order = |kernel, scheduler| {
        let mut bench = Bench::new(kernel, scheduler);
        bench.plug();
        bench.submit_all([read(0), read(1000), read(2000)]);
        bench.unplug();
        bench.issued()
    };
    assert_eq!(order(Kernel::V6_3, "none"), [2000, 1000, 0]);
    assert_eq!(order(Kernel::release(6, 12, 0), "none"), [2000, 1000, 0]);
    assert_eq!(order(Kernel::V6_12, "none"), [0, 1000, 2000], "as in the stable releases of the series");
    assert_eq!(order(Kernel::V6_18, "none"), [0, 1000, 2000]);
    for kernel in Kernel::EXAMPLES {
        assert_eq!(order(kernel, "mq-deadline"), [0, 1000, 2000], "{kernel}");
    }
}

#[test]
fn a10_the_busy_average_depends_on_requests_in_the_dispatch_list() {
    let mut bench = Bench::new(Kernel::V6_12, "mq-deadline");
    bench.refuse([Some(Refusal::Busy); 3]);
    bench.submit(read(8));
    let mut averages = vec![bench.hctx(0).busy()];
    for _ in 0..2 {
        bench.run(0);
        averages.push(bench.hctx(0).busy());
    }
    for n in 0..5 {
        // The first run sends the left-over, the others a new request each.
        if n > 0 {
            bench.submit(read(n * 1000));
        } else {
            bench.run(0);
        }
        averages.push(bench.hctx(0).busy());
    }
    assert_eq!(averages, [2, 3, 4, 3, 2, 1, 0, 0]);
}
