//! Weight raising and large bursts (BFQ-42, BFQ-75, BFQ-83, BFQ-91 to BFQ-103).

use super::super::config::{RAISE_INTERACTIVE, RAISE_SOFT_RT};
use super::super::entity::QueueId;
use super::super::raising::Claim;
use super::super::{BfqVariant, StateChange};
use super::machine::{Job, MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::kernel::Kernel;

fn raised(machine: &Machine, pid: u32) -> bool {
    !machine.lines_of(pid, |what| matches!(what, StateChange::Raised { .. })).is_empty()
}

#[test]
fn a_new_process_is_raised_unless_it_has_another_level() {
    for (level, expected) in [(4, true), (3, false)] {
        let mut machine = Machine::new(config(true));
        machine.set("low_latency", 1);
        let ioprio = IoPriority::new(PriorityClass::BestEffort, level);
        machine.add(Job { depth: 1, ioprio, ..Job::sequential(1, 8) });
        machine.run_until(10 * MS);
        assert_eq!(raised(&machine, 1), expected);
    }
}

#[test]
fn a_raised_newcomer_takes_the_device_with_the_timestamps_of_28_16() {
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 256));
    machine.run_until(99 * MS);
    machine.set("low_latency", 1);
    machine.add(Job { depth: 1, think: 200_000, start: 100 * MS, ..Job::sequential(2, 8) });
    machine.run_until(101 * MS);
    let (start, finish) = machine.stamps(2)[0];
    assert_eq!(finish - start, 3_579_139);
    assert_eq!(machine.expirations(1).last().map(|&(_, reason)| reason), Some("preempted"));
    assert_eq!(machine.dispatches.last().map(|&(_, pid, _)| pid), Some(2));
    assert!(machine.timer_left().is_some_and(|left| left > 19 * MS), "raised queues are waited for 20 ms");
}

#[test]
fn raising_ends_after_120000_sectors_and_when_low_latency_is_switched_off() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.add(Job::sequential(1, 1024));
    machine.run_until(400 * MS);
    assert_eq!(machine.bfq.raised_busy, 1);
    machine.run_until(600 * MS);
    assert_eq!(machine.bfq.raised_busy, 0, "120000 sectors take 480 ms");
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.read(1, 0, 8);
    machine.set("low_latency", 0);
    assert_eq!(machine.bfq.raised_busy, 0);
}

#[test]
fn eight_queues_in_a_row_are_a_large_burst_and_a_pause_ends_it() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    let mut sizes = Vec::new();
    for pid in 1..=9 {
        machine.add(Job { depth: 1, start: u64::from(pid - 1) * 20 * MS, think: 1 << 40, ..Job::sequential(pid, 8) });
        machine.run_until(u64::from(pid - 1) * 20 * MS);
        sizes.push(machine.bfq.burst.size);
    }
    assert_eq!(sizes, [1, 2, 3, 4, 5, 6, 7, 8, 8]);
    assert!(machine.bfq.burst.large);
    assert!(raised(&machine, 1) && !raised(&machine, 9));
    machine.add(Job { depth: 1, start: 400 * MS, ..Job::sequential(10, 8) });
    machine.run_until(401 * MS);
    assert_eq!((machine.bfq.burst.size, machine.bfq.burst.large), (1, false));
    assert!(raised(&machine, 10));
}

#[test]
fn a_newcomer_belongs_to_the_burst_before_it_for_180_ms() {
    for (gap, size) in [(1, 2), (180, 2), (181, 1)] {
        let mut machine = Machine::new(config(true));
        machine.set("low_latency", 1);
        for (pid, at) in [(1, 0), (2, gap)] {
            machine.add(Job { depth: 1, start: at * MS, think: 1 << 40, ..Job::sequential(pid, 8) });
            machine.run_until(at * MS);
        }
        assert_eq!(machine.bfq.burst.size, size, "{gap} ms");
    }
}

