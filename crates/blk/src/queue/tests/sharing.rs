//! BL-60, BL-61, BL-64, BL-65: driver tags that hardware queues or devices share.

use super::*;
use crate::tags::TagSet;

fn host_wide(kernel: Kernel) -> QueueConfig {
    QueueConfig { hw_queues: 4, queue_depth: 8, host_wide_tags: true, ..config(kernel) }
}

/// Submits reads far apart on the CPUs in turn until a submitter sleeps; returns how many requests exist then.
fn fill(bench: &mut Bench) -> usize {
    for n in 0.. {
        if bench.on(n % 4).submit_as(n, read(u64::from(n) * 1000)) == Submitted::Parked {
            break;
        }
        bench.work();
    }
    bench.queue.requests_in_use()
}

#[test]
fn host_wide_tags_bound_all_hardware_queues_together() {
    for (scheduler, requests) in [("none", 8), ("mq-deadline", 16), ("kyber", 16), ("bfq", 16)] {
        let mut bench = Bench::with(&host_wide(Kernel::V6_18), scheduler);
        assert_eq!(fill(&mut bench), requests, "{scheduler}");
        assert!(bench.queue.driver_tags_in_use() <= 8, "{scheduler}");
        let mut tags: Vec<_> = bench.driver.in_flight.iter().map(|rq| rq.driver_tag).collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), bench.driver.in_flight.len(), "{scheduler}: no tag is given twice");
        bench.drain();
    }
}

#[test]
fn before_5_14_each_hardware_queue_had_scheduler_tags_of_its_own_over_host_wide_driver_tags() {
    let slots = |kernel| {
        let queue = Queue::<Local>::new(&host_wide(kernel), "mq-deadline").unwrap();
        queue.during(CpuId(0), |queue| queue.state.pool.capacity())
    };
    assert_eq!((slots(Kernel::V5_10), slots(Kernel::V6_18)), (64, 16));
}

#[test]
fn a_hardware_queue_that_lacks_a_host_wide_tag_runs_when_another_frees_one() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 1, ..host_wide(Kernel::V6_18) }, "mq-deadline");
    bench.on(0).submit(read(8));
    bench.on(1).submit(read(1000));
    bench.work();
    assert_eq!(bench.issued(), [8], "the only tag is taken");
    bench.complete(8);
    let asked = bench.asked();
    assert!(asked.contains(&"run 1".into()), "{asked:?}");
    bench.run(1);
    assert_eq!(bench.issued(), [1000]);
    bench.drain();
}

/// Two devices of 16 tags behind one controller.
fn two(scheduler: &str) -> [Bench; 2] {
    let config = QueueConfig { queue_depth: 16, nr_requests: Some(64), ..config(Kernel::V6_18) };
    let config = if scheduler == "none" { QueueConfig { nr_requests: None, ..config } } else { config };
    let tags = TagSet::shared(config.tag_layout());
    [(); 2].map(|()| Bench::around(Queue::with_shared_tags(&config, scheduler, &tags).unwrap()))
}

/// Has a device send a number of reads; returns how many got there.
fn send(bench: &mut Bench, reads: u64) -> usize {
    for n in 0..reads {
        bench.submit_as(n as u32, read(n * 1000));
    }
    bench.work();
    bench.driver.in_flight.len()
}

#[test]
fn a_queue_has_its_share_of_a_shared_tag_set_once_another_is_active() {
    for scheduler in ["none", "mq-deadline"] {
        let [mut first, mut second] = two(scheduler);
        assert_eq!(send(&mut first, 32), 16, "{scheduler}: alone it has all");
        first.complete_all();
        first.asked();
        assert_eq!(send(&mut second, 1), 1, "{scheduler}");
        let [mut first, mut second] = two(scheduler);
        send(&mut second, 1);
        assert_eq!(send(&mut first, 32), 8, "{scheduler}: half of 16");
        assert_eq!(send(&mut second, 32), 8, "{scheduler}: the other half");
    }
}

