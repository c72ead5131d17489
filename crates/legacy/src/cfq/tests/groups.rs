//! Groups within the scheduler: waiting-busy, think time of a group, hand-over of the workload slice.
//!
//! Rules: CFQ-27 to CFQ-35, CFQ-44 to CFQ-48, CFQ-55, CFQ-56, CFQ-58.

use hoistway_blk::ground::{CgroupId, HctxId};
use hoistway_blk::policy::{Scheduler, SchedulerEvent};
use hoistway_blk::watch::Reason;

use super::super::CfqEvent;
use super::*;

fn member(cgroup: u32, pid: u32) -> Job {
    Job { cgroup: CgroupId(cgroup), ..Job::new(pid, 1) }
}

#[test]
fn the_only_queue_of_a_group_waits_beyond_its_slice_and_ends_with_its_next_request() {
    let mut bench = Bench::new(1);
    bench.add(Job { think: MS, ..member(1, 1) });
    bench.add(Job { think: MS, ..member(2, 2) });
    bench.run_until(97 * MS + 500 * US);
    assert!(bench.events_of(1).contains(&CfqEvent::WillBusyWait));
    let queue = bench.queue(1);
    assert!(queue.waiting_busy && queue.slice.is_some_and(|slice| slice.end / MS as i64 == 105));
    bench.run_until(98 * MS + 500 * US);
    assert_eq!((bench.active(), bench.turns_ms()), (Some(2), vec![(98, 1)]));
}

#[test]
fn the_only_queue_of_a_group_that_thinks_long_is_not_waited_for_beyond_its_slice() {
    let mut bench = Bench::new(1);
    bench.add(Job { think: MS, ..member(1, 1) });
    bench.add(Job { think: MS, ..member(2, 2) });
    bench.run_until(90 * MS);
    let long = 8 * MS as i64;
    for thinks_long in [false, true] {
        let id = bench.queue_id(1, 1);
        let think = &mut bench.policy.groups[CgroupId(1)].think;
        let now = if thinks_long { 1_000_000 * MS } else { bench.now } as i64;
        (0..40).for_each(|_| think.arrived(now, long));
        bench.policy.queue_mut(id).slice = Some(super::super::queue::Slice { start: 0, end: 1, allocated: 1 });
        assert_eq!(
            bench.policy.should_wait_busy(id, bench.now as i64),
            !thinks_long && bench.queue(1).backlog.is_empty()
        );
    }
}

#[test]
fn the_own_tasks_of_a_group_share_with_its_child_groups_by_leaf_weight() {
    let mut bench = Bench::new(1);
    bench.call(|policy, cx| {
        policy.on_event(cx, SchedulerEvent::CgroupAdded { cgroup: CgroupId(2), parent: CgroupId(1) });
        policy.on_event(cx, SchedulerEvent::LeafWeight { cgroup: CgroupId(1), weight: 900 });
        policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(2), weight: 300 });
    });
    for (cgroup, pid) in [(1, 1), (2, 2)] {
        bench.add(Job { outstanding: 8, ..member(cgroup, pid) });
    }
    bench.run_until(12_000 * MS);
    let (own, child) = (bench.count(1), bench.count(2));
    assert!((own as f64 / child as f64 - 3.0).abs() < 0.1, "{own} and {child}");
}

/// CG-2.
#[test]
fn shares_multiply_down_a_tree_of_groups_with_tasks_of_their_own() {
    let mut bench = Bench::new(1);
    let (a, a1, b) = (1, 2, 3);
    bench.call(|policy, cx| {
        policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId::ROOT, weight: 1000 });
        policy.on_event(cx, SchedulerEvent::CgroupAdded { cgroup: CgroupId(a1), parent: CgroupId(a) });
        policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(a), weight: 600 });
        policy.on_event(cx, SchedulerEvent::LeafWeight { cgroup: CgroupId(a), weight: 300 });
        policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(a1), weight: 200 });
        policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(b), weight: 400 });
    });
    for (cgroup, pid) in [(0, 1), (a, 2), (a1, 3), (b, 4)] {
        bench.add(Job { outstanding: 8, ..member(cgroup, pid) });
    }
    bench.run_until(40_000 * MS);
    let done = bench.completed.len() as f64;
    for (pid, share) in [(1, 0.5), (2, 0.18), (3, 0.12), (4, 0.2)] {
        let got = bench.count(pid) as f64 / done;
        assert!((got - share).abs() < 0.01, "process {pid}: {got} instead of {share}");
    }
}

#[test]
fn a_group_with_requests_in_flight_keeps_the_device_unless_it_thinks_long() {
    for thinks_long in [false, true] {
        let mut bench = Bench::flash(31);
        bench.insert(member(1, 1));
        bench.give_out();
        bench.insert(member(2, 2));
        if thinks_long {
            let think = &mut bench.policy.groups[CgroupId(1)].think;
            (0..8).for_each(|_| think.arrived(1_000 * MS as i64, 8 * MS as i64));
        }
        let choice = bench.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
        let expected = if thinks_long { Reason::InService } else { Reason::GroupIdling };
        assert_eq!(choice.reason, expected);
    }
}

#[test]
fn an_async_completion_counts_for_the_think_time_of_the_group_alone() {
    let mut bench = Bench::new(1);
    bench.insert(member(1, 1).asynchronous());
    let rq = bench.pull().expect("the write");
    bench.now = 50 * MS;
    bench.finish(rq);
    let mut group = bench.policy.groups[CgroupId(1)].think;
    let mut process = bench.policy.contexts[bench.context(1)].think;
    for think in [&mut group, &mut process] {
        (0..4).for_each(|_| think.arrived(51 * MS as i64, 8 * MS as i64));
    }
    let means = [group, process].map(|think| think.trusted_mean().expect("four samples"));
    assert!(means[0] < 2 * MS as i64 && means[1] > 15 * MS as i64, "{means:?}");
}

#[test]
fn a_group_resumes_the_rest_of_its_workload_slice() {
    let mut bench = Bench::new(1);
    bench.insert(member(1, 1));
    bench.give_out();
    bench.now = 10 * MS;
    bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::IoContextExited(hoistway_blk::ground::IoContextId(9))));
    bench.insert(member(1, 3));
    bench.call(|policy, cx| policy.expire_active(cx, super::super::turn::Residual::Dropped));
    let saved = bench.policy.groups[CgroupId(1)].saved.expect("a rest");
    assert_eq!(saved.remaining, 290 * MS as i64);
    bench.now = 50 * MS;
    bench.give_out();
    assert_eq!(bench.policy.serving.end, 340 * MS as i64, "the gap does not count");
}

#[test]
fn a_low_weight_groups_real_time_queue_does_not_beat_another_group() {
    let mut bench = Bench::new(1);
    bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(2), weight: 10 }));
    bench.insert(member(1, 1));
    bench.insert(member(2, 2).class(hoistway_blk::bio::PriorityClass::RealTime, 0));
    assert_eq!(bench.pull().expect("a request").io_context.0, 1);
}

#[test]
fn a_removed_group_gives_up_its_async_queues() {
    let mut bench = Bench::new(1);
    bench.insert(member(1, 1).asynchronous());
    let rq = bench.pull().expect("the write");
    bench.exit(1);
    bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::CgroupRemoved(CgroupId(1))));
    assert!(!bench.events_of(1).contains(&CfqEvent::Freed));
    bench.finish(rq);
    assert!(bench.events_of(1).contains(&CfqEvent::Freed));
}
