//! Requests inside a queue (BFQ-57 to BFQ-63).

use super::super::entity::Entity;
use super::super::vtime::delta;
use super::machine::{MS, Machine, config};
use crate::bio::{Bio, BioFlags, Op};
use crate::ground::ids::{IoContextId, RqId, Sector};
use crate::policy::Scheduler;

/// Which of two requests goes first after `position`.
fn better(machine: &Machine, one: RqId, other: RqId, position: u64) -> RqId {
    let bfq = &machine.bfq;
    let [one, other] = [one, other].map(|id| Some(bfq.requests.candidate(id)));
    bfq.chooser().better(one, other, Sector(position)).unwrap()
}

/// Which of two sectors goes first after `position`.
fn first_of(position: u64, one: u64, other: u64) -> u64 {
    let mut machine = Machine::new(config(true));
    machine.bfq.last_position = position;
    let ids = [machine.read(1, one, 8), machine.read(1, other, 8)];
    machine.bfq.requests.sector(better(&machine, ids[0], ids[1], position)).0
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
    assert_eq!(better(&machine, near, meta, 0), meta);
}

#[test]
fn an_expired_request_is_served_once_in_a_slot_at_its_first_removal() {
    let mut machine = Machine::new(config(true));
    let old = machine.read(1, 1_000_000, 8);
    assert_eq!(machine.bfq.requests.deadline(old), 125 * MS as i64);
    machine.now = 126 * MS;
    for sector in [0, 100, 200, 300] {
        machine.read(1, sector, 8);
    }
    let order: Vec<u64> = (0..5).map(|_| machine.dispatch().unwrap().1).collect();
    assert_eq!(order, [0, 1_000_000, 100, 200, 300]);
}

/// Decided by recordings: the kernel does so in both places where a recording has it, bfq-fifoexpire at 1169.438 ms and
/// bfq-merges at 385.764 ms.
#[test]
fn an_expired_request_loses_its_turn_to_a_nearer_one_that_arrives_before_it_has_left() {
    let mut machine = Machine::new(config(true));
    let old = machine.read(1, 1_000_000, 8);
    machine.now = 126 * MS;
    machine.read(1, 0, 8);
    machine.dispatch();
    let q = machine.sync_queue(1);
    assert_eq!(machine.bfq.queues[q].next(), Some(old.0), "its time is over");
    // A sequential writer that sends one for each that leaves: whatever the number of slots.
    for nth in 1..100 {
        machine.now += 5 * MS;
        machine.read(1, 8 * nth, 8);
        assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(8 * nth));
    }
    assert!(machine.bfq.queues[q].backlog.expired(&machine.bfq.requests, machine.now as i64) == Some(old));
}

#[test]
fn a_request_larger_than_its_queues_budget_is_served() {
    let mut machine = Machine::new(config(true));
    machine.set("max_budget", 1);
    machine.read(1, 0, 1024);
    assert_eq!(machine.dispatch().map(|(_, sector)| sector), Some(0));
}

#[test]
fn new_requests_compete_from_the_device_position_and_others_from_the_last() {
    let mut machine = Machine::new(config(true));
    let next = |machine: &Machine| {
        let q = machine.sync_queue(1);
        machine.bfq.requests.sector(RqId(machine.bfq.queues[q].next().unwrap())).0
    };
    machine.bfq.last_position = 50_000;
    for sector in [10_000, 60_000, 51_000] {
        machine.read(1, sector, 8);
    }
    assert_eq!(next(&machine), 51_000);
    machine.dispatch();
    assert_eq!(next(&machine), 60_000, "9000 forward against twice 41000 backward from 51000");
    machine.read(1, 50_900, 8);
    assert_eq!(next(&machine), 50_900, "108 behind the device's 51008 against 8992");
}

#[test]
fn the_budget_of_a_waiting_queue_follows_its_next_request() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    let q = machine.sync_queue(1);
    machine.bfq.queues[q].max_budget = 512;
    machine.bfq.last_position = 20_000;
    machine.read(1, 20_000, 2048);
    let Entity { start, finish, budget, weight, .. } = *machine.bfq.entity(q);
    assert_eq!((budget, finish), (2048, start + delta(2048, weight)), "repositioned");
}

#[test]
fn a_front_merge_can_change_the_next_request_only_if_it_overtakes() {
    let mut machine = Machine::new(config(true));
    let low = machine.read(1, 1000, 8);
    let high = machine.read(1, 2000, 8);
    let q = machine.sync_queue(1);
    let grow = |machine: &mut Machine, id: RqId, sector: u64| {
        machine.grow_front(id, sector);
        machine.bfq.queues[q].next().map(RqId)
    };
    assert_eq!(machine.bfq.queues[q].next(), Some(low.0));
    assert_eq!(grow(&mut machine, high, 1100), Some(low), "still behind the other");
    machine.bfq.last_position = 900;
    assert_eq!(grow(&mut machine, high, 900), Some(high));
}

