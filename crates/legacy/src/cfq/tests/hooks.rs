//! The life around a request: allocation, merging, priorities, cgroups, exits, requeues, drains, tunables.
//!
//! Rules: CFQ-3, CFQ-4, CFQ-16, CFQ-17, CFQ-46, CFQ-65, CFQ-67 to CFQ-74.

use hoistway_blk::bio::{BioFlags, PriorityClass};
use hoistway_blk::ground::{CgroupId, HctxId, IoContextId};
use hoistway_blk::policy::{LegacyHooks, MayQueue, Scheduler, SchedulerEvent};
use hoistway_blk::request::Edge;

use super::super::class::{Class, Priority};
use super::super::{CfqEvent, Location};
use super::*;

fn one(pid: u32, sector: u64) -> Job {
    Job { sector, ..Job::new(pid, 1) }
}

#[test]
fn tunables_are_clamped_and_milliseconds_and_microseconds_are_two_views_of_one_value() {
    let mut bench = Bench::new(1);
    bench.set("slice_idle_us", "500\n");
    assert_eq!((bench.get("slice_idle"), bench.get("slice_idle_us")), (0, 500));
    assert_eq!(bench.policy.settings.slice_idle, 500 * US as i64, "idling stays on");
    bench.set("quantum", "0");
    bench.set("low_latency", "7");
    bench.set("slice_sync", "garbage");
    assert_eq!(["quantum", "low_latency", "slice_sync", "slice_sync_us"].map(|name| bench.get(name)), [1, 1, 1, 1000]);
    let defaults = Bench::flash(1);
    for (file, _) in defaults.policy.tunables() {
        let expected = if file.name.starts_with("slice_idle") { 0 } else { file.default };
        assert_eq!(defaults.get(file.name), expected, "{}", file.name);
    }
    let rotating = Bench::new(1);
    for (file, _) in rotating.policy.tunables() {
        assert_eq!(rotating.get(file.name), file.default, "{}", file.name);
    }
}

#[test]
fn merges_stay_within_one_queue_and_no_sync_bio_joins_an_async_request() {
    let mut bench = Bench::new(1);
    let read = bench.insert(one(1, 1_000));
    let write = bench.insert(one(1, 5_000).asynchronous());
    bench.insert(one(2, 9_000));
    let mut allows = |id, job: Job| {
        let bio = bench.bio_of(job);
        bench.call(|policy, cx| policy.allow_merge(cx, id, &bio))
    };
    assert!(allows(read, one(1, 1_064)));
    assert!(!allows(read, one(2, 1_064)), "of another process");
    assert!(!allows(read, one(3, 1_064)), "of a process without a context");
    assert!(!allows(write, Job { flags: BioFlags::SYNC, ..one(1, 5_064).asynchronous() }));
    assert!(allows(write, one(1, 5_064).asynchronous()));
    assert!(!bench.policy.allow_request_merge(read, write));
}

#[test]
fn a_front_merge_resorts_the_request_and_lets_it_compete_again() {
    let mut bench = Bench::new(1);
    let far = bench.insert(one(1, 50_000));
    let near = bench.insert(one(1, 40_000));
    let bio = bench.bio_of(Job { sectors: 1_000, ..one(1, 39_000) });
    assert_eq!(bench.call(|policy, cx| policy.front_candidate(cx, &bio)), Some(near));
    assert_eq!((bench.policy.previous(far), bench.policy.next(near)), (Some(near), Some(far)));
    let queue = bench.queue_id(1, 1);
    bench.requests.get_mut(far).sector = hoistway_blk::ground::Sector(10);
    bench.call(|policy, cx| policy.on_grown(cx, far, Edge::Front));
    assert_eq!(bench.policy.queue(queue).backlog.next(), Some(far));
    assert_eq!(bench.policy.next(far), Some(near));
}

#[test]
fn a_request_that_was_absorbed_waits_no_longer_and_its_survivor_keeps_the_queue_busy() {
    let mut bench = Bench::new(1);
    let first = bench.insert(one(1, 1_000));
    let second = bench.insert(one(1, 1_064));
    bench.call(|policy, cx| policy.on_absorbed(cx, first, second));
    assert_eq!(bench.policy.entries[second.index()].location, Location::Outside);
    assert_eq!((bench.policy.waiting, bench.policy.busy_queues), (1, 1));
    bench.call(|policy, cx| policy.finish(cx, second));
    assert_eq!(bench.queue(1).request_refs, 1);
}