#[test]
fn a_state_line_reports_each_time_a_queue_becomes_busy() {
    let mut machine = Machine::new(config(true));
    machine.add(Job { depth: 1, think: 300 * MS, ..Job::sequential(1, 8) });
    machine.run_until(700 * MS);
    let busy: Vec<u64> =
        machine.lines_of(1, |what| matches!(what, StateChange::Busy)).into_iter().map(|(at, _)| at / MS).collect();
    assert_eq!(busy, [0, 300, 600]);
}

/// Process 1 reads `sectors` every `period` ms, each read served in 2 ms, beside a hog from the start. For each of its
/// reads the factor with which it left.
fn periodic(period: u64, sectors: u32) -> Vec<u64> {
    let mut machine = Machine::new(config(false));
    machine.set("low_latency", 1);
    let mut factors = Vec::new();
    let mut at = 10;
    for nth in 0..24 {
        machine.run_until(at * MS);
        let id = machine.read(1, (nth * u64::from(sectors)) + 8, sectors);
        let q = machine.sync_queue(1);
        // Not the start of a process, only its period, is what counts here.
        machine.bfq.queues[q].budget_timeout = at as i64;
        if nth == 0 {
            machine.inside(|bfq| bfq.end_raising(q));
            machine.bfq.queues[q].raising.soft_rt_next_start = i64::MIN;
        }
        machine.dispatch();
        factors.push(machine.bfq.entity(q).raise);
        machine.now = (at + 2) * MS;
        machine.finish(id);
        at += period;
    }
    factors
}

#[test]
fn a_player_is_soft_real_time_and_stays_so_while_its_period_is_longer_than_the_idle_timer() {
    // 40 ms are enough; with 30 ms the 20 ms of idling and 12 more are too many.
    let factors = periodic(40, 128);
    assert!(factors[3..].iter().all(|&factor| factor == 3000), "{factors:?}");
    let factors = periodic(30, 128);
    assert!(factors[3..].contains(&1), "it loses it now and then: {factors:?}");
    // 7000 sectors/s are 280 in 40 ms.
    let factors = periodic(40, 1000);
    assert!(factors[3..].iter().filter(|&&factor| factor == 3000).count() < 12, "too much: {factors:?}");
}

#[test]
fn next_soft_rt_start_follows_service_or_a_pause_no_greedy_process_makes() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    let q = machine.sync_queue(1);
    let mut start = |backlogged, service, now: u64| {
        machine.now = now * MS;
        machine.bfq.queues[q].backlogged_at = backlogged;
        machine.bfq.queues[q].service_since_backlogged = service;
        machine.bfq.queues[q].raising.soft_rt_next_start = 0;
        machine.inside(|bfq| bfq.compute_soft_rt_start(q));
        machine.bfq.queues[q].raising.soft_rt_next_start
    };
    assert_eq!(start(1000, 128, 1002), 1018);
    assert_eq!(start(1000, 128, 1022), 1034);
    assert_eq!(start(1000, 7000, 1002), 2000);
}

#[test]
fn interactive_raising_lasts_by_the_peak_rate_within_limits() {
    let mut machine = Machine::new(config(true));
    let mut duration = |rate, rotational| {
        machine.bfq.rate.rate = rate;
        machine.bfq.config.rotational = rotational;
        machine.bfq.interactive_duration()
    };
    assert_eq!((duration(9333, true), duration(22_000, false)), (10_500, 3_750));
    assert_eq!((duration(1000, true), duration(1 << 20, true)), (25_000, 3_000));
    machine.bfq.config.variant = BfqVariant::of(Kernel::V4_12);
    let mut duration = |rate, rotational| {
        machine.bfq.rate.rate = rate;
        machine.bfq.config.rotational = rotational;
        machine.bfq.interactive_duration()
    };
    assert_eq!(duration(8000, true), 12_250);
    assert_eq!(duration(7000, true), 13_000, "the old cap");
    assert_eq!(duration(1300, true), 3_000, "a slow disk has another reference: 1000 at 3.5 s");
    assert_eq!(duration(14_265, false), 4_500, "and so has slow flash: 10700 at 6 s");
    assert_eq!((duration(1332, true), duration(1333, true)), (3_000, 13_000), "slow is what is below");
    assert_eq!(duration(14_266, false), 5_782);
}

