//! Injection and wakers (BFQ-85 to BFQ-90).

use super::super::entity::QueueId;
use super::machine::{MS, Machine, config};
use crate::ground::ids::RqId;

/// Processes 1 to 3 with a request each; 1 is in service, has run dry and is waited for. Returns 1's queue.
fn waiting() -> (Machine, QueueId) {
    let mut machine = Machine::new(config(true));
    machine.decide_ncq(false);
    machine.read(1, 8, 8);
    machine.serve();
    let q = machine.sync_queue(1);
    assert_eq!((machine.bfq.in_service, machine.bfq.queues[q].waiting), (Some(q), true));
    (machine, q)
}

/// What is given out now, if it is injected.
fn injected(machine: &mut Machine) -> Option<RqId> {
    machine.dispatch().map(|(id, _)| id)
}

#[test]
fn injection_prefers_own_async_queue_then_waker_then_wakee_then_any_queue() {
    let (mut machine, q) = waiting();
    // Idling costs throughput: others may be served meanwhile.
    machine.decide_ncq(true);
    machine.bfq.queues[q].io_bound.refute();
    machine.bfq.queues[q].short_think = false;
    machine.bfq.queues[q].injection.limit = 9;
    let mut ids = Vec::new();
    for pid in [2, 3, 4] {
        machine.now += 2 * MS;
        ids.push(machine.read(pid, u64::from(pid) << 24, 8));
    }
    ids.push(machine.write(1, 9 << 24, 8));
    let [waker, woken] = [2, 3].map(|pid| machine.sync_queue(pid));
    machine.bfq.in_service = Some(q);
    machine.bfq.queues[q].waiting = true;
    machine.inside(|bfq| {
        bfq.set_waker(q, Some(waker));
        bfq.set_waker(woken, Some(q));
    });
    let order: Vec<RqId> = (0..4)
        .filter_map(|_| {
            machine.inside(|bfq| {
                let source = bfq.injection_source(q)?;
                let id = bfq.queues[source].next()?;
                bfq.remove_request(source, id);
                Some(RqId(id))
            })
        })
        .collect();
    assert_eq!(order, [ids[3], ids[0], ids[1], ids[2]]);
}

#[test]
fn injection_skips_an_async_queue_whose_next_request_is_not_its_own() {
    let (mut machine, q) = waiting();
    machine.write(2, 1 << 24, 8);
    machine.write(1, 2 << 24, 8);
    machine.bfq.queues[q].injection.limit = 0;
    assert_eq!(machine.inside(|bfq| bfq.injection_source(q)), None);
}

#[test]
fn nothing_is_injected_beyond_the_limit_nor_into_a_stream_that_idling_is_free_for() {
    let (mut machine, q) = waiting();
    machine.now = MS;
    machine.read(2, 1 << 24, 8);
    let limited = |machine: &mut Machine, limit, free: bool| {
        machine.decide_ncq(!free);
        machine.bfq.queues[q].io_bound.refute();
        machine.bfq.queues[q].injection.limit = limit;
        machine.inside(|bfq| bfq.injection_source(q)).is_some()
    };
    assert!(limited(&mut machine, 1, false));
    assert!(machine.bfq.measurement.injected);
    assert!(!limited(&mut machine, 0, false));
    assert!(!limited(&mut machine, 1, true));
}

#[test]
fn large_requests_are_not_stacked_on_flash() {
    let suits = |rotational, sectors, in_driver| {
        let (mut machine, q) = waiting();
        machine.bfq.config.rotational = rotational;
        machine.decide_ncq(true);
        machine.bfq.queues[q].io_bound.refute();
        machine.bfq.queues[q].injection.limit = 9;
        machine.bfq.in_driver = in_driver;
        machine.now = 700 * MS;
        machine.read(2, 1 << 24, sectors);
        machine.bfq.in_service = Some(q);
        machine.inside(|bfq| bfq.injection_source(q)).is_some()
    };
    assert!(suits(false, 63, 1) && !suits(false, 64, 1));
    assert!(suits(false, 64, 0) && suits(true, 64, 1));
}

