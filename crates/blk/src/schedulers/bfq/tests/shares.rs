//! Shares and slots of processes that keep the device busy: the worked examples 28.2 to 28.11 and 28.17.

use super::super::{BfqConfig, BfqGroup, BfqVariant};
use super::machine::{Job, MS, Machine, config};
use crate::bio::Op;
use crate::ids::CgroupId;
use crate::ioprio::{IoPriority, PriorityClass};
use crate::kernel::Kernel;

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 0.01, "{value} instead of {expected}");
}

fn level(level: u8) -> IoPriority {
    IoPriority::new(PriorityClass::BestEffort, level)
}

#[test]
fn two_equal_sequential_queues_alternate_with_the_timestamps_of_28_2() {
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 1024));
    machine.add(Job::sequential(2, 1024));
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
    let mut machine = Machine::new(config(false));
    machine.service = |_, sectors| 100_000 + 500 * u64::from(sectors);
    // Closer together than this they would be merged for good (20.6).
    let later = 700 * MS;
    machine.add(Job { depth: 1, think: 1, ..Job::sequential(1, 8) });
    machine.add(Job { depth: 1, think: 1, start: later, ..Job::sequential(2, 1024) });
    machine.run_until(5_000 * MS);
    let requests =
        [1, 2].map(|wanted| machine.dispatches.iter().filter(|&&(t, pid, _)| t >= later && pid == wanted).count());
    assert!(requests[0].abs_diff(requests[1]) <= 2 && requests[0] > 5000, "{requests:?}");
}

#[test]
fn a_random_process_shares_time_with_a_sequential_one_unless_it_is_4_12() {
    let slots = |config: BfqConfig| {
        let mut machine = Machine::new(config);
        machine.service = |pid, sectors| u64::from(sectors) * 4_000 + if pid == 2 { 10 * MS } else { 0 };
        machine.add(Job::sequential(1, 256));
        machine.add(Job::random(2, 4));
        machine.run_until(20_000 * MS);
        (machine.expirations(1).len(), machine.expirations(2).len())
    };
    let (sequential, random) = slots(config(true));
    assert!(sequential.abs_diff(random) <= 1 && random > 90, "they alternate: {sequential} and {random}");
    let old = BfqConfig { variant: BfqVariant::of(Kernel::V4_12), ..config(true) };
    let (sequential, random) = slots(old);
    assert!(random > 20 * sequential, "hardly charged, the random one gets nearly all: {sequential} and {random}");
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
    machine.run_until(290 * MS);
    let mut slots: Vec<_> = [1, 2]
        .into_iter()
        .flat_map(|pid| machine.expirations(pid).into_iter().map(move |(t, _)| (t / 1000, pid)))
        .collect();
    slots.sort_unstable();
    let expected = [(0, 1), (45_056, 2), (86_016, 1), (151_552, 2), (217_088, 2), (282_624, 1)];
    assert_eq!(slots, expected);
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
fn without_idling_equal_weights_do_not_help_depth_one_processes_and_with_it_they_do() {
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

/// `cgroup-io.md` 13, E4.
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
