//! Weight raising and large bursts (18, 19, 28.15, 28.16).

use super::super::StateChange;
use super::machine::{Job, MS, Machine, config};
use crate::ioprio::{IoPriority, PriorityClass};

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
