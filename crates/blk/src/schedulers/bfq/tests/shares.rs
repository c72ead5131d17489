//! Shares and slots of processes that keep the device busy: worked examples of BFQ-17, BFQ-18, BFQ-20, BFQ-25, BFQ-34,
//! BFQ-36, BFQ-37, BFQ-72, BFQ-81, BFQ-83.

use super::super::entity::GroupId;
use super::super::{BfqConfig, BfqGroup, BfqVariant, StateChange};
use super::machine::{Job, MS, Machine, config};
use crate::bio::Op;
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::CgroupId;
use crate::ground::kernel::Kernel;

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 0.01, "{value} instead of {expected}");
}

fn level(level: u8) -> IoPriority {
    IoPriority::new(PriorityClass::BestEffort, level)
}

/// Virtual time of the best-effort tree of a group.
fn vtime(machine: &Machine, group: u32) -> u64 {
    machine.bfq.hierarchy.level(GroupId(group)).best_effort().vtime
}

/// What the slots of a process were charged with, time included, sectors.
fn charged(machine: &Machine, pid: u32) -> Vec<u64> {
    // At the end of a slot the finish time is first that of the service.
    let lines = machine.lines_of(pid, |what| matches!(what, StateChange::Expire { .. } | StateChange::Vtime { .. }));
    let charged = lines.windows(2).filter_map(|pair| match (&pair[0].1, &pair[1].1) {
        (StateChange::Expire { .. }, &StateChange::Vtime { service, .. }) => Some(service),
        _ => None,
    });
    charged.collect()
}

#[test]
fn two_equal_sequential_queues_alternate_with_the_timestamps_of_28_2() {
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 1024));
    machine.add(Job::sequential(2, 1024));
    // Virtual time at the start, and as the slots end.
    let times = [0, 40_960_000 - 1, 81_920_000 - 1, 147_456_000 - 1].map(|at| {
        machine.run_until(at);
        vtime(&machine, 0)
    });
    assert_eq!(times, [107_374_182, 590_558_001, 1_127_428_911, 1_986_422_367]);
    machine.run_until(150 * MS);
    assert_eq!(machine.expirations(1), [(40_960_000, "budget_exhausted"), (147_456_000, "budget_exhausted")]);
    assert_eq!(machine.expirations(2), [(81_920_000, "budget_exhausted")]);
    let stamps = [(0, 1_145_254_707), (0, 1_073_741_824), (1_073_741_824, 2_791_728_742)];
    assert_eq!(machine.stamps(1)[..3], stamps);
    assert_eq!(machine.stamps(2)[0], (107_374_182, 1_252_628_889));
    assert_eq!(machine.stamps(2)[2], (1_181_116_006, 2_899_102_924));
}

#[test]
fn a_queue_of_twice_the_weight_gets_two_slots_of_three() {
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 256));
    machine.add(Job { ioprio: level(0), ..Job::sequential(2, 256) });
    machine.run_until(20_000 * MS);
    near(machine.share(0), 0.333);
    near(machine.share(1), 0.667);
    assert_eq!(machine.expirations(1)[0].1, "preempted", "the heavier queue takes the device as it arrives");
}

#[test]
fn depth_one_processes_on_queueing_flash_share_requests_not_sectors() {
    // They start together, and would be merged permanently (BFQ-109).
    let config = config(false);
    let variant = BfqVariant { stable_merging: false, ..config.variant };
    let mut machine = Machine::new(BfqConfig { variant, ..config });
    machine.service = |_, sectors| 100_000 + 500 * u64::from(sectors);
    machine.add(Job { depth: 1, think: 1, ..Job::sequential(1, 8) });
    machine.add(Job { depth: 1, think: 1, ..Job::sequential(2, 1024) });
    machine.run_until(5_000 * MS);
    for pid in [1, 2] {
        assert_eq!(machine.dispatches.iter().filter(|dispatch| dispatch.1 == pid).count(), 6_984);
        let ends = machine.expirations(pid);
        assert!(ends.len() > 6_900);
        // But the one at which a request did not fit in what was left of the first budget, which no length divides.
        let others: Vec<_> = ends.iter().map(|end| end.1).filter(|&why| why != "preempted").collect();
        assert_eq!(others, ["budget_exhausted"]);
    }
    assert!((machine.share(0) - 0.008).abs() < 0.0005);
}

