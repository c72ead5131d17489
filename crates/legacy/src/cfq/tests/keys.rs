//! Keys and trees: in which order queues and groups come.
//!
//! Rules: CFQ-13, CFQ-24 to CFQ-26, CFQ-40 to CFQ-43.

use hoistway_blk::bio::{BioFlags, PriorityClass};
use hoistway_blk::ground::CgroupId;

use super::super::class::Workload;
use super::super::round_robin::Position;
use super::*;

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
    bench.policy.place_in_tree(id, Position::Ordinary, 0);
    assert_eq!(bench.key(1), 50 * MS as i64);
    bench.policy.place_in_tree(id, Position::Ordinary, 0);
    assert_eq!(bench.key(1), 80 * MS as i64);
}

#[test]
fn a_preempting_queue_goes_a_second_before_the_first_of_its_tree() {
    let mut bench = Bench::new(1);
    bench.insert(one(1));
    bench.insert(one(2));
    let id = bench.queue_id(2, 1);
    bench.policy.place_in_tree(id, Position::Front, 0);
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
    bench.policy.place_in_tree(id, Position::Front, 0);
    assert_eq!(bench.queue(1).residual, 7);
}

#[test]
fn the_only_queue_of_class_idle_is_not_put_behind_itself_and_has_no_position() {
    let mut bench = Bench::new(1);
    bench.insert(one(1).class(PriorityClass::Idle, 0));
    let id = bench.queue_id(1, 1);
    bench.policy.place_in_tree(id, Position::Ordinary, 5 * MS as i64);
    assert_eq!(bench.key(1) / MS as i64, 205);
    bench.policy.place_in_position_tree(id);
    assert_eq!(bench.queue(1).position_tree, None);
}

#[test]
fn a_queue_whose_key_does_not_change_keeps_its_place_among_equals() {
    let mut bench = Bench::new(1);
    for pid in [3, 1, 2] {
        bench.insert(one(pid).level(0));
    }
    let id = bench.queue_id(3, 1);
    bench.policy.place_in_tree(id, Position::Ordinary, 0);
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
