//! Idling: whether it is worth it, when the timer runs, and what its end finds.
//!
//! Rules: CFQ-15, CFQ-20 to CFQ-23, CFQ-45, CFQ-47, CFQ-48, CFQ-55 to CFQ-61. Some of it no recording exercises.

use hoistway_blk::bio::{BioFlags, PriorityClass};
use hoistway_blk::ground::CgroupId;
use hoistway_blk::policy::Scheduler;

use super::super::CfqEvent;
use super::super::queue::Slice;
use super::super::round_robin::Position;
use super::*;

#[test]
fn a_small_lone_request_waits_for_its_queue_run_and_a_large_one_runs_it() {
    for (sectors, at_once) in [(8, false), (9, true)] {
        let mut bench = Bench::new(1);
        bench.add(Job { count: 1, ..Job::new(1, 1) });
        bench.run_until(2 * MS);
        assert!(bench.queue(1).waiting_for_request && bench.timer == Some(9 * MS + 1));
        bench.insert(Job { sectors, sector: 64 + (1 << 24), ..one(1) });
        assert_eq!(bench.run_wanted, at_once);
        assert_eq!(bench.timer.is_none(), at_once);
        assert_eq!(bench.queue(1).must_dispatch, !at_once);
        bench.run_until(20 * MS);
        assert_eq!(bench.count(1), if at_once { 1 } else { 2 }, "the timer finds the request");
    }
}

#[test]
fn with_others_busy_even_a_small_request_ends_the_wait() {
    let mut bench = Bench::new(1);
    bench.add(Job { count: 1, ..Job::new(1, 1) });
    bench.run_until(2 * MS);
    bench.insert(one(2));
    bench.insert(Job { sectors: 8, ..one(1) });
    assert!(bench.run_wanted && bench.timer.is_none() && !bench.queue(1).waiting_for_request);
}

#[test]
fn an_unsuccessful_wait_ends_the_turn_and_forgets_that_the_queue_was_deep() {
    let mut bench = Bench::new(31);
    bench.add(Job { count: 4, ..Job::new(1, 4) });
    bench.run_until(0);
    bench.queue_mut(1).deep = true;
    bench.run_until(11 * MS);
    assert_eq!(bench.active(), Some(1));
    bench.run_until(13 * MS);
    assert!(bench.active().is_none() && !bench.queue(1).deep && !bench.queue(1).busy);
}

#[test]
fn a_request_that_arrives_after_the_end_of_its_process_closes_the_idle_window() {
    for ends in [false, true] {
        let mut bench = Bench::new(1);
        bench.insert(one(1));
        let id = bench.queue_id(1, 1);
        let late = bench.allocate(Job { sector: (1 << 24) + 64, ..one(1) });
        if ends {
            bench.exit(1);
        }
        bench.enter(late);
        assert_eq!(bench.policy.queue(id).idle_window, !ends);
    }
}

#[test]
fn a_device_that_may_queue_is_taken_for_one_that_does() {
    let idles = |rotational, verdict: Option<bool>| {
        let mut bench = if rotational { Bench::new(1) } else { Bench::flash(1) };
        bench.set("slice_idle", "8");
        bench.insert(one(1));
        // Another queue in the tree: it is not waited for as the last one.
        bench.insert(one(2));
        if let Some(verdict) = verdict {
            (0..51).for_each(|_| bench.policy.depth.sample(9, if verdict { 9 } else { 1 }, None));
        }
        let id = bench.queue_id(1, 1);
        bench.policy.should_idle(id)
    };
    assert_eq!([None, Some(true), Some(false)].map(|verdict| idles(false, verdict)), [false, false, true]);
    assert_eq!([None, Some(true), Some(false)].map(|verdict| idles(true, verdict)), [true; 3]);
}