#[test]
fn a_raised_queue_with_short_think_time_lets_only_raised_ones_in() {
    let (mut machine, q) = waiting();
    machine.decide_ncq(true);
    machine.bfq.queues[q].injection.limit = 9;
    machine.now = MS;
    machine.read(2, 1 << 24, 8);
    let other = machine.sync_queue(2);
    machine.bfq.in_service = Some(q);
    machine.bfq.entity_mut(q).raise = 30;
    let mut source = |raised_busy, other_raise| {
        machine.bfq.raised_busy = raised_busy;
        machine.bfq.entity_mut(other).raise = other_raise;
        machine.inside(|bfq| bfq.injection_source(q))
    };
    assert_eq!(source(1, 1), None, "it is the only raised one");
    assert_eq!(source(2, 1), None, "the other is not raised");
    assert_eq!(source(2, 30), Some(other));
}

#[test]
fn injected_service_is_charged_to_its_source_and_shortens_its_next_slot() {
    let (mut machine, q) = waiting();
    machine.now = MS;
    machine.read(2, 1 << 24, 8);
    machine.read(2, (1 << 24) + 100, 8);
    let other = machine.sync_queue(2);
    machine.inside(|bfq| bfq.set_waker(q, Some(other)));
    assert!(injected(&mut machine).is_some());
    assert_eq!(machine.bfq.in_service, Some(q), "the slot goes on");
    assert_eq!((machine.bfq.entity(other).service, machine.bfq.entity(q).service), (8, 8));
    machine.fire_timer();
    machine.dispatch();
    assert_eq!((machine.bfq.in_service, machine.bfq.entity(other).service), (Some(other), 16));
}

/// One measurement of process 1's service time: its request takes `ms`, `injected` or not.
fn measure(machine: &mut Machine, q: QueueId, ms: u64, injected: bool) {
    machine.bfq.in_service = Some(q);
    machine.now += 11 * MS;
    machine.bfq.in_driver = 0;
    machine.inside(|bfq| {
        bfq.maybe_measure(q);
        bfq.measurement.injected = injected;
        bfq.measurement.dispatched(7);
    });
    machine.now += ms * MS;
    machine.bfq.in_driver = 1;
    machine.inside(|bfq| bfq.maybe_learn_limit(q, 7));
    machine.bfq.in_driver = 0;
}

#[test]
fn the_limit_is_learned_as_in_28_20() {
    let (mut machine, q) = waiting();
    machine.bfq.ncq.max_in_driver = 8;
    machine.bfq.queues[q].short_think = false;
    machine.inside(|bfq| bfq.reset_injection(q));
    assert_eq!(machine.bfq.queues[q].injection.limit, 1, "a long thinker begins with one");
    let learned = |machine: &Machine| {
        let injection = &machine.bfq.queues[q].injection;
        (injection.baseline / MS, injection.limit)
    };
    measure(&mut machine, q, 5, false);
    assert_eq!(learned(&machine), (5, 1));
    measure(&mut machine, q, 6, true);
    assert_eq!(learned(&machine), (5, 2), "6 ms are less than 7.5");
    let decreased = machine.now / MS + 11 + 8;
    measure(&mut machine, q, 8, true);
    assert_eq!(learned(&machine), (5, 1));
    assert_eq!(machine.bfq.queues[q].injection.decreased as u64, decreased);
    // For 10 ms nothing is measured.
    machine.now += 9 * MS;
    machine.inside(|bfq| {
        bfq.maybe_measure(q);
        bfq.measurement.dispatched(9);
        bfq.maybe_learn_limit(q, 9);
    });
    assert_eq!(learned(&machine), (5, 1));
    measure(&mut machine, q, 4, false);
    assert_eq!(learned(&machine), (4, 1), "a shorter time is the new baseline");
    measure(&mut machine, q, 30, false);
    assert_eq!(learned(&machine), (30, 1), "without injection the last time counts");
    machine.now += 1000 * MS;
    machine.inside(|bfq| bfq.maybe_measure(q));
    assert_eq!(learned(&machine), (0, 1), "forgotten after a second");
    machine.bfq.queues[q].short_think = true;
    machine.inside(|bfq| bfq.reset_injection(q));
    assert_eq!(learned(&machine), (0, 0), "a short thinker begins with none");
}

