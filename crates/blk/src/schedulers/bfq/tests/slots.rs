//! Slots: how long they may last, how they end, and what that costs (BFQ-36, BFQ-37, BFQ-41, BFQ-43 to BFQ-51, BFQ-84).

use super::super::config::{RAISE_INTERACTIVE, RAISE_SOFT_RT};
use super::super::{BfqConfig, BfqVariant, Expiration, StateChange};
use super::machine::{Job, MS, Machine, config};
use crate::ground::kernel::Kernel;

/// A machine whose process 1 is in service with one request out and more waiting.
fn in_service(config: BfqConfig) -> Machine {
    let mut machine = Machine::new(config);
    (0..8).for_each(|at| {
        machine.read(1, at * 8, 8);
    });
    machine.dispatch();
    machine
}

#[test]
fn a_slot_of_an_interactive_queue_lasts_thirty_times_as_long_and_one_of_soft_real_time_does_not() {
    let limit = |raise| {
        let mut machine = Machine::new(config(true));
        machine.now = 1000 * MS;
        machine.read(1, 0, 8);
        let q = machine.sync_queue(1);
        let entity = machine.bfq.queues[q].entity;
        machine.bfq.set_raise(q, raise);
        machine.bfq.hierarchy.enqueue(entity, false, false);
        machine.bfq.queues[q].raising.duration = 100_000;
        machine.dispatch();
        machine.bfq.queues[q].budget_timeout - 1000
    };
    assert_eq!([1, RAISE_INTERACTIVE, RAISE_SOFT_RT].map(limit), [125, 3750, 125]);
}

#[test]
fn a_slot_is_slow_by_seeks_up_to_20_ms_and_by_its_rate_beyond() {
    let mut machine = in_service(config(true));
    let q = machine.sync_queue(1);
    let mut pace = |duration: u64, seeky: bool, service: u64| {
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(seeky));
        machine.bfq.entity_mut(q).service = service;
        machine.bfq.slot_start = 0;
        machine.bfq.now.ns = duration;
        let pace = machine.bfq.pace(q, false);
        (pace.slow, pace.millis)
    };
    assert_eq!(pace(999_999, false, 0), (false, 8), "too short to tell: the time of an idle slice");
    assert_eq!(pace(999_999, true, 0), (true, 8));
    assert_eq!(pace(MS, false, 0), (false, 1));
    assert_eq!(pace(20 * MS, false, 0), (false, 20));
    assert_eq!(pace(20 * MS + 1, false, 8191), (true, 20), "less than half of the largest budget");
    assert_eq!(pace(20 * MS + 1, true, 8192), (false, 20));
    machine.bfq.config.rotational = false;
    machine.bfq.now.ns = 1;
    assert_eq!(machine.bfq.pace(q, false).millis, 2);
}

#[test]
fn async_queues_are_never_slow_and_raised_ones_never_charged_for_time() {
    let mut machine = Machine::new(config(true));
    machine.write(1, 0, 8);
    machine.write(1, 1 << 30, 8);
    machine.dispatch();
    let q = machine.bfq.in_service.unwrap();
    (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
    machine.now = 60 * MS;
    assert!(!machine.inside(|bfq| bfq.pace(q, false).slow));
    let charged = |raise| {
        let mut machine = in_service(config(true));
        let q = machine.sync_queue(1);
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
        machine.bfq.entity_mut(q).raise = raise;
        machine.now = 60 * MS;
        machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetExhausted));
        machine.bfq.queues[q].service_since_backlogged
    };
    assert_eq!((charged(30), charged(1)), (8, 16_384 * 60 / 125));
}

#[test]
fn a_timeout_charges_time_only_if_a_third_of_the_budget_is_left() {
    let charged = |service| {
        let mut machine = in_service(config(true));
        let q = machine.sync_queue(1);
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(false));
        machine.bfq.entity_mut(q).budget = 12_000;
        machine.bfq.entity_mut(q).service = service;
        machine.now = 200 * MS;
        machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetTimeout));
        machine.bfq.queues[q].service_since_backlogged > 8
    };
    // Not slow from 8192 sectors on.
    assert!(!charged(8193), "3807 of 12000 are left");
    assert!(charged(8191), "slow");
    let mut machine = in_service(config(true));
    machine.bfq.max_budget = 1000;
    let q = machine.sync_queue(1);
    machine.bfq.entity_mut(q).budget = 12_000;
    machine.bfq.entity_mut(q).service = 8000;
    machine.now = 200 * MS;
    machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetTimeout));
    assert_eq!(
        machine.bfq.queues[q].service_since_backlogged, 8,
        "a third is left, but it has had more than time costs"
    );
}

