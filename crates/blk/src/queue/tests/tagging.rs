//! BL-49, BL-50, BL-53 to BL-55, BL-57, BL-58, BL-60 to BL-63: hardware queues, depths and waiting for tags.

use super::*;

fn depth(queue_depth: u32) -> QueueConfig {
    QueueConfig { queue_depth, ..config(Kernel::V6_18) }
}

/// How many requests come into being before a submitter sleeps.
fn requests_before_sleep(bench: &mut Bench, mut bio: impl FnMut(u64) -> Bio) -> usize {
    for n in 0.. {
        if bench.submit_as(1, bio(n * 1000)) == Submitted::Parked {
            break;
        }
    }
    bench.queue.requests_in_use()
}

#[test]
fn a_request_keeps_its_queues_when_its_task_migrates() {
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = Bench::with(&QueueConfig { hw_queues: 4, ..depth(32) }, scheduler);
        bench.plug();
        bench.on(1).submit(read(8));
        bench.on(3).unplug();
        bench.work();
        assert_eq!(bench.calls()[0].hctx, 1, "{scheduler}");
        assert_eq!(bench.driver.in_flight[0].ctx, CpuId(1), "{scheduler}");
        bench.drain();
    }
}

#[test]
fn more_hardware_queues_than_cpus_are_reduced_to_the_cpus() {
    let queue: Queue<Local> = Queue::new(&QueueConfig { hw_queues: 64, ..depth(32) }, "none").unwrap();
    assert_eq!(queue.hw_queues(), 4);
    let queue: Queue<Local> = Queue::new(&QueueConfig { hw_queues: 2, ..depth(32) }, "none").unwrap();
    let hctxs = [0, 1, 2, 3].map(|cpu| queue.hctx_of(CpuId(cpu)).0);
    assert_eq!(hctxs, [0, 0, 1, 1], "each serves neighbouring CPUs");
}

#[test]
fn requests_are_bounded_by_queue_depth_or_nr_requests_and_those_at_the_driver_by_queue_depth() {
    for (scheduler, requests) in [("none", 8), ("mq-deadline", 16)] {
        let mut bench = Bench::with(&depth(8), scheduler);
        assert_eq!(requests_before_sleep(&mut bench, read), requests, "{scheduler}");
        assert_eq!((bench.driver.in_flight.len(), bench.queue.driver_tags_in_use()), (8, 8), "{scheduler}");
        bench.drain();
    }
}

#[test]
fn a_scheduler_gets_twice_the_queue_depth_of_at_most_128() {
    for (queue_depth, none, scheduler) in [(31, 31, 62), (32, 32, 64), (128, 128, 256), (1023, 1023, 256)] {
        let nr_requests = |name: &str| Queue::<Local>::new(&depth(queue_depth), name).unwrap().nr_requests();
        assert_eq!((nr_requests("none"), nr_requests("mq-deadline")), (none, scheduler));
    }
}

#[test]
fn nr_requests_is_raised_to_4_and_bounded_by_the_device_or_by_2048() {
    let nr_requests = |nr, scheduler: &str| {
        let config = QueueConfig { nr_requests: Some(nr), ..depth(128) };
        Queue::<Local>::new(&config, scheduler).map(|queue| queue.nr_requests()).ok()
    };
    assert_eq!((nr_requests(1, "none"), nr_requests(1, "mq-deadline")), (Some(4), Some(4)));
    assert_eq!((nr_requests(128, "none"), nr_requests(129, "none")), (Some(128), None));
    assert_eq!((nr_requests(2048, "mq-deadline"), nr_requests(2049, "mq-deadline")), (Some(2048), None));
}

#[test]
fn a_shallow_depth_of_10_admits_40_of_256_by_word_and_10_by_map() {
    for (kernel, admitted) in [(Kernel::V6_3, 40), (Kernel::V6_18, 10)] {
        let mut bench = Bench::with(&QueueConfig { queue_depth: 128, ..config(kernel) }, "mq-deadline");
        bench.set("async_depth", "10");
        assert_eq!(requests_before_sleep(&mut bench, write), admitted, "{kernel}");
        assert_eq!(bench.submit_as(2, read(1)), Submitted::Done, "{kernel}: sync reads go on");
        bench.drain();
    }
}