#[test]
fn a_service_time_of_1_5_times_the_baseline_lowers_the_injection_limit() {
    for (ms, limit) in [(5, 4), (6, 2)] {
        let (mut machine, q) = waiting();
        machine.bfq.ncq.max_in_driver = 8;
        measure(&mut machine, q, 4, false);
        machine.bfq.queues[q].injection.limit = 3;
        measure(&mut machine, q, ms, true);
        assert_eq!(machine.bfq.queues[q].injection.limit, limit);
    }
}

#[test]
fn the_injection_limit_grows_only_up_to_the_depth_the_device_has_held() {
    let (mut machine, q) = waiting();
    machine.bfq.ncq.max_in_driver = 2;
    machine.inside(|bfq| bfq.reset_injection(q));
    measure(&mut machine, q, 5, false);
    (0..9).for_each(|_| measure(&mut machine, q, 5, true));
    assert_eq!(machine.bfq.queues[q].injection.limit, 3, "raised while it is not above two");
}

#[test]
fn an_expiration_ends_a_measurement_and_a_reset_forgets_its_request_only() {
    let (mut machine, q) = waiting();
    machine.now = 20 * MS;
    machine.bfq.queues[q].injection.decreased = 0;
    machine.read(1, 16, 8);
    machine.inside(|bfq| bfq.reset_injection(q));
    let (id, _) = machine.dispatch().unwrap();
    machine.now += 3 * MS;
    machine.finish(id);
    assert_eq!(machine.bfq.queues[q].injection.baseline / MS, 3, "what waits for its dispatch goes on");
    for ends_first in [false, true] {
        let (mut machine, q) = waiting();
        machine.now = 20 * MS;
        machine.bfq.queues[q].injection.decreased = 0;
        let id = machine.read(1, 24, 8);
        // Its request has been chosen, or is still to leave.
        if !ends_first {
            machine.dispatch();
        }
        machine.inside(|bfq| bfq.expire(q, false, super::super::Expiration::Preempted));
        if ends_first {
            machine.dispatch();
        }
        machine.now += 3 * MS;
        machine.inside(|bfq| bfq.maybe_learn_limit(q, id.0));
        assert_eq!(machine.bfq.queues[q].injection.baseline, 0, "ended before it left: {ends_first}");
    }
}

#[test]
fn three_coincidences_make_a_waker_as_in_28_21() {
    for (third, expected) in [(50 * MS, true), (1_100 * MS, false)] {
        let mut machine = Machine::new(config(true));
        machine.read(2, 8, 8);
        let thinker = machine.sync_queue(2);
        machine.serve();
        machine.inside(|bfq| bfq.expire(thinker, false, super::super::Expiration::TooIdle));
        machine.bfq.queues[thinker].short_think = false;
        for (nth, at) in [10 * MS, 30 * MS, third].into_iter().enumerate() {
            machine.now = at;
            let id = machine.read(1, (1 << 24) + at, 8);
            let journal = machine.sync_queue(1);
            while machine.dispatch().is_none_or(|(sent, _)| sent != id) {
                machine.fire_timer();
            }
            machine.now = at;
            machine.finish(id);
            machine.now = at + 300_000;
            machine.inside(|bfq| bfq.look_for_waker(thinker));
            if nth < 2 {
                assert_eq!(machine.bfq.queues[thinker].waker.known, None);
            } else {
                let waker = expected.then_some(journal);
                assert_eq!(machine.bfq.queues[thinker].waker.known, waker);
                assert_eq!(
                    machine.bfq.queues[journal].waker.woken,
                    waker.map(|_| thinker).into_iter().collect::<Vec<_>>()
                );
            }
        }
    }
}

