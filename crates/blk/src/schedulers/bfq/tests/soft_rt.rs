//! Raising, its smaller rules: stamps, claims, soft real time (BFQ-92 to BFQ-98).

use super::super::config::{LONG_AGO_TICK, RAISE_INTERACTIVE, RAISE_SOFT_RT};
use super::super::entity::QueueId;
use super::super::raising::Claim;
use super::super::{BfqConfig, BfqVariant, Expiration};
use super::machine::{MS, Machine, config};
use crate::ground::kernel::Kernel;

/// A queue of process 1 at 1 s, with one request waiting and not raised; low latency is on.
fn queued(config: BfqConfig) -> (Machine, QueueId) {
    let mut machine = Machine::new(config);
    machine.now = 1000 * MS;
    machine.read(1, 8, 8);
    machine.set("low_latency", 1);
    let q = machine.sync_queue(1);
    (machine, q)
}

fn old() -> BfqConfig {
    BfqConfig { variant: BfqVariant::of(Kernel::V4_12), ..config(true) }
}

/// What the queue may claim, after `prepare`, with a soft real-time arrival.
fn claim(config: BfqConfig, prepare: impl FnOnce(&mut Machine, QueueId)) -> Claim {
    let (mut machine, q) = queued(config);
    machine.bfq.queues[q].raising.soft_rt_next_start = 0;
    // Not empty for long: nothing interactive about it.
    machine.bfq.queues[q].budget_timeout = 1000;
    (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(false));
    prepare(&mut machine, q);
    let context = machine.bfq.contexts.find(crate::ground::ids::IoContextId(1)).unwrap();
    machine.inside(|bfq| bfq.claim(q, context))
}

#[test]
fn soft_real_time_needs_the_default_weight_nothing_in_flight_some_locality_and_no_burst() {
    let none = |_: &mut Machine, _| {};
    assert!(claim(config(true), none).soft_rt && claim(config(true), none).deserved);
    let in_flight = |machine: &mut Machine, q: QueueId| machine.bfq.queues[q].dispatched = 1;
    let heavy = |machine: &mut Machine, q| machine.bfq.entity_mut(q).requested_weight = 50;
    let seeks = |machine: &mut Machine, q: QueueId| (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
    let burst = |machine: &mut Machine, q: QueueId| machine.bfq.queues[q].in_large_burst = true;
    let early = |machine: &mut Machine, q: QueueId| machine.bfq.queues[q].raising.soft_rt_next_start = 1000;
    assert!(!claim(config(true), in_flight).soft_rt && claim(old(), in_flight).soft_rt);
    assert!(!claim(config(true), heavy).soft_rt && claim(old(), heavy).soft_rt);
    assert!(!claim(config(true), seeks).soft_rt && claim(old(), seeks).soft_rt);
    assert!(!claim(config(true), burst).soft_rt && !claim(old(), burst).soft_rt);
    assert!(!claim(config(true), early).soft_rt && !claim(old(), early).soft_rt);
}

#[test]
fn a_shared_queue_deserves_raising_only_if_it_was_merged_stably() {
    let shared = |machine: &mut Machine, q: QueueId| machine.bfq.queues[q].owner = None;
    assert!(!claim(config(true), shared).deserved);
    let for_good = |machine: &mut Machine, q: QueueId| {
        shared(machine, q);
        let context = machine.bfq.contexts.find(crate::ground::ids::IoContextId(1)).unwrap();
        machine.bfq.contexts[context].queues[0].stably_merged = true;
    };
    assert!(claim(config(true), for_good).deserved);
}

#[test]
fn before_5_12_raising_for_soft_real_time_remembers_now_as_its_switch() {
    for (config, expected) in [(config(true), LONG_AGO_TICK), (old(), 1000)] {
        let (mut machine, q) = queued(config);
        let soft_rt = Claim { interactive: false, soft_rt: true, deserved: true };
        machine.inside(|bfq| bfq.update_raising(q, soft_rt));
        assert_eq!(machine.bfq.entity(q).raise, RAISE_SOFT_RT);
        assert_eq!(machine.bfq.queues[q].raising.start_at_switch, expected);
    }
}

#[test]
fn a_new_raising_counts_its_sectors_from_nothing_and_a_burst_takes_it_away_at_the_next_arrival() {
    let (mut machine, q) = queued(config(true));
    machine.bfq.queues[q].raising.service = 119_999;
    let interactive = Claim { interactive: true, soft_rt: false, deserved: true };
    machine.inside(|bfq| bfq.update_raising(q, interactive));
    assert_eq!((machine.bfq.entity(q).raise, machine.bfq.queues[q].raising.service), (RAISE_INTERACTIVE, 0));
    machine.bfq.queues[q].in_large_burst = true;
    let soft_rt = Claim { interactive: false, soft_rt: false, deserved: true };
    machine.inside(|bfq| bfq.update_raising(q, soft_rt));
    assert_eq!(machine.bfq.entity(q).raise, 1);
}

#[test]
fn the_next_start_of_soft_real_time_never_moves_back_since_5_12() {
    for (config, expected) in [(config(true), 9000), (old(), 1012)] {
        let (mut machine, q) = queued(config);
        machine.bfq.queues[q].raising.soft_rt_next_start = 9000;
        machine.bfq.queues[q].backlogged_at = 0;
        machine.inside(|bfq| bfq.compute_soft_rt_start(q));
        assert_eq!(machine.bfq.queues[q].raising.soft_rt_next_start, expected);
    }
}

#[test]
fn the_end_of_a_queue_with_requests_out_leaves_the_next_start_to_their_completion_unless_it_is_interactive() {
    for (raise, computed) in [(1, true), (RAISE_INTERACTIVE, false)] {
        let (mut machine, q) = queued(config(true));
        machine.bfq.queues[q].raising.soft_rt_next_start = 0;
        let (id, _) = machine.dispatch().unwrap();
        machine.bfq.in_service = Some(q);
        machine.bfq.entity_mut(q).raise = raise;
        machine.bfq.raised_busy = u32::from(raise > 1);
        machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetTimeout));
        assert!(machine.bfq.queues[q].soft_rt_pending);
        machine.now = 1500 * MS;
        machine.finish(id);
        assert_eq!(machine.bfq.queues[q].raising.soft_rt_next_start == 1512, computed);
    }
}

