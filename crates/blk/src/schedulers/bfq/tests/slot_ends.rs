//! What surrounds the end of a slot: timers, positions, fifo checks, and what a queue keeps (BFQ-44 to BFQ-51, BFQ-60,
//! BFQ-79, BFQ-80, BFQ-119).

use super::super::Expiration;
use super::super::entity::QueueId;
use super::machine::{MS, Machine, config};
use crate::bio::{Bio, Op};
use crate::ground::ids::{IoContextId, Sector};
use crate::policy::Place;
use crate::watch::reason::Reason;

/// Process 1 is in service, has run dry at `ms` and is waited for.
fn waited_for(ms: u64) -> (Machine, QueueId) {
    let mut machine = Machine::new(config(true));
    machine.decide_ncq(false);
    machine.read(1, 8, 8);
    let (id, _) = machine.dispatch().unwrap();
    machine.now = ms * MS;
    machine.finish(id);
    let q = machine.sync_queue(1);
    assert!(machine.bfq.queues[q].waiting);
    (machine, q)
}

#[test]
fn a_timer_that_comes_when_the_time_of_the_slot_is_over_ends_it_for_its_time() {
    let (mut machine, _) = waited_for(118);
    machine.fire_timer();
    assert_eq!(machine.expirations(1), [(126 * MS, "budget_timeout")]);
    let (mut machine, _) = waited_for(116);
    machine.fire_timer();
    assert_eq!(machine.expirations(1), [(124 * MS, "too_idle")]);
}

#[test]
fn the_time_that_is_idled_away_is_not_charged() {
    let (mut machine, q) = waited_for(5);
    (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
    machine.fire_timer();
    assert_eq!(machine.bfq.queues[q].service_since_backlogged, 16_384 * 5 / 125);
}

#[test]
fn an_idle_timer_runs_the_queues_if_another_process_waits() {
    for others in [false, true] {
        let (mut machine, _) = waited_for(1);
        if others {
            machine.read(2, 1 << 24, 8);
        }
        let asked = machine.inside(|bfq| {
            bfq.idle_timer_fired();
            bfq.requested.run_queues
        });
        assert_eq!(asked, others);
    }
}

#[test]
fn a_queue_that_is_waited_for_is_not_ended_by_a_question_that_finds_its_time_over() {
    let (mut machine, q) = waited_for(124);
    machine.bfq.queues[q].injection.limit = 0;
    machine.now = 126 * MS;
    machine.read(2, 1 << 24, 8);
    let choice = machine.inside(|bfq| bfq.choose());
    assert_eq!((choice.rq, choice.reason, machine.expirations(1).len()), (None, Reason::Idling, 0));
}

#[test]
fn an_arrival_after_the_time_of_the_slot_ends_it() {
    let (mut machine, _) = waited_for(120);
    machine.now = 124 * MS;
    machine.read(1, 16, 8);
    assert!(machine.expirations(1).is_empty());
    let (mut machine, _) = waited_for(120);
    machine.now = 125 * MS;
    machine.read(1, 16, 8);
    assert_eq!(machine.expirations(1), [(125 * MS, "budget_timeout")]);
}

#[test]
fn a_small_request_for_a_queue_that_is_waited_for_ends_the_wait_if_it_is_not_alone_or_idling_costs_throughput() {
    let waits_on = |arrivals: u64, streams: bool| {
        let (mut machine, q) = waited_for(1);
        machine.decide_ncq(true);
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(!streams));
        if arrivals == 2 {
            machine.bfq.queues[q].waiting = false;
            machine.read(1, 16, 8);
            machine.bfq.queues[q].waiting = true;
        }
        machine.read(1, 24, 8);
        machine.bfq.queues[q].waiting
    };
    assert_eq!([waits_on(1, true), waits_on(2, true), waits_on(1, false)], [true, false, false]);
}

#[test]
fn an_expired_request_is_looked_for_again_in_the_next_slot() {
    let mut machine = Machine::new(config(true));
    for sector in [900_000, 0, 500_000, 8, 16] {
        machine.read(1, sector, 8);
    }
    machine.now = 200 * MS;
    let mut next = || machine.dispatch().unwrap().1;
    assert_eq!([next(), next()], [0, 900_000], "the oldest is first in the fifo");
    let q = machine.sync_queue(1);
    machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetExhausted));
    let mut next = || machine.dispatch().unwrap().1;
    assert_eq!([next(), next(), next()], [8, 500_000, 16]);
}