#[test]
fn a_share_is_at_least_four() {
    let config = QueueConfig { queue_depth: 8, ..config(Kernel::V6_18) };
    let tags = TagSet::shared(config.tag_layout());
    let mut benches: Vec<_> =
        (0..4).map(|_| Bench::around(Queue::with_shared_tags(&config, "none", &tags).unwrap())).collect();
    for bench in &mut benches {
        bench.submit(read(8));
        bench.complete(8);
        bench.asked();
    }
    assert_eq!(send(&mut benches[0], 32), 4, "and not a quarter of 8");
}

#[test]
fn a_queue_that_a_scan_finds_idle_leaves_its_share_to_the_others() {
    let [mut first, mut second] = two("mq-deadline");
    second.submit(read(8));
    second.work();
    second.complete(8);
    second.asked();
    second.call(|queue, cx, _| queue.scan_timeouts(cx));
    assert_eq!(send(&mut first, 32), 16);
}

#[test]
fn a_queue_that_goes_away_leaves_its_share_to_the_others() {
    let [mut first, mut second] = two("mq-deadline");
    second.submit(read(8));
    second.drain();
    drop(second);
    assert_eq!(send(&mut first, 32), 16);
}

#[test]
fn a_freed_tag_wakes_the_hardware_queue_of_another_device() {
    let config = QueueConfig { queue_depth: 1, nr_requests: Some(8), ..config(Kernel::V6_18) };
    let tags = TagSet::shared(config.tag_layout());
    let mut first = Bench::around(Queue::with_shared_tags(&config, "mq-deadline", &tags).unwrap());
    let mut second = Bench::around(Queue::with_shared_tags(&config, "mq-deadline", &tags).unwrap());
    first.submit(read(8));
    second.submit(read(1000));
    second.work();
    assert_eq!((first.issued().len(), second.issued().len()), (1, 0));
    first.complete(8);
    let asked = first.asked();
    assert!(asked.contains(&"run 0 of 1".into()), "{asked:?}");
    second.run(0);
    assert_eq!(second.issued(), [1000]);
    second.drain();
}

#[test]
fn a_queue_that_does_not_fit_a_tag_set_cannot_join_it() {
    let tags = TagSet::<Local>::shared(config(Kernel::V6_18).tag_layout());
    let deeper = QueueConfig { queue_depth: 64, ..config(Kernel::V6_18) };
    let Err(error) = Queue::with_shared_tags(&deeper, "none", &tags) else { panic!("it has other tags") };
    assert_eq!(error.to_string(), "queue_depth: 64 does not fit a tag set of 32");
}

#[test]
fn a_queue_joins_a_tag_set_of_its_layout_and_one_queue_fits_either() {
    for (hw_queues, host_wide_tags) in [(1, false), (1, true), (4, false), (4, true)] {
        let of = |host_wide_tags| QueueConfig { hw_queues, host_wide_tags, ..config(Kernel::V6_18) };
        let tags = TagSet::<Local>::shared(of(host_wide_tags).tag_layout());
        assert!(Queue::with_shared_tags(&of(host_wide_tags), "none", &tags).is_ok(), "{hw_queues} {host_wide_tags}");
        assert_eq!(Queue::with_shared_tags(&of(!host_wide_tags), "none", &tags).is_ok(), hw_queues == 1);
    }
}

#[test]
fn the_only_queue_of_a_shared_tag_set_waits_for_its_own_completions() {
    let config = QueueConfig { queue_depth: 1, nr_requests: Some(8), ..config(Kernel::V6_18) };
    let tags = TagSet::shared(config.tag_layout());
    let mut alone = Bench::around(Queue::with_shared_tags(&config, "mq-deadline", &tags).unwrap());
    alone.submit_all([read(8), read(1000)]);
    alone.work();
    assert_eq!(alone.issued(), [8]);
    alone.forget();
    alone.complete(8);
    assert_eq!(alone.asked(), ["end 8", "run 0"], "it is in no line, in which the tag would be passed on");
    alone.run(0);
    alone.drain();
}
