//! The idling of 4.12 to 4.19: what a queue's idle window, its raising and unequal weights let the device wait for
//! (BFQ-45, BFQ-46, BFQ-66, BFQ-67, BFQ-76, BFQ-83). No recording is of so old a kernel: these tests are all there is.

use super::super::config::RAISE_INTERACTIVE;
use super::super::entity::QueueId;
use super::super::{BfqConfig, BfqGroup, BfqVariant, Expiration};
use super::machine::{MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::CgroupId;
use crate::ground::kernel::Kernel;

const OLD: [Kernel; 2] = [Kernel::V4_12, Kernel::V4_19];

fn as_of(kernel: Kernel, rotational: bool) -> BfqConfig {
    BfqConfig { variant: BfqVariant::of(kernel), ..config(rotational) }
}

/// A queue of process 1 in service, empty, with one request out.
fn served(config: BfqConfig) -> (Machine, QueueId) {
    let mut machine = Machine::new(config);
    machine.read(1, 8, 8);
    machine.dispatch();
    let q = machine.sync_queue(1);
    machine.bfq.in_service.get_or_insert(q);
    (machine, q)
}

#[test]
fn idling_covers_all_queues_without_ncq_and_io_bound_ones_on_disks_with_it() {
    for kernel in OLD {
        let waits = |rotational, queues, io_bound, streams: bool| {
            let (mut machine, q) = served(as_of(kernel, rotational));
            machine.decide_ncq(queues);
            machine.bfq.queues[q].io_bound.is = io_bound;
            machine.bfq.queues[q].idle_window = streams;
            (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(!streams));
            machine.bfq.better_to_idle(q)
        };
        assert!(waits(true, false, false, false) && waits(true, true, true, true), "{kernel}");
        assert!(!waits(true, true, false, true) && !waits(true, true, true, false), "{kernel}");
        // From 4.14 on flash is waited on for streams that io binds, before for any pattern.
        assert_eq!(waits(false, false, false, false), kernel == Kernel::V4_12, "{kernel}");
        assert!(waits(false, false, true, true) && !waits(false, true, true, true), "{kernel}");
    }
}

#[test]
fn a_raised_busy_queue_disables_idling_for_throughput() {
    for kernel in OLD {
        let (mut machine, q) = served(as_of(kernel, true));
        machine.decide_ncq(false);
        machine.bfq.raised_busy = 1;
        assert!(!machine.bfq.better_to_idle(q), "{kernel}");
    }
}

#[test]
fn raised_queues_are_idled_for_unless_they_came_in_a_large_burst() {
    for kernel in OLD {
        let (mut machine, q) = served(as_of(kernel, false));
        machine.decide_ncq(true);
        assert!(!machine.bfq.better_to_idle(q), "alike, and the device queues");
        machine.bfq.entity_mut(q).raise = RAISE_INTERACTIVE;
        machine.bfq.raised_busy = 1;
        assert!(machine.bfq.better_to_idle(q), "{kernel}");
        machine.bfq.queues[q].in_large_burst = true;
        assert!(!machine.bfq.better_to_idle(q), "{kernel}");
    }
}

#[test]
fn unequal_weights_of_queues_or_groups_allow_idling_even_for_the_lightest() {
    let level = |level| IoPriority::new(PriorityClass::BestEffort, level);
    let queues = |levels: [u8; 2]| {
        let mut machine = Machine::new(as_of(Kernel::V4_12, false));
        for (pid, ioprio) in (1..).zip(levels.map(level)) {
            let bio = crate::bio::Bio::new(crate::bio::Op::Read, crate::ground::ids::Sector(u64::from(pid) << 24), 8);
            machine.insert(crate::bio::Bio { ioprio, io_context: crate::ground::ids::IoContextId(pid), ..bio });
        }
        [1, 2].map(|pid| machine.bfq.better_to_idle(machine.sync_queue(pid)))
    };
    assert_eq!((queues([4, 4]), queues([4, 6])), ([false; 2], [true; 2]));
    let groups = |weights: [u16; 2]| {
        let group = |(id, weight)| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight };
        let groups = (1..).zip(weights).map(group).collect();
        let mut machine = Machine::new(BfqConfig { groups, ..as_of(Kernel::V4_12, false) });
        (1..=2).for_each(|id| {
            machine.read_in(id, id, u64::from(id) << 24);
        });
        [1, 2].map(|pid| machine.bfq.better_to_idle(machine.sync_queue(pid)))
    };
    assert_eq!((groups([100, 100]), groups([100, 200])), ([false; 2], [true; 2]));
}

/// What becomes of the idle window of a queue that is served, has received this many sectors in its slot, and gets a request.
fn window_of(service: u64, seeky: bool, raised: bool, thinks_ms: i64) -> bool {
    let (mut machine, q) = served(as_of(Kernel::V4_12, true));
    (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(seeky));
    machine.bfq.entity_mut(q).service = service;
    machine.bfq.entity_mut(q).raise = if raised { RAISE_INTERACTIVE } else { 1 };
    let think = &mut machine.bfq.queues[q].think;
    think.ended(-thinks_ms * MS as i64);
    (0..32).for_each(|_| think.arrived(0, 8 * MS as i64));
    machine.read(1, 16, 8);
    machine.bfq.queues[q].idle_window
}

