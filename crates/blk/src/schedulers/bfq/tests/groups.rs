//! Cgroups and priorities that change while there is work (BFQ-101, BFQ-112, BFQ-124 to BFQ-127).

use super::super::{BfqConfig, BfqGroup, Expiration};
use super::machine::{Job, MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, Op};
use crate::ground::ids::{CgroupId, IoContextId, Sector};
use crate::policy::{Scheduler, SchedulerEvent};

fn groups(weights: &[u16]) -> BfqConfig {
    let group = |(id, &weight)| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight };
    BfqConfig { groups: (1..).zip(weights).map(group).collect(), ..config(true) }
}

fn write_in(machine: &mut Machine, cgroup: u32, pid: u32, sector: u64, ioprio: IoPriority) {
    let bio = Bio::new(Op::Write, Sector(sector), 8);
    machine.insert(Bio { io_context: IoContextId(pid), cgroup: CgroupId(cgroup), ioprio, ..bio });
}

#[test]
fn the_queue_of_a_process_moves_with_it_and_keeps_its_requests_service_and_learned_budget() {
    let mut machine = Machine::new(groups(&[100, 100]));
    for at in 0..5 {
        machine.read_in(1, 1, at * 1000);
    }
    machine.read_in(1, 2, 1 << 30);
    machine.dispatch();
    let q = machine.sync_queue(1);
    machine.bfq.queues[q].max_budget = 4711;
    let [old, new] = [1, 2].map(|id| machine.bfq.groups.find(CgroupId(id)).unwrap());
    let allocated = |machine: &Machine, group| {
        let entity = machine.bfq.groups[group].entity.unwrap();
        machine.bfq.hierarchy.entities[entity].allocated
    };
    assert_eq!((allocated(&machine, old), allocated(&machine, new)), (6, 0));
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Moved { io_context: IoContextId(1), cgroup: CgroupId(2) }));
    assert_eq!(machine.expirations(1).last().map(|end| end.1), Some("preempted"), "it was in service");
    assert_eq!(machine.sync_queue(1), q);
    let queue = &machine.bfq.queues[q];
    assert_eq!((queue.group, queue.max_budget, queue.queued(), queue.busy), (new, 4711, 4, true));
    let vtime = machine.bfq.hierarchy.level(new).trees[1].vtime;
    assert_eq!(machine.bfq.entity(q).start, vtime, "as if it had never been anywhere");
    assert_eq!((allocated(&machine, old), allocated(&machine, new)), (1, 5));
    assert_eq!(machine.bfq.groups_pending, 2);
    assert_eq!(machine.drain(), 5);
}

#[test]
fn service_that_may_be_recovered_is_kept_on_the_move() {
    let mut machine = Machine::new(groups(&[100, 100]));
    machine.read_in(1, 1, 8);
    machine.serve();
    let q = machine.sync_queue(1);
    machine.inside(|bfq| bfq.expire(q, false, Expiration::TooIdle));
    assert_eq!(machine.bfq.entity(q).service, 8);
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Moved { io_context: IoContextId(1), cgroup: CgroupId(2) }));
    assert!(!machine.bfq.queues[q].busy && machine.bfq.queues[q].non_blocking_wait);
    assert_eq!(machine.bfq.entity(q).service, 8);
}

#[test]
fn a_bio_from_another_group_moves_the_queue_before_it_looks_for_a_request() {
    let mut machine = Machine::new(groups(&[100, 100]));
    let queued = machine.read_in(1, 1, 0);
    let bio = Bio { io_context: IoContextId(1), cgroup: CgroupId(2), ..Bio::new(Op::Read, Sector(8), 8) };
    machine.call(|bfq, cx| bfq.on_bio(cx, &bio));
    let new = machine.bfq.groups.find(CgroupId(2)).unwrap();
    assert_eq!(machine.bfq.queues[machine.sync_queue(1)].group, new);
    assert!(machine.call(|bfq, cx| bfq.allow_merge(cx, queued, &bio)), "it is the same queue");
}