#[test]
fn a_random_process_shares_time_with_a_sequential_one_unless_it_is_4_12() {
    let run = |config: BfqConfig| {
        let mut machine = Machine::new(config);
        machine.service = |pid, sectors| u64::from(sectors) * 4_000 + if pid == 2 { 10 * MS } else { 0 };
        machine.add(Job::sequential(1, 256));
        machine.add(Job::random(2, 4));
        machine.run_until(60_000 * MS);
        machine
    };
    let slots = |machine: &Machine| [1, 2].map(|pid| machine.expirations(pid).len());
    let machine = run(config(true));
    assert_eq!(slots(&machine), [306, 306]);
    // Once budgets have grown, and as long as the sequential reader's request in the device allows.
    let [(sequential, why), (random, random_why)] = [1, 2].map(|pid| machine.expirations(pid)[100]);
    assert_eq!((why, random_why), ("budget_exhausted", "budget_timeout"));
    assert_eq!(random - sequential, 130_416_000);
    assert_eq!(machine.expirations(1)[101].0 - random, 65_536_000);
    let reads = |dispatch: &&(u64, u32, u64)| dispatch.1 == 2 && (sequential..random).contains(&dispatch.0);
    assert_eq!(machine.dispatches.iter().filter(reads).count() * 8, 104);
    assert_eq!([1, 2].map(|pid| charged(&machine, pid)[100]), [16_384; 2], "time, for the random one");
    let old = run(BfqConfig { variant: BfqVariant::of(Kernel::V4_12), ..config(true) });
    assert_eq!((slots(&old), charged(&old, 2)[100]), ([4, 458], 104));
}

#[test]
fn async_requests_are_charged_several_times() {
    let share = |config: BfqConfig| {
        let mut machine = Machine::new(config);
        machine.add(Job::sequential(1, 256));
        machine.add(Job { op: Op::Write, ..Job::sequential(2, 256) });
        machine.run_until(30_000 * MS);
        machine.share(0)
    };
    near(share(config(true)), 0.750);
    near(share(BfqConfig { variant: BfqVariant::of(Kernel::V4_12), ..config(true) }), 0.909);
}

#[test]
fn groups_share_by_weight_and_their_processes_share_inside() {
    let group = |id, weight| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight };
    let mut machine = Machine::new(BfqConfig { groups: vec![group(1, 100), group(2, 300)], ..config(true) });
    for (pid, cgroup) in [(1, 1), (2, 1), (3, 2)] {
        machine.add(Job { cgroup: CgroupId(cgroup), ..Job::sequential(pid, 256) });
    }
    machine.run_until(40_000 * MS);
    near(machine.share(0), 0.125);
    near(machine.share(1), 0.125);
    near(machine.share(2), 0.750);
}

#[test]
fn nested_groups_multiply_and_the_order_of_slots_is_that_of_28_17() {
    let group = |id, weight| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight };
    let mut machine = Machine::new(BfqConfig { groups: vec![group(1, 100), group(2, 300)], ..config(true) });
    for (pid, cgroup) in [(1, 1), (2, 2)] {
        machine.add(Job { cgroup: CgroupId(cgroup), ..Job::sequential(pid, 1024) });
    }
    let stamps = |machine: &Machine, group| {
        let entity = machine.bfq.groups[GroupId(group)].entity.unwrap();
        let entity = &machine.bfq.hierarchy.entities[entity];
        (entity.start, entity.finish)
    };
    // When a slot ends, and of which process, V of the root just before, and the stamps of both groups then.
    let (one, two) = ((472_446_401, 1_159_641_168), (644_245_092, 873_310_014));
    let rows = [
        (0, 1, 42_949_672, (42_949_672, 501_051_554), (42_949_672, 195_650_299)),
        (45_056, 2, 150_323_852, (42_949_672, 501_051_554), (186_115_248, 415_180_170)),
        (86_016, 1, 257_698_032, one, (186_115_248, 415_180_170)),
        (151_552, 2, 429_496_720, one, (415_180_170, 644_245_092)),
        (217_088, 2, 601_295_408, one, two),
        (282_624, 1, 773_094_096, (1_159_641_168, 1_846_835_935), two),
    ];
    for (end_us, pid, root, first, second) in rows {
        machine.run_until((end_us * 1000).max(1) - 1);
        assert_eq!(vtime(&machine, 0), root, "before {end_us} us");
        machine.run_until(end_us * 1000);
        assert_eq!((stamps(&machine, 1), stamps(&machine, 2)), (first, second), "at {end_us} us");
        let end = machine.expirations(pid).last().map(|end| end.0);
        assert_eq!(end, Some(end_us * 1000));
        if end_us == 86_016 {
            assert_eq!(vtime(&machine, 1), 1_181_116_002, "that of a level with one child trails by truncation");
        }
    }
    assert_eq!([1, 2].map(|pid| machine.expirations(pid).len()), [3, 3]);
    assert_eq!(machine.stamps(1)[4], (1_181_116_006, 2_899_102_924));
}

