//! Keys, slices, the gate and preemption: rule by rule.
//!
//! Rules: `cfq.md` 26 (1 to 20, 30 to 32); what no recording exercises: 28.

use super::super::CfqEvent;
use super::super::class::{Class, Workload};
use super::super::queue::Slice;
use super::super::round_robin::Position;
use super::*;
use crate::bio::BioFlags;
use crate::elevator::{Reason, Scheduler};
use crate::ids::{CgroupId, HctxId};
use crate::ioprio::PriorityClass;

/// One request of a job that is not to go on.
fn one(pid: u32) -> Job {
    Job { count: 1, ..Job::new(pid, 1) }
}

// --- keys ---

#[test]
fn a_newcomers_key_depends_on_how_many_are_busy_at_that_instant() {
    let mut bench = Bench::new(1);
    for pid in 1..=5 {
        bench.insert(one(pid));
    }
    assert_eq!([1, 2, 3, 4, 5].map(|pid| bench.key(pid) / MS as i64), [-80, 0, 80, 160, 240]);
}

#[test]
fn a_residual_moves_the_next_key_once() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    bench.insert(one(2));
    bench.queue_mut(1).residual = 30 * MS as i64;
    let id = bench.queue_id(1, 1);
    bench.policy.place(id, Position::Ordinary, 0);
    assert_eq!(bench.key(1), 50 * MS as i64);
    bench.policy.place(id, Position::Ordinary, 0);
    assert_eq!(bench.key(1), 80 * MS as i64);
}

#[test]
fn a_preempting_queue_goes_a_second_before_the_first_of_its_tree() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    bench.insert(one(2));
    let id = bench.queue_id(2, 1);
    bench.policy.place(id, Position::Front, 0);
    assert_eq!(bench.key(2), bench.key(1) - 1_000 * MS as i64);
}

#[test]
fn class_idle_queues_up_at_intervals_of_200_ms() {
    let mut bench = Bench::new(1);
    bench.now = 7 * MS;
    for pid in 1..=3 {
        bench.insert(one(pid).class(PriorityClass::Idle, 0));
    }
    assert_eq!([1, 2, 3].map(|pid| bench.key(pid) / MS as i64), [207, 407, 607]);
}

#[test]
fn equal_keys_are_served_in_the_order_of_arrival() {
    let mut bench = Bench::new(1);
    bench.insert(one(9));
    for pid in [3, 1, 2] {
        bench.insert(one(pid).level(0));
    }
    assert_eq!([3, 1, 2].map(|pid| bench.key(pid)), [0; 3]);
    bench.run_until(0);
    bench.run();
    bench.run_until(100 * MS);
    let order: Vec<u32> = bench.dispatch_runs().into_iter().map(|(pid, _)| pid).collect();
    assert_eq!(order, [9, 3, 1, 2]);
}

#[test]
fn a_new_queue_enters_the_idleable_tree_even_if_its_first_request_is_a_noidle_write() {
    let mut bench = Bench::new(1);
    bench.insert(Job { flags: BioFlags::SYNC, ..one(1).asynchronous() });
    let queue = bench.queue(1);
    assert_eq!(queue.workload(), Workload::NoIdle);
    assert_ne!(queue.tree, Some(queue.fitting_tree()));
    bench.insert(Job { flags: BioFlags::SYNC.with(BioFlags::IDLE), ..one(2).asynchronous() });
    assert!(bench.queue(2).idle_window, "a direct write announces more");
}

#[test]
fn real_time_goes_before_best_effort_before_idle() {
    let mut bench = Bench::new(1);
    bench.insert(one(3).class(PriorityClass::Idle, 0));
    bench.insert(one(2));
    bench.insert(one(1).class(PriorityClass::RealTime, 7));
    bench.run();
    bench.run_until(100 * MS);
    let order: Vec<u32> = bench.dispatched.iter().map(|&(_, pid)| pid).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_queue_that_is_put_in_front_keeps_its_residual() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    bench.queue_mut(1).residual = 7;
    let id = bench.queue_id(1, 1);
    bench.policy.place(id, Position::Front, 0);
    assert_eq!(bench.queue(1).residual, 7);
}

