//! `queue/async_depth` from 7.0 on, and what is limited by it (BL-66 to BL-70, KY-26, DD-7, BFQ-116, BFQ-117).

use super::*;
use crate::sysfs::AttributeError;

fn depth(queue_depth: u32) -> QueueConfig {
    QueueConfig { queue_depth, ..config(Kernel::V7_0) }
}

fn shown(queue: &Queue<Local>) -> u32 {
    queue.attribute("async_depth").unwrap().trim().parse().unwrap()
}

/// Changes the number of requests of an empty queue.
fn set_nr_requests(bench: &mut Bench, nr_requests: &str) {
    bench.call(|queue, cx, _| queue.freeze(cx));
    bench.queue.set_attribute(Now::default(), "nr_requests", nr_requests, &mut Effects::new()).unwrap();
    bench.call(|queue, cx, _| queue.unfreeze(cx));
}

/// How many bios get a tag before one must wait.
fn admitted(bench: &mut Bench, mut bio: impl FnMut(u64) -> Bio) -> usize {
    for n in 0.. {
        if bench.submit_as(n as u32, bio(n * 1000)) == Submitted::Parked {
            return n as usize;
        }
    }
    unreachable!("tags are finite")
}

fn sync_write(sector: u64) -> Bio {
    Bio { flags: BioFlags::SYNC, ..write(sector) }
}

#[test]
fn each_scheduler_sets_its_default_as_it_is_attached() {
    for (queue_depth, expected) in [
        (1, [1, 2, 1, 1]),
        (5, [5, 10, 7, 7]),
        (8, [8, 16, 12, 12]),
        (64, [64, 128, 96, 96]),
        (300, [300, 256, 192, 192]),
    ] {
        let defaults = SCHEDULERS.map(|name| shown(&Queue::<Local>::new(&depth(queue_depth), name).unwrap()));
        assert_eq!(defaults, expected, "a device of {queue_depth}");
        let mut queue = Queue::<Local>::new(&depth(queue_depth), "none").unwrap();
        for (name, expected) in SCHEDULERS.into_iter().zip(expected).rev() {
            Bench::around_nothing(&mut queue, name);
            assert_eq!(shown(&queue), expected, "a device of {queue_depth}, changed to {name}");
        }
    }
}

#[test]
fn releases_before_7_0_have_no_such_file_and_those_after_no_tunable_of_mq_deadline() {
    let old = Queue::<Local>::new(&config(Kernel::V6_18), "mq-deadline").unwrap();
    assert_eq!(old.attribute("async_depth"), Err(AttributeError::Unknown));
    assert_eq!(old.attribute("iosched/async_depth").unwrap(), "64\n");
    let new = Queue::<Local>::new(&depth(32), "mq-deadline").unwrap();
    assert_eq!(new.attribute("iosched/async_depth"), Err(AttributeError::Unknown));
    assert_eq!(new.attribute("iosched/prio_aging_expire").unwrap(), "10000\n");
    assert_eq!(new.attribute("async_depth").unwrap(), "64\n");
}

#[test]
fn a_written_async_depth_is_capped_at_nr_requests_and_garbage_refused() {
    let bench = Bench::with(&depth(64), "mq-deadline");
    let mut write = |text: &str| {
        let answer = bench.queue.set_attribute(Now::default(), "async_depth", text, &mut Effects::new());
        answer.map(|()| shown(&bench.queue))
    };
    assert_eq!(["40", " 7\n", "999999"].map(&mut write), [Ok(40), Ok(7), Ok(128)]);
    for refused in ["0", "-1", "x", "", "4294967296"] {
        assert_eq!(write(refused), Err(AttributeError::Invalid), "{refused:?}");
    }
    let none = Queue::<Local>::new(&depth(64), "none").unwrap();
    let refused = none.set_attribute(Now::default(), "async_depth", "10", &mut Effects::new());
    assert_eq!(refused, Err(AttributeError::Invalid), "without a scheduler");
}

