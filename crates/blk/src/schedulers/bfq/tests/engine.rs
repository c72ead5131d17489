//! The engine: eligibility, timestamps, weights, virtual time (BFQ-1, BFQ-2, BFQ-11, BFQ-17, BFQ-19 to BFQ-33).

use proptest::prelude::*;

use super::super::entity::{BE, Entities, Entity, EntityId, GroupId, IDLE, Membership, Owner, QueueId};
use super::super::hierarchy::Hierarchy;
use super::super::service_tree::ServiceTree;
use super::super::vtime::{delta, is_after};
use super::super::{BfqConfig, BfqGroup, BfqVariant};
use super::machine::{Job, MS, Machine, config};
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::CgroupId;
use crate::ground::kernel::Kernel;

fn hierarchy() -> Hierarchy {
    Hierarchy::new(BfqVariant::of(Kernel::V6_18), 200, 1)
}

/// An entity with work: a queue with a budget.
fn active(hierarchy: &mut Hierarchy, number: u32, weight: u64, budget: u64) -> EntityId {
    let entity = Entity::new(Owner::Queue(QueueId(number)), GroupId::ROOT, BE, weight);
    let id = hierarchy.add_entity(entity);
    hierarchy.entities[id].budget = budget;
    hierarchy.enqueue(id, false, false);
    id
}

fn tree(hierarchy: &mut Hierarchy) -> &mut ServiceTree {
    &mut hierarchy.levels[0].trees[BE]
}

/// Lets the entity in service end with work left.
fn requeue(hierarchy: &mut Hierarchy, id: EntityId) {
    hierarchy.enqueue(id, false, true);
    hierarchy.leave_service(id);
}

/// Lets the entity in service end without work.
fn run_dry(hierarchy: &mut Hierarchy, id: EntityId) {
    hierarchy.deactivate(id, true, true);
    hierarchy.leave_service(id);
}

proptest! {
    #[test]
    fn the_choice_is_eligible_and_one_is_found_exactly_if_one_is(
        stamps in prop::collection::vec((0..100u64, 1..100u64), 1..40),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        base in prop::sample::select(vec![0u64, u64::MAX - 60]),
        at in 0..120u64,
    ) {
        let (mut tree, mut entities) = (ServiceTree::default(), Entities::default());
        let mut inside = Vec::new();
        for (number, &(start, length)) in stamps.iter().enumerate() {
            let id = entities.add(Entity::new(Owner::Queue(QueueId(number as u32)), GroupId::ROOT, BE, 40));
            entities[id].start = base.wrapping_add(start);
            entities[id].finish = base.wrapping_add(start + length);
            tree.insert_active(&mut entities, id);
            inside.push(id);
        }
        for index in gone {
            if inside.len() > 1 {
                let id = inside.swap_remove(index.index(inside.len()));
                tree.extract_active(&mut entities, id);
            }
        }
        let at = base.wrapping_add(at);
        let eligible: Vec<_> = inside.iter().filter(|&&id| !is_after(entities[id].start, at)).collect();
        let chosen = tree.first_eligible(&entities, at);
        prop_assert_eq!(chosen.is_some(), !eligible.is_empty());
        prop_assert!(chosen.is_none_or(|chosen| eligible.contains(&&chosen)));
        let least = inside.iter().map(|&id| entities[id].start).reduce(|a, b| if is_after(a, b) { b } else { a });
        prop_assert_eq!(tree.min_start(&entities), least);
    }
}

