//! Slices: when they start, what they cost and what is left of them.
//!
//! Rules: CFQ-31, CFQ-32, CFQ-34, CFQ-36 to CFQ-39, CFQ-55.

use hoistway_blk::bio::PriorityClass;

use super::super::CfqEvent;
use super::super::queue::Slice;
use super::*;

#[test]
fn a_slice_that_overran_is_charged_no_more_than_its_length() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    bench.give_out();
    bench.now = 90 * MS;
    bench.queue_mut(1).slice = Some(Slice { start: 0, end: 10, allocated: 10 });
    bench.exit(1);
    let charge = |event: &CfqEvent| matches!(event, CfqEvent::SliceUsed { used: 10, charge: 10, .. });
    assert!(bench.events_of(1).iter().any(charge), "{:?}", bench.events_of(1));
}

#[test]
fn a_slice_starts_at_the_first_completion_not_at_dispatch() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    let rq = bench.pull().expect("a request");
    assert!(bench.queue(1).slice.is_none() && !bench.queue(1).slice_used(i64::MAX));
    bench.now = 50 * MS;
    bench.finish(rq);
    let slice = bench.queue(1).slice.expect("a slice");
    assert_eq!((slice.start / MS as i64, slice.end / MS as i64), (50, 150));
}

#[test]
fn a_turn_that_is_preempted_before_its_slice_has_started_leaves_a_full_slice() {
    let mut bench = Bench::new(1);
    bench.add(Job::new(1, 8));
    bench.run_until(0);
    bench.insert(one(2).class(PriorityClass::RealTime, 4));
    assert_eq!(bench.residuals(1), [100_000]);
    assert_eq!(bench.active(), None);
}

#[test]
fn a_turn_that_ends_right_after_its_first_completion_costs_next_to_nothing() {
    let mut bench = Bench::new(1);
    bench.add(one(1).class(PriorityClass::Idle, 0));
    bench.run_until(20 * MS);
    let used = |event: &CfqEvent| matches!(event, CfqEvent::SliceUsed { used: 0, charge: 0, .. });
    assert!(bench.events_of(1).iter().any(used), "{:?}", bench.events_of(1));
}

#[test]
fn an_async_turn_without_sync_rivals_is_charged_its_whole_slice() {
    let mut bench = Bench::new(31);
    bench.add(Job { count: 3, ..Job::new(1, 3).asynchronous() });
    bench.run_until(2 * MS);
    bench.insert(one(2));
    // The newcomer counts already: what was used is charged.
    let charges = |bench: &Bench| -> Vec<i64> {
        let charge = |event| if let CfqEvent::SliceUsed { charge, .. } = event { Some(charge) } else { None };
        bench.events_of(1).into_iter().filter_map(charge).collect()
    };
    assert_eq!(charges(&bench), [MS as i64 - 1]);
    let mut bench = Bench::new(31);
    bench.add(Job { count: 3, ..Job::new(1, 3).asynchronous() });
    bench.run_until(2 * MS);
    bench.exit(1);
    assert_eq!(charges(&bench), [40 * MS as i64]);
}