#[test]
fn a_new_nr_requests_keeps_the_ratio_rounded_down_each_time_and_a_switch_sets_the_default() {
    let mut bench = Bench::with(&QueueConfig { nr_requests: Some(200), ..depth(64) }, "mq-deadline");
    bench.queue.set_async_depth("40").unwrap();
    let after = ["100", "7", "128"].map(|nr_requests| {
        set_nr_requests(&mut bench, nr_requests);
        shown(&bench.queue)
    });
    assert_eq!(after, [20, 1, 18]);
    Bench::around_nothing(&mut bench.queue, "kyber");
    assert_eq!(shown(&bench.queue), 96);
    let mut bench = Bench::with(&depth(64), "none");
    let after = ["32", "7", "16", "64"].map(|nr_requests| {
        set_nr_requests(&mut bench, nr_requests);
        shown(&bench.queue)
    });
    assert_eq!(after, [32, 7, 16, 64], "without a scheduler too");
    // As if it were written after a scheduler has been attached, which rounds twice.
    let wanted = |name| shown(&Queue::<Local>::new(&QueueConfig { nr_requests: Some(64), ..depth(1) }, name).unwrap());
    assert_eq!(["mq-deadline", "kyber", "bfq"].map(wanted), [64, 32, 32]);
}

#[test]
fn all_but_sync_reads_are_limited_by_every_scheduler() {
    for scheduler in ["mq-deadline", "kyber"] {
        let mut bench = Bench::with(&QueueConfig { nr_requests: Some(32), ..depth(2) }, scheduler);
        bench.queue.set_async_depth("6").unwrap();
        assert_eq!(admitted(&mut bench, sync_write), 6, "{scheduler}");
        for (_, mut submission) in std::mem::take(&mut bench.parked) {
            bench.call(|queue, cx, _| queue.cancel(cx, &mut submission));
        }
        assert_eq!(6 + admitted(&mut bench, |sector| read(sector + 8)), 32, "{scheduler}: reads may have all");
    }
    let mut old = Bench::with(&QueueConfig { nr_requests: Some(16), ..config(Kernel::V6_18) }, "kyber");
    assert_eq!(admitted(&mut old, sync_write), 16, "up to 6.18 kyber limits async requests only");
    let mut new = Bench::with(&depth(8), "kyber");
    assert_eq!(admitted(&mut new, sync_write), 12);
}

#[test]
fn bfq_limits_by_the_depth_that_it_found_until_something_is_written() {
    // A device with several hardware queues comes without a scheduler: bfq finds the depth of the driver.
    let several = QueueConfig { hw_queues: 2, nr_requests: None, ..depth(8) };
    for (config, found, after) in [(several, 8, 12), (depth(8), 16, 12)] {
        let mut bench = Bench::with(&config, "bfq");
        bench.set("low_latency", "0");
        assert_eq!(shown(&bench.queue), 12, "what the file says");
        assert_eq!(admitted(&mut bench, sync_write), found);
        let mut bench = Bench::with(&config, "bfq");
        bench.set("low_latency", "0");
        bench.queue.set_async_depth("12").unwrap();
        assert_eq!(admitted(&mut bench, sync_write), after);
    }
    // From mq-deadline with a limit of its own.
    let mut bench = Bench::with(&depth(8), "mq-deadline");
    bench.queue.set_async_depth("5").unwrap();
    Bench::around_nothing(&mut bench.queue, "bfq");
    bench.set("low_latency", "0");
    assert_eq!((shown(&bench.queue), admitted(&mut bench, sync_write)), (12, 5));
}

#[test]
fn sleepers_are_woken_in_batches_that_fit_the_depth() {
    let woken = |kernel| {
        let mut bench = Bench::with(&QueueConfig { queue_depth: 32, ..config(kernel) }, "mq-deadline");
        let taken = admitted(&mut bench, sync_write);
        for waiter in 100..120 {
            bench.submit_as(waiter, read(u64::from(waiter) * 1000));
        }
        bench.asked();
        (0..8).for_each(|n| bench.complete(n * 1000));
        (taken, bench.asked().iter().filter(|effect| effect.starts_with("wake")).count())
    };
    assert_eq!(woken(Kernel::V6_18), (64, 8), "one by one");
    assert_eq!(woken(Kernel::V7_0), (64, 8), "eight at once after eight");
}

#[test]
fn the_async_depth_that_is_written_is_that_of_the_queue() {
    let queue = Queue::<Local>::new(&depth(64), "mq-deadline").unwrap();
    queue.set_async_depth("40").unwrap();
    assert_eq!((queue.async_depth(), shown(&queue)), (40, 40));
}