#[test]
fn the_stamp_of_a_queue_that_is_not_raised_is_that_of_its_last_arrival_or_slot() {
    let (mut machine, q) = queued(config(true));
    machine.bfq.queues[q].budget_timeout = 1000;
    machine.now = 1100 * MS;
    machine.read(1, 16, 8);
    assert_eq!(machine.bfq.queues[q].raising.start, 1100);
    machine.dispatch();
    machine.now = 1150 * MS;
    machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetExhausted));
    assert_eq!(machine.bfq.queues[q].raising.start, 1150);
    machine.inside(|bfq| bfq.set_raise(q, RAISE_INTERACTIVE));
    machine.now = 1200 * MS;
    machine.read(1, 24, 8);
    assert_eq!(machine.bfq.queues[q].raising.start, 1150, "raised: the stamp is that of its raising");
    machine.inside(|bfq| bfq.end_raising(q));
    assert_eq!(machine.bfq.queues[q].raising.start, 1200);
}

#[test]
fn a_raised_queue_returning_after_two_seconds_restarts_its_raising() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.now = 1000 * MS;
    machine.read(1, 8, 8);
    let q = machine.sync_queue(1);
    machine.serve();
    machine.fire_timer();
    let since = machine.bfq.queues[q].budget_timeout;
    machine.now = (since as u64 + 2001) * MS;
    machine.read(1, 16, 8);
    assert_eq!((machine.bfq.entity(q).raise, machine.bfq.queues[q].raising.start), (RAISE_INTERACTIVE, since + 2001));
}

#[test]
fn only_a_soft_rt_queue_gets_its_waiting_time_back_at_slot_start() {
    // It is 1,000. Factor, raised since, waiting from, and since when it is raised then.
    let cases = [
        (RAISE_SOFT_RT, 500, 700, 800),
        (RAISE_SOFT_RT, 700, 500, 1000),
        (RAISE_SOFT_RT, 1200, 700, 1200),
        (RAISE_SOFT_RT, 500, 1200, 500),
        (RAISE_INTERACTIVE, 500, 700, 500),
        (1, 700, 500, 700),
    ];
    for (raise, since, waits_from, expected) in cases {
        let (mut machine, q) = queued(config(true));
        machine.inside(|bfq| bfq.set_raise(q, raise));
        machine.bfq.queues[q].raising.start = since;
        machine.bfq.queues[q].budget_timeout = waits_from;
        assert_eq!(machine.inside(|bfq| bfq.start_slot()), Some(q));
        assert_eq!(machine.bfq.queues[q].raising.start, expected, "{raise} {since} {waits_from}");
    }
}