/// A raised queue of process 1 in service, at 1 s.
fn raised_in_service(raise: u64) -> (Machine, QueueId) {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.now = 1000 * MS;
    (0..4).for_each(|at| {
        machine.read(1, 8 * at, 8);
    });
    machine.dispatch();
    let q = machine.sync_queue(1);
    machine.inside(|bfq| bfq.set_raise(q, raise));
    (machine, q)
}

#[test]
fn soft_rt_raising_falls_back_to_the_remaining_interactive_raising() {
    let (mut machine, q) = raised_in_service(RAISE_INTERACTIVE);
    let interactive = Claim { interactive: false, soft_rt: true, deserved: true };
    machine.now = 1300 * MS;
    machine.inside(|bfq| bfq.update_raising(q, interactive));
    let raising = machine.bfq.queues[q].raising;
    assert_eq!((machine.bfq.entity(q).raise, raising.duration, raising.start), (RAISE_SOFT_RT, 300, 1300));
    assert_eq!(raising.start_at_switch, 1000);
    machine.now = 1600 * MS;
    machine.inside(|bfq| bfq.check_raising(q));
    assert_eq!(machine.bfq.entity(q).raise, RAISE_SOFT_RT, "300 ms are not over");
    machine.now = 1601 * MS;
    machine.inside(|bfq| bfq.check_raising(q));
    let raising = machine.bfq.queues[q].raising;
    assert_eq!((machine.bfq.entity(q).raise, raising.duration, raising.start), (RAISE_INTERACTIVE, 10_500, 1000));
    machine.now = 11_501 * MS;
    machine.inside(|bfq| bfq.check_raising(q));
    assert_eq!(machine.bfq.entity(q).raise, 1);
    let raising = machine.bfq.queues[q].raising;
    assert_eq!((raising.duration, raising.soft_rt_next_start), (0, 11_501));
}

#[test]
fn a_totally_seeky_queue_is_not_soft_real_time() {
    let (mut machine, q) = raised_in_service(RAISE_SOFT_RT);
    machine.bfq.queues[q].raising.start_at_switch = super::super::config::LONG_AGO_TICK;
    (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
    machine.read(1, 1 << 40, 8);
    assert_eq!(machine.bfq.entity(q).raise, 1);
    assert!(!machine.inside(|bfq| {
        let context = bfq.queues[q].owner.unwrap();
        bfq.queues[q].raising.soft_rt_next_start = 0;
        bfq.claim(q, context).soft_rt
    }));
}

#[test]
fn the_time_that_a_soft_real_time_queue_waits_is_not_held_against_it() {
    let (mut machine, q) = raised_in_service(RAISE_SOFT_RT);
    let mut forgiven = |start, empty_since, now: u64| {
        machine.now = now * MS;
        machine.bfq.queues[q].raising.start = start;
        machine.bfq.queues[q].budget_timeout = empty_since;
        machine.inside(|bfq| bfq.exclude_wait_from_soft_rt(q));
        machine.bfq.queues[q].raising.start
    };
    assert_eq!(forgiven(1000, 1100, 1150), 1050);
    assert_eq!(forgiven(1100, 1000, 1150), 1150);
    assert_eq!(forgiven(1150, 1000, 1150), 1150, "it has just begun");
}

#[test]
fn an_async_queue_with_work_is_raised_by_a_request_more_than_500_ms_after_the_last() {
    for (gap, low_latency, expected) in [(500, 1, 1), (501, 1, RAISE_INTERACTIVE), (501, 0, 1)] {
        let mut machine = Machine::new(config(true));
        machine.set("low_latency", low_latency);
        machine.now = 10 * MS;
        machine.write(1, 0, 8);
        let q = machine.async_queue(1);
        assert_eq!(machine.bfq.entity(q).raise, 1, "never by getting work");
        machine.now += gap * MS;
        machine.write(1, 1 << 20, 8);
        assert_eq!(machine.bfq.entity(q).raise, expected, "after {gap} ms");
        if expected > 1 {
            assert_eq!((machine.bfq.raised_busy, machine.bfq.queues[q].raising.duration), (1, 10_500));
            let id = machine.bfq.queues[q].next().unwrap();
            assert_eq!(machine.bfq.charge_of(q, id), 8, "its sectors count once meanwhile");
        }
    }
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.write(1, 0, 8);
    machine.serve();
    while machine.bfq.in_service.is_some() {
        machine.dispatch();
        let q = machine.async_queue(1);
        machine.inside(|bfq| {
            if bfq.in_service == Some(q) {
                bfq.expire(q, false, super::super::Expiration::NoMoreRequests);
            }
        });
    }
    machine.now = 5_000 * MS;
    machine.write(1, 1 << 20, 8);
    assert_eq!(machine.bfq.entity(machine.async_queue(1)).raise, 1, "it had no work");
}

#[test]
fn raised_queues_have_small_budgets_and_do_not_count_for_symmetry() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.read(1, 0, 8);
    let q = machine.sync_queue(1);
    let entity = machine.bfq.entity(q);
    assert_eq!((entity.raise, entity.weight, entity.budget, entity.counted_weight), (30, 1200, 1024, None));
    assert_eq!(machine.bfq.hierarchy.weights.smallest(), None);
    machine.set("low_latency", 0);
    machine.dispatch();
    let entity = machine.bfq.entity(q);
    assert_eq!((entity.weight, entity.counted_weight), (40, Some(40)));
}