#[test]
fn a_sleeper_keeps_the_depth_limit_it_had_when_it_fell_asleep() {
    let mut bench = Bench::with(&QueueConfig { nr_requests: Some(8), ..depth(8) }, "mq-deadline");
    bench.set("async_depth", "2");
    bench.submit_all([write(1000), write(2000), read(3000), read(4000)]);
    assert_eq!(bench.submit_as(1, write(5000)), Submitted::Parked, "two writes have tags");
    bench.set("async_depth", "8");
    bench.complete(3000);
    let submission = bench.parked.remove(&1).expect("it sleeps");
    assert_eq!(bench.make_progress(1, submission), Submitted::Parked, "it may use two, the limit when it came");
    assert_eq!(bench.submit_as(2, write(6000)), Submitted::Done, "one that comes now gets the new limit");
    bench.complete(1000);
    bench.complete(2000);
    let submission = bench.parked.remove(&1).expect("it sleeps");
    assert_eq!(bench.make_progress(1, submission), Submitted::Done);
    // The next bio of the same submitter asks anew.
    bench.submit_all([write(7000), write(8000)]);
    bench.drain();
}

#[test]
fn sleepers_are_woken_one_wait_queue_after_the_other() {
    let mut bench = Bench::with(&depth(16), "none");
    bench.occupy(16);
    for waiter in 0..10 {
        bench.submit_as(waiter, read(u64::from(waiter) * 100));
    }
    bench.complete_all();
    let wakes: Vec<String> = bench.asked().into_iter().filter(|effect| effect.starts_with("wake")).collect();
    // Two at a time; the first two wait queues hold 0, 8 and 1, 9.
    let expected = [0, 8, 1, 9, 2, 3, 4, 5, 6, 7].map(|waiter| format!("wake {waiter}"));
    assert_eq!(wakes, expected);
}

#[test]
fn a_woken_sleeper_has_its_turn_at_the_wait_queues_even_if_it_finds_a_tag() {
    let mut bench = Bench::with(&depth(4), "none");
    bench.occupy(4);
    assert_eq!(bench.submit_as(1, read(100)), Submitted::Parked);
    bench.complete(1_000_000);
    assert_eq!(bench.asked(), ["end 1000000", "wake 1"]);
    let submission = bench.parked.remove(&1).expect("it sleeps");
    assert_eq!(bench.make_progress(1, submission), Submitted::Done, "it finds the tag");
    for waiter in 2..10 {
        assert_eq!(bench.submit_as(waiter, read(u64::from(waiter) * 100)), Submitted::Parked);
    }
    (1..4).for_each(|n| bench.complete(1_000_000 + n * 1000));
    let wakes: Vec<String> = bench.asked().into_iter().filter(|effect| effect.starts_with("wake")).collect();
    // It was in queue 0 and had another turn at 1: these are in 2 to 7, 0 and 1, and 1 is the next to be woken.
    assert_eq!(wakes, ["wake 9", "wake 2", "wake 3"]);
}

#[test]
fn an_allocation_that_would_sleep_runs_its_hardware_queue_first() {
    let mut bench = Bench::with(&QueueConfig { nr_requests: Some(4), ..depth(8) }, "mq-deadline");
    bench.queue.set_quiesced(true);
    assert_eq!(requests_before_sleep(&mut bench, read), 4);
    assert!(bench.issued().is_empty());
    bench.queue.set_quiesced(false);
    // The queue is not empty: the allocation dispatches, although it gets no tag by it.
    assert_eq!(bench.submit_as(2, read(1)), Submitted::Parked);
    assert_eq!(bench.issued().len(), 4);
    bench.drain();
}

