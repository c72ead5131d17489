//! What a process finds when it leaves a shared queue: the state of its own queue as it was (BFQ-108, BFQ-110).

use super::super::config::{LONG_AGO_TICK, RAISE_INTERACTIVE, RAISE_SOFT_RT};
use super::super::entity::QueueId;
use super::super::{BfqConfig, BfqVariant};
use super::machine::{MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::IoContextId;
use crate::policy::{Scheduler, SchedulerEvent};

const FAR: u64 = 1 << 30;

/// Processes 1 and 2 share 1's queue. `before` sees 2's own queue just before it is merged away.
fn shared(before: impl FnOnce(&mut Machine, QueueId)) -> (Machine, QueueId) {
    let mut config = config(true);
    config.variant = BfqVariant { stable_merging: false, ..config.variant };
    let mut machine = Machine::new(config);
    machine.now = 10_000 * MS;
    machine.read(1, 1000, 8);
    machine.read(2, FAR, 8);
    let [one, two] = [1, 2].map(|pid| machine.sync_queue(pid));
    before(&mut machine, two);
    machine.inside(|bfq| {
        let context = bfq.contexts.find(crate::ground::ids::IoContextId(2)).unwrap();
        bfq.plan_merge(two, one).unwrap();
        bfq.execute_merge(context, two);
    });
    machine.bfq.queues[one].split_wanted = true;
    (machine, one)
}

/// Process 2 leaves; returns its new queue.
fn leave(machine: &mut Machine, shared: QueueId) -> QueueId {
    machine.read(2, 2 * FAR, 8);
    let own = machine.sync_queue(2);
    assert_ne!(own, shared);
    own
}

fn raise(factor: u64, start: i64, duration: i64, switch: i64) -> impl FnOnce(&mut Machine, QueueId) {
    move |machine, q| {
        machine.bfq.queues[q].just_created = false;
        let raising = &mut machine.bfq.queues[q].raising;
        (raising.start, raising.duration, raising.start_at_switch) = (start, duration, switch);
        machine.inside(|bfq| bfq.set_raise(q, factor));
    }
}

#[test]
fn raising_is_restored_only_with_low_latency() {
    for (low_latency, expected) in [(1, RAISE_INTERACTIVE), (0, 1)] {
        let (mut machine, common) = shared(raise(RAISE_INTERACTIVE, 10_000, 5000, LONG_AGO_TICK));
        // (Switching it off would end the raising that others have, which is not what is asked here.)
        machine.bfq.settings.low_latency = low_latency == 1;
        let own = leave(&mut machine, common);
        assert_eq!(machine.bfq.entity(own).raise, expected);
    }
}

#[test]
fn raising_that_is_over_is_dropped_or_goes_back_to_the_interactive_one_before_it() {
    let factor = |factor, duration, switch, burst| {
        let (mut machine, common) = shared(raise(factor, 10_000, duration, switch));
        machine.bfq.settings.low_latency = true;
        machine.bfq.queues[common].in_large_burst = burst;
        machine.now = 10_100 * MS;
        let own = leave(&mut machine, common);
        machine.bfq.entity(own).raise
    };
    assert_eq!(factor(RAISE_INTERACTIVE, 100, LONG_AGO_TICK, false), RAISE_INTERACTIVE);
    assert_eq!(factor(RAISE_INTERACTIVE, 99, LONG_AGO_TICK, false), 1);
    assert_eq!(factor(RAISE_SOFT_RT, 99, LONG_AGO_TICK, false), 1);
    assert_eq!(factor(RAISE_SOFT_RT, 99, 9_000, false), RAISE_INTERACTIVE, "10.5 s from 9 s on are not over");
    assert_eq!(factor(RAISE_SOFT_RT, 99, 9_000, true), 1, "not in a large burst");
    assert_eq!(factor(RAISE_INTERACTIVE, 100, LONG_AGO_TICK, true), 1, "and nothing else there either");
}

#[test]
fn a_queue_merged_at_creation_is_saved_as_interactive_unless_in_a_burst() {
    for (burst, low_latency, expected) in [(false, true, RAISE_INTERACTIVE), (true, true, 1), (false, false, 1)] {
        let (machine, _) = shared(|machine, q| {
            machine.bfq.queues[q].just_created = true;
            machine.bfq.queues[q].in_large_burst = burst;
            machine.bfq.settings.low_latency = low_latency;
        });
        assert_eq!(machine.queues_of(2).saved.map(|saved| saved.raise), Some(expected));
    }
}

#[test]
fn membership_of_a_burst_is_restored() {
    let marked = |listed: bool, shared_marked: bool, large: bool| {
        let (mut machine, common) = shared(|machine, q| {
            machine.bfq.queues[q].just_created = false;
            if listed {
                machine.bfq.burst.readmit(q);
            } else {
                machine.bfq.burst.leave(q, false);
            }
        });
        machine.bfq.queues[common].in_large_burst = shared_marked;
        machine.bfq.burst.large = large;
        let size = machine.bfq.burst.size;
        let own = leave(&mut machine, common);
        assert_eq!(machine.bfq.burst.size, size, "none is counted twice");
        (machine.bfq.queues[own].in_large_burst, machine.bfq.burst.contains(own))
    };
    assert_eq!(marked(false, false, true), (false, false));
    assert_eq!(marked(false, true, false), (true, false), "the shared queue is marked");
    assert_eq!(marked(true, false, true), (true, false), "the burst has become large meanwhile");
    assert_eq!(marked(true, false, false), (false, true), "back in the list");
}

#[test]
fn a_new_queue_inherits_the_waker_and_the_base_weight_that_was_saved() {
    let (mut machine, common) = shared(|_, _| {});
    machine.read(3, 3 * FAR, 8);
    let waker = machine.sync_queue(3);
    machine.inside(|bfq| bfq.set_waker(common, Some(waker)));
    let context = machine.bfq.contexts.find(crate::ground::ids::IoContextId(2)).unwrap();
    machine.bfq.contexts[context].queues[0].saved.as_mut().unwrap().weight = 70;
    let own = leave(&mut machine, common);
    assert_eq!(machine.bfq.queues[own].waker.known, Some(waker));
    assert_eq!(machine.bfq.queues[waker].waker.woken.first(), Some(&own));
    assert_eq!(machine.bfq.entity(own).requested_weight, 70);
}

#[test]
fn the_split_mark_stays_until_one_process_has_the_queue_alone() {
    let (mut machine, common) = shared(|_, _| {});
    leave(&mut machine, common);
    assert!(machine.bfq.queues[common].split_wanted, "the others are to leave as well");
    machine.read(1, 5 * FAR, 8);
    assert_eq!(machine.sync_queue(1), common);
    let queue = &machine.bfq.queues[common];
    assert!(!queue.split_wanted && !queue.shared && queue.owner.is_some());
}

#[test]
fn the_last_process_of_a_shared_queue_keeps_it_with_its_own_saved_state() {
    let (mut machine, common) = shared(raise(RAISE_INTERACTIVE, 10_000, 5000, LONG_AGO_TICK));
    let context = machine.bfq.contexts.find(IoContextId(2)).unwrap();
    machine.bfq.contexts[context].queues[0].saved.as_mut().unwrap().weight = 70;
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    machine.bfq.queues[common].split_wanted = true;
    machine.read(2, 2 * FAR, 8);
    assert_eq!(machine.sync_queue(2), common);
    assert!(!machine.bfq.queues[common].shared);
    assert_eq!(
        (machine.bfq.entity(common).requested_weight, machine.bfq.entity(common).raise),
        (70, RAISE_INTERACTIVE)
    );
}

#[test]
fn a_merge_passes_on_io_boundness_raising_and_the_last_created_role() {
    let (machine, common) = shared(|machine, two| {
        let [one] = [1].map(|pid| machine.sync_queue(pid));
        machine.bfq.queues[one].io_bound.refute();
        machine.bfq.groups[super::super::entity::GroupId::ROOT].last_created = Some(two);
        raise(RAISE_INTERACTIVE, 9_990, 5000, LONG_AGO_TICK)(machine, two);
    });
    assert!(machine.bfq.queues[common].io_bound.is);
    assert_eq!(machine.bfq.groups[super::super::entity::GroupId::ROOT].last_created, Some(common));
    assert_eq!(
        (machine.bfq.entity(common).raise, machine.bfq.queues[common].raising.start),
        (RAISE_INTERACTIVE, 9_990)
    );
    assert_eq!(machine.bfq.raised_busy, 1, "the one that was merged away is raised no longer");
}

/// Whether a queue that is due for a permanent merge with its elder goes over at its next request.
fn merges_stably(config: BfqConfig, prepare: impl FnOnce(&mut Machine, QueueId)) -> bool {
    let mut machine = Machine::new(config);
    machine.read(1, 8, 8);
    machine.now = 20 * MS;
    machine.read(2, FAR, 8);
    let two = machine.sync_queue(2);
    machine.bfq.queues[two].io_bound.refute();
    machine.now = 621 * MS;
    prepare(&mut machine, two);
    machine.read(2, 2 * FAR, 8);
    machine.sync_queue(2) != two
}

#[test]
fn a_stable_merge_waits_for_600_ms_after_creation_and_split() {
    assert!(merges_stably(config(true), |_, _| {}));
    assert!(!merges_stably(config(true), |machine, q| machine.bfq.queues[q].created = 21));
    assert!(!merges_stably(config(true), |machine, q| machine.bfq.queues[q].split = 21));
}

#[test]
fn a_queue_of_another_class_or_after_600_ms_becomes_the_last_created_one() {
    let compared = |class, gap: u64| {
        let mut machine = Machine::new(config(true));
        machine.read(1, 8, 8);
        machine.now = gap * MS;
        let ioprio = IoPriority::new(class, 4);
        let bio = crate::bio::Bio::new(crate::bio::Op::Read, crate::ground::ids::Sector(FAR), 8);
        machine.insert(crate::bio::Bio { ioprio, io_context: crate::ground::ids::IoContextId(2), ..bio });
        let two = machine.sync_queue(2);
        let last = machine.bfq.groups[super::super::entity::GroupId::ROOT].last_created;
        (last == Some(two), machine.queues_of(2).stable_merge.is_some())
    };
    let be = PriorityClass::BestEffort;
    assert_eq!(compared(be, 180), (false, true));
    assert_eq!((compared(be, 181), compared(be, 600)), ((false, false), (false, false)));
    assert_eq!(compared(be, 601), (true, false));
    assert_eq!(compared(PriorityClass::RealTime, 20), (true, false));
}

#[test]
fn a_queue_left_by_its_process_is_no_longer_the_last_created_one() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    assert_eq!(machine.bfq.groups[super::super::entity::GroupId::ROOT].last_created, None);
}

#[test]
fn a_merge_target_regains_its_own_state_when_it_leaves() {
    let (mut machine, common) = shared(|machine, _| {
        let one = machine.sync_queue(1);
        machine.bfq.queues[one].short_think = false;
        machine.bfq.queues[one].injection.baseline = 4711;
    });
    machine.read(1, 3 * FAR, 8);
    let own = machine.sync_queue(1);
    assert_ne!(own, common);
    let queue = &machine.bfq.queues[own];
    assert_eq!((queue.short_think, queue.injection.baseline), (false, 4711));
}
