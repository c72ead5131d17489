//! Processes end, change priority and group, requests come back (BFQ-119, BFQ-122, BFQ-124 to BFQ-127).

use super::super::{BfqConfig, BfqGroup};
use super::machine::{Job, MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, Op};
use crate::ground::ids::{CgroupId, IoContextId, Sector};
use crate::policy::{Scheduler, SchedulerEvent};

#[test]
fn the_end_of_a_process_ends_the_slot_of_its_queue_but_serves_its_requests() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    machine.read(1, 100, 8);
    machine.dispatch();
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    assert!(machine.bfq.in_service.is_none() && machine.bfq.has_work());
    assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(100));
}

#[test]
fn a_queue_is_freed_with_its_process_and_its_last_request() {
    let mut machine = Machine::new(config(true));
    machine.add(Job { depth: 1, think: 1 << 40, ..Job::sequential(1, 8) });
    machine.run_until(100 * MS);
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    machine.add(Job { depth: 1, start: 200 * MS, ..Job::sequential(2, 8) });
    machine.run_until(400 * MS);
    machine.read(3, 0, 8);
    assert_eq!(machine.bfq.queues.len(), 2, "the third process has the slot of the first");
}

#[test]
fn a_requeued_request_goes_first_and_is_not_counted() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    machine.read(1, 5000, 8);
    let (id, _) = machine.dispatch().unwrap();
    machine.call(|bfq, cx| bfq.on_requeued(cx, id));
    assert_eq!(machine.bfq.in_driver, 0, "for the scheduler that is a completion");
    machine.bfq.insert_request(id.0, crate::policy::Place::Head);
    let choice = machine.bfq.choose();
    assert_eq!((choice.rq, machine.bfq.in_driver), (Some(id), 0));
    machine.call(|bfq, cx| bfq.finish(cx, id));
    assert_eq!(machine.bfq.queued, 1);
}

#[test]
fn another_priority_is_another_weight_from_the_next_activation_on() {
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 256));
    let heavy = machine.add(Job { ioprio: IoPriority::UNSET, ..Job::sequential(2, 256) });
    machine.run_until(1000 * MS);
    let best = IoPriority::new(PriorityClass::BestEffort, 0);
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Priority { io_context: IoContextId(2), ioprio: best }));
    let q = machine.sync_queue(2);
    assert_eq!(machine.bfq.entity(q).requested_weight, 40, "it has not asked for anything since");
    let before = machine.served.clone();
    machine.run_until(11_000 * MS);
    assert_eq!(machine.bfq.entity(q).weight, 80);
    let gained = |number: usize| (machine.served[number] - before[number]) as f64;
    assert!((gained(heavy) / gained(0) - 2.0).abs() < 0.05);
}

#[test]
fn nothing_is_lost_when_a_group_is_removed() {
    let group = BfqGroup { cgroup: CgroupId(1), parent: CgroupId::ROOT, weight: 100 };
    let mut machine = Machine::new(BfqConfig { groups: vec![group], ..config(true) });
    for at in 0..10 {
        let bio = Bio::new(Op::Read, Sector(at * 1000), 8);
        machine.insert(Bio { io_context: IoContextId(1), cgroup: CgroupId(1), ..bio });
    }
    machine.dispatch();
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::CgroupRemoved(CgroupId(1))));
    let served = (0..9).filter(|_| machine.dispatch().is_some()).count();
    assert_eq!((served, machine.bfq.has_work()), (9, false));
}

#[test]
fn the_idle_class_gets_one_request_in_a_turn_and_the_real_time_class_everything() {
    let class = |class| IoPriority::new(class, 4);
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 256));
    let idle = machine.add(Job { ioprio: class(PriorityClass::Idle), ..Job::sequential(2, 256) });
    machine.run_until(10_000 * MS);
    let share = machine.share(idle);
    assert!((0.003..0.005).contains(&share), "{share}");
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 256));
    let real_time = machine.add(Job { ioprio: class(PriorityClass::RealTime), ..Job::sequential(2, 256) });
    machine.run_until(10_000 * MS);
    assert!(machine.share(real_time) > 0.98);
}

#[test]
fn freeing_a_queue_clears_it_as_last_completed_but_no_other() {
    for last in [1, 2] {
        let mut machine = Machine::new(config(true));
        let [other, freed] = [2, 1].map(|pid| {
            machine.read(pid, u64::from(pid) << 20, 8);
            machine.sync_queue(pid)
        });
        machine.drain();
        machine.bfq.last_completed = Some(if last == 1 { freed } else { other });
        machine.inside(|bfq| {
            bfq.context_exited(IoContextId(1));
            bfq.hierarchy.drop_idle(bfq.queues[freed].entity);
        });
        assert!(!machine.bfq.queues[freed].alive);
        assert_eq!(machine.bfq.last_completed, (last == 2).then_some(other));
    }
}

#[test]
fn a_queue_without_a_process_is_freed_when_virtual_time_catches_up_with_it() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    let q = machine.sync_queue(1);
    machine.serve();
    machine.inside(|bfq| {
        bfq.entity_mut(q).service = 800;
        bfq.context_exited(IoContextId(1));
    });
    assert!(machine.bfq.queues[q].alive && machine.bfq.entity(q).accounted, "what it has received still counts");
    machine.add(Job::sequential(2, 256));
    machine.run_until(100 * MS);
    assert!(!machine.bfq.queues[q].alive);
}

#[test]
fn a_process_that_leaves_its_queue_cancels_its_planned_merge() {
    for way in ["its end", "another cgroup", "a split"] {
        let mut machine = Machine::new(config(true));
        let [one, two] = [1, 2].map(|pid| {
            machine.read(pid, u64::from(pid) << 30, 8);
            machine.sync_queue(pid)
        });
        // Two processes use it.
        machine.bfq.queues[two].process_refs = 2;
        let context = machine.bfq.contexts.find(IoContextId(2)).unwrap();
        machine.inside(|bfq| bfq.plan_merge(two, one));
        assert_eq!(machine.bfq.queues[one].process_refs, 3);
        machine.inside(|bfq| match way {
            "its end" => bfq.context_exited(IoContextId(2)),
            "another cgroup" => bfq.follow_cgroup(context, CgroupId(1)),
            _ => assert!(!bfq.leave_shared(context, two)),
        });
        assert_eq!((machine.bfq.queues[one].process_refs, machine.bfq.queues[two].process_refs), (2, 1), "{way}");
    }
}

#[test]
fn a_process_that_has_ended_is_known_no_more_and_its_queue_is_freed_with_the_last_request_at_the_device() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    let q = machine.sync_queue(1);
    let (id, _) = machine.dispatch().unwrap();
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    assert_eq!((machine.bfq.contexts.find(IoContextId(1)), machine.bfq.queues[q].alive), (None, true));
    machine.finish(id);
    assert!(!machine.bfq.queues[q].alive);
}

#[test]
fn the_only_process_of_a_queue_becomes_its_owner_at_its_next_request() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    let q = machine.sync_queue(1);
    let context = machine.bfq.contexts.find(IoContextId(1));
    assert_eq!(machine.bfq.queues[q].owner, context);
    machine.bfq.queues[q].owner = None;
    machine.read(1, 8, 8);
    assert_eq!(machine.bfq.queues[q].owner, context);
    machine.bfq.queues[q].owner = None;
    machine.bfq.queues[q].process_refs = 2;
    machine.read(1, 16, 8);
    assert_eq!(machine.bfq.queues[q].owner, None, "two processes use it");
}