#[test]
fn the_only_queue_of_class_idle_is_not_put_behind_itself_and_has_no_position() {
    let mut bench = Bench::new(1);
    bench.insert(one(1).class(PriorityClass::Idle, 0));
    let id = bench.queue_id(1, 1);
    bench.policy.place(id, Position::Ordinary, 5 * MS as i64);
    assert_eq!(bench.key(1) / MS as i64, 205);
    bench.policy.place_by_position(id);
    assert_eq!(bench.queue(1).position_tree, None);
}

#[test]
fn a_queue_whose_key_does_not_change_keeps_its_place_among_equals() {
    let mut bench = Bench::new(1);
    for pid in [3, 1, 2] {
        bench.insert(one(pid).level(0));
    }
    let id = bench.queue_id(3, 1);
    bench.policy.place(id, Position::Ordinary, 0);
    assert_eq!(bench.pull().map(|rq| rq.io_context.0), Some(3));
}

#[test]
fn a_group_joins_200000000_units_behind_the_last_or_a_fifth_of_a_second_in_ticks_where_requests_count() {
    for (mut bench, delay) in [(Bench::new(1), 200_000_000), (Bench::flash(1), 50)] {
        for cgroup in [1, 2] {
            bench.insert(Job { cgroup: CgroupId(cgroup), ..one(cgroup) });
        }
        let groups = &bench.policy.groups;
        assert_eq!(groups[CgroupId(2)].vdisktime - groups[CgroupId(1)].vdisktime, delay);
    }
}

#[test]
fn a_sync_request_has_125_ms_and_an_async_one_250() {
    let mut bench = Bench::new(1);
    let ids = [bench.insert(one(1)), bench.insert(one(1).asynchronous())];
    assert_eq!(ids.map(|id| bench.policy.requests.deadline(id) / MS as i64), [125, 250]);
}

// --- slices ---

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