#[test]
fn toggling_low_latency_raises_only_queues_that_arrive_afterwards() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.read(1, 0, 8);
    machine.write(2, 1 << 20, 8);
    machine.now = 600 * MS;
    machine.write(2, 2 << 20, 8);
    assert_eq!(machine.bfq.raised_busy, 2);
    machine.set("low_latency", 0);
    assert_eq!(machine.bfq.raised_busy, 0, "the async one, too");
    machine.read(3, 3 << 20, 8);
    machine.set("low_latency", 1);
    assert_eq!(machine.bfq.raised_busy, 0);
    machine.now = 2_000 * MS;
    machine.read(4, 4 << 20, 8);
    assert_eq!(machine.bfq.raised_busy, 1);
}

#[test]
fn a_queue_forgets_that_it_came_in_a_burst_after_ten_seconds_without_work() {
    for (empty_ms, remembers) in [(10_000, true), (10_001, false)] {
        let mut machine = Machine::new(config(true));
        machine.set("low_latency", 1);
        machine.read(1, 8, 8);
        let q = machine.sync_queue(1);
        machine.serve();
        machine.fire_timer();
        assert!(!machine.bfq.queues[q].busy);
        machine.inside(|bfq| bfq.end_raising(q));
        machine.bfq.queues[q].in_large_burst = true;
        let since = machine.bfq.queues[q].budget_timeout as u64;
        machine.now = (since + empty_ms) * MS;
        machine.read(1, 16, 8);
        assert_eq!(machine.bfq.queues[q].in_large_burst, remembers);
        assert_eq!(machine.bfq.entity(q).raise, 1, "what it may claim was found out before");
    }
}

#[test]
fn a_burst_is_one_of_a_group_and_ends_raising() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    for pid in 1..=3 {
        machine.now = u64::from(pid) * 20 * MS;
        machine.read(pid, u64::from(pid) << 24, 8);
    }
    assert_eq!(machine.bfq.burst.size, 3);
    machine.now += 20 * MS;
    machine.read_in(1, 4, 4 << 24);
    assert_eq!(machine.bfq.burst.size, 0, "in another group, while others have work");
    let (mut machine, q) = raised_in_service(RAISE_INTERACTIVE);
    machine.bfq.queues[q].in_large_burst = true;
    machine.dispatch();
    assert_eq!(machine.bfq.entity(q).raise, 1);
}