#[test]
fn cfq_does_not_idle_for_an_exited_process() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    bench.insert(Job { sector: 9 << 20, ..one(1) });
    let first = bench.pull().expect("the first");
    let second = bench.pull().expect("the second");
    bench.exit(1);
    bench.insert(one(2));
    let other = bench.pull();
    bench.finish(first);
    bench.finish(second);
    assert!(bench.timer.is_none());
    assert!(other.is_some());
}

#[test]
fn a_noidle_tree_idles_on_its_last_queue_unless_the_tree_thinks_long() {
    let mut bench = Bench::new(1);
    bench.insert(Job { flags: BioFlags::SYNC, ..one(1).asynchronous() });
    let id = bench.queue_id(1, 1);
    bench.policy.place_in_tree(id, Position::Ordinary, 0);
    assert!(bench.policy.should_idle(id));
    let tree = bench.queue(1).tree.expect("in a tree");
    let think = &mut bench.policy.groups[CgroupId::ROOT].trees[tree.index()].think;
    (0..3).for_each(|_| think.arrived(1_000 * MS as i64, 8 * MS as i64));
    assert!(!bench.policy.should_idle(id));
}

#[test]
fn flash_that_queues_is_not_kept_idle_for_a_single_queue_but_other_flash_is() {
    let mut bench = Bench::flash(1);
    bench.set("slice_idle", "8");
    bench.insert(one(1));
    bench.insert(one(2));
    let id = bench.queue_id(1, 1);
    assert!(!bench.policy.should_idle(id), "an unknown depth counts as queueing");
    for _ in 0..51 {
        bench.policy.depth.sample(7, 1, None);
    }
    assert!(bench.policy.should_idle(id));
}

#[test]
fn a_tunable_of_zero_idles_for_the_group_alone() {
    let mut bench = Bench::flash(1);
    assert_eq!(bench.get("slice_idle"), 0);
    bench.add(Job { count: 1, ..Job::new(1, 1) });
    bench.run_until(2 * MS);
    let armed = CfqEvent::ArmIdle { period: 8 * MS as i64, group: true };
    assert!(bench.events_of(1).contains(&armed));
}

#[test]
fn the_last_queue_of_class_idle_is_not_waited_for() {
    let mut bench = Bench::new(1);
    bench.insert(one(1).class(PriorityClass::Idle, 0));
    let id = bench.queue_id(1, 1);
    assert!(!bench.policy.should_idle(id));
}

#[test]
fn a_queue_of_class_idle_never_gets_an_idle_window_nor_any_while_slice_idle_is_0() {
    let window = |job: Job, slice_idle: &str| {
        let mut bench = Bench::new(1);
        bench.set("slice_idle", slice_idle);
        for nth in 0..4 {
            bench.insert(Job { sector: 64 * nth, ..job });
        }
        bench.queue(1).idle_window
    };
    assert!(window(one(1), "8"));
    assert!(!window(one(1), "0") && !window(one(1).class(PriorityClass::Idle, 0), "8"));
}

#[test]
fn a_queue_is_deep_from_its_fourth_waiting_request_on() {
    let mut bench = Bench::new(1);
    let deep = [1, 2, 3, 4].map(|nth| {
        bench.insert(Job { sector: 64 * nth, ..one(1) });
        bench.queue(1).deep
    });
    assert_eq!(deep, [false, false, false, true]);
}

/// Process 1 is active and has two requests out, after which nothing waits; 2 has a request. The first one completes now.
fn first_of_two(mut bench: Bench) -> (Bench, hoistway_blk::request::Rq) {
    bench.insert(one(1));
    bench.insert(Job { sector: (1 << 24) + 64, ..one(1) });
    bench.insert(one(2));
    let [first, second] = [(); 2].map(|()| bench.pull().expect("a request"));
    bench.now = MS;
    bench.finish(first);
    (bench, second)
}

#[test]
fn cfq_does_not_idle_while_requests_of_the_queue_are_in_flight() {
    let (mut bench, second) = first_of_two(Bench::new(31));
    assert_eq!(bench.timer, None);
    bench.finish(second);
    assert_eq!(bench.timer, Some(9 * MS + 1));
}

