//! What older releases do differently (docs/rules/bfq.md), where no other file tests it.

use super::super::config::RAISE_INTERACTIVE;
use super::super::entity::{BE, Entity, GroupId, Owner, QueueId, RT};
use super::super::hierarchy::Hierarchy;
use super::super::rate::{PeakRate, Sample};
use super::super::{BfqConfig, BfqVariant, Expiration};
use super::machine::{Job, MS, Machine, config};
use crate::ground::kernel::Kernel;
use crate::policy::Scheduler;

fn old(rotational: bool) -> BfqConfig {
    BfqConfig { variant: BfqVariant::of(Kernel::V4_12), ..config(rotational) }
}

#[test]
fn an_empty_queue_that_is_waited_for_is_work_before_4_19() {
    for (config, expected) in [(old(true), true), (config(true), false)] {
        let mut machine = Machine::new(config);
        machine.bfq.settings.low_latency = true;
        machine.read(1, 8, 8);
        machine.serve();
        assert!(machine.timer_left().is_some());
        assert_eq!(machine.bfq.has_work(), expected);
    }
}

#[test]
fn before_5_0_a_small_lone_request_never_ends_the_idle_wait() {
    for (config, waits_on) in [(old(true), true), (config(true), false)] {
        let mut machine = Machine::new(config);
        machine.decide_ncq(false);
        machine.read(1, 8, 8);
        machine.serve();
        let q = machine.sync_queue(1);
        assert!(machine.bfq.queues[q].waiting);
        // From now on it would be waited for only for its due (BFQ-78).
        machine.bfq.raised_busy = 1;
        assert!(!machine.bfq.idling_is_free(q));
        machine.read(1, 16, 8);
        assert_eq!(machine.bfq.queues[q].waiting, waits_on);
    }
}

#[test]
fn on_a_busy_device_a_burst_begins_before_5_0_only() {
    for (config, size) in [(old(true), 1), (config(true), 0)] {
        let mut machine = Machine::new(config);
        machine.read(1, 8, 8);
        machine.now = 200 * MS;
        machine.bfq.burst.size = 5;
        machine.read(2, 1 << 24, 8);
        assert_eq!(machine.bfq.burst.size, size);
    }
}

#[test]
fn before_5_0_the_time_of_a_slot_is_looked_at_though_requests_are_in_flight() {
    for (config, expected) in [(old(true), 1), (config(true), 0)] {
        let mut machine = Machine::new(config);
        machine.decide_ncq(false);
        for at in 0..2 {
            machine.read(1, at * 8, 8);
        }
        let (id, _) = machine.dispatch().unwrap();
        machine.dispatch();
        machine.now = 200 * MS;
        machine.finish(id);
        assert_eq!(machine.expirations(1).len(), expected);
    }
}

#[test]
fn only_a_queue_raised_more_takes_the_device_before_5_0() {
    for (raise, expected) in [(1, false), (RAISE_INTERACTIVE, true)] {
        let mut machine = Machine::new(old(true));
        machine.set("slice_idle", 0);
        machine.read(1, 0, 8);
        machine.read(1, 8, 8);
        machine.read(2, 1 << 20, 8);
        machine.dispatch();
        let other = machine.sync_queue(2);
        machine.bfq.entity_mut(other).raise = raise;
        machine.inside(|bfq| bfq.maybe_preempt(other, true));
        assert_eq!(machine.bfq.in_service.is_none(), expected);
    }
}

#[test]
fn before_5_0_async_requests_cost_double_while_a_queue_is_raised() {
    let mut machine = Machine::new(old(true));
    let id = machine.write(1, 0, 8);
    let q = machine.async_queue(1);
    assert_eq!(machine.bfq.charge_of(q, id.0), 80);
    machine.bfq.raised_busy = 1;
    assert_eq!(machine.bfq.charge_of(q, id.0), 160);
    let mut machine = Machine::new(config(true));
    let id = machine.write(1, 0, 8);
    let q = machine.async_queue(1);
    assert_eq!(machine.bfq.charge_of(q, id.0), 24);
    machine.bfq.groups_pending = 2;
    assert_eq!(machine.bfq.charge_of(q, id.0), 8, "asymmetric");
}

