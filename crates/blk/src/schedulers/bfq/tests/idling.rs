//! What the device is kept for, and for how long (BFQ-71 to BFQ-79).

use super::super::config::RAISE_INTERACTIVE;
use super::super::entity::QueueId;
use super::super::{BfqConfig, BfqGroup, BfqVariant};
use super::machine::{Job, MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::{CgroupId, IoContextId};
use crate::ground::kernel::Kernel;
use crate::policy::{Scheduler, SchedulerEvent};
use crate::watch::reason::Reason;

/// Process 1 is in service, empty, with one request in flight; the others have work.
fn served_among(config: BfqConfig, others: u32) -> (Machine, QueueId) {
    let mut machine = Machine::new(config);
    machine.read(1, 8, 8);
    machine.dispatch();
    for pid in 2..2 + others {
        machine.now += 700 * MS;
        machine.read(pid, u64::from(pid) << 24, 8);
    }
    let q = machine.sync_queue(1);
    machine.bfq.in_service.get_or_insert(q);
    (machine, q)
}

#[test]
fn idling_costs_no_throughput_on_slow_devices_and_for_streams_on_disks() {
    let free = |rotational, queues, streams: bool| {
        let (mut machine, q) = served_among(config(rotational), 0);
        machine.decide_ncq(queues);
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(!streams));
        machine.bfq.idling_is_free(q)
    };
    // (rotating, queueing): a stream, a seeky one.
    for (rotational, queues, expected) in [
        (true, false, [true, true]),
        (true, true, [true, false]),
        (false, false, [true, false]),
        (false, true, [false, false]),
    ] {
        assert_eq!([true, false].map(|streams| free(rotational, queues, streams)), expected);
    }
    let (mut machine, q) = served_among(config(true), 0);
    machine.bfq.queues[q].short_think = false;
    assert!(!machine.bfq.idling_is_free(q), "a thinker is no stream");
    machine.bfq.queues[q].short_think = true;
    machine.bfq.queues[q].io_bound.is = false;
    assert!(!machine.bfq.idling_is_free(q), "nor is who is not bound by I/O");
    machine.bfq.queues[q].io_bound.is = true;
    machine.bfq.raised_busy = 1;
    assert!(!machine.bfq.idling_is_free(q), "it would hurt who is raised");
}

#[test]
fn a_raised_queue_needs_idling_if_others_are_not_raised_or_have_four_requests_in_flight() {
    let (mut machine, q) = served_among(config(false), 1);
    let bfq = &mut machine.bfq;
    bfq.busy = [0, 2, 0];
    assert!(!bfq.idling_is_needed(q), "alike, and no queue is raised");
    bfq.entity_mut(q).raise = RAISE_INTERACTIVE;
    bfq.raised_busy = 1;
    assert!(bfq.idling_is_needed(q), "one of two is raised");
    bfq.raised_busy = 2;
    assert!(!bfq.idling_is_needed(q));
    bfq.in_driver = bfq.queues[q].dispatched + 3;
    assert!(!bfq.idling_is_needed(q), "three of others in flight");
    bfq.in_driver += 1;
    assert!(bfq.idling_is_needed(q), "four");
    bfq.entity_mut(q).raise = 1;
    assert!(!bfq.idling_is_needed(q), "but only for who is raised");
}

#[test]
fn the_only_queue_with_work_needs_idling_but_not_without_a_process() {
    let (mut machine, q) = served_among(config(false), 0);
    assert!(machine.bfq.idling_is_needed(q));
    machine.bfq.queues[q].process_refs = 0;
    assert!(!machine.bfq.idling_is_needed(q) && !machine.bfq.better_to_idle(q));
    let variant = BfqVariant::of(Kernel::V5_10);
    let (machine, q) = served_among(BfqConfig { variant, ..config(false) }, 0);
    assert!(!machine.bfq.idling_is_needed(q), "before 5.13 it is not waited for");
}

#[test]
fn different_weights_matter_to_all_but_the_lightest() {
    let level = |level| IoPriority::new(PriorityClass::BestEffort, level);
    let mut machine = Machine::new(config(false));
    machine.add(Job { ioprio: level(7), ..Job::sequential(1, 8) });
    machine.add(Job { ioprio: level(4), start: 700 * MS, ..Job::sequential(2, 8) });
    machine.run_until(700 * MS);
    let [light, heavy] = [1, 2].map(|pid| machine.sync_queue(pid));
    assert!(!machine.bfq.is_asymmetric_for(light) && machine.bfq.is_asymmetric_for(heavy));
}