#[test]
fn a_request_absorbed_at_insertion_is_no_longer_counted() {
    let mut bench = Bench::new(1);
    bench.insert(one(1, 1_000));
    let rq = bench.allocate(one(1, 1_064));
    assert_eq!(bench.queue(1).request_refs, 2);
    bench.call(|policy, cx| policy.on_dropped(cx, rq.id()));
    assert_eq!(bench.queue(1).request_refs, 1);
}

#[test]
fn an_important_request_boosts_its_queue_until_the_next_ordinary_allocation() {
    let mut bench = Bench::new(1);
    let ordinary = one(1, 1_000).class(PriorityClass::Idle, 7);
    bench.insert(ordinary);
    assert_eq!(bench.queue(1).priority, Priority { class: Class::Idle, level: 7 });
    let important = Job { flags: BioFlags::PRIO, ..ordinary };
    bench.may_queue(important);
    assert_eq!(bench.queue(1).priority, Priority { class: Class::BestEffort, level: 4 });
    bench.may_queue(important);
    assert_eq!(bench.queue(1).priority.class, Class::BestEffort);
    bench.may_queue(ordinary);
    assert_eq!(bench.queue(1).priority, bench.queue(1).original);
    let mut bench = Bench::new(1);
    bench.insert(one(1, 0).class(PriorityClass::RealTime, 2));
    bench.may_queue(Job { flags: BioFlags::PRIO, ..one(1, 0) });
    assert_eq!(bench.queue(1).priority, Priority { class: Class::RealTime, level: 2 }, "never a worse one");
}

#[test]
fn a_process_being_idled_for_may_exceed_the_limit_once_a_turn() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.may_queue(one(1, 0)), MayQueue::May, "it is not known");
    bench.add(Job { count: 1, ..Job::new(1, 1) });
    bench.run_until(2 * MS);
    assert_eq!(bench.may_queue(one(1, 0)), MayQueue::Must);
    assert_eq!(bench.may_queue(one(1, 0)), MayQueue::May);
}

#[test]
fn another_priority_replaces_the_async_queue_at_once_and_reaches_the_sync_queue_with_its_next_request() {
    let mut bench = Bench::new(1);
    bench.insert(one(1, 0).asynchronous());
    bench.insert(one(1, 0));
    let (shared, own) = (bench.queue_id(1, 0), bench.queue_id(1, 1));
    let rq = bench.allocate(one(1, 64).level(1).asynchronous());
    assert_ne!(bench.queue_id(1, 0), shared);
    assert_eq!((bench.queue_id(1, 1), bench.queue(1).priority.level), (own, 4));
    let read = bench.allocate(one(1, 64).level(1));
    bench.enter(read);
    assert_eq!((bench.queue(1).priority.level, bench.queue(1).original.level), (1, 1));
    bench.enter(rq);
}

#[test]
fn an_unset_priority_follows_the_last_priority_event() {
    let mut bench = Bench::new(1);
    let unset = Job { ioprio: hoistway_blk::bio::IoPriority::UNSET, ..one(1, 0) };
    bench.insert(unset);
    assert_eq!(bench.queue(1).priority, Priority { class: Class::BestEffort, level: 4 });
    let nice = hoistway_blk::bio::IoPriority::from_nice(19);
    bench.call(|policy, cx| policy.on_event(cx, SchedulerEvent::Priority { io_context: IoContextId(1), ioprio: nice }));
    bench.insert(unset);
    assert_eq!(bench.queue(1).priority.level, 7);
}

#[test]
fn a_process_that_changes_its_cgroup_gets_new_queues_and_leaves_its_requests() {
    let mut bench = Bench::new(1);
    let id = bench.insert(one(1, 0));
    let old = bench.queue_id(1, 1);
    bench.insert(Job { cgroup: CgroupId(1), ..one(1, 64) });
    assert_ne!(bench.queue_id(1, 1), old);
    assert_eq!(bench.queue(1).group, CgroupId(1));
    assert!(bench.events_of(1).contains(&CfqEvent::ChangedCgroup));
    let rq = bench.pull().expect("the old request");
    assert_eq!(rq.id(), id);
    bench.finish(rq);
    bench.run();
    assert!(bench.events_of(1).contains(&CfqEvent::Freed));
}