#[test]
fn virtual_time_advances_by_the_charge_over_the_weights_of_all_that_are_accounted() {
    let mut hierarchy = hierarchy();
    let one = active(&mut hierarchy, 1, 40, 1000);
    let two = active(&mut hierarchy, 2, 80, 1000);
    let three = active(&mut hierarchy, 3, 120, 1000);
    assert_eq!(tree(&mut hierarchy).weight_sum, 240);
    assert_eq!(hierarchy.select(), Some(QueueId(3)), "the least finish time");
    assert_eq!(tree(&mut hierarchy).weight_sum, 240, "in service counts");
    hierarchy.charge(three, 240);
    run_dry(&mut hierarchy, three);
    assert_eq!((hierarchy.entities[three].on, tree(&mut hierarchy).weight_sum), (Membership::Idle, 240));
    assert_eq!(tree(&mut hierarchy).vtime, delta(240, 240));
    for id in [one, two] {
        let Entity { start, finish, budget, weight, .. } = hierarchy.entities[id];
        assert_eq!(finish, start + delta(budget, weight));
    }
}

#[test]
fn an_idle_entity_comes_back_at_its_old_finish_and_a_forgotten_one_at_virtual_time() {
    let mut hierarchy = hierarchy();
    let one = active(&mut hierarchy, 1, 40, 100);
    let two = active(&mut hierarchy, 2, 40, 10_000);
    assert_eq!(hierarchy.select(), Some(QueueId(1)));
    hierarchy.charge(one, 100);
    run_dry(&mut hierarchy, one);
    let finish = hierarchy.entities[one].finish;
    assert!(is_after(finish, tree(&mut hierarchy).vtime));
    hierarchy.enqueue(one, false, false);
    assert_eq!(hierarchy.entities[one].start, finish, "not before what it was served is paid for");
    assert_eq!(hierarchy.select(), Some(QueueId(2)));
    hierarchy.deactivate(one, true, false);
    hierarchy.charge(two, 1000);
    let vtime = tree(&mut hierarchy).vtime;
    assert!(!hierarchy.entities[one].accounted, "virtual time has overtaken it");
    assert_eq!(tree(&mut hierarchy).weight_sum, 40);
    hierarchy.enqueue(one, false, false);
    assert_eq!(hierarchy.entities[one].start, vtime);
}

#[test]
fn a_recovering_entity_keeps_its_old_finish_but_never_ends_before_vtime() {
    for (raise, advance, budget) in [(1, 1000, 2000), (1, 5000, 100), (30, 5000, 100)] {
        let mut hierarchy = hierarchy();
        let one = active(&mut hierarchy, 1, 40, 100);
        let two = active(&mut hierarchy, 2, 40, 100_000);
        // (With an empty active tree virtual time would go back to the idle one's end.)
        active(&mut hierarchy, 3, 40, 200_000);
        assert_eq!(hierarchy.select(), Some(QueueId(1)));
        hierarchy.charge(one, 100);
        run_dry(&mut hierarchy, one);
        let finish = hierarchy.entities[one].finish;
        assert_eq!(hierarchy.select(), Some(QueueId(2)));
        hierarchy.charge(two, advance);
        let vtime = tree(&mut hierarchy).vtime;
        assert!(is_after(vtime, finish));
        hierarchy.request_change(one, |entity| entity.raise = raise);
        hierarchy.entities[one].budget = budget;
        hierarchy.enqueue(one, true, false);
        let recovered = &hierarchy.entities[one];
        let unshifted = finish + delta(budget, 40 * raise);
        let shift = vtime.saturating_sub(unshifted) / raise;
        assert_eq!((recovered.start, recovered.finish), (finish + shift, unshifted + shift));
        if raise == 1 && advance == 5000 {
            assert_eq!(recovered.finish, vtime);
        }
    }
}

#[test]
fn a_slot_is_paid_for_at_the_weight_that_it_began_with_and_a_change_counts_from_the_next_on() {
    let mut hierarchy = hierarchy();
    let one = active(&mut hierarchy, 1, 40, 1000);
    active(&mut hierarchy, 2, 40, 100_000);
    hierarchy.select();
    hierarchy.charge(one, 400);
    hierarchy.request_change(one, |entity| entity.requested_weight = 80);
    assert_eq!((hierarchy.entities[one].weight, tree(&mut hierarchy).weight_sum), (40, 80), "not yet");
    requeue(&mut hierarchy, one);
    let Entity { start, finish, weight, .. } = hierarchy.entities[one];
    assert_eq!((weight, tree(&mut hierarchy).weight_sum), (80, 120));
    assert_eq!(start, delta(400, 40), "at the old weight");
    assert_eq!(finish, start + delta(1000, 80), "at the new one");
}

