//! Budgets and the ends of slots (BFQ-36 to BFQ-43).

use super::super::Expiration;
use super::machine::{MS, Machine, config};

/// The learned budgets of a queue whose slots all end for `reason`.
fn learned(reason: Expiration, from: u64, slots: usize) -> Vec<u64> {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    machine.dispatch();
    let q = machine.bfq.in_service.unwrap();
    machine.bfq.queues[q].max_budget = from;
    machine.bfq.queues[q].dispatched = 0;
    machine.bfq.budgets_assigned = 0;
    (0..slots)
        .map(|_| {
            machine.bfq.learn_budget(q, reason);
            machine.bfq.queues[q].max_budget
        })
        .collect()
}

#[test]
fn idling_too_long_shrinks_the_budget_and_exhausting_it_quadruples_it() {
    assert_eq!(learned(Expiration::TooIdle, 10_922, 8), [8874, 6826, 4778, 2730, 682, 512, 512, 512]);
    assert_eq!(learned(Expiration::BudgetExhausted, 512, 4), [2048, 8192, 16_384, 16_384]);
    assert_eq!(learned(Expiration::BudgetTimeout, 4096, 3), [8192, 16_384, 16_384]);
    assert_eq!(learned(Expiration::NoMoreRequests, 4096, 1), [512], "the service, but not less than the smallest");
    assert_eq!(learned(Expiration::Preempted, 4096, 1), [4096]);
}

#[test]
fn statistics_count_from_the_eleventh_slot_on() {
    let mut machine = Machine::new(config(true));
    let counts: Vec<u32> = (0..12)
        .map(|_| {
            machine.bfq.count_slot();
            machine.bfq.budgets_assigned
        })
        .collect();
    assert_eq!(counts, [32, 60, 84, 105, 123, 139, 153, 165, 176, 186, 194, 201]);
}

#[test]
fn a_seeky_queue_is_charged_for_the_time_of_its_slot() {
    let charged = |after_ns| {
        let mut machine = Machine::new(config(true));
        for sector in 0..40 {
            machine.read(1, sector * 10_000, 8);
        }
        (0..5).for_each(|_| {
            machine.dispatch();
        });
        machine.now = after_ns;
        machine.call(|bfq, cx| {
            bfq.begin(cx.now);
            let q = bfq.in_service.unwrap();
            bfq.expire(q, false, Expiration::BudgetExhausted);
        });
        machine.stamps(1)[1].1 - machine.stamps(1)[1].0
    };
    let sectors = |total: u64| (total << 22) / 40;
    assert_eq!(charged(MS / 2), sectors(16_384 * 8 / 125), "a very short slot counts as 8 ms on a disk");
    assert_eq!(charged(62 * MS), sectors(16_384 * 62 / 125));
    assert_eq!(charged(200 * MS), sectors(16_384), "no more than a whole slot");
}

#[test]
fn an_async_queue_always_learns_the_largest_budget_and_a_raised_one_twice_the_smallest() {
    for reason in [Expiration::TooIdle, Expiration::NoMoreRequests, Expiration::BudgetExhausted] {
        let mut machine = Machine::new(config(true));
        machine.write(1, 0, 8);
        machine.dispatch();
        let q = machine.async_queue(1);
        machine.bfq.max_budget = 20_000;
        machine.bfq.learn_budget(q, reason);
        assert_eq!(machine.bfq.queues[q].max_budget, 20_000);
        let mut machine = Machine::new(config(true));
        machine.read(1, 0, 8);
        machine.dispatch();
        let q = machine.sync_queue(1);
        machine.bfq.entity_mut(q).raise = 30;
        machine.bfq.learn_budget(q, reason);
        assert_eq!(machine.bfq.queues[q].max_budget, 1024);
    }
}

#[test]
fn a_learned_budget_is_capped_once_the_statistics_count_unless_the_user_set_the_largest() {
    let capped = |slots, user| {
        let mut machine = Machine::new(config(true));
        machine.read(1, 0, 8);
        machine.dispatch();
        let q = machine.sync_queue(1);
        machine.bfq.queues[q].dispatched = 0;
        machine.bfq.queues[q].max_budget = 50_000;
        machine.bfq.max_budget = 9600;
        machine.bfq.budgets_assigned = slots;
        machine.bfq.settings.user_max_budget = user;
        machine.bfq.learn_budget(q, Expiration::TooIdle);
        machine.bfq.queues[q].max_budget
    };
    assert_eq!(capped(193, 0), 50_000 - 4 * 512);
    assert_eq!((capped(194, 0), capped(194, 9600)), (9600, 50_000 - 4 * 300));
}

#[test]
fn a_budget_is_large_enough_for_the_request_that_is_next() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    machine.read(1, 8, 700);
    machine.dispatch();
    let q = machine.sync_queue(1);
    machine.bfq.queues[q].max_budget = 512;
    machine.bfq.queues[q].dispatched = 0;
    machine.bfq.learn_budget(q, Expiration::TooIdle);
    assert_eq!((machine.bfq.queues[q].max_budget, machine.bfq.entity(q).budget), (512, 700));
}

#[test]
fn service_time_is_charged_by_the_default_timeout_not_the_tunable() {
    let mut machine = Machine::new(config(true));
    machine.set("timeout_sync", 250);
    machine.read(1, 0, 8);
    machine.read(1, 1 << 30, 8);
    machine.dispatch();
    let q = machine.sync_queue(1);
    (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
    machine.now = 62 * MS;
    machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetExhausted));
    assert_eq!(machine.bfq.queues[q].service_since_backlogged, 16_384 * 62 / 125);
}

#[test]
fn a_new_estimate_of_the_rate_gives_a_new_largest_budget_unless_the_user_has_set_one() {
    use super::super::rate::RateEvent;
    for (fixed, expected) in [(0, 2 * 17_801), (500, 500)] {
        let mut machine = Machine::new(config(true));
        machine.set("max_budget", fixed);
        machine.bfq.rate.rate *= 2;
        machine.inside(|bfq| bfq.note_rate_event(RateEvent { updated: false, reset: true }));
        assert_ne!(machine.bfq.max_budget, 2 * 17_801);
        machine.inside(|bfq| bfq.note_rate_event(RateEvent { updated: true, reset: false }));
        assert!(machine.bfq.max_budget.abs_diff(expected) <= 1, "{}", machine.bfq.max_budget);
    }
}