#[test]
fn different_classes_or_several_groups_make_every_queue_asymmetric() {
    let mut machine = Machine::new(config(false));
    machine.read(1, 8, 8);
    assert!(!machine.bfq.is_asymmetric_for(machine.sync_queue(1)));
    machine.bfq.busy[0] = 1;
    assert!(machine.bfq.is_asymmetric_for(machine.sync_queue(1)), "real time has work, too");
    let group = BfqGroup { cgroup: CgroupId(1), parent: CgroupId::ROOT, weight: 100 };
    let mut machine = Machine::new(BfqConfig { groups: vec![group], ..config(false) });
    machine.read(1, 8, 8);
    machine.read_in(1, 2, 1 << 20);
    assert!([1, 2].iter().all(|&pid| machine.bfq.is_asymmetric_for(machine.sync_queue(pid))));
    assert_eq!(machine.bfq.groups_pending, 2, "the root counts");
    (0..2).for_each(|_| {
        machine.serve();
        machine.fire_timer();
    });
    assert_eq!(machine.bfq.groups_pending, 0);
}

#[test]
fn the_timer_runs_8_ms_2_for_a_seeky_queue_among_equals_and_20_for_a_raised_one() {
    let length = |kernel, seeky: bool, raise: u64, asymmetric: bool| {
        let mut machine = Machine::new(BfqConfig { variant: BfqVariant::of(kernel), ..config(true) });
        machine.read(1, 8, 8);
        machine.dispatch();
        let q = machine.sync_queue(1);
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(seeky));
        machine.bfq.entity_mut(q).raise = raise;
        machine.bfq.groups_pending = if asymmetric { 2 } else { 1 };
        machine.inside(|bfq| bfq.wait_for(q));
        machine.timer_left().unwrap() / MS
    };
    let new = Kernel::V6_18;
    assert_eq!([length(new, false, 1, false), length(new, true, 1, false), length(new, true, 1, true)], [8, 2, 8]);
    assert_eq!((length(new, true, 30, false), length(Kernel::V4_12, true, 30, false)), (20, 8));
}

#[test]
fn without_slice_idle_there_is_no_timer() {
    let mut machine = Machine::new(config(true));
    machine.set("slice_idle", 0);
    machine.add(Job { depth: 1, think: MS, ..Job::sequential(1, 64) });
    machine.add(Job { depth: 1, think: MS, start: 700 * MS, ..Job::random(2, 1) });
    for ms in 0..1000 {
        machine.run_until(ms * MS);
        assert_eq!(machine.timer_left(), None);
    }
    assert!(machine.dispatches.len() > 500);
}

#[test]
fn async_queues_and_class_idle_are_never_idled_for_but_with_strict_guarantees() {
    let mut machine = Machine::new(config(true));
    machine.write(1, 0, 8);
    let ioprio = IoPriority::new(PriorityClass::Idle, 7);
    machine.add(Job { ioprio, depth: 1, ..Job::sequential(2, 8) });
    machine.run_until(0);
    let queues = [machine.async_queue(1), machine.sync_queue(2)];
    assert!(queues.iter().all(|&q| !machine.bfq.better_to_idle(q)));
    machine.set("strict_guarantees", 1);
    assert!(queues.iter().all(|&q| machine.bfq.better_to_idle(q)));
}

#[test]
fn a_small_request_leaves_the_timer_of_a_stream_alone_until_the_next_question() {
    for (sectors, stays) in [(31, true), (32, false)] {
        let mut machine = Machine::new(config(true));
        machine.decide_ncq(false);
        machine.read(1, 8, 8);
        machine.serve();
        assert!(machine.timer_left().is_some());
        machine.now = MS;
        let id = machine.read(1, 16, sectors);
        assert_eq!(machine.timer_left().is_some(), stays);
        assert_eq!(machine.dispatch().map(|(id, _)| id), Some(id));
        assert_eq!(machine.timer_left(), None);
    }
}

#[test]
fn a_timer_that_finds_a_request_does_not_end_the_slot() {
    let mut machine = Machine::new(config(true));
    machine.decide_ncq(false);
    machine.read(1, 8, 8);
    machine.serve();
    machine.now = MS;
    machine.read(1, 16, 8);
    machine.fire_timer();
    assert!(machine.expirations(1).is_empty());
    assert_eq!(machine.bfq.in_service, Some(machine.sync_queue(1)));
    machine.serve();
    machine.fire_timer();
    assert_eq!(machine.expirations(1).len(), 1, "it found none");
}

#[test]
fn a_timer_that_was_overtaken_by_another_slot_does_nothing() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.serve();
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    assert_eq!((machine.timer_left(), machine.bfq.in_service), (None, None));
    machine.call(|bfq, cx| bfq.on_timer(cx));
    assert!(machine.expirations(1).is_empty());
}

#[test]
fn while_bfq_idles_nothing_is_dispatched() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.serve();
    machine.now = MS;
    machine.bfq.queues[QueueId(0)].injection.limit = 0;
    machine.read(2, 1 << 20, 8);
    let choice = machine.inside(|bfq| bfq.choose());
    assert_eq!((choice.rq, choice.reason), (None, Reason::Idling));
}