#[test]
fn processes_of_one_class_and_level_in_a_group_share_an_async_queue() {
    let mut bench = Bench::new(1);
    bench.insert(one(1, 0).asynchronous());
    bench.insert(one(2, 0).asynchronous());
    bench.insert(one(3, 0).level(5).asynchronous());
    bench.insert(Job { cgroup: CgroupId(1), ..one(4, 0) }.asynchronous());
    let queues = [1, 2, 3, 4].map(|pid| bench.queue_id(pid, 0));
    assert_eq!(queues[0], queues[1]);
    assert!(queues[0] != queues[2] && queues[0] != queues[3] && queues[2] != queues[3]);
}

#[test]
fn an_exit_ends_the_turn_of_the_own_and_of_the_shared_async_queue() {
    for job in [one(1, 0), one(1, 0).asynchronous()] {
        let mut bench = Bench::new(31);
        bench.insert(job);
        bench.insert(Job { sector: 640, ..job });
        let rq = bench.pull().expect("the first");
        assert_eq!(bench.active(), Some(1));
        bench.exit(1);
        assert!(bench.active().is_none() && bench.run_wanted);
        bench.finish(rq);
        assert!(bench.pull().is_some(), "what it left is served");
    }
    let mut bench = Bench::new(31);
    bench.insert(one(1, 0).asynchronous());
    bench.insert(one(2, 640).asynchronous());
    bench.give_out();
    bench.exit(2);
    assert!(bench.active().is_none(), "any writer's exit cuts the common turn");
}

#[test]
fn a_requeued_request_leaves_the_drivers_count_until_it_is_started_again() {
    let mut bench = Bench::new(1);
    bench.insert(one(1, 1_000));
    let rq = bench.pull().expect("the request");
    assert_eq!(bench.policy.in_driver, 1);
    bench.call(|policy, cx| policy.on_requeued(cx, rq.id()));
    assert_eq!((bench.policy.in_driver, bench.queue(1).in_flight), (0, 1));
    bench.call(|policy, cx| policy.on_started(cx, rq.id()));
    assert_eq!((bench.policy.in_driver, bench.policy.head), (1, hoistway_blk::ground::Sector(1_064)));
    bench.finish(rq);
    assert_eq!((bench.policy.in_driver, bench.queue(1).in_flight), (0, 0));
}

#[test]
fn a_forced_drain_leaves_nothing_and_takes_best_effort_first_async_before_sync() {
    let mut bench = Bench::new(31);
    let classes = [PriorityClass::Idle, PriorityClass::RealTime, PriorityClass::BestEffort];
    for (pid, class) in (1..).zip(classes) {
        for sector in [5_000, 1_000] {
            bench.insert(one(pid, sector).class(class, 4));
        }
    }
    bench.insert(one(4, 0).asynchronous());
    bench.insert(one(5, 0).class(PriorityClass::RealTime, 4).asynchronous());
    let mut out = Vec::new();
    bench.call(|policy, cx| policy.drain(cx, HctxId(0), &mut out));
    let order: Vec<(u32, u64)> =
        out.iter().map(|&id| bench.requests.get(id)).map(|rq| (rq.io_context.0, rq.sector.0)).collect();
    let expected = [(4, 0), (3, 1_000), (3, 5_000), (5, 0), (2, 1_000), (2, 5_000), (1, 1_000), (1, 5_000)];
    assert_eq!(order, expected);
    assert!(!bench.policy.has_work() && bench.policy.busy_queues == 0);
    for id in out {
        let rq = bench.requests.release(id);
        bench.finish(rq);
    }
    assert_eq!(bench.policy.in_flight, [0, 0]);
}

#[test]
fn an_insertion_without_an_announced_allocation_counts_as_one() {
    let mut bench = Bench::new(1);
    let rq = bench.allocate(one(1, 0));
    let id = rq.id();
    bench.call(|policy, cx| policy.on_dropped(cx, id));
    bench.enter(rq);
    assert_eq!(bench.queue(1).request_refs, 1);
    let rq = bench.pull().expect("the request");
    bench.finish(rq);
}
