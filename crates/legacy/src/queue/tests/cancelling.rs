//! Tasks that depart while they sleep for a request.

use super::*;

/// The task departs; returns the first sector and the length of what it gets back.
fn depart(bench: &mut Bench, task: u32) -> Option<(u64, u32)> {
    let mut submission = bench.parked.remove(&task).expect("it waits");
    let bio = bench.call(|queue, cx, _| queue.cancel(cx, &mut submission));
    assert_eq!(bench.call(|queue, cx, _| queue.submit(cx, &mut submission, None)), Submitted::Done, "nothing is left");
    bio.map(|bio| (bio.sector.0, bio.sectors))
}

/// Four requests, all that there may be, each of a task of its own, and the tasks 5 and 6 that sleep for another.
fn full(scheduler: &str) -> Bench {
    let mut bench = Bench::with(LegacyConfig { nr_requests: 4, ..config(Kernel::V4_12) }, scheduler);
    bench.queue.set_stopped(true);
    for task in 1..=6 {
        let submitted = bench.submit_as(task, bio(&format!("R{}", 1000 * task)));
        assert_eq!(submitted == Submitted::Parked, task > 4, "{scheduler}: task {task}");
    }
    bench.take_effects();
    bench.queue.set_stopped(false);
    bench
}

#[test]
fn a_sleeper_that_departs_after_its_wake_up_wakes_the_next_one_and_one_that_departs_before_it_does_not() {
    let mut bench = full("noop");
    bench.run();
    bench.complete_oldest();
    assert_eq!(bench.take_effects(), "wake 5");
    assert_eq!(depart(&mut bench, 5), Some((5000, 8)));
    assert_eq!(bench.take_effects(), "wake 6");

    let mut bench = full("noop");
    assert_eq!(depart(&mut bench, 5), Some((5000, 8)));
    assert_eq!(bench.take_effects(), "");
    bench.run();
    bench.complete_oldest();
    assert_eq!(bench.take_effects(), "wake 6");
}

#[test]
fn a_change_of_the_scheduler_ends_after_a_departure_under_every_scheduler() {
    for scheduler in LEGACY_SCHEDULERS {
        let mut bench = full(scheduler);
        depart(&mut bench, 5);
        let mut step = bench.call(|queue, cx, _| queue.begin_switch(cx));
        while step == hoistway_blk::queue::Step::More && !bench.driver.in_flight.is_empty() {
            bench.complete_oldest();
            if bench.parked.contains_key(&6) {
                depart(&mut bench, 6);
            }
            step = bench.call(|queue, cx, _| queue.poll_switch(cx));
        }
        assert_eq!(step, hoistway_blk::queue::Step::Done, "{scheduler}");
        bench.call(|queue, cx, _| queue.end_switch(cx, None));
        bench.assert_empty();
    }
}

#[test]
fn the_rest_of_a_partly_submitted_bio_comes_back_in_one_piece() {
    let limits = Limits { max_sectors: 8, ..Limits::default() };
    let mut bench = Bench::with(LegacyConfig { nr_requests: 4, limits, ..config(Kernel::V4_12) }, "noop");
    bench.queue.set_stopped(true);
    for task in 1..=3 {
        bench.submit_as(task, bio(&format!("R{}", 1000 * task)));
    }
    // Its first part fills the list, and lets it go on with a burst: the second class of limits stops it.
    assert_eq!(bench.submit_as(4, bio("R0+60")), Submitted::Parked);
    assert_eq!(depart(&mut bench, 4), Some((24, 36)));
    bench.serve();
    bench.assert_empty();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "submission of waiter 5 is dropped")]
fn a_submission_that_is_dropped_while_it_sleeps_is_reported() {
    full("noop").parked.retain(|&task, _| task != 5);
}
