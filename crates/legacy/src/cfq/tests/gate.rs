//! The gate: how many requests of the active queue may be out.
//!
//! Rules: CFQ-44, CFQ-49 to CFQ-54.

use hoistway_blk::bio::PriorityClass;
use hoistway_blk::ground::HctxId;
use hoistway_blk::policy::Scheduler;
use hoistway_blk::watch::Reason;

use super::*;

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
    assert_eq!((choice.rq, choice.reason), (None, Reason::Quantum), "no other gets the slot");
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
fn an_expired_sync_request_is_dispatched_despite_async_ones_in_flight() {
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
fn a_turn_belongs_to_the_process_whose_request_came_first() {
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
    for (ms, expected) in [(201, 1), (299, 1), (301, 1), (401, 2), (701, 5)] {
        bench.now = ms * MS;
        while let Some(rq) = bench.pull() {
            out.push(rq);
        }
        assert_eq!(out.len(), expected, "at {ms} ms");
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