#[test]
fn a_short_thinker_and_a_late_arrival_have_no_waker() {
    let mut machine = Machine::new(config(true));
    machine.read(2, 8, 8);
    let thinker = machine.sync_queue(2);
    machine.read(1, 1 << 24, 8);
    let other = machine.sync_queue(1);
    machine.bfq.last_completed = Some(other);
    machine.bfq.rate.last_completion = 0;
    let mut suspects = |short_think, ns| {
        machine.now = ns;
        machine.bfq.queues[thinker].short_think = short_think;
        machine.bfq.queues[thinker].waker.tentative = None;
        machine.inside(|bfq| bfq.look_for_waker(thinker));
        machine.bfq.queues[thinker].waker.tentative
    };
    assert_eq!(suspects(true, MS), None);
    assert_eq!(suspects(false, 4 * MS), None);
    assert_eq!(suspects(false, 4 * MS - 1), Some(other));
}

#[test]
fn a_freed_queue_is_removed_from_all_waker_relations() {
    let mut machine = Machine::new(config(true));
    for pid in 1..=4 {
        machine.read(pid, u64::from(pid) << 24, 8);
    }
    let [waker, one, two, suspect] = [1, 2, 3, 4].map(|pid| machine.sync_queue(pid));
    machine.inside(|bfq| {
        bfq.set_waker(one, Some(waker));
        bfq.set_waker(two, Some(one));
        bfq.set_waker(suspect, Some(waker));
        bfq.queues[suspect].waker.tentative = Some(one);
        bfq.forget_waker(one);
    });
    let queues = &machine.bfq.queues;
    assert_eq!((&queues[waker].waker.woken[..], queues[one].waker.known), (&[suspect][..], None));
    assert!(queues[one].waker.woken.is_empty() && queues[two].waker.known.is_none());
    assert_eq!(queues[suspect].waker.tentative, None);
}

#[test]
fn a_queue_that_gets_work_moves_to_the_front_of_those_that_its_waker_wakes() {
    let mut machine = Machine::new(config(true));
    for pid in 1..=3 {
        machine.read(pid, u64::from(pid) << 24, 8);
    }
    let [waker, one, two] = [1, 2, 3].map(|pid| machine.sync_queue(pid));
    machine.inside(|bfq| {
        bfq.set_waker(one, Some(waker));
        bfq.set_waker(two, Some(waker));
    });
    assert_eq!(machine.bfq.queues[waker].waker.woken, [two, one]);
    machine.inside(|bfq| bfq.move_up_among_woken(one));
    assert_eq!(machine.bfq.queues[waker].waker.woken, [one, two]);
    machine.inside(|bfq| bfq.forget_waker(waker));
    assert_eq!((machine.bfq.queues[one].waker.known, machine.bfq.queues[two].waker.known), (None, None));
}

#[test]
fn only_the_only_request_of_its_process_is_measured_and_looked_at_for_a_waker() {
    for others in [0, 1] {
        let (mut machine, q) = waiting();
        machine.now = 20 * MS;
        machine.bfq.queues[q].injection.decreased = 0;
        let context = machine.bfq.contexts.find(crate::ground::ids::IoContextId(1)).unwrap();
        (0..others).for_each(|_| machine.bfq.contexts.hold(context));
        machine.read(1, 16, 8);
        let (id, _) = machine.dispatch().unwrap();
        machine.now += 3 * MS;
        machine.finish(id);
        assert_eq!(machine.bfq.queues[q].injection.baseline / MS, if others == 0 { 3 } else { 0 });
    }
}

#[test]
fn under_injection_a_known_baseline_is_enough_to_measure_and_a_shorter_time_replaces_it() {
    let learned = |baseline, injected, in_driver| {
        let (mut machine, q) = waiting();
        machine.now = 20 * MS;
        machine.bfq.queues[q].injection.decreased = 0;
        machine.bfq.queues[q].injection.baseline = baseline;
        machine.bfq.in_driver = in_driver;
        machine.inside(|bfq| {
            bfq.measurement.injected = injected;
            bfq.maybe_measure(q);
            bfq.measurement.dispatched(7);
        });
        machine.now += 2 * MS;
        machine.bfq.in_driver = in_driver + 1;
        machine.inside(|bfq| bfq.maybe_learn_limit(q, 7));
        machine.bfq.queues[q].injection.baseline
    };
    assert_eq!(learned(5 * MS, true, 1), 2 * MS);
    assert_eq!([learned(5 * MS, false, 1), learned(0, true, 1)], [5 * MS, 0], "not measured");
    assert_eq!(learned(MS, true, 1), MS, "longer");
}