#[test]
fn a_burst_begins_only_on_an_idle_device_and_shrinks_when_a_process_of_it_ends() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    machine.bfq.burst = super::super::bursts::Burst::default();
    for pid in [2, 3] {
        machine.now += 20 * MS;
        machine.read(pid, u64::from(pid) << 24, 8);
        assert_eq!(machine.bfq.burst.size, 0, "a queue had work already");
    }
    for (shared, size) in [(false, 1), (true, 2)] {
        let mut machine = Machine::new(config(true));
        machine.read(1, 8, 8);
        machine.now = 200 * MS;
        machine.read(2, 1 << 24, 8);
        machine.bfq.burst.size = 2;
        let q = machine.sync_queue(2);
        machine.bfq.burst.leave(q, false);
        machine.bfq.burst.readmit(q);
        machine.inside(|bfq| {
            if shared {
                bfq.queues[q].owner = None;
            }
            bfq.context_exited(crate::ground::ids::IoContextId(2));
        });
        machine.drain();
        machine.inside(|bfq| {
            let entity = bfq.queues[q].entity;
            bfq.hierarchy.drop_idle(entity);
        });
        assert_eq!((machine.bfq.queues[q].alive, machine.bfq.burst.size), (false, size));
    }
}

#[test]
fn the_first_of_a_burst_is_known_to_be_of_it_and_counts_once() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.read(1, 8, 8);
    let q = machine.sync_queue(1);
    assert!(machine.bfq.burst.contains(q));
    machine.inside(|bfq| bfq.note_newcomer(q));
    assert_eq!(machine.bfq.burst.size, 1);
    for pid in 2..=8 {
        machine.read(pid, u64::from(pid) << 24, 8);
    }
    assert!(machine.bfq.burst.large);
    assert!((1..=8).all(|pid| machine.bfq.queues[machine.sync_queue(pid)].in_large_burst), "each that came in it");
}

#[test]
fn a_queue_of_a_past_burst_does_not_belong_to_the_next_one() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.read(1, 8, 8);
    let early = machine.sync_queue(1);
    machine.serve();
    machine.fire_timer();
    machine.now += 500 * MS;
    for pid in 2..=9 {
        machine.read(pid, u64::from(pid) << 24, 8);
    }
    assert!(machine.bfq.burst.large && !machine.bfq.burst.contains(early));
    assert!((2..=9).all(|pid| machine.bfq.queues[machine.sync_queue(pid)].in_large_burst));
    assert!(!machine.bfq.queues[early].in_large_burst);
}

#[test]
fn a_queue_of_a_large_burst_does_not_count_toward_a_new_one() {
    let mut machine = Machine::new(config(true));
    machine.set("low_latency", 1);
    machine.read(1, 8, 8);
    let q = machine.sync_queue(1);
    machine.bfq.burst = super::super::bursts::Burst::default();
    machine.drain();
    machine.bfq.queues[q].in_large_burst = true;
    machine.now += 500 * MS;
    machine.inside(|bfq| bfq.note_newcomer(q));
    assert_eq!(machine.bfq.burst.size, 0);
}

#[test]
fn a_queue_split_off_within_ten_ms_does_not_count_as_new() {
    for (ms, newcomer) in [(10, false), (11, true)] {
        let mut machine = Machine::new(config(true));
        machine.now = 1_000 * MS;
        machine.read(1, 8, 8);
        let q = machine.sync_queue(1);
        machine.serve();
        machine.fire_timer();
        machine.bfq.burst = super::super::bursts::Burst::default();
        machine.bfq.queues[q].split = machine.now as i64 / MS as i64;
        machine.now += ms * MS;
        machine.inside(|bfq| bfq.note_newcomer(q));
        assert_eq!(machine.bfq.burst.size, u32::from(newcomer), "{ms} ms");
    }
}

#[test]
fn a_burst_does_not_shrink_below_nothing() {
    let mut burst = super::super::bursts::Burst::default();
    burst.readmit(QueueId(3));
    burst.leave(QueueId(3), true);
    assert!(burst.size == 0 && !burst.contains(QueueId(3)));
}

#[test]
fn switching_low_latency_off_leaves_the_time_of_a_queue_that_is_not_raised_alone() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    machine.set("low_latency", 1);
    let q = machine.sync_queue(1);
    let before = machine.bfq.queues[q].raising.start;
    machine.now = 500 * MS;
    machine.set("low_latency", 0);
    assert_eq!(machine.bfq.queues[q].raising.start, before);
}