// --- the main decision ---

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
fn a_group_with_another_busy_queue_goes_on_with_that() {
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

// --- the gate ---

#[test]
fn four_requests_go_out_before_the_first_completion_if_others_wait() {
    let mut bench = Bench::new(31);
    for pid in [1, 2] {
        for nth in 0..16 {
            bench.insert(Job { sector: nth * 64, ..one(pid) });
        }
    }
    bench.run();
    assert_eq!(bench.dispatch_runs(), [(1, 4)]);
    let choice = bench.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
    assert_eq!((choice.rq, choice.reason), (None, Reason::Quantum), "nobody else gets the slot");
}

#[test]
fn the_only_busy_sync_queue_is_not_limited_by_async_ones() {
    let mut bench = Bench::new(31);
    for nth in 0..16 {
        bench.insert(Job { sector: nth * 64, ..one(1) });
    }
    bench.insert(one(2).asynchronous());
    bench.run();
    assert_eq!(bench.dispatch_runs(), [(1, 16)]);
}

#[test]
fn class_idle_has_one_request_out_and_a_turn_for_each_while_others_are_busy() {
    let mut bench = Bench::new(31);
    for pid in [1, 2] {
        for nth in 0..4 {
            bench.insert(Job { sector: nth * 64, ..one(pid) }.class(PriorityClass::Idle, 0));
        }
    }
    bench.run();
    // Each turn ends with its request, but each queue has one out then.
    assert_eq!(bench.dispatch_runs(), [(1, 1), (2, 1)]);
    assert!(bench.queue(1).in_flight == 1);
}

#[test]
fn class_idle_alone_has_one_request_out_as_well() {
    let mut bench = Bench::new(31);
    for nth in 0..4 {
        bench.insert(Job { sector: nth * 64, ..one(1) }.class(PriorityClass::Idle, 0));
    }
    bench.run();
    assert_eq!(bench.dispatch_runs(), [(1, 1)]);
}

#[test]
fn a_request_over_its_time_passes_the_gate() {
    for (now, expected) in [(100, Err(Reason::AsyncInFlight)), (126, Ok(1))] {
        let mut bench = Bench::new(31);
        bench.insert(one(2).asynchronous());
        bench.give_out();
        bench.insert(one(1));
        bench.now = now * MS;
        let choice = bench.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
        let given = choice.rq.map(|id| bench.requests.get(id).io_context.0).ok_or(choice.reason);
        assert_eq!(given, expected);
    }
}

#[test]
fn a_turn_is_that_of_the_process_whose_request_came_first() {
    let mut bench = Bench::new(31);
    bench.insert(one(1).asynchronous());
    bench.insert(Job { sector: (1 << 24) + 64, ..one(2) }.asynchronous());
    bench.give_out();
    bench.give_out();
    assert_eq!(bench.policy.turn_context, Some(bench.context(1)));
}

#[test]
fn async_waits_while_sync_is_out_and_ramps_up_after_a_delayed_sync() {
    let mut bench = Bench::new(31);
    bench.insert(one(1));
    let rq = bench.pull().expect("the read");
    for nth in 0..20 {
        bench.insert(Job { sector: nth * 64, ..one(2).asynchronous() });
    }
    bench.exit(1);
    let choice = bench.call(|policy, cx| policy.dispatch(cx, HctxId(0)));
    assert_eq!((choice.rq, choice.reason), (None, Reason::SyncInFlight));
    bench.now = 200 * MS;
    bench.finish(rq);
    assert_eq!(bench.policy.last_delayed_sync, 200 * MS as i64);
    let mut out = Vec::new();
    for (at, expected) in [(201, 1), (299, 1), (301, 1), (401, 2), (701, 5)] {
        bench.now = at * MS;
        while let Some(rq) = bench.pull() {
            out.push(rq);
        }
        assert_eq!(out.len(), expected, "at {at} ms");
    }
    bench.set("low_latency", "0");
    while let Some(rq) = bench.pull() {
        out.push(rq);
    }
    assert_eq!(out.len(), 20, "alone and without the ramp there is no limit");
}

#[test]
fn a_sync_request_is_delayed_by_its_age_since_allocation() {
    let mut bench = Bench::new(1);
    let rq = bench.allocate(one(1));
    bench.now = 100 * MS;
    bench.enter(rq);
    let rq = bench.pull().expect("the read");
    bench.now = 125 * MS;
    bench.finish(rq);
    assert_eq!(bench.policy.last_delayed_sync, 125 * MS as i64);
}

// --- preemption ---

/// An active queue of `active` with nothing waiting, one request out, and a newcomer's request that has just arrived.
/// `prepare` sets the scene between the two.
fn preempts(active: Job, newcomer: Job, prepare: impl FnOnce(&mut Bench)) -> bool {
    let mut bench = Bench::new(31);
    bench.call(|policy, cx| policy.cgroup_added(cx, CgroupId(2), CgroupId(1)));
    bench.insert(active);
    bench.give_out();
    prepare(&mut bench);
    let before = bench.said.len();
    bench.insert(newcomer);
    bench.said[before..].iter().any(|(_, message)| message.event == CfqEvent::Preempt)
}

#[test]
fn the_rules_of_preemption_in_their_order() {
    let nothing = |_: &mut Bench| {};
    let (rt, be, idle) = (PriorityClass::RealTime, PriorityClass::BestEffort, PriorityClass::Idle);
    let used_up = |bench: &mut Bench| bench.queue_mut(1).slice = Some(Slice { start: 0, end: 0, allocated: 0 });
    // 2, 3, 4: class idle never, over class idle always, over real time only real time.
    assert!(!preempts(one(1), one(2).class(idle, 0), used_up));
    assert!(preempts(one(1).class(idle, 0), one(2), nothing));
    assert!(preempts(one(1).class(idle, 0), Job { cgroup: CgroupId(1), ..one(2) }.class(be, 7), nothing));
    assert!(!preempts(one(1).class(rt, 7), one(2).class(be, 0), used_up));
    assert!(preempts(one(1).class(rt, 0), one(2).class(rt, 7), used_up));
    // 5: sync over async, also across groups, unless the async queue must be served.
    assert!(preempts(one(1).asynchronous(), Job { cgroup: CgroupId(3), ..one(2) }, nothing));
    assert!(!preempts(one(1).asynchronous(), Job { cgroup: CgroupId(3), ..one(2) }, |bench| {
        let id = bench.queue_id(1, 0);
        bench.policy.queue_mut(id).must_dispatch = true;
    }));
    // 6, 7: a slice that is used up, within the group or over one below it.
    assert!(preempts(one(1), one(2), used_up));
    let in_group = |cgroup, pid| Job { cgroup: CgroupId(cgroup), ..one(pid) };
    assert!(!preempts(in_group(3, 1), in_group(1, 2), used_up));
    assert!(!preempts(in_group(1, 1), in_group(2, 2), used_up), "not from below");
    assert!(preempts(in_group(2, 1), in_group(1, 2), used_up), "over a descendant");
    // 8: real time over others.
    assert!(preempts(one(1), one(2).class(rt, 7), nothing));
    // 10: an important request, if the active queue has none.
    let important = Job { flags: BioFlags::PRIO, ..one(2) };
    assert!(preempts(one(1), important, nothing));
    let backlog_has_one = |bench: &mut Bench| {
        bench.insert(Job { flags: BioFlags::PRIO, sector: 5 << 20, ..one(1) });
    };
    assert!(!preempts(one(1), important, backlog_has_one));
    // 11: over an empty queue that is not worth waiting for.
    assert!(!preempts(one(1), one(2), nothing), "it is worth waiting for");
    // (With the newcomer it is not the last of its tree.)
    assert!(preempts(one(1), one(2), |bench| bench.queue_mut(1).idle_window = false));
    // 12, 13, 14: only while it is waited for, and only for something close to the head.
    let waited_for = |bench: &mut Bench| bench.queue_mut(1).waiting_for_request = true;
    let head = (1 << 24) + 64;
    assert!(preempts(one(1), Job { sector: head + 8192, ..one(2) }, waited_for));
    assert!(!preempts(one(1), Job { sector: head + 8193, ..one(2) }, waited_for));
    assert!(!preempts(one(1), Job { sector: head, ..one(2) }, nothing));
    assert!(!preempts(one(1), Job { sector: head, ..one(2) }, |bench| {
        waited_for(bench);
        let context = bench.policy.turn_context.take().expect("of the turn");
        bench.policy.contexts.release(context);
    }));
}

#[test]
fn a_noidle_queue_takes_over_from_an_empty_one_of_its_kind() {
    let noidle = |pid| Job { flags: BioFlags::SYNC, ..one(pid).asynchronous() };
    let scene = |bench: &mut Bench| {
        bench.policy.serving.workload = Workload::NoIdle;
    };
    assert!(preempts(one(1), noidle(2), scene));
    assert!(!preempts(one(1), noidle(2), |_| {}), "served as idleable");
}

#[test]
fn preemption_by_another_kind_forgets_the_rest_of_the_workload_slice() {
    let mut bench = Bench::new(31);
    bench.insert(one(1).asynchronous());
    bench.give_out();
    bench.insert(one(2));
    assert!(bench.policy.groups[CgroupId::ROOT].saved.is_none());
    let mut bench = Bench::new(31);
    bench.insert(one(1));
    bench.give_out();
    bench.insert(one(2).class(PriorityClass::RealTime, 0));
    let saved = bench.policy.groups[CgroupId::ROOT].saved.expect("both are idleable");
    assert_eq!((saved.class, saved.workload), (Class::BestEffort, Workload::Idleable));
}
