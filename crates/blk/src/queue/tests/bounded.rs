//! K2-4 to K2-9 and K2-12 with the queue around the policy: what counts as at the device, and what runs the queues again.

use super::*;

fn bounded(bound: u32, hw_queues: u16) -> Bench {
    let mut bench = Bench::with(&QueueConfig { hw_queues, ..config(Kernel::V6_18) }, "k2");
    bench.set("max_inflight", &bound.to_string());
    bench
}

fn real_time(level: u8, sector: u64) -> Bio {
    Bio { ioprio: IoPriority::new(PriorityClass::RealTime, level), ..read(sector) }
}

#[test]
fn the_bound_holds_across_hardware_queues_and_each_completion_lets_the_most_urgent_go() {
    let mut bench = bounded(3, 4);
    for n in 0..8 {
        bench.on(n % 4).submit(read(u64::from(n) * 1000));
        bench.work();
    }
    assert_eq!(bench.issued(), [0, 1000, 2000]);
    bench.on(3).submit(real_time(2, 90_000));
    bench.on(1).submit(real_time(0, 91_000));
    bench.work();
    assert!(bench.issued().is_empty());
    for (ended, next) in [(1000, 91_000), (0, 90_000), (91_000, 3000)] {
        bench.complete(ended);
        bench.work();
        assert_eq!(bench.issued(), [next]);
        assert_eq!(bench.driver.in_flight.len(), 3);
    }
    bench.drain();
}

#[test]
fn a_raised_bound_runs_the_queues_although_every_submitter_sleeps() {
    let mut bench = Bench::with(&QueueConfig { nr_requests: Some(4), ..config(Kernel::V6_18) }, "k2");
    bench.set("max_inflight", "1");
    for n in 0..8 {
        bench.submit_as(n, read(u64::from(n) * 1000));
        bench.work();
    }
    assert_eq!((bench.issued(), bench.parked.len()), (vec![0], 4));
    bench.set("max_inflight", "3");
    bench.work();
    assert_eq!(bench.issued(), [1000, 2000]);
    bench.drain();
    assert_eq!(bench.ended.len(), 8);
}

#[test]
fn requests_that_bypass_the_scheduler_do_not_count_toward_its_bound() {
    let limits = Limits { write_cache: true, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..config(Kernel::V6_18) }, "k2");
    bench.set("max_inflight", "1");
    bench.submit(Bio { flags: BioFlags::PREFLUSH, ..Bio::new(Op::Write, Sector(0), 0) });
    bench.work();
    assert_eq!(bench.driver.in_flight.iter().map(|rq| rq.op).collect::<Vec<_>>(), [Op::Flush]);
    bench.forget();
    bench.submit_all([read(1000), read(2000)]);
    bench.work();
    assert_eq!(bench.issued(), [1000], "the flush has taken no place");
    let flush = bench.driver.in_flight.pop_front().expect("the flush is the oldest");
    bench.call(|queue, cx, _| queue.complete(cx, flush, Status::Ok));
    bench.work();
    assert!(bench.issued().is_empty(), "nor has it freed one");
    bench.complete(1000);
    bench.work();
    assert_eq!(bench.issued(), [2000]);
    bench.drain();
}

#[test]
fn before_a_change_of_scheduler_levels_drain_first_and_the_common_list_last() {
    let mut bench = bounded(1, 1);
    bench.submit_all([read(1), read(1000), real_time(7, 2000), read(3000), real_time(0, 4000), real_time(7, 5000)]);
    bench.work();
    bench.call(|queue, cx, _| queue.freeze(cx));
    bench.drain();
    assert_eq!(bench.issued(), [1, 4000, 2000, 5000, 1000, 3000]);
    let Bench { queue, caller, .. } = &mut bench;
    queue.set_attribute(Now::default(), "scheduler", "none", &mut caller.effects).expect("it is frozen and empty");
    assert!(!queue.attribute("scheduler").unwrap().contains("k2"), "no kernel lists it");
    queue.set_attribute(Now::default(), "scheduler", "k2", &mut caller.effects).expect("it can be written");
    assert!(queue.attribute("scheduler").unwrap().contains("[k2]"));
    bench.call(|queue, cx, _| queue.unfreeze(cx));
    bench.submit(read(6000));
    bench.drain();
    assert_eq!(bench.ended.len(), 7);
}

#[test]
fn a_request_that_the_driver_gives_back_is_counted_once_and_goes_first() {
    let mut bench = bounded(2, 1);
    bench.submit_all([read(0), read(1000), read(2000)]);
    bench.work();
    bench.forget();
    bench.submit(real_time(0, 3000));
    let rq = bench.take(1000);
    bench.call(|queue, cx, _| queue.requeue(cx, rq));
    bench.work();
    assert_eq!(bench.issued(), [1000]);
    bench.complete(0);
    bench.work();
    assert_eq!(bench.issued(), [3000]);
    bench.drain();
    assert_eq!(bench.ended.len(), 4);
}
