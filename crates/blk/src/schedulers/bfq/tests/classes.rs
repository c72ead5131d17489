//! Classes and levels (BFQ-15 to BFQ-19).

use super::super::BfqVariant;
use super::super::entity::{BE, Entity, EntityId, GroupId, IDLE, Owner, QueueId, RT};
use super::super::hierarchy::Hierarchy;
use super::super::weights::{class_and_level, weight_of_level};
use super::machine::{Job, MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};

fn idle() -> IoPriority {
    IoPriority::new(PriorityClass::Idle, 4)
}

#[test]
fn levels_weigh_ten_each_and_class_idle_is_level_seven() {
    let of = |class, level| class_and_level(IoPriority::new(class, level));
    assert_eq!(of(PriorityClass::RealTime, 0), (RT, 0));
    assert_eq!(of(PriorityClass::Idle, 2), (IDLE, 7));
    assert_eq!(class_and_level(IoPriority::UNSET), (BE, 4));
    let nice = [-20, -1, 0, 4, 5, 19].map(|nice| class_and_level(IoPriority::from_nice(nice)).1);
    assert_eq!(nice, [0, 3, 4, 4, 5, 7]);
    assert_eq!([0, 4, 7].map(weight_of_level), [80, 40, 10]);
}

#[test]
fn class_idle_gets_one_request_after_four_slots_of_the_others_as_in_28_8() {
    let mut machine = Machine::new(config(true));
    machine.add(Job::sequential(1, 256));
    machine.add(Job { ioprio: idle(), ..Job::sequential(2, 256) });
    machine.run_until(3_000 * MS);
    let turns: Vec<u64> = machine.dispatches.iter().filter(|&&(_, pid, _)| pid == 2).map(|&(t, ..)| t / 1000).collect();
    assert_eq!(turns[0], 239_616);
    // Four slots of 65.536 ms and its own request of 1.024 ms.
    assert!(turns.windows(2).all(|pair| pair[1] - pair[0] == 263_168), "{turns:?}");
}

#[test]
fn a_queue_of_class_idle_keeps_the_device_while_it_is_alone() {
    let mut machine = Machine::new(config(true));
    machine.add(Job { ioprio: idle(), ..Job::sequential(1, 8) });
    machine.run_until(10 * MS);
    assert!(machine.expirations(1).is_empty());
    machine.read(2, 0, 8);
    let before = machine.dispatches.len();
    machine.run_until(20 * MS);
    assert_eq!(machine.dispatches[before].1, 2, "the higher class takes the device");
    assert_eq!(machine.expirations(1)[0].1, "preempted");
}

#[test]
fn while_others_have_work_a_queue_of_class_idle_loses_the_device_after_each_request() {
    let mut machine = Machine::new(config(true));
    for sector in [0, 8, 16] {
        machine.insert(crate::bio::Bio {
            ioprio: idle(),
            io_context: crate::ground::ids::IoContextId(1),
            ..crate::bio::Bio::new(crate::bio::Op::Read, crate::ground::ids::Sector(sector), 8)
        });
    }
    machine.dispatch();
    assert_eq!(machine.bfq.in_service, Some(machine.sync_queue(1)));
    let other = machine.read(2, 1 << 20, 8);
    assert_eq!(machine.dispatch().map(|(id, _)| id), Some(other));
}

/// Lets a queue have work.
fn add(hierarchy: &mut Hierarchy, group: GroupId, number: u32, class: usize) -> EntityId {
    let mut entity = Entity::new(Owner::Queue(QueueId(number)), group, class, 40);
    entity.budget = 1000;
    let id = hierarchy.add_entity(entity);
    hierarchy.enqueue(id, false, false);
    id
}

#[test]
fn a_group_counts_the_turns_of_class_idle_from_its_creation_on() {
    let next = |tick| {
        let mut hierarchy = Hierarchy::new(BfqVariant::of(crate::ground::kernel::Kernel::V6_18), 200, 1);
        hierarchy.tick = 500;
        let entity = hierarchy.add_entity(Entity::new(Owner::Group(GroupId(1)), GroupId::ROOT, BE, 100));
        let group = hierarchy.add_level(entity);
        add(&mut hierarchy, group, 1, IDLE);
        hierarchy.tick = tick;
        add(&mut hierarchy, group, 2, BE);
        hierarchy.select()
    };
    assert_eq!([700, 701].map(next), [Some(QueueId(2)), Some(QueueId(1))]);
}

#[test]
fn the_class_idle_turn_counts_from_its_last_check_even_if_it_was_empty() {
    let mut hierarchy = Hierarchy::new(BfqVariant::of(crate::ground::kernel::Kernel::V6_18), 200, 1);
    add(&mut hierarchy, GroupId::ROOT, 1, BE);
    add(&mut hierarchy, GroupId::ROOT, 2, BE);
    hierarchy.tick = 201;
    let served = hierarchy.select().map(|_| hierarchy.levels[0].in_service.unwrap()).unwrap();
    // Looked for in vain at 201; so not again before 402.
    let idle = add(&mut hierarchy, GroupId::ROOT, 3, IDLE);
    assert_ne!(hierarchy.levels[0].next, Some(idle));
    hierarchy.tick = 401;
    hierarchy.enqueue(served, false, true);
    hierarchy.leave_service(served);
    assert_ne!(hierarchy.select(), Some(QueueId(3)));
    let served = hierarchy.levels[0].in_service.unwrap();
    hierarchy.tick = 402;
    hierarchy.enqueue(served, false, true);
    hierarchy.leave_service(served);
    assert_eq!(hierarchy.select(), Some(QueueId(3)));
}
