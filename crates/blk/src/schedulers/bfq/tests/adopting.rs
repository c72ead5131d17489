//! Choices of a recorded kernel that are taken over, whatever bfq would have chosen.

use super::super::requests::Whereabouts;
use super::super::{BfqConfig, BfqGroup};
use super::machine::{Machine, config};
use crate::bio::{Bio, Op};
use crate::ground::ids::{CgroupId, HctxId, IoContextId, RqId, Sector};
use crate::policy::{Place, Replayable};

fn adopt(machine: &mut Machine, id: RqId) {
    machine.call(|bfq, cx| bfq.adopt(cx, HctxId(0), id));
}

#[test]
fn the_queue_of_an_adopted_request_gets_the_slot_from_any_other() {
    for somebody_is_served in [false, true] {
        let mut machine = Machine::new(config(true));
        machine.read(1, 8, 8);
        machine.read(1, 16, 8);
        if somebody_is_served {
            machine.dispatch();
        }
        let [first, second] = [1 << 24, 2 << 24].map(|sector| machine.read(2, sector, 8));
        adopt(&mut machine, second);
        let q = machine.sync_queue(2);
        assert_eq!(machine.bfq.in_service, Some(q));
        let ends: Vec<_> = machine.expirations(1).into_iter().map(|(_, reason)| reason).collect();
        assert_eq!(ends, ["budget_exhausted"][..usize::from(somebody_is_served)]);
        assert_eq!(machine.bfq.entries[second.index()].whereabouts, Whereabouts::Dispatched);
        let queue = &machine.bfq.queues[q];
        assert_eq!((queue.dispatched, queue.queued(), queue.next()), (1, 1, Some(first.0)));
        assert_eq!((machine.bfq.entity(q).service, machine.bfq.last_position), (8, (2 << 24) + 8));
        adopt(&mut machine, first);
        assert_eq!((machine.bfq.queues[q].dispatched, machine.expirations(2).len()), (2, 0), "it goes on");
    }
}

#[test]
fn the_groups_above_an_adopted_queue_come_into_service() {
    let group = |id, parent| BfqGroup { cgroup: CgroupId(id), parent, weight: 100 };
    let groups = vec![group(1, CgroupId::ROOT), group(2, CgroupId(1)), group(3, CgroupId(1))];
    let mut machine = Machine::new(BfqConfig { groups, ..config(true) });
    let [_, chosen, _] =
        [(2, 2), (3, 3), (0, 4)].map(|(cgroup, pid)| machine.read_in(cgroup, pid, u64::from(pid) << 24));
    adopt(&mut machine, chosen);
    assert_eq!(machine.bfq.in_service, Some(machine.sync_queue(3)));
    machine.finish(chosen);
    assert_eq!(machine.drain(), 2);
}

#[test]
fn an_adopted_request_counts_as_injected_while_an_empty_queue_is_idled_for() {
    // Whether its timer runs, whether a request of it is out, whether idling is better; whether the choice is injected.
    for (waiting, out, better, injected) in
        [(true, 0, true, true), (false, 1, true, true), (false, 1, false, false), (false, 0, true, false)]
    {
        let mut machine = Machine::new(config(true));
        machine.decide_ncq(false);
        machine.read(1, 8, 8);
        let (id, _) = machine.dispatch().unwrap();
        let q = machine.sync_queue(1);
        if out == 0 {
            machine.finish(id);
        }
        let other = machine.read(2, 1 << 24, 8);
        machine.bfq.queues[q].waiting = waiting;
        machine.bfq.settings.strict_guarantees = better;
        machine.set("slice_idle", if better { 8 } else { 0 });
        adopt(&mut machine, other);
        assert_eq!(machine.bfq.in_service == Some(q), injected, "{waiting} {out} {better}");
        assert_eq!(machine.bfq.queues[q].waiting, waiting);
        assert_eq!(machine.bfq.in_driver, out + 1);
    }
}

#[test]
fn a_queue_that_has_work_is_not_injected_into_and_its_own_request_ends_the_wait_for_it() {
    let waits_with_one_request = || {
        let mut machine = Machine::new(config(true));
        machine.decide_ncq(false);
        machine.read(1, 8, 8);
        machine.serve();
        let q = machine.sync_queue(1);
        let id = machine.read(1, 16, 8);
        machine.bfq.queues[q].waiting = true;
        (machine, q, id)
    };
    let (mut machine, q, id) = waits_with_one_request();
    adopt(&mut machine, id);
    assert_eq!((machine.bfq.in_service, machine.bfq.queues[q].waiting, machine.timer_left()), (Some(q), false, None));
    let (mut machine, _, _) = waits_with_one_request();
    let other = machine.read(2, 1 << 24, 8);
    adopt(&mut machine, other);
    assert_eq!(machine.bfq.in_service, Some(machine.sync_queue(2)));
}

#[test]
fn adopting_takes_a_head_insertion_once_and_ignores_absent_requests() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 8, 8);
    let bio = Bio { io_context: IoContextId(2), ..Bio::new(Op::Read, Sector(1 << 24), 8) };
    let id = machine.insert_at(bio, Place::Head);
    for _ in 0..2 {
        adopt(&mut machine, id);
        let q = machine.sync_queue(2);
        assert_eq!((machine.bfq.in_driver, machine.bfq.queues[q].dispatched, machine.bfq.in_service), (1, 1, None));
    }
}