#[test]
fn only_a_slot_that_ends_empty_under_low_latency_says_when_the_next_soft_real_time_arrival_may_come() {
    for (low_latency, empty) in [(0, true), (1, false), (1, true)] {
        let (mut machine, q) = queued(config(true));
        machine.set("low_latency", low_latency);
        machine.read(1, 800, 8);
        machine.serve();
        if empty {
            machine.serve();
        }
        machine.bfq.in_service = Some(q);
        machine.bfq.queues[q].raising.soft_rt_next_start = 0;
        machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetTimeout));
        assert_eq!(machine.bfq.queues[q].raising.soft_rt_next_start > 0, low_latency == 1 && empty);
        assert!(!machine.bfq.queues[q].soft_rt_pending, "nothing is out");
    }
}

#[test]
fn only_interactive_raising_ends_by_service_and_not_before_4_16() {
    for (config, raise, ends) in [
        (config(true), RAISE_INTERACTIVE, true),
        (config(true), RAISE_SOFT_RT, false),
        (old(), RAISE_INTERACTIVE, false),
    ] {
        let service_max = 120_000;
        for (service, ends) in [(service_max, false), (service_max + 1, ends)] {
            let (mut machine, q) = queued(config.clone());
            machine.inside(|bfq| bfq.set_raise(q, raise));
            machine.bfq.queues[q].raising.duration = 10_000;
            machine.bfq.queues[q].raising.service = service;
            machine.inside(|bfq| bfq.check_raising(q));
            assert_eq!(machine.bfq.entity(q).raise == 1, ends, "{raise} after {service}");
        }
    }
}

#[test]
fn the_next_soft_real_time_start_is_found_out_when_a_queue_that_waits_for_it_has_nothing_left() {
    let found = |pending, queued, dispatched| {
        let (mut machine, q) = queued_one();
        let id = machine.dispatch().expect("it waits").0;
        if queued {
            machine.read(1, 16, 8);
        }
        let queue = &mut machine.bfq.queues[q];
        queue.soft_rt_pending = pending;
        queue.dispatched += dispatched;
        queue.raising.soft_rt_next_start = 7;
        machine.inside(|bfq| bfq.end_raising(q));
        machine.finish(id);
        machine.bfq.queues[q].raising.soft_rt_next_start != 7
    };
    assert!(found(true, false, 0));
    assert!(!found(false, false, 0) && !found(true, true, 0) && !found(true, false, 1));
}

fn queued_one() -> (Machine, QueueId) {
    queued(config(true))
}

#[test]
fn a_queue_was_idle_for_long_if_it_was_empty_for_more_than_two_seconds() {
    for (ms, long) in [(2000, false), (2001, true)] {
        let (mut machine, q) = queued(config(true));
        machine.now = 10_000 * MS;
        machine.inside(|_| ());
        machine.bfq.queues[q].budget_timeout = 10_000 - ms;
        assert_eq!(machine.inside(|bfq| bfq.is_idle_for_long(q)), long, "{ms} ms");
    }
}

#[test]
fn in_4_12_a_hundred_and_twenty_quick_returns_make_a_queue_bound_by_io_again() {
    let (mut machine, q) = queued(old());
    machine.bfq.queues[q].io_bound.refute();
    for nth in 1..=120 {
        machine.serve();
        if machine.bfq.in_service == Some(q) {
            machine.inside(|bfq| bfq.expire(q, false, Expiration::NoMoreRequests));
        }
        machine.now += MS / 100;
        machine.read(1, 8 + nth * 8, 8);
        assert_eq!(machine.bfq.queues[q].io_bound.is, nth == 120, "{nth}");
    }
}

#[test]
fn a_raised_queue_that_may_claim_to_be_interactive_is_raised_as_such() {
    let (mut machine, q) = queued(config(true));
    let claim = Claim { interactive: true, soft_rt: true, deserved: true };
    machine.inside(|bfq| {
        bfq.set_raise(q, RAISE_SOFT_RT);
        bfq.update_raising(q, claim);
    });
    let duration = machine.bfq.interactive_duration();
    assert_eq!(machine.bfq.entity(q).raise, RAISE_INTERACTIVE);
    assert_eq!(machine.bfq.queues[q].raising.duration, duration);
}

#[test]
fn seeks_end_the_raising_of_soft_real_time_only() {
    for (raise, after) in [(RAISE_SOFT_RT, 1), (RAISE_INTERACTIVE, RAISE_INTERACTIVE)] {
        let (mut machine, q) = queued(config(true));
        machine.inside(|bfq| bfq.set_raise(q, raise));
        machine.bfq.queues[q].raising.start = 1000;
        machine.bfq.queues[q].raising.duration = 5000;
        machine.bfq.queues[q].raising.start_at_switch = LONG_AGO_TICK;
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
        machine.read(1, 1 << 30, 8);
        assert_eq!(machine.bfq.entity(q).raise, after);
    }
}
