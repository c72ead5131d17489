//! Several independent actuators (BFQ-128).

use super::super::{BfqConfig, BfqVariant};
use super::machine::{Job, MS, Machine, config};
use crate::bio::{Bio, Op};
use crate::ground::ids::{IoContextId, Sector};
use crate::ground::kernel::Kernel;
use crate::policy::Scheduler;

/// The second actuator begins here.
const SECOND: u64 = 1 << 30;

fn two_actuators() -> BfqConfig {
    BfqConfig { actuators: vec![Sector(SECOND)], ..config(true) }
}

#[test]
fn a_request_belongs_to_the_actuator_of_its_last_sector_and_queues_there() {
    let mut machine = Machine::new(two_actuators());
    let of = |machine: &Machine, sector, sectors| machine.bfq.actuator_of(sector, sectors);
    assert_eq!([of(&machine, SECOND - 8, 8), of(&machine, SECOND - 8, 9), of(&machine, SECOND, 8)], [0, 1, 1]);
    machine.read(1, 0, 8);
    machine.read(1, SECOND, 8);
    machine.write(1, SECOND + 800, 8);
    let context = machine.bfq.contexts.find(IoContextId(1)).unwrap();
    let queues = &machine.bfq.contexts[context].queues;
    assert!(queues[0].sync.is_some() && queues[1].sync.is_some() && queues[0].sync != queues[1].sync);
    assert!(queues[0].async_.is_none() && queues[1].async_.is_some());
}

#[test]
fn nothing_merges_across_actuators() {
    let mut machine = Machine::new(two_actuators());
    let last = machine.read(1, SECOND - 8, 8);
    let first = machine.read(1, SECOND, 8);
    let bio = Bio { io_context: IoContextId(1), ..Bio::new(Op::Read, Sector(SECOND), 8) };
    assert!(!machine.call(|bfq, cx| bfq.allow_merge(cx, last, &bio)));
    assert!(!machine.bfq.allow_request_merge(last, first));
    let near = machine.read(1, SECOND + 8, 8);
    assert!(machine.bfq.allow_request_merge(first, near));
    // Two processes on two sides of the border do not cooperate, though they are close.
    machine.dispatch();
    machine.read(2, SECOND + 1_000_000, 8);
    machine.read(2, SECOND + 16, 8);
    let context = machine.bfq.contexts.find(IoContextId(2)).unwrap();
    assert_ne!(machine.bfq.contexts[context].queues[1].sync, Some(machine.sync_queue(1)));
}

#[test]
fn an_actuator_with_little_to_do_is_served_before_the_queue_in_service() {
    let mut machine = Machine::new(two_actuators());
    for at in 0..8 {
        machine.read(1, at * 8, 8);
    }
    machine.now = 700 * MS;
    for at in 0..8 {
        machine.read(2, SECOND + at * 8, 8);
    }
    let sides: Vec<bool> = (0..8).map(|_| machine.dispatch().unwrap().1 >= SECOND).collect();
    assert_eq!(machine.bfq.in_driver_of, [4, 4], "{sides:?}");
    (0..4).for_each(|_| {
        machine.dispatch();
    });
    assert_eq!(machine.bfq.in_driver_of, [8, 4], "then the queue in service goes on");
    assert!(machine.expirations(1).is_empty(), "the slot goes on meanwhile");
    while let Some(&(_, id)) = machine.in_device.first() {
        machine.finish(id);
    }
    assert_eq!(machine.bfq.in_driver_of, [0, 0]);
}

#[test]
fn both_ranges_are_kept_busy_if_there_is_work_for_them() {
    let mut machine = Machine::new(two_actuators());
    machine.device_depth = 16;
    machine.service = |_, _| MS;
    machine.add(Job { depth: 16, sector: 0, ..Job::random(1, 16) });
    machine.add(Job { depth: 16, sector: SECOND, start: 700 * MS, ..Job::random(2, 16) });
    for ms in 710..1000 {
        machine.run_until(ms * MS + MS / 2);
        assert!(machine.bfq.in_driver_of.iter().all(|&loaded| loaded >= 4), "{:?}", machine.bfq.in_driver_of);
    }
}

#[test]
fn with_one_range_or_before_6_3_actuators_make_no_difference() {
    let run = |config: BfqConfig| {
        let mut machine = Machine::new(config);
        machine.add(Job { sector: 0, ..Job::sequential(1, 64) });
        machine.add(Job { sector: SECOND, start: 700 * MS, ..Job::random(2, 4) });
        machine.run_until(1500 * MS);
        machine.dispatches
    };
    let old = BfqVariant::of(Kernel::V5_10);
    let of = |actuators, variant| run(BfqConfig { actuators, variant, ..config(true) });
    assert_eq!(of(vec![Sector(SECOND)], old), of(vec![], old));
    let many = (1..12).map(|at| Sector(at << 20)).collect();
    let machine = Machine::new(BfqConfig { actuators: many, ..config(true) });
    assert_eq!(machine.bfq.in_driver_of.len(), 8, "no more than eight are distinguished");
    assert_eq!(machine.bfq.actuator_of(11 << 20, 8), 7);
}