#[test]
fn the_window_of_a_seeky_queue_is_closed_once_it_has_received_more_than_an_eighth_of_the_largest_budget() {
    assert!(window_of(2048, true, false, 0) && !window_of(2049, true, false, 0));
    assert!(window_of(2049, false, false, 0), "a stream keeps it");
    assert!(window_of(2049, true, true, 0), "and so does who is raised");
}

#[test]
fn the_window_of_a_slow_thinker_is_closed_unless_it_is_raised() {
    assert!(window_of(0, false, false, 7) && !window_of(0, false, false, 9));
    assert!(window_of(0, false, true, 9));
}

#[test]
fn since_4_14_seeks_do_not_affect_think_time_and_5_0_halves_its_limit() {
    let short = |kernel, thinks_ms: i64| {
        let (mut machine, q) = served(as_of(kernel, true));
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
        machine.bfq.entity_mut(q).service = 4096;
        let think = &mut machine.bfq.queues[q].think;
        think.ended(-thinks_ms * MS as i64);
        (0..32).for_each(|_| think.arrived(0, 8 * MS as i64));
        machine.read(1, 16, 8);
        machine.bfq.queues[q].short_think
    };
    assert_eq!([3, 5, 7, 9].map(|ms| short(Kernel::V4_19, ms)), [true, true, true, false]);
    assert_eq!([3, 5, 7, 9].map(|ms| short(Kernel::V5_10, ms)), [true, false, false, false]);
}

#[test]
fn think_time_is_sampled_at_every_arrival_before_5_0_and_then_only_at_a_queue_without_requests() {
    for (kernel, samples) in [(Kernel::V4_12, true), (Kernel::V4_19, true), (Kernel::V5_10, false)] {
        let mut machine = Machine::new(as_of(kernel, true));
        (0..3).for_each(|at| {
            machine.read(1, at * 8, 8);
        });
        let q = machine.sync_queue(1);
        assert_eq!(machine.bfq.queues[q].think.trusted_mean().is_some(), samples, "{kernel}");
    }
}

#[test]
fn a_raised_newcomer_takes_the_device_without_anything_to_recover() {
    for kernel in OLD {
        let mut machine = Machine::new(as_of(kernel, true));
        (0..2).for_each(|at| {
            machine.read(1, at * 8, 8);
        });
        machine.dispatch();
        machine.set("low_latency", 1);
        machine.now = MS;
        machine.read(2, 1 << 24, 8);
        assert_eq!(machine.expirations(1).iter().map(|end| end.1).collect::<Vec<_>>(), ["preempted"], "{kernel}");
    }
}

#[test]
fn in_4_12_a_dispatch_does_not_end_a_slot_whose_idle_timer_runs() {
    for (config, expected) in [(as_of(Kernel::V4_12, true), 0), (config(true), 1)] {
        let (mut machine, q) = served(config);
        machine.decide_ncq(false);
        let id = machine.in_device[0].1;
        machine.finish(id);
        assert!(machine.bfq.queues[q].waiting);
        machine.now = MS;
        machine.read(1, 16, 8);
        assert!(machine.bfq.queues[q].waiting, "small and alone: it may still grow");
        machine.now = 126 * MS;
        machine.dispatch();
        assert_eq!(machine.expirations(1).len(), expected);
    }
}

#[test]
fn in_4_12_a_small_lone_request_keeps_the_queue_waiting() {
    for (config, stays) in [(as_of(Kernel::V4_12, true), true), (config(true), false)] {
        let (mut machine, q) = served(config);
        machine.decide_ncq(true);
        machine.bfq.queues[q].waiting = true;
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
        machine.read(1, 16, 8);
        assert_eq!(machine.bfq.queues[q].waiting, stays);
    }
}

#[test]
fn a_slot_that_idled_away_more_than_a_fifth_of_its_budget_says_nothing_against_io() {
    let bound_after = |service| {
        let (mut machine, q) = served(as_of(Kernel::V4_12, true));
        machine.bfq.entity_mut(q).budget = 1000;
        machine.bfq.entity_mut(q).service = service;
        machine.inside(|bfq| bfq.expire(q, true, Expiration::TooIdle));
        machine.bfq.queues[q].io_bound.is
    };
    assert!(!bound_after(200) && bound_after(201));
}

#[test]
fn the_estimator_takes_distance_for_a_seek_on_flash_too() {
    for (config, sequential) in [(as_of(Kernel::V4_12, false), 0), (config(false), 1)] {
        let mut machine = Machine::new(config);
        machine.read(1, 0, 128);
        machine.read(1, 1 << 24, 128);
        machine.dispatch();
        machine.dispatch();
        assert_eq!(machine.bfq.rate.sequential, sequential);
    }
}

#[test]
fn a_queue_that_ends_empty_with_requests_out_is_not_soft_real_time_until_they_are_done() {
    for (config, at_once) in [(as_of(Kernel::V4_12, true), i64::MAX), (config(true), 0)] {
        let (mut machine, q) = served(config);
        machine.set("low_latency", 1);
        machine.bfq.queues[q].raising.soft_rt_next_start = 0;
        machine.inside(|bfq| bfq.expire(q, false, Expiration::NoMoreRequests));
        assert_eq!(machine.bfq.queues[q].raising.soft_rt_next_start, at_once);
        machine.now = 5 * MS;
        let id = machine.in_device[0].1;
        machine.finish(id);
        assert_eq!(machine.bfq.queues[q].raising.soft_rt_next_start, 5 + 8 + 4, "computed at the completion");
    }
}