#[test]
fn a_change_of_class_moves_the_weight_and_starts_at_the_other_trees_virtual_time() {
    let mut hierarchy = hierarchy();
    let one = active(&mut hierarchy, 1, 40, 1000);
    active(&mut hierarchy, 2, 40, 1000);
    hierarchy.levels[0].trees[IDLE].vtime = 777;
    hierarchy.request_change(one, |entity| {
        entity.requested_class = IDLE;
        entity.requested_weight = 10;
    });
    hierarchy.enqueue(one, false, false);
    let sums = [BE, IDLE].map(|class| hierarchy.levels[0].trees[class].weight_sum);
    assert_eq!((sums, hierarchy.entities[one].start), ([40, 10], 777));
}

/// An entity without work that has been served until `finish`.
fn idle_until(hierarchy: &mut Hierarchy, number: u32, finish: u64) -> EntityId {
    let id = active(hierarchy, number, 40, 1000);
    hierarchy.deactivate(id, false, false);
    hierarchy.entities[id].finish = finish;
    tree(hierarchy).weight_sum += 40;
    hierarchy.entities[id].accounted = true;
    let level = &mut hierarchy.levels[0];
    level.trees[BE].insert_idle(&mut hierarchy.entities, id);
    id
}

#[test]
fn virtual_time_jumps_forward_only_with_no_queue_in_service_or_at_expiry() {
    let mut hierarchy = hierarchy();
    let one = active(&mut hierarchy, 1, 40, 1000);
    assert_eq!(hierarchy.select(), Some(QueueId(1)));
    // A second entity that starts in the future of the level.
    let two = idle_until(&mut hierarchy, 2, 1 << 40);
    hierarchy.enqueue(two, false, false);
    assert_eq!(hierarchy.entities[two].start, 1 << 40);
    assert_eq!((tree(&mut hierarchy).vtime, hierarchy.levels[0].next), (0, Some(two)), "found, but time stands");
    hierarchy.charge(one, 400);
    let before = tree(&mut hierarchy).vtime;
    requeue(&mut hierarchy, one);
    let start = hierarchy.entities[one].start;
    assert!(is_after(start, before));
    assert_eq!(tree(&mut hierarchy).vtime, start, "none was eligible any more");
}

#[test]
fn a_group_with_two_active_children_stays_among_its_siblings_while_it_is_served() {
    let mut hierarchy = hierarchy();
    let group = hierarchy.add_entity(Entity::new(Owner::Group(GroupId(1)), GroupId::ROOT, BE, 100));
    assert_eq!(hierarchy.add_level(group), GroupId(1));
    let mut child = |number, budget| {
        let id = hierarchy.add_entity(Entity::new(Owner::Queue(QueueId(number)), GroupId(1), BE, 40));
        hierarchy.entities[id].budget = budget;
        hierarchy.enqueue(id, false, false);
        id
    };
    let (one, _two) = (child(1, 100), child(2, 700));
    assert_eq!(hierarchy.entities[group].budget, 100, "that of its next child");
    assert_eq!(hierarchy.select(), Some(QueueId(1)));
    assert_eq!(hierarchy.entities[group].on, Membership::Active);
    assert_eq!(hierarchy.entities[group].budget, 700);
    hierarchy.charge(one, 100);
    run_dry(&mut hierarchy, one);
    assert_eq!(hierarchy.select(), Some(QueueId(2)));
    assert_eq!(hierarchy.entities[group].on, Membership::None, "with its only child it leaves");
}