#[test]
fn cfq_does_not_idle_for_exited_or_too_slow_processes() {
    let timer = |mean_ms: i64, rest_ms: i64, exited: bool| {
        let (mut bench, second) = first_of_two(Bench::new(31));
        let context = bench.context(1);
        let think = &mut bench.policy.contexts[context].think;
        think.ended(bench.now as i64 - mean_ms * MS as i64);
        (0..32).for_each(|_| think.arrived(bench.now as i64, 8 * MS as i64));
        let now = bench.now as i64;
        bench.queue_mut(1).slice = Some(Slice { start: 0, end: now + rest_ms * MS as i64, allocated: 1 });
        if exited {
            bench.policy.contexts.exit(context);
        }
        bench.finish(second);
        bench.timer.is_some()
    };
    assert!(timer(5, 6, false) && !timer(7, 6, false) && !timer(5, 6, true));
}

#[test]
fn cfq_idles_for_a_group_only_without_other_work_and_with_short_think_time() {
    let armed = |others: bool, thinks_long: bool| {
        let mut bench = Bench::flash(31);
        bench.insert(one(1));
        let rq = bench.pull().expect("a request");
        if others {
            bench.insert(one(2));
        }
        if thinks_long {
            let tree = bench.queue(1).tree.expect("in a tree");
            let think = &mut bench.policy.groups[CgroupId::ROOT].trees[tree.index()].think;
            (0..8).for_each(|_| think.arrived(1_000 * MS as i64, 8 * MS as i64));
        }
        bench.now = MS;
        bench.finish(rq);
        bench.timer.is_some()
    };
    assert_eq!([armed(false, false), armed(true, false), armed(false, true)], [true, false, false]);
}

#[test]
fn without_group_idle_flash_that_queues_is_not_kept_idle_even_for_the_last_queue_of_a_tree() {
    for (group_idle, armed) in [("8", true), ("0", false)] {
        let mut bench = Bench::flash(31);
        bench.set("slice_idle", "8");
        bench.set("group_idle", group_idle);
        bench.insert(one(1));
        let rq = bench.pull().expect("a request");
        bench.now = MS;
        bench.finish(rq);
        assert_eq!(bench.timer.is_some(), armed);
    }
}

#[test]
fn the_completion_of_an_async_request_starts_no_idling() {
    let mut bench = Bench::new(31);
    bench.insert(one(1).asynchronous());
    let rq = bench.pull().expect("the write");
    bench.now = MS;
    bench.finish(rq);
    assert_eq!((bench.timer, bench.active()), (None, Some(1)));
}

#[test]
fn a_timer_that_finds_the_slice_used_up_ends_the_turn_unless_a_small_request_must_be_served() {
    for must_dispatch in [false, true] {
        let mut bench = Bench::new(1);
        bench.add(Job { count: 1, ..Job::new(1, 1) });
        bench.run_until(2 * MS);
        bench.insert(Job { sectors: 8, sector: (1 << 24) + 64, ..one(1) });
        bench.queue_mut(1).must_dispatch = must_dispatch;
        bench.queue_mut(1).slice = Some(Slice { start: 0, end: 1, allocated: 1 });
        bench.now = 9 * MS + 1;
        bench.call(|policy, cx| policy.on_timer(cx));
        assert_eq!(bench.active(), must_dispatch.then_some(1));
        assert!(bench.run_wanted);
    }
}