#[test]
fn a_head_insertion_goes_out_before_everything_and_counts_as_in_the_device() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    let bio = Bio { io_context: IoContextId(2), ..Bio::new(Op::Read, Sector(1 << 24), 8) };
    let id = machine.insert_at(bio, Place::Head);
    assert_eq!(machine.dispatch(), Some((id, 1 << 24)));
    let q = machine.sync_queue(2);
    assert_eq!((machine.bfq.in_driver, machine.bfq.queues[q].dispatched, machine.bfq.in_service), (1, 1, None));
    machine.finish(id);
    assert_eq!((machine.bfq.in_driver, machine.bfq.queues[q].dispatched), (0, 0));
}

#[test]
fn only_its_own_dispatches_move_the_position_of_the_in_service_queue() {
    let (mut machine, q) = waited_for(1);
    machine.read(2, 1 << 24, 8);
    let waker = machine.sync_queue(2);
    machine.inside(|bfq| bfq.set_waker(q, Some(waker)));
    assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(1 << 24));
    assert_eq!((machine.bfq.in_service, machine.bfq.in_service_last_position), (Some(q), 16));
    assert_eq!(machine.bfq.last_position, (1 << 24) + 8);
    machine.read(2, 2 << 24, 8);
    let at_start = machine.inside(|bfq| {
        bfq.expire(q, false, Expiration::TooIdle);
        bfq.start_slot();
        bfq.in_service_last_position
    });
    assert_eq!(at_start, 0);
}

#[test]
fn a_queue_is_empty_since_its_slot_ended_or_its_last_request_came_back() {
    let (mut machine, q) = waited_for(1);
    machine.now = 9 * MS;
    machine.inside(|bfq| bfq.expire(q, false, Expiration::TooIdle));
    assert_eq!(machine.bfq.queues[q].budget_timeout, 9);
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    let (id, _) = machine.dispatch().unwrap();
    let q = machine.sync_queue(1);
    machine.inside(|bfq| bfq.expire(q, false, Expiration::NoMoreRequests));
    assert_eq!(machine.bfq.queues[q].budget_timeout, 125, "still when the slot would have timed out");
    machine.now = 30 * MS;
    machine.finish(id);
    assert_eq!(machine.bfq.queues[q].budget_timeout, 30);
}

#[test]
fn service_is_kept_for_recovery_and_otherwise_forgotten_at_the_end_of_the_slot() {
    for (reason, kept) in [(Expiration::NoMoreRequests, 8), (Expiration::BudgetExhausted, 0)] {
        let mut machine = Machine::new(config(true));
        (0..2).for_each(|at| {
            machine.read(1, at * 8, 8);
        });
        machine.dispatch();
        let q = machine.sync_queue(1);
        if kept > 0 {
            machine.dispatch();
            machine.bfq.entity_mut(q).service = kept;
        }
        machine.inside(|bfq| bfq.expire(q, false, reason));
        assert_eq!(machine.bfq.entity(q).service, kept);
    }
}

#[test]
fn a_queue_that_ends_with_work_is_put_into_the_index_and_one_that_gets_work_before_others_that_its_waker_wakes() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.read(1, 800, 8);
    machine.dispatch();
    let q = machine.sync_queue(1);
    machine.inside(|bfq| bfq.unindex(q));
    machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetExhausted));
    assert!(machine.bfq.queues[q].indexed);
    let (mut machine, q) = waited_for(1);
    machine.inside(|bfq| bfq.expire(q, false, Expiration::TooIdle));
    machine.read(2, 1 << 24, 8);
    machine.read(3, 2 << 24, 8);
    let [waker, other] = [2, 3].map(|pid| machine.sync_queue(pid));
    machine.inside(|bfq| {
        bfq.set_waker(q, Some(waker));
        bfq.set_waker(other, Some(waker));
    });
    machine.read(1, 16, 8);
    assert_eq!(machine.bfq.queues[waker].waker.woken, [q, other]);
}

#[test]
fn a_waiting_queue_that_loses_its_only_request_loses_its_budget_and_one_that_was_injected_keeps_room_for_that() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.dispatch();
    let id = machine.read(2, 1 << 24, 8);
    let other = machine.sync_queue(2);
    machine.inside(|bfq| bfq.remove_request(other, id.0));
    assert_eq!((machine.bfq.entity(other).budget, machine.bfq.queues[other].busy), (0, false));
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.dispatch();
    machine.read(2, 1 << 24, 8);
    let other = machine.sync_queue(2);
    machine.bfq.queues[other].max_budget = 100;
    machine.bfq.entity_mut(other).service = 4000;
    machine.inside(|bfq| bfq.update_budget_for_next_request(other));
    assert_eq!(machine.bfq.entity(other).budget, 4000);
}