fn two_processes(vtime: u64) -> Vec<(u64, u32, u64)> {
    let mut machine = Machine::new(config(true));
    machine.bfq.hierarchy.levels[0].trees[BE].vtime = vtime;
    machine.add(Job::sequential(1, 256));
    let level = IoPriority::new(PriorityClass::BestEffort, 1);
    machine.add(Job { ioprio: level, ..Job::sequential(2, 64) });
    machine.add(Job { depth: 1, think: 3 * MS, ..Job::sequential(3, 8) });
    machine.run_until(3_000 * MS);
    machine.dispatches
}

#[test]
fn nothing_changes_when_virtual_time_wraps_around() {
    let usual = two_processes(1 << 50);
    assert!(usual.len() > 1000);
    assert_eq!(two_processes(0u64.wrapping_sub(1 << 30)), usual);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn service_lags_behind_the_share_by_no_more_than_the_budgets(
        loads in prop::collection::vec((0..8u8, 1..300u32), 2..6),
    ) {
        let mut machine = Machine::new(config(true));
        for (number, &(level, sectors)) in loads.iter().enumerate() {
            let ioprio = IoPriority::new(PriorityClass::BestEffort, level);
            // Sorted by now: all are here from the beginning.
            machine.add(Job { ioprio, ..Job::sequential(number as u32 + 1, sectors) });
        }
        machine.run_until(4_000 * MS);
        let weights: Vec<u64> = loads.iter().map(|&(level, _)| (8 - u64::from(level)) * 10).collect();
        let sum: u64 = weights.iter().sum();
        let mut served = vec![0u64; loads.len()];
        for &(_, pid, _) in &machine.dispatches {
            served[pid as usize - 1] += u64::from(loads[pid as usize - 1].1);
            let total: u64 = served.iter().sum();
            for (got, weight) in served.iter().zip(&weights) {
                let due = total * weight / sum;
                let bound = 16_384 + weight * 16_384 / sum + 300;
                prop_assert!(got.abs_diff(due) <= bound, "{got} of {due}, {bound} allowed");
            }
        }
    }
}

#[test]
fn a_group_whose_next_budget_shrinks_moves_among_its_siblings_and_one_whose_grows_stays() {
    let mut hierarchy = hierarchy();
    let group = hierarchy.add_entity(Entity::new(Owner::Group(GroupId(1)), GroupId::ROOT, BE, 100));
    hierarchy.add_level(group);
    let child = hierarchy.add_entity(Entity::new(Owner::Queue(QueueId(1)), GroupId(1), BE, 40));
    // The budget of the child, that of the group, and the budget that the group's finish time stands for (BFQ-31).
    for (budget, finish) in [(1000, 1000), (300, 300), (700, 300), (200, 200)] {
        hierarchy.entities[child].budget = budget;
        hierarchy.enqueue(child, false, false);
        assert_eq!(hierarchy.entities[group].budget, budget);
        assert_eq!(hierarchy.entities[group].finish, delta(finish, 100), "with a budget of {budget}");
    }
}

#[test]
fn service_received_out_of_turn_is_charged_once() {
    for (kernel, kept) in [(Kernel::V6_18, 0), (Kernel::V4_12, 50)] {
        let mut hierarchy = Hierarchy::new(BfqVariant::of(kernel), 200, 1);
        let id = active(&mut hierarchy, 1, 40, 1000);
        hierarchy.charge(id, 50);
        hierarchy.deactivate(id, true, false);
        assert_eq!(hierarchy.entities[id].finish, delta(50, 40));
        assert_eq!(hierarchy.entities[id].service, kept, "{kernel}: 4.12 forgets it when it is selected");
    }
}