#[test]
fn the_only_queue_of_a_group_is_kept_beyond_its_slice_if_it_thinks_longer_than_that_lasts_or_that_is_a_tick() {
    let (mut bench, _) = first_of_two(Bench::new(31));
    let context = bench.context(1);
    let id = bench.queue_id(1, 1);
    let mut waits = |busy: u32, mean_us: i64, rest_us: i64| {
        let now = bench.now as i64;
        let think = &mut bench.policy.contexts[context].think;
        think.ended(now - mean_us * US as i64);
        (0..32).for_each(|_| think.arrived(now, 8 * MS as i64));
        bench.policy.groups[CgroupId::ROOT].busy_queues = busy;
        bench.queue_mut(1).slice = Some(Slice { start: 0, end: now + rest_us * US as i64, allocated: 1 });
        bench.policy.should_wait_busy(id, now)
    };
    assert!(waits(1, 1_000, 4_000) && !waits(1, 1_000, 4_001), "a tick is 4 ms");
    assert!(waits(1, 6_000, 5_000) && !waits(1, 4_500, 5_000));
    assert!(!waits(2, 6_000, 5_000), "another one keeps the group's place");
}

#[test]
fn the_grace_beyond_a_slice_is_slice_idle_or_else_group_idle() {
    for (slice_idle, grace) in [("5", 5), ("0", 7)] {
        let mut bench = Bench::new(31);
        bench.set("slice_idle", slice_idle);
        bench.set("group_idle", "7");
        bench.insert(one(1));
        bench.insert(Job { sector: (1 << 24) + 64, ..one(1) });
        let [first, second] = [(); 2].map(|()| bench.pull().expect("a request"));
        bench.now = MS;
        bench.finish(first);
        bench.queue_mut(1).slice = Some(Slice { start: 0, end: 1, allocated: 1 });
        bench.queue_mut(1).waiting_busy = false;
        bench.now = 2 * MS;
        bench.finish(second);
        let end = bench.queue(1).slice.map(|slice| slice.end);
        assert_eq!(end, Some(2 * MS as i64 + 1 + grace * MS as i64));
    }
}

#[test]
fn a_sync_completion_counts_for_the_think_time_of_the_process_its_tree_and_its_group() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    let tree = bench.queue(1).tree.expect("in a tree");
    let rq = bench.pull().expect("the read");
    bench.now = 50 * MS;
    bench.finish(rq);
    let group = &bench.policy.groups[CgroupId::ROOT];
    let ends = [bench.policy.contexts[bench.context(1)].think, group.trees[tree.index()].think, group.think];
    assert_eq!(ends.map(|think| think.last_end() / MS as i64), [50; 3]);
}

#[test]
fn without_slice_idle_no_queue_has_an_idle_window() {
    for (slice_idle, expected) in [("8", true), ("0", false)] {
        let mut bench = Bench::new(1);
        bench.set("slice_idle", slice_idle);
        bench.insert(one(1));
        assert_eq!(bench.queue(1).idle_window, expected);
    }
}

#[test]
fn a_group_is_waited_for_only_as_long_as_one_queue_of_it_is_busy() {
    for (others, waited_for) in [(0, true), (1, false)] {
        let mut bench = Bench::flash(31);
        bench.insert(one(1));
        bench.insert(Job { cgroup: CgroupId(1), ..one(2) });
        (0..others).for_each(|_| {
            bench.insert(one(3));
        });
        let rq = bench.pull().expect("a request of the root");
        assert_eq!(bench.active(), Some(1));
        bench.finish(rq);
        assert_eq!(bench.timer.is_some(), waited_for, "{others} others in its group");
    }
}

#[test]
fn the_queue_runs_when_the_driver_is_empty_and_a_queue_is_busy() {
    let mut bench = Bench::new(31);
    bench.insert(one(1));
    bench.insert(Job { sector: 64, ..one(1) });
    bench.insert(one(2));
    let out = [bench.pull(), bench.pull()].map(|rq| rq.expect("both of the first process"));
    bench.run_wanted = false;
    for (rq, empty) in out.into_iter().zip([false, true]) {
        bench.finish(rq);
        assert_eq!(bench.run_wanted, empty);
    }
    let mut bench = Bench::new(31);
    bench.insert(one(1).class(PriorityClass::Idle, 0));
    let rq = bench.pull().expect("the only request");
    bench.finish(rq);
    assert!(!bench.run_wanted, "its turn has ended, and none is busy");
}