#[test]
fn a_raised_queue_with_long_think_time_admits_injection_from_any_queue() {
    let (mut machine, q) = waiting();
    machine.decide_ncq(true);
    machine.bfq.queues[q].injection.limit = 9;
    machine.now = MS;
    machine.read(2, 1 << 24, 8);
    machine.bfq.in_service = Some(q);
    machine.bfq.entity_mut(q).raise = 30;
    machine.bfq.raised_busy = 1;
    machine.bfq.queues[q].short_think = false;
    assert_eq!(machine.inside(|bfq| bfq.injection_source(q)), Some(machine.sync_queue(2)));
}

#[test]
fn coincidences_count_within_1024_ms_of_the_first() {
    for (last_ms, known) in [(1024, true), (1025, false)] {
        let mut machine = Machine::new(config(true));
        machine.read(2, 8, 8);
        machine.read(1, 1 << 24, 8);
        let [other, thinker] = [1, 2].map(|pid| machine.sync_queue(pid));
        machine.bfq.queues[thinker].short_think = false;
        machine.bfq.last_completed = Some(other);
        for ms in [0, 500, last_ms] {
            machine.now = (10 + ms) * MS;
            machine.bfq.rate.last_completion = machine.now - MS;
            machine.inside(|bfq| bfq.look_for_waker(thinker));
        }
        assert_eq!(machine.bfq.queues[thinker].waker.known.is_some(), known);
    }
}

#[test]
fn a_baseline_is_learned_only_of_a_request_that_was_alone_at_the_device() {
    let learned = |limit, in_driver| {
        let (mut machine, q) = waiting();
        machine.now = 20 * MS;
        machine.bfq.queues[q].injection.limit = limit;
        machine.bfq.queues[q].injection.baseline = 0;
        machine.inside(|bfq| {
            bfq.maybe_measure(q);
            bfq.measurement.dispatched(7);
        });
        machine.now += 2 * MS;
        machine.bfq.in_driver = in_driver;
        machine.inside(|bfq| bfq.maybe_learn_limit(q, 7));
        let injection = &machine.bfq.queues[q].injection;
        (injection.baseline / MS, injection.limit)
    };
    assert_eq!(learned(0, 1), (2, 1), "with a baseline one may be tried");
    assert_eq!(learned(3, 1), (2, 3), "what was allowed stays");
    assert_eq!(learned(0, 2), (0, 0));
}

#[test]
fn the_learned_baseline_is_forgotten_a_second_after_the_last_decrease() {
    for (ms, forgotten) in [(999, false), (1000, true)] {
        let (mut machine, q) = waiting();
        let injection = &mut machine.bfq.queues[q].injection;
        (injection.baseline, injection.decreased) = (5 * MS, 700);
        machine.now = (700 + ms) * MS;
        machine.inside(|bfq| bfq.maybe_measure(q));
        assert_eq!(machine.bfq.queues[q].injection.baseline == 0, forgotten, "{ms} ms");
    }
}

#[test]
fn a_service_time_of_1_5_times_the_baseline_never_raises_the_limit() {
    let (mut machine, q) = waiting();
    machine.bfq.ncq.max_in_driver = 8;
    measure(&mut machine, q, 4, false);
    machine.bfq.queues[q].injection.limit = 0;
    measure(&mut machine, q, 6, true);
    assert_eq!(machine.bfq.queues[q].injection.limit, 0);
}