#[test]
fn a_groups_weight_written_at_run_time_counts_from_its_next_activation_on() {
    let group = |id, weight| BfqGroup { cgroup: CgroupId(id), parent: CgroupId::ROOT, weight };
    let mut machine = Machine::new(BfqConfig { groups: vec![group(1, 100), group(2, 100)], ..config(true) });
    for (pid, cgroup) in [(1, 1), (2, 2)] {
        machine.add(Job { cgroup: CgroupId(cgroup), ..Job::sequential(pid, 256) });
    }
    machine.run_until(5_000 * MS);
    assert!((machine.share(0) - 0.5).abs() < 0.02);
    use crate::policy::{Scheduler, SchedulerEvent};
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(2), weight: 300 }));
    machine.served.fill(0);
    machine.run_until(25_000 * MS);
    assert!((machine.share(1) - 0.75).abs() < 0.01, "{}", machine.share(1));
    machine.call(|bfq, cx| bfq.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(2), weight: 5000 }));
    let entity = machine.bfq.groups[machine.bfq.groups.find(CgroupId(2)).unwrap()].entity.unwrap();
    assert_eq!(machine.bfq.hierarchy.entities[entity].requested_weight, 1000, "clamped");
}

/// A group with a queue of each of these weights and budgets.
fn group_of(hierarchy: &mut Hierarchy, children: &[(u64, u64)]) -> (EntityId, Vec<EntityId>) {
    let group = hierarchy.add_entity(Entity::new(Owner::Group(GroupId(1)), GroupId::ROOT, BE, 100));
    hierarchy.add_level(group);
    let child = |(number, &(weight, budget))| {
        let id = hierarchy.add_entity(Entity::new(Owner::Queue(QueueId(number)), GroupId(1), BE, weight));
        hierarchy.entities[id].budget = budget;
        hierarchy.enqueue(id, false, false);
        id
    };
    let children = (1..).zip(children).map(child).collect();
    (group, children)
}

#[test]
fn a_selection_scans_siblings_only_if_the_groups_next_budget_is_smaller() {
    for (budget, is_looked_through) in [(100, true), (900, false)] {
        let mut hierarchy = hierarchy();
        let (group, children) = group_of(&mut hierarchy, &[(40, 500), (4, budget)]);
        let sibling = active(&mut hierarchy, 3, 100, 300);
        // Out of its turn: the sibling would have been next.
        hierarchy.nominate(children[0]);
        assert_eq!(hierarchy.select(), Some(QueueId(1)));
        assert_eq!(hierarchy.entities[group].budget, budget);
        assert_eq!(hierarchy.levels[0].next, Some(if is_looked_through { sibling } else { group }));
    }
}

#[test]
fn when_a_slot_is_over_neither_the_queue_nor_a_group_above_it_is_in_service() {
    let mut hierarchy = hierarchy();
    let (group, children) = group_of(&mut hierarchy, &[(40, 500)]);
    let in_service = |hierarchy: &Hierarchy| [0, 1].map(|level| hierarchy.levels[level].in_service);
    assert_eq!(hierarchy.select(), Some(QueueId(1)));
    assert_eq!(in_service(&hierarchy), [Some(group), Some(children[0])]);
    hierarchy.charge(children[0], 100);
    requeue(&mut hierarchy, children[0]);
    assert_eq!(in_service(&hierarchy), [None, None]);
}

#[test]
fn an_advanced_virtual_time_overtakes_idle_entities() {
    let mut hierarchy = hierarchy();
    let one = active(&mut hierarchy, 1, 40, 1000);
    assert_eq!(hierarchy.select(), Some(QueueId(1)));
    let late = idle_until(&mut hierarchy, 2, 1 << 40);
    hierarchy.enqueue(late, false, false);
    // Behind virtual time, of which three have a share, and before the next slot of the one that is served.
    let idle = idle_until(&mut hierarchy, 3, delta(400, 80));
    hierarchy.charge(one, 400);
    assert_eq!((tree(&mut hierarchy).vtime, hierarchy.entities[idle].accounted), (delta(400, 120), true));
    requeue(&mut hierarchy, one);
    assert_eq!(tree(&mut hierarchy).vtime, delta(400, 40));
    assert!(!hierarchy.entities[idle].accounted);
    assert_eq!(tree(&mut hierarchy).weight_sum, 80);
}