#[test]
fn a_shared_queue_stays_and_the_process_that_moved_gets_another() {
    let mut machine = Machine::new(groups(&[100, 100]));
    machine.read_in(1, 1, 8);
    machine.now = 700 * MS;
    machine.read_in(1, 2, 1 << 30);
    let [one, two] = [1, 2].map(|pid| machine.sync_queue(pid));
    machine.inside(|bfq| {
        let context = bfq.contexts.find(IoContextId(2)).unwrap();
        bfq.plan_merge(two, one).unwrap();
        bfq.execute_merge(context, two);
    });
    assert_eq!((machine.sync_queue(2), machine.bfq.queues[one].process_refs), (one, 2));
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Moved { io_context: IoContextId(1), cgroup: CgroupId(2) }));
    assert_eq!(machine.bfq.queues[one].process_refs, 1);
    machine.read_in(2, 1, 16);
    assert_ne!(machine.sync_queue(1), one);
    assert_eq!(machine.bfq.queues[one].group, machine.bfq.groups.find(CgroupId(1)).unwrap());
    assert_eq!(machine.drain(), 3);
}

#[test]
fn writes_go_to_the_async_queue_of_the_cgroup_charged_for_them() {
    let mut machine = Machine::new(groups(&[100, 100]));
    let level = |level| IoPriority::new(PriorityClass::BestEffort, level);
    let mut queue = |cgroup, pid, ioprio| {
        write_in(&mut machine, cgroup, pid, u64::from(pid * 10 + cgroup) << 20, ioprio);
        machine.async_queue(pid)
    };
    let first = queue(1, 1, level(4));
    assert_eq!(queue(1, 2, level(4)), first, "one for a level of a group");
    assert_ne!(queue(2, 1, level(4)), first);
    assert_eq!(queue(1, 1, level(4)), first, "and back again");
    assert_ne!(queue(1, 2, level(5)), first);
    assert_eq!(machine.drain(), 5);
}

#[test]
fn another_priority_replaces_the_async_queue_at_the_next_request_and_the_sync_queue_takes_it_over() {
    let mut machine = Machine::new(config(true));
    let best = IoPriority::new(PriorityClass::RealTime, 2);
    machine.read(1, 0, 8);
    machine.write(1, 1 << 20, 8);
    let (sync, shared) = (machine.sync_queue(1), machine.async_queue(1));
    machine.insert(Bio { io_context: IoContextId(1), ioprio: best, ..Bio::new(Op::Read, Sector(8), 8) });
    assert_eq!((machine.sync_queue(1), machine.queues_of(1).async_), (sync, None));
    assert_eq!((machine.bfq.entity(sync).class, machine.bfq.entity(sync).requested_class), (1, 0), "applied later");
    write_in(&mut machine, 0, 1, 2 << 20, best);
    assert_ne!(machine.async_queue(1), shared);
    machine.dispatch();
    machine.inside(|bfq| {
        let served = bfq.in_service.unwrap();
        bfq.expire(served, false, Expiration::BudgetTimeout);
    });
    machine.inside(|bfq| {
        let entity = bfq.queues[sync].entity;
        bfq.hierarchy.enqueue(entity, false, false);
    });
    assert_eq!((machine.bfq.entity(sync).class, machine.bfq.entity(sync).weight), (0, 60));
    assert_eq!(machine.drain(), 3);
}

#[test]
fn queues_of_a_removed_group_go_to_the_root_and_new_io_to_its_parent() {
    let above = BfqGroup { cgroup: CgroupId(1), parent: CgroupId::ROOT, weight: 100 };
    let below = BfqGroup { cgroup: CgroupId(2), parent: CgroupId(1), weight: 100 };
    let mut machine = Machine::new(BfqConfig { groups: vec![above, below], ..config(true) });
    for pid in 1..=2 {
        for at in 0..3 {
            machine.read_in(2, pid, (u64::from(pid) << 30) + at * 1000);
        }
        write_in(&mut machine, 2, pid, u64::from(pid) << 31, IoPriority::DEFAULT);
    }
    let (q, shared) = (machine.sync_queue(1), machine.async_queue(1));
    machine.dispatch();
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::CgroupRemoved(CgroupId(2))));
    let root = super::super::entity::GroupId::ROOT;
    assert_eq!((machine.bfq.queues[q].group, machine.bfq.queues[shared].group), (root, root));
    assert_eq!(machine.bfq.groups_pending, 1);
    machine.read_in(2, 3, 5 << 30);
    let heir = machine.bfq.groups.find(CgroupId(1)).unwrap();
    assert_eq!(machine.bfq.queues[machine.sync_queue(3)].group, heir);
    assert_eq!(machine.drain(), 8);
    for pid in 1..=3 {
        machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(pid))));
    }
    assert_eq!(machine.bfq.queues[shared].process_refs, 0, "nothing keeps its async queues");
}