#[test]
fn the_plug_is_flushed_before_its_task_sleeps() {
    let mut bench = Bench::with(&depth(4), "none");
    bench.plug();
    assert_eq!(requests_before_sleep(&mut bench, read), 4);
    assert!(bench.plug.as_ref().unwrap().is_empty());
    bench.work();
    assert_eq!(bench.issued().len(), 4);
    bench.complete_all();
    bench.work();
    bench.unplug();
    bench.drain();
}

#[test]
fn a_plug_clock_resumes_when_its_task_sleeps_even_if_empty() {
    let limits = Limits { write_cache: true, fua: false, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..depth(4) }, "none");
    bench.occupy(3);
    bench.plug();
    // It passes the plug by, and stops its clock.
    bench.submit_as(1, Bio { flags: BioFlags::PREFLUSH.with(BioFlags::SYNC), sectors: 0, ..write(0) });
    assert_eq!(bench.plug.as_ref().unwrap().len(), 0);
    assert!(bench.queue.generation().plug_stops_clock);
    assert_eq!(bench.submit_as(1, read(100)), Submitted::Parked);
    let generation = *bench.queue.generation();
    let later = generation.hz.now(Instant(1 << 40));
    assert_eq!(bench.plug.as_mut().unwrap().now(&generation, later).at, later.at);
    bench.complete_all();
    bench.work();
    bench.unplug();
    bench.drain();
}

#[test]
fn a_sleeper_that_is_woken_without_cause_keeps_one_place_in_line() {
    let mut bench = Bench::with(&depth(4), "none");
    bench.occupy(4);
    assert_eq!(bench.submit_as(1, read(100)), Submitted::Parked);
    assert_eq!(bench.submit_as(2, read(200)), Submitted::Parked);
    for _ in 0..3 {
        let submission = bench.parked.remove(&1).unwrap();
        assert_eq!(bench.make_progress(1, submission), Submitted::Parked, "still no tag");
    }
    bench.complete(1_000_000);
    bench.complete(1_001_000);
    let wakes: Vec<String> = bench.asked().into_iter().filter(|effect| effect.starts_with("wake")).collect();
    assert_eq!(wakes, ["wake 2", "wake 1"], "none is woken twice instead of another");
}

#[test]
fn a_sleeper_that_wakes_up_on_another_hardware_queue_passes_its_wake_up_on() {
    let mut bench = Bench::with(&QueueConfig { hw_queues: 2, ..depth(1) }, "none");
    bench.on(0).submit(read(1000));
    assert_eq!(bench.submit_as(1, read(100)), Submitted::Parked);
    assert_eq!(bench.submit_as(2, read(200)), Submitted::Parked);
    bench.complete(1000);
    assert_eq!(bench.asked(), ["end 1000", "wake 1"]);
    let submission = bench.parked.remove(&1).unwrap();
    assert_eq!(bench.on(3).make_progress(1, submission), Submitted::Done, "it has the other queue's tag");
    assert_eq!(bench.asked(), ["wake 2"], "for whom the freed tag is");
    let submission = bench.parked.remove(&2).unwrap();
    assert_eq!(bench.on(0).make_progress(2, submission), Submitted::Done);
    bench.drain();
}

#[test]
fn a_queue_that_cannot_be_made_says_why() {
    let error = |config: QueueConfig, scheduler: &str| match Queue::<Local>::new(&config, scheduler) {
        Ok(_) => panic!("it was made"),
        Err(error) => error.to_string(),
    };
    assert!(error(depth(32), "nonsense").contains("\"nonsense\""));
    assert!(error(depth(0), "none").contains("queue_depth: 0"));
    assert!(error(depth(10_241), "none").contains("10240"));
    assert!(error(QueueConfig { cpus: 0, ..depth(1) }, "none").contains("cpus: 0"));
    assert!(error(QueueConfig { hw_queues: 0, ..depth(1) }, "none").contains("hw_queues: 0"));
}

#[test]
fn the_old_name_deadline_selects_mq_deadline() {}