#[test]
fn strict_guarantees_keep_one_request_in_the_device_and_idle_always() {
    let mut machine = Machine::new(config(true));
    machine.set("max_budget", 0);
    machine.set("strict_guarantees", 1);
    machine.device_depth = 8;
    machine.service = |_, _| 5 * MS;
    let process = |pid, sector, start| Job { sector, depth: 1, think: 1 << 40, start, ..Job::sequential(pid, 8) };
    machine.add(process(1, 1000, 0));
    machine.add(process(2, 50_000, 0));
    machine.add(process(1, 2000, 0));
    machine.run_until(40 * MS);
    let dispatches: Vec<_> = machine.dispatches.iter().map(|&(t, pid, _)| (t / MS, pid)).collect();
    assert_eq!(dispatches, [(0, 1), (5, 1), (18, 2)]);
    assert_eq!(machine.expirations(1), [(18 * MS, "too_idle")]);
}

#[test]
fn weights_affect_depth_one_processes_only_with_idling() {
    let ratio = |slice_idle| {
        let mut machine = Machine::new(config(true));
        machine.set("slice_idle", slice_idle);
        let process = |pid, prio| Job { depth: 1, think: 100_000, ioprio: level(prio), ..Job::sequential(pid, 256) };
        machine.add(process(1, 4));
        machine.add(process(2, 0));
        machine.run_until(20_000 * MS);
        machine.served[1] as f64 / machine.served[0] as f64
    };
    assert!((ratio(8) - 2.0).abs() < 0.05);
    assert!((ratio(0) - 1.0).abs() < 0.05);
}

/// CG-2.
#[test]
fn a_process_in_the_root_competes_with_a_group_by_its_own_weight() {
    let group = BfqGroup { cgroup: CgroupId(1), parent: CgroupId::ROOT, weight: 100 };
    let mut machine = Machine::new(BfqConfig { groups: vec![group], ..config(true) });
    machine.add(Job::sequential(1, 256));
    for pid in 2..=6 {
        machine.add(Job { cgroup: CgroupId(1), ..Job::sequential(pid, 256) });
    }
    machine.run_until(60_000 * MS);
    near(machine.share(0), 40.0 / 140.0);
    (1..6).for_each(|number| near(machine.share(number), 20.0 / 140.0));
}

#[test]
fn the_slots_of_two_groups_come_in_the_order_of_28_10() {
    let group = |id, weight| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight };
    let mut machine = Machine::new(BfqConfig { groups: vec![group(1, 100), group(2, 300)], ..config(true) });
    for (pid, cgroup) in [(1, 1), (2, 1), (3, 2)] {
        machine.add(Job { cgroup: CgroupId(cgroup), ..Job::sequential(pid, 256) });
    }
    machine.run_until(20_000 * MS);
    let mut slots: Vec<_> =
        (1..=3).flat_map(|pid| machine.expirations(pid).into_iter().map(move |end| (end.0, pid))).collect();
    slots.sort_unstable();
    let order: Vec<u32> = slots.iter().rev().take(64).map(|&(_, pid)| pid).collect();
    let turn = order.iter().position(|&pid| pid == 1).unwrap();
    let cycle = [1, 3, 3, 3, 2, 3, 3, 3];
    assert!(order[turn..].iter().zip(cycle.iter().cycle()).all(|(pid, expected)| pid == expected), "{order:?}");
}
