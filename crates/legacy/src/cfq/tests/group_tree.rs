//! The tree of cfq's groups without its queues: shares, virtual time, weights.
//!
//! Rules: CFQ-27 to CFQ-32, CFQ-34.

use hoistway_blk::ground::CgroupId;

use super::super::group::{CgroupVersion, Groups};

const ROOT: CgroupId = CgroupId::ROOT;
const A: CgroupId = CgroupId(1);
const A1: CgroupId = CgroupId(2);
const B: CgroupId = CgroupId(3);
const DELAY: u64 = 200_000_000;

fn groups() -> Groups {
    let mut groups = Groups::new(CgroupVersion::V1, 0);
    groups.set_parent(A1, A);
    groups.set_weight(ROOT, 1000);
    groups.set_weight(A, 600);
    groups.set_leaf_weight(A, 300);
    groups.set_weight(A1, 200);
    groups.set_weight(B, 400);
    [A, A1, B].into_iter().for_each(|cgroup| groups.create(cgroup, 0));
    groups
}

#[test]
fn a_share_is_the_product_of_the_parts_at_each_level() {
    let mut groups = groups();
    for group in [ROOT, A, A1, B] {
        groups.join(group, DELAY);
    }
    for group in [ROOT, A, A1, B] {
        groups.charge(group, 0);
    }
    assert_eq!([ROOT, A, A1, B].map(|group| groups[group].fraction), [2048, 737, 491, 819]);
    for group in [ROOT, A, A1, B] {
        groups.leave(group);
    }
    assert_eq!([ROOT, A, A1, B].map(|group| groups[group].children_weight), [0; 4]);
}

#[test]
fn a_share_stays_as_it_was_until_the_group_is_charged() {
    let mut groups = groups();
    groups.join(A, DELAY);
    groups.join(B, DELAY);
    assert_eq!((groups[A].fraction, groups[B].fraction), (4096, 1638));
    groups.charge(A, 1);
    assert_eq!(groups[A].fraction, 2457);
    assert_eq!(groups[A].vdisktime, 4096, "charged by the share of before");
    groups.charge(A, 1);
    assert_eq!(groups[A].vdisktime, 4096 + 4096 * 4096 / 2457);
}

#[test]
fn a_newcomer_joins_behind_the_last_group_and_keeps_no_credit() {
    let mut groups = groups();
    groups.join(A, DELAY);
    groups.charge(A, 1_000_000);
    groups.join(B, DELAY);
    assert_eq!(groups[B].vdisktime, groups[A].vdisktime + DELAY);
    assert_eq!(groups.first(), Some(A));
    assert_eq!(groups.min_vdisktime, groups[A].vdisktime);
    groups.leave(A);
    groups.leave(B);
    groups.join(B, DELAY);
    assert_eq!(groups[B].vdisktime, groups.min_vdisktime, "alone it begins at the floor");
}

#[test]
fn a_new_weight_counts_from_the_next_activation_on() {
    let mut groups = groups();
    groups.join(A, DELAY);
    groups.join(B, DELAY);
    groups.set_weight(A, 1000);
    groups.charge(A, 1);
    assert_eq!(groups[A].fraction, 2457, "not inside its backlog");
    groups.leave(A);
    groups.join(A, DELAY);
    assert_eq!(groups[A].fraction, 4096 * 1000 / 1400);
}

#[test]
fn descendants_are_within_their_ancestors() {
    let groups = groups();
    assert!(groups.is_within(A1, A) && groups.is_within(A1, ROOT) && groups.is_within(A, A));
    assert!(!groups.is_within(A, A1) && !groups.is_within(A1, B));
}

#[test]
fn a_new_leaf_weight_counts_when_the_group_next_enters_the_tree() {
    let mut groups = groups();
    groups.join(A1, DELAY);
    groups.set_leaf_weight(A, 600);
    groups.join(A, DELAY);
    assert_eq!(groups[A].fraction, 4096 * 600 / 800);
    groups.set_leaf_weight(A, 200);
    groups.charge(A, 1);
    assert_eq!(groups[A].fraction, 2048, "a charge takes it out and in again");
}