#[test]
fn a_process_exit_requests_a_run_and_unschedules_its_empty_queue() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.read(1, 16, 8);
    machine.dispatch();
    let asked = machine.inside(|bfq| {
        bfq.context_exited(IoContextId(1));
        bfq.requested.run_queues
    });
    assert!(asked);
    let (mut machine, q) = waited_for(1);
    machine.read(2, 1 << 24, 8);
    machine.bfq.groups_pending = 2;
    machine.inside(|bfq| bfq.expire(q, false, Expiration::Preempted));
    assert!(machine.bfq.queues[q].busy && machine.bfq.queues[q].is_empty());
    machine.inside(|bfq| bfq.context_exited(IoContextId(1)));
    assert!(!machine.bfq.queues[q].busy);
}

#[test]
fn a_last_completion_is_not_attributed_to_a_shared_queue() {
    for shared in [false, true] {
        let mut machine = Machine::new(config(true));
        machine.read(1, 8, 8);
        let q = machine.sync_queue(1);
        machine.bfq.queues[q].shared = shared;
        machine.serve();
        assert_eq!(machine.bfq.last_completed, (!shared).then_some(q));
    }
}

#[test]
fn class_idle_and_slice_idle_0_count_as_short_think_time_and_exit_as_long() {
    use crate::bio::ioprio::{IoPriority, PriorityClass};
    let short = |class, slice_idle, exited: bool, thinks_ms: i64| {
        let mut machine = Machine::new(config(true));
        let bio = |sector| {
            let bio = Bio::new(Op::Read, Sector(sector), 8);
            Bio { io_context: IoContextId(1), ioprio: IoPriority::new(class, 4), ..bio }
        };
        machine.insert(bio(8));
        machine.serve();
        let q = machine.sync_queue(1);
        machine.inside(|bfq| {
            if bfq.in_service == Some(q) {
                bfq.expire(q, false, Expiration::TooIdle);
            }
        });
        machine.set("slice_idle", slice_idle);
        let context = machine.bfq.contexts.find(IoContextId(1)).unwrap();
        machine.bfq.contexts[context].exited = exited;
        let think = &mut machine.bfq.queues[q].think;
        think.ended(-thinks_ms * MS as i64);
        (0..32).for_each(|_| think.arrived(0, 8 * MS as i64));
        machine.insert(bio(16));
        machine.bfq.queues[q].short_think
    };
    let be = PriorityClass::BestEffort;
    assert!(short(be, 8, false, 3) && !short(be, 8, false, 5) && !short(be, 8, true, 3));
    assert!(short(be, 0, false, 5) && short(PriorityClass::Idle, 8, false, 5));
}

#[test]
fn a_change_of_think_time_resets_the_injection_limit_unless_that_was_measured_or_it_shortened_soon_after_a_reset() {
    let limit = |was_short: bool, is_short: bool, baseline, rested_ms: i64| {
        let mut machine = Machine::new(config(true));
        machine.now = 5000 * MS;
        machine.read(1, 8, 8);
        machine.serve();
        let q = machine.sync_queue(1);
        machine.bfq.queues[q].short_think = was_short;
        machine.bfq.queues[q].injection.limit = 7;
        machine.bfq.queues[q].injection.baseline = baseline;
        machine.bfq.queues[q].injection.decreased = 5000 - rested_ms;
        let think = &mut machine.bfq.queues[q].think;
        let mean = if is_short { 1 } else { 7 };
        think.ended((5000 - mean) * MS as i64);
        (0..32).for_each(|_| think.arrived(5000 * MS as i64, 8 * MS as i64));
        // Another request of the process is out: nothing but think time looks at the limit.
        machine.bfq.contexts.hold(machine.bfq.contexts.find(IoContextId(1)).unwrap());
        machine.read(1, 16, 8);
        machine.bfq.queues[q].injection.limit
    };
    assert_eq!([limit(true, false, 0, 0), limit(true, false, 0, 100)], [1, 1], "it thinks long now");
    assert_eq!([limit(false, true, 0, 99), limit(false, true, 0, 100)], [7, 0], "it thinks shortly now");
    assert_eq!([limit(true, false, 1, 100), limit(true, true, 0, 100)], [7, 7]);
}

#[test]
fn think_time_is_not_judged_within_two_seconds_of_a_split() {
    for (since_split, judged) in [(2000, false), (2001, true)] {
        let mut machine = Machine::new(config(true));
        machine.now = 5000 * MS;
        machine.read(1, 8, 8);
        machine.serve();
        let q = machine.sync_queue(1);
        machine.bfq.queues[q].split = 5000 - since_split;
        let think = &mut machine.bfq.queues[q].think;
        think.ended(4993 * MS as i64);
        (0..32).for_each(|_| think.arrived(5000 * MS as i64, 8 * MS as i64));
        machine.read(1, 16, 8);
        assert_eq!(machine.bfq.queues[q].short_think, !judged, "it thinks for 7 ms");
    }
}