#[test]
fn service_for_soft_real_time_is_counted_at_the_end_of_a_slot_and_without_its_time_before_4_16() {
    let counted = |config| {
        let mut machine = Machine::new(config);
        machine.read(1, 0, 8);
        machine.read(1, 1 << 30, 8);
        machine.dispatch();
        let q = machine.sync_queue(1);
        let before = machine.bfq.queues[q].service_since_backlogged;
        (0..32).for_each(|_| machine.bfq.queues[q].seeks.push(true));
        machine.now = 62 * MS;
        machine.inside(|bfq| bfq.expire(q, false, Expiration::BudgetExhausted));
        (before, machine.bfq.queues[q].service_since_backlogged)
    };
    assert_eq!(counted(old(true)), (0, 8));
    assert_eq!(counted(config(true)), (8, 16_384 * 62 / 125));
}

#[test]
fn a_slot_that_idled_too_soon_and_120_quick_arrivals_decide_about_io_boundness_before_5_12() {
    let mut machine = Machine::new(old(true));
    machine.read(1, 0, 8);
    machine.serve();
    let q = machine.sync_queue(1);
    machine.inside(|bfq| bfq.expire(q, true, Expiration::TooIdle));
    let bound = &mut machine.bfq.queues[q].io_bound;
    assert!(!bound.is, "8 sectors of a budget of 10922");
    (0..119).for_each(|_| bound.count_arrival(true));
    assert!(!bound.is);
    bound.count_arrival(false);
    (0..119).for_each(|_| bound.count_arrival(true));
    assert!(!bound.is, "a late one begins the count anew");
    bound.count_arrival(true);
    assert!(bound.is);
}

#[test]
fn the_idle_window_is_closed_by_thinking_longer_than_slice_idle_before_4_14() {
    let window = |think: u64| {
        let mut machine = Machine::new(old(true));
        machine.decide_ncq(false);
        machine.add(Job { depth: 1, think, ..Job::sequential(1, 64) });
        machine.run_until(200 * MS);
        machine.bfq.queues[machine.sync_queue(1)].idle_window
    };
    assert!(window(7 * MS) && !window(9 * MS));
}

#[test]
fn a_drained_device_runs_the_queues_if_something_waits() {
    for config in [old(true), config(true)] {
        let mut machine = Machine::new(config);
        machine.set("slice_idle", 0);
        machine.read(1, 0, 8);
        machine.read(2, 1 << 20, 8);
        let (id, _) = machine.dispatch().unwrap();
        machine.bfq.begin(crate::ground::time::Hz(1000).now(crate::ground::time::Instant(0)));
        machine.bfq.release_request(id.0);
        assert!(machine.bfq.requested.run_queues);
    }
}

#[test]
fn releases_differ_only_where_the_table_says_so_and_keep_their_order() {
    let of = BfqVariant::of;
    assert_eq!(of(Kernel::V6_12), of(Kernel::V6_18));
    assert_eq!(of(Kernel::V4_4), of(Kernel::V4_12));
    let kernels = [Kernel::V4_12, Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_12];
    assert!(kernels.windows(2).all(|pair| of(pair[0]) != of(pair[1])));
    assert_eq!(kernels.map(|kernel| of(kernel).seeky_above), [4, 19, 19, 19, 19]);
    assert_eq!(kernels.map(|kernel| of(kernel).ncq_above), [4, 4, 3, 3, 3]);
    assert_eq!(kernels.map(|kernel| of(kernel).stable_merging), [false, false, false, true, true]);
}

#[test]
fn a_silence_with_an_empty_device_closes_the_window_and_no_rate_is_beyond_the_ceiling() {
    let mut rate = PeakRate::new(true);
    rate.completed(0);
    let sample = |now, in_driver| Sample { now, sectors: 8, near: true, in_driver };
    assert!(rate.dispatched(sample(0, 0)).reset);
    assert!(!rate.dispatched(sample(100 * MS, 0)).reset, "not longer than 100 ms");
    assert!(!rate.dispatched(sample(201 * MS, 1)).reset, "something is in flight");
    assert!(rate.dispatched(sample(302 * MS, 0)).reset);
    assert_eq!(rate.samples, 1);
    let reached = |sectors| {
        let mut rate = PeakRate::new(false);
        rate.completed(0);
        for at in 0..=100 {
            let now = at * 10 * MS;
            rate.dispatched(Sample { now, sectors, near: true, in_driver: 1 });
            rate.last_completion = now;
        }
        rate.rate
    };
    // 20 sectors/us are 20 million in a second; 101 requests are counted.
    assert!(reached(190_000) > 22_000);
    assert_eq!(reached(200_000), 22_000);
}

