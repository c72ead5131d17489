//! The main decision: whether the active queue keeps the device.
//!
//! Rules: CFQ-34, CFQ-40 to CFQ-48, CFQ-64. Some of it no recording exercises.

use hoistway_blk::bio::PriorityClass;
use hoistway_blk::ground::{CgroupId, HctxId};
use hoistway_blk::policy::Scheduler;
use hoistway_blk::watch::Reason;

use super::super::queue::Slice;
use super::*;

#[test]
fn a_queue_that_must_be_served_is_served_though_its_slice_is_used_up() {
    for (must_dispatch, expected) in [(false, 2), (true, 1)] {
        let mut bench = Bench::new(31);
        for nth in 0..4 {
            bench.insert(Job { sector: 64 * nth, ..one(1) });
        }
        bench.insert(one(2));
        bench.give_out();
        bench.queue_mut(1).slice = Some(Slice { start: 0, end: 0, allocated: 1 });
        bench.queue_mut(1).must_dispatch = must_dispatch;
        bench.now = MS;
        assert_eq!(bench.pull().map(|rq| rq.io_context.0), Some(expected));
    }
}

#[test]
fn a_group_with_another_busy_queue_continues_with_that_one() {
    let mut bench = Bench::flash(31);
    bench.insert(one(1));
    bench.insert(one(2));
    assert_eq!([(); 2].map(|()| bench.pull().map(|rq| rq.io_context.0)), [Some(1), Some(2)]);
}

#[test]
fn class_idle_is_served_for_a_tick_at_a_time_and_a_group_that_empties_forgets_the_rest_of_its_workload() {
    let mut bench = Bench::new(31);
    bench.insert(one(1).class(PriorityClass::Idle, 0));
    bench.now = 3 * MS;
    bench.give_out();
    assert_eq!(bench.policy.serving.end, 7 * MS as i64);
    let mut bench = Bench::new(31);
    bench.insert(one(1));
    bench.give_out();
    bench.now = 3 * MS;
    bench.exit(1);
    assert_eq!(bench.policy.busy_queues, 0);
    assert!(bench.policy.groups[CgroupId::ROOT].saved.is_none());
}

#[test]
fn nothing_queued_holds_the_active_queue() {
    let mut bench = Bench::new(1);
    bench.add(Job { think: 5 * MS, ..Job::new(1, 1) });
    bench.run_until(MS);
    let choice = bench.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
    assert_eq!((choice.rq, bench.active()), (None, Some(1)));
}

#[test]
fn the_only_queue_of_a_group_may_finish_after_its_slice() {
    let mut bench = Bench::new(31);
    bench.add(Job { cgroup: CgroupId(1), ..Job::new(1, 1) });
    bench.run_until(2 * MS + 500 * US);
    bench.insert(Job { cgroup: CgroupId(2), ..one(2) });
    bench.queue_mut(1).slice = Some(Slice { start: 0, end: 1, allocated: 1 });
    let choice = bench.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
    assert_eq!((choice.rq, choice.reason), (None, Reason::SliceOver));
    assert_eq!(bench.active(), Some(1));
}

#[test]
fn a_deep_seeky_queue_that_runs_dry_early_in_its_slice_loses_its_idle_window() {
    let run_dry = |elapsed: i64| {
        let mut bench = Bench::new(31);
        for nth in 0..8 {
            bench.insert(Job { sector: nth * 1_000_000, ..one(1) });
        }
        bench.run();
        assert!(bench.queue(1).deep && bench.queue(1).is_seeky() && bench.queue(1).idle_window);
        bench.insert(one(2));
        let now = bench.now as i64;
        bench.queue_mut(1).slice = Some(Slice { start: now - elapsed, end: now + 50, allocated: 50 });
        bench.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
        bench.queue(1).idle_window
    };
    assert!(!run_dry(49), "more is left than has passed");
    assert!(run_dry(50));
}