#[test]
fn time_costs_no_more_than_a_slot_and_before_4_19_a_whole_slot_costs_nothing() {
    let charged = |kernel, ms: u64| {
        let mut machine = in_service(BfqConfig { variant: BfqVariant::of(kernel), ..config(true) });
        let q = machine.sync_queue(1);
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
        machine.now = ms * MS;
        machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetExhausted));
        let lines = machine.lines_of(1, |what| matches!(what, StateChange::Vtime { .. }));
        let StateChange::Vtime { service, .. } = lines[1].1 else { unreachable!() };
        service
    };
    assert_eq!([124, 125, 500].map(|ms| charged(Kernel::V6_18, ms)), [16_252, 16_384, 16_384]);
    assert_eq!([124, 125, 500].map(|ms| charged(Kernel::V4_12, ms)), [16_252, 8, 8]);
}

#[test]
fn a_preempted_queue_keeps_its_budget_and_one_that_ran_dry_learns_what_it_was_charged() {
    let mut machine = in_service(config(true));
    let q = machine.sync_queue(1);
    let before = (machine.bfq.queues[q].max_budget, machine.bfq.entity(q).budget);
    machine.inside(|bfq| bfq.expire(q, false, Expiration::Preempted));
    assert_eq!((machine.bfq.queues[q].max_budget, machine.bfq.entity(q).budget), before);
    let mut machine = in_service(config(true));
    while machine.bfq.queues[q].queued() > 0 {
        machine.dispatch();
    }
    machine.now = 50 * MS;
    machine.inside(|bfq| bfq.expire(q, false, Expiration::NoMoreRequests));
    assert_eq!(machine.bfq.queues[q].max_budget, 16_384 * 50 / 125, "time included");
}

#[test]
fn a_slot_times_out_when_checked_unless_an_idling_queue_has_little_left() {
    let mut machine = in_service(config(true));
    let q = machine.sync_queue(1);
    machine.now = 124 * MS;
    machine.inside(|bfq| assert!(!bfq.may_time_out(q)));
    machine.now = 125 * MS;
    machine.inside(|bfq| {
        assert!(bfq.may_time_out(q));
        bfq.queues[q].waiting = true;
        bfq.entity_mut(q).budget = 9000;
        bfq.entity_mut(q).service = 6000;
        assert!(bfq.may_time_out(q), "a third is left");
        bfq.entity_mut(q).service = 6001;
        assert!(!bfq.may_time_out(q));
        bfq.queues[q].waiting = false;
    });
    assert!(machine.expirations(1).is_empty(), "there is no timer for it");
    machine.dispatch();
    assert_eq!(machine.expirations(1), [(125 * MS, "budget_timeout")]);
}

#[test]
fn without_idling_the_slot_of_a_depth_one_queue_ends_when_its_request_has_left_as_in_28_23() {
    let mut machine = Machine::new(config(false));
    machine.read(1, 0, 8);
    machine.now = 700 * MS;
    machine.read(2, 1 << 20, 8);
    assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(0));
    machine.now = 701 * MS;
    assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(1 << 20));
    assert_eq!(machine.expirations(1), [(701 * MS, "no_more_requests")], "while the request is in flight");
    machine.now = 702 * MS;
    assert_eq!(machine.dispatch(), None);
    assert!(machine.expirations(2).is_empty(), "the only one with work is kept");
}

#[test]
fn the_request_that_does_not_fit_ends_the_slot_before_it_leaves() {
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 1024));
    machine.add(Job::sequential(2, 1024));
    machine.run_until(41 * MS);
    let first = machine.dispatches.iter().filter(|&&(_, pid, _)| pid == 1).count();
    assert_eq!(first, 10, "10 * 1024 fit in 10922");
}

#[test]
fn a_timeout_with_just_a_third_of_the_budget_left_is_charged_for_its_time() {
    let charged = |service| {
        let mut machine = in_service(config(true));
        let q = machine.sync_queue(1);
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(false));
        machine.bfq.entity_mut(q).budget = 12_300;
        // Enough of the 16384 sectors for not being slow.
        machine.bfq.entity_mut(q).service = service;
        machine.now = 200 * MS;
        machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetTimeout));
        machine.bfq.queues[q].service_since_backlogged > 8
    };
    assert_eq!([8200, 8201].map(charged), [true, false]);
}

#[test]
fn each_slot_counts_for_the_statistics_of_budgets() {
    let mut machine = Machine::new(config(true));
    let counted: Vec<u32> = (1..=3)
        .map(|pid| {
            machine.read(pid, u64::from(pid) << 30, 8);
            machine.inside(|bfq| {
                if let Some(q) = bfq.in_service {
                    bfq.expire(q, false, Expiration::Preempted);
                }
            });
            machine.dispatch();
            machine.bfq.budgets_assigned
        })
        .collect();
    assert_eq!(counted, [32, 60, 84]);
}