#[test]
fn after_a_reset_the_request_that_was_measured_teaches_nothing() {
    let (mut machine, q) = waiting();
    machine.now = 20 * MS;
    machine.bfq.queues[q].injection.decreased = 0;
    let id = machine.read(1, 16, 8);
    assert_eq!(machine.dispatch().map(|(given, _)| given), Some(id));
    machine.inside(|bfq| bfq.reset_injection(q));
    machine.now += 3 * MS;
    machine.finish(id);
    assert_eq!(machine.bfq.queues[q].injection.baseline, 0);
}

#[test]
fn without_a_baseline_the_injection_limit_is_not_lowered() {
    let (mut machine, q) = waiting();
    machine.now = 20 * MS;
    let injection = &mut machine.bfq.queues[q].injection;
    (injection.baseline, injection.limit) = (0, 3);
    machine.inside(|bfq| {
        bfq.maybe_measure(q);
        bfq.measurement.dispatched(7);
        bfq.measurement.injected = true;
    });
    machine.now += 2 * MS;
    machine.bfq.in_driver = 2;
    machine.inside(|bfq| bfq.maybe_learn_limit(q, 7));
    assert_eq!(machine.bfq.queues[q].injection.limit, 3);
}

#[test]
fn ten_ms_after_a_decrease_it_is_measured_again() {
    for (ms, measured) in [(9, false), (10, true)] {
        let (mut machine, q) = waiting();
        machine.bfq.queues[q].injection.decreased = 50;
        machine.now = (50 + ms) * MS;
        machine.inside(|bfq| {
            bfq.maybe_measure(q);
            bfq.measurement.dispatched(7);
        });
        machine.now += 2 * MS;
        machine.bfq.in_driver = 1;
        machine.inside(|bfq| bfq.maybe_learn_limit(q, 7));
        assert_eq!(machine.bfq.queues[q].injection.baseline > 0, measured, "{ms} ms");
    }
}

#[test]
fn under_injection_no_first_baseline_is_learned() {
    let (mut machine, q) = waiting();
    machine.now = 20 * MS;
    let injection = &mut machine.bfq.queues[q].injection;
    (injection.baseline, injection.decreased) = (0, 0);
    machine.bfq.in_driver = 1;
    machine.inside(|bfq| {
        bfq.measurement.injected = true;
        bfq.maybe_measure(q);
        bfq.measurement.dispatched(7);
    });
    machine.now += 2 * MS;
    machine.inside(|bfq| bfq.maybe_learn_limit(q, 7));
    assert_eq!(machine.bfq.queues[q].injection.baseline, 0);
}

#[test]
fn a_waker_is_an_injection_source_only_within_its_budget() {
    for (fits, is_source) in [(true, true), (false, false)] {
        let (mut machine, q) = waiting();
        machine.now = MS;
        machine.read(2, 1 << 24, 8);
        let waker = machine.sync_queue(2);
        machine.inside(|bfq| bfq.set_waker(q, Some(waker)));
        machine.bfq.queues[q].injection.limit = 0;
        if !fits {
            let entity = machine.bfq.entity_mut(waker);
            entity.service = entity.budget;
        }
        assert_eq!(machine.inside(|bfq| bfq.injection_source(q)), is_source.then_some(waker));
    }
}

#[test]
fn a_waker_is_looked_for_when_a_request_arrives() {
    for (alone, found) in [(true, true), (false, false)] {
        let mut machine = Machine::new(config(true));
        machine.read(2, 8, 8);
        let thinker = machine.sync_queue(2);
        machine.serve();
        machine.fire_timer();
        machine.read(1, 1 << 24, 8);
        let other = machine.sync_queue(1);
        machine.bfq.queues[thinker].short_think = false;
        machine.bfq.queues[thinker].split = machine.now as i64 / MS as i64;
        machine.bfq.last_completed = Some(other);
        machine.bfq.rate.last_completion = machine.now;
        let context = machine.bfq.contexts.find(crate::ground::ids::IoContextId(2)).unwrap();
        if !alone {
            machine.bfq.contexts.hold(context);
        }
        machine.now += MS;
        machine.read(2, 16, 8);
        let tentative = machine.bfq.queues[thinker].waker.tentative;
        assert_eq!(tentative == Some(other), found, "the only request of its process: {alone}");
    }
}