/// The candidate of a level after an entity with work was reported again, by the numbers of their queues. Entities 1, 2
/// and 3 are put on the tree of their class in turn; `told` is reported again when virtual time has come to `vtime`.
fn candidate(kernel: Kernel, entities: [(usize, u64, u64); 3], vtime: u64, told: usize) -> u32 {
    let mut hierarchy = Hierarchy::new(BfqVariant::of(kernel), 200, 1);
    let mut number = 0;
    let ids = entities.map(|(class, start, budget)| {
        number += 1;
        let mut entity = Entity::new(Owner::Queue(QueueId(number)), GroupId::ROOT, class, 40);
        entity.budget = budget;
        let id = hierarchy.add_entity(entity);
        hierarchy.levels[0].trees[class].vtime = start;
        hierarchy.enqueue(id, false, false);
        id
    });
    hierarchy.levels[0].next = Some(ids[0]);
    for tree in &mut hierarchy.levels[0].trees {
        tree.vtime = vtime;
    }
    hierarchy.enqueue(ids[told], false, false);
    let next = hierarchy.levels[0].next.expect("one has work");
    ids.iter().position(|&id| id == next).map_or(0, |at| at as u32 + 1)
}

#[test]
fn since_4_14_the_candidate_is_recomputed_and_before_only_compared() {
    // The first ends late; the second begins later, but ends sooner; the third is the last of all.
    let entities = [(BE, 0, 4000), (BE, 1 << 20, 10), (BE, 0, 90_000)];
    for (kernel, expected) in [(Kernel::V4_12, 1), (Kernel::V4_19, 2), (Kernel::V6_18, 2)] {
        assert_eq!(candidate(kernel, entities, 1 << 20, 2), expected, "{kernel}");
        assert_eq!(candidate(kernel, entities, 1 << 20, 1), 2, "{kernel}: it is reported, eligible, and sooner");
    }
}

#[test]
fn a_higher_class_becomes_the_candidate_in_every_release() {
    let entities = [(BE, 0, 10), (BE, 0, 4000), (RT, 1 << 20, 4000)];
    for kernel in [Kernel::V4_12, Kernel::V4_19, Kernel::V6_18] {
        assert_eq!(candidate(kernel, entities, 0, 2), 3, "{kernel}: even if it is not eligible");
    }
}

#[test]
fn for_the_rate_a_request_within_800_sectors_is_near_on_flash_too_before_it_knows_of_flash() {
    let near = |config: &BfqConfig, from: u64, sectors| {
        let mut machine = Machine::new(config.clone());
        machine.read(1, 100_000, 8);
        machine.dispatch();
        machine.read(1, from, sectors);
        machine.dispatch();
        machine.bfq.rate.sequential == 1
    };
    let end = 100_008;
    for (distance, expected) in [(799, true), (800, false)] {
        assert_eq!([near(&old(false), end + distance, 64), near(&old(false), end - distance, 64)], [expected; 2]);
    }
    assert!(near(&config(false), end + 801, 64) && !near(&config(false), end + 801, 8));
}

#[test]
fn since_5_10_think_time_is_sampled_only_with_no_request_of_the_queue() {
    for (config, samples) in [(old(true), [true; 3]), (config(true), [true, false, false])] {
        let sampled = |busy, dispatched| {
            let mut machine = Machine::new(config.clone());
            machine.read(1, 8, 8);
            machine.serve();
            let q = machine.sync_queue(1);
            machine.inside(|bfq| {
                if bfq.in_service == Some(q) {
                    bfq.expire(q, false, Expiration::TooIdle);
                }
            });
            if busy {
                machine.read(1, 800, 8);
            }
            machine.bfq.queues[q].dispatched = dispatched;
            let before = format!("{:?}", machine.bfq.queues[q].think);
            machine.now += 3 * MS;
            machine.read(1, 16, 8);
            before != format!("{:?}", machine.bfq.queues[q].think)
        };
        assert_eq!([sampled(false, 0), sampled(false, 1), sampled(true, 0)], samples);
    }
}

#[test]
fn kernels_with_an_async_depth_start_it_at_three_quarters_of_the_tags() {
    for kernel in Kernel::EXAMPLES {
        let generation = kernel.generation();
        let expected = generation.queue_async_depth.then_some(192);
        assert_eq!(BfqConfig::new(&generation, 256, true).async_depth, expected, "{kernel}");
    }
}
