//! Requests inside a queue (12, 28.12).

use super::machine::{MS, Machine, config};
use crate::bio::{Bio, BioFlags, Op};
use crate::ids::{IoContextId, Sector};

/// Which of two sectors goes first after `position`.
fn first_of(position: u64, one: u64, other: u64) -> u64 {
    let mut machine = Machine::new(config(true));
    machine.bfq.last_position = position;
    let ids = [machine.read(1, one, 8), machine.read(1, other, 8)];
    let better = machine.bfq.better(ids[0].0, ids[1].0, position);
    machine.bfq.entries[better as usize].sector
}

#[test]
fn a_step_back_costs_twice_and_ties_go_to_the_larger_sector() {
    assert_eq!(first_of(1000, 1500, 900), 900);
    assert_eq!(first_of(1000, 1100, 950), 1100);
    assert_eq!(first_of(1000, 1100, 940), 1100);
    assert_eq!(first_of(100_000, 60_000, 200_000), 200_000);
    assert_eq!(first_of(100_000, 60_000, 50_000), 50_000);
    assert_eq!(first_of(100_000, 70_000, 200_000), 70_000);
}

#[test]
fn metadata_goes_first_wherever_it_lies() {
    let mut machine = Machine::new(config(true));
    let near = machine.read(1, 8, 8);
    let bio = Bio { flags: BioFlags::META, io_context: IoContextId(1), ..Bio::new(Op::Read, Sector(1 << 30), 8) };
    let meta = machine.insert(bio);
    assert_eq!(machine.bfq.better(near.0, meta.0, 0), meta.0);
}

#[test]
fn an_expired_request_is_served_once_in_a_slot_at_its_first_removal() {
    let mut machine = Machine::new(config(true));
    let old = machine.read(1, 1_000_000, 8);
    assert_eq!(machine.bfq.entries[old.index()].deadline, 125 * MS);
    machine.now = 126 * MS;
    for sector in [0, 100, 200, 300] {
        machine.read(1, sector, 8);
    }
    let order: Vec<u64> = (0..5).map(|_| machine.dispatch().unwrap().1).collect();
    assert_eq!(order, [0, 1_000_000, 100, 200, 300]);
}

#[test]
fn a_request_larger_than_its_queues_budget_is_served() {
    let mut machine = Machine::new(config(true));
    machine.set("max_budget", 1);
    machine.read(1, 0, 1024);
    assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(0));
}