#[test]
fn a_cgroup_reusing_the_id_of_a_removed_one_starts_fresh() {
    let mut machine = Machine::new(groups(&[300]));
    machine.read_in(1, 1, 0);
    let old = machine.bfq.groups.find(CgroupId(1)).unwrap();
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::CgroupRemoved(CgroupId(1))));
    machine
        .call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::CgroupAdded { cgroup: CgroupId(1), parent: CgroupId::ROOT }));
    let new = machine.bfq.groups.find(CgroupId(1)).unwrap();
    assert!(new != old && new != super::super::entity::GroupId::ROOT);
    let entity = machine.bfq.groups[new].entity.unwrap();
    assert_eq!(machine.bfq.hierarchy.entities[entity].weight, 100);
    assert_eq!(machine.drain(), 1);
}

#[test]
fn a_process_that_moves_between_groups_again_and_again_loses_nothing() {
    let mut machine = Machine::new(groups(&[100, 500]));
    for pid in 1..=2 {
        machine.add(Job { cgroup: CgroupId(pid), think: MS / 2, ..Job::sequential(pid, 64) });
    }
    for step in 0..200 {
        machine.run_until(step * 7 * MS);
        let cgroup = CgroupId((step % 3) as u32);
        machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Moved { io_context: IoContextId(1), cgroup }));
        let pending = |group| machine.bfq.groups[super::super::entity::GroupId(group)].pending_queues;
        let counted = (0..3).filter(|&group| pending(group) > 0).count() as u32;
        assert_eq!(machine.bfq.groups_pending, counted);
    }
    let served = |pid| machine.dispatches.iter().filter(|&&(_, other, _)| other == pid).count();
    assert!(served(1) > 100 && served(2) > 100);
}

#[test]
fn a_move_requests_a_run_if_nothing_is_in_service_or_in_flight() {
    for out in [false, true] {
        let mut machine = Machine::new(groups(&[100, 100]));
        (0..2).for_each(|at| {
            machine.read_in(1, 1, at * 1000);
        });
        if out {
            machine.dispatch();
        }
        let new = machine.bfq.groups.find(CgroupId(2)).unwrap();
        let q = machine.sync_queue(1);
        let asked = machine.inside(|bfq| {
            bfq.move_queue(q, new);
            bfq.requested.run_queues
        });
        assert_eq!(asked, !out);
    }
}

#[test]
fn async_queues_exist_per_class_and_level_and_one_for_class_idle() {
    use super::super::entity::{BE, GroupId, IDLE, QueueId, RT};
    let mut machine = Machine::new(config(true));
    let group = &mut machine.bfq.groups[GroupId::ROOT];
    let levels = || [RT, BE].into_iter().flat_map(|class| (0..8).map(move |level| (class, level)));
    let all: Vec<(usize, u8)> = levels().chain([(IDLE, 7)]).collect();
    for (number, &(class, level)) in (0..).zip(&all) {
        assert_eq!(group.async_queue(0, class, level).replace(QueueId(number)), None, "{class} {level}");
    }
    assert_eq!((all.len(), *group.async_queue(0, IDLE, 3)), (17, Some(QueueId(16))));
}

#[test]
fn weights_differ_where_two_groups_with_work_have_different_ones() {
    let differ = |weights: &[u16], busy: &[u32]| {
        let mut machine = Machine::new(groups(weights));
        for &cgroup in busy {
            machine.read_in(cgroup, cgroup, u64::from(cgroup) << 30);
        }
        machine.bfq.group_weights_differ()
    };
    assert!(differ(&[100, 200], &[1, 2]));
    assert!(!differ(&[100, 200], &[1]), "the other one has nothing to do");
    assert!(!differ(&[100, 100, 200], &[1, 2]), "nor has the third");
    assert!(differ(&[100, 100, 200], &[1, 2, 3]));
}

