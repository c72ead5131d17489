//! Preemption, rule by rule.
//!
//! Rules: CFQ-62 to CFQ-64. Some of it no recording exercises.

use hoistway_blk::bio::{BioFlags, PriorityClass};
use hoistway_blk::ground::CgroupId;
use hoistway_blk::policy::{Scheduler, SchedulerEvent};

use super::super::CfqEvent;
use super::super::class::{Class, Workload};
use super::super::queue::Slice;
use super::*;

/// An active queue of `active` with nothing waiting, one request out, and a newcomer's request that has just arrived.
/// `prepare` sets the scene between the two.
fn preempts(active: Job, newcomer: Job, prepare: impl FnOnce(&mut Bench)) -> bool {
    let mut bench = Bench::new(31);
    bench.call(|policy, cx| {
        policy.on_event(cx, SchedulerEvent::CgroupAdded { cgroup: CgroupId(2), parent: CgroupId(1) })
    });
    bench.insert(active);
    bench.give_out();
    prepare(&mut bench);
    let before = bench.messages.len();
    bench.insert(newcomer);
    bench.messages[before..].iter().any(|(_, message)| message.event == CfqEvent::Preempt)
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