#[test]
fn a_merge_survivor_inherits_the_older_fifo_place_and_the_next_role() {
    let mut machine = Machine::new(config(true));
    let old = machine.read(1, 1008, 8);
    machine.now = 50 * MS;
    let young = machine.read(1, 1000, 8);
    assert!(machine.bfq.requests.deadline(young) > machine.bfq.requests.deadline(old));
    let q = machine.sync_queue(1);
    machine.bfq.queues[q].backlog.set_next(Some(old));
    machine.call(|bfq, cx| bfq.on_absorbed(cx, young, old));
    assert_eq!(machine.bfq.requests.deadline(young), 125 * MS as i64);
    assert_eq!((machine.bfq.queues[q].next(), machine.bfq.queues[q].queued()), (Some(young.0), 1));
    assert_eq!(machine.bfq.entries[young.index()].sectors, 16);
}

#[test]
fn direct_writes_go_to_the_sync_queue_of_their_process() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 0, 8);
    let flags = BioFlags::SYNC;
    machine.insert(Bio { flags, io_context: IoContextId(1), ..Bio::new(Op::Write, Sector(800), 8) });
    assert_eq!(machine.bfq.queues[machine.sync_queue(1)].queued(), 2);
    assert_eq!(machine.queues_of(1).async_, None);
}

#[test]
fn a_request_counts_from_its_arrival_on_and_no_more_when_it_was_absorbed_on_its_way_in() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    let q = machine.sync_queue(1);
    let allocated = |machine: &Machine| machine.bfq.entity(q).allocated;
    assert_eq!(allocated(&machine), 1);
    let pool = crate::request::RequestPool::<crate::ground::sharing::Local>::new(300);
    let mut rq = pool.take(crate::ground::ids::RqId(299));
    let bio = Bio::new(Op::Read, Sector(16), 8);
    rq.found(Bio { io_context: crate::ground::ids::IoContextId(1), ..bio }, crate::ground::time::Instant(0));
    machine.call(|bfq, cx| bfq.on_arrived(cx, &rq));
    assert_eq!(allocated(&machine), 2);
    machine.call(|bfq, cx| bfq.on_dropped(cx, rq.id()));
    assert_eq!(allocated(&machine), 1);
    pool.put(rq);
    machine.drain();
}

#[test]
fn a_requested_queue_run_is_passed_on() {
    use crate::policy::{PolicyCx, RequestedActions, Requests};
    let mut machine = Machine::new(config(true));
    let (requests, mut requested) = (Requests::new(0), RequestedActions::default());
    let mut cx = PolicyCx { now: crate::ground::time::Now::default(), requests: &requests, requested: &mut requested };
    machine.bfq.call(&mut cx, |_| ());
    assert!(!cx.requested.run_queues);
    machine.bfq.call(&mut cx, |bfq| bfq.requested.run_queues = true);
    machine.bfq.call(&mut cx, |_| ());
    assert!(requested.run_queues, "by an earlier call, too");
}

#[test]
fn for_a_front_merge_the_request_of_the_own_queue_is_named_that_begins_where_the_bio_ends() {
    let mut machine = Machine::new(config(true));
    let own = machine.read(1, 108, 8);
    machine.read(2, 1 << 30, 8);
    let bio = |pid, sector| Bio { io_context: IoContextId(pid), ..Bio::new(Op::Read, Sector(sector), 8) };
    let mut front = |bio: Bio| machine.call(|bfq, cx| bfq.front_candidate(cx, &bio));
    assert_eq!(front(bio(1, 100)), Some(own));
    assert_eq!([front(bio(1, 99)), front(bio(2, 100)), front(bio(9, 100))], [None; 3]);
}

#[test]
fn an_unannounced_request_gets_its_queue_at_insertion() {
    let mut machine = Machine::new(config(true));
    let bio = Bio { io_context: IoContextId(1), ..Bio::new(Op::Read, Sector(8), 8) };
    machine.insert_unannounced(bio);
    let q = machine.sync_queue(1);
    assert_eq!((machine.bfq.entity(q).allocated, machine.bfq.queued), (1, 1));
    assert_eq!(machine.drain(), 1);
    assert_eq!(machine.bfq.entity(q).allocated, 0);
}