#[test]
fn a_cgroup_that_is_named_twice_has_the_weight_that_was_named_last() {
    let group = |weight| BfqGroup { cgroup: CgroupId(1), parent: CgroupId::ROOT, weight };
    let machine = Machine::new(BfqConfig { groups: vec![group(100), group(300)], ..config(true) });
    let group = machine.bfq.groups.find(CgroupId(1)).unwrap();
    let entity = machine.bfq.groups[group].entity.unwrap();
    assert_eq!(machine.bfq.hierarchy.entities[entity].requested_weight, 300);
}

#[test]
fn a_removed_group_counts_among_its_siblings_no_more_and_they_stay_where_they_are() {
    let mut machine = Machine::new(groups(&[100, 100]));
    machine.read_in(2, 2, 1 << 30);
    machine.read_in(1, 1, 8);
    let [one, two] = [1, 2].map(|id| machine.bfq.groups.find(CgroupId(id)).unwrap());
    let (queue, other) = (machine.sync_queue(1), machine.sync_queue(2));
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::CgroupRemoved(CgroupId(1))));
    let root = super::super::entity::GroupId::ROOT;
    assert_eq!([queue, other].map(|q| machine.bfq.queues[q].group), [root, two]);
    let entity = machine.bfq.groups[one].entity.unwrap();
    let entity = &machine.bfq.hierarchy.entities[entity];
    assert_eq!((entity.on, entity.accounted), (super::super::entity::Membership::None, false));
    assert_eq!(machine.drain(), 2);
}

#[test]
fn a_write_for_another_group_releases_the_previous_async_queue() {
    let mut machine = Machine::new(groups(&[100, 100]));
    write_in(&mut machine, 1, 1, 0, IoPriority::DEFAULT);
    let shared = machine.async_queue(1);
    let users = machine.bfq.queues[shared].process_refs;
    write_in(&mut machine, 2, 1, 1 << 20, IoPriority::DEFAULT);
    assert_eq!(machine.bfq.queues[shared].process_refs, users - 1);
    assert_eq!(machine.drain(), 2);
}

#[test]
fn a_queue_that_moves_with_work_is_found_by_its_sector_in_the_new_group() {
    let mut machine = Machine::new(groups(&[100, 100]));
    machine.read_in(2, 2, 1 << 30);
    machine.read_in(1, 1, 1000);
    let [q, other] = [1, 2].map(|pid| machine.sync_queue(pid));
    let new = machine.bfq.groups.find(CgroupId(2)).unwrap();
    assert!(machine.bfq.queues[q].indexed);
    machine.inside(|bfq| bfq.move_queue(q, new));
    assert!(machine.bfq.queues[q].indexed && machine.bfq.queues[other].indexed);
    assert_eq!(machine.drain(), 2);
}

#[test]
fn a_priority_change_releases_the_async_queue_of_the_old_level() {
    let mut machine = Machine::new(config(true));
    write_in(&mut machine, 0, 1, 0, IoPriority::DEFAULT);
    let shared = machine.async_queue(1);
    let users = machine.bfq.queues[shared].process_refs;
    write_in(&mut machine, 0, 1, 1 << 20, IoPriority::new(PriorityClass::BestEffort, 2));
    assert_ne!(machine.async_queue(1), shared);
    assert_eq!(machine.bfq.queues[shared].process_refs, users - 1);
    assert_eq!(machine.drain(), 2);
}

#[test]
fn a_group_that_is_removed_while_it_is_idle_is_accounted_no_more() {
    let mut machine = Machine::new(groups(&[100, 100]));
    machine.read_in(1, 1, 8);
    let group = machine.bfq.groups.find(CgroupId(1)).unwrap();
    let entity = machine.bfq.groups[group].entity.unwrap();
    // It has been served more than its share.
    machine.read_in(2, 2, 1 << 30);
    machine.inside(|bfq| bfq.hierarchy.entities[entity].service = 1000);
    while machine.bfq.groups[group].pending_queues > 0 {
        machine.serve();
        machine.inside(|bfq| {
            if let Some(q) = bfq.in_service.filter(|&q| bfq.queues[q].is_empty()) {
                bfq.expire(q, false, Expiration::NoMoreRequests);
            }
        });
    }
    let of_group = |machine: &Machine| {
        let entity = &machine.bfq.hierarchy.entities[entity];
        (entity.on, entity.accounted)
    };
    use super::super::entity::Membership;
    assert_eq!(of_group(&machine), (Membership::Idle, true));
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::CgroupRemoved(CgroupId(1))));
    assert_eq!(of_group(&machine), (Membership::None, false));
}
