//! Entities, which are what is scheduled: queues and groups, as nodes of one hierarchy. Rules: BFQ-8.

use super::state_lines::QueueLabel;
use crate::ground::sorted_tree::{Augment, Nodes};

/// An index into the table of entities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntityId(pub u32);

/// An index into the table of queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueId(pub u32);

/// An index into the table of groups and their levels; 0 is the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupId(pub u32);

impl GroupId {
    /// The root group, which has no entity of its own.
    pub const ROOT: GroupId = GroupId(0);
}

/// The classes in strict order: indexes of service trees.
pub(super) const RT: usize = 0;
/// Best effort, the class of every group.
pub(super) const BE: usize = 1;
/// Served only when the other classes have no work, or, from 6.4 on, when its turn comes.
pub(super) const IDLE: usize = 2;
/// Number of classes.
pub(super) const CLASSES: usize = 3;

/// What an entity is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// A queue: a leaf.
    Queue(QueueId),
    /// A group: an inner node.
    Group(GroupId),
}

/// Which tree an entity is on (BFQ-24).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Membership {
    /// On no tree; it is in service if it is accounted.
    None,
    /// On the active tree: it has work.
    Active,
    /// On the idle tree: it has no work, but virtual time has not caught up with it.
    Idle,
}

/// A queue or a group, as far as the hierarchy is concerned.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    /// What it is.
    pub owner: Owner,
    /// The name of its queue in state lines; groups have none.
    pub label: Option<QueueLabel>,
    /// The actuator of its queue (BFQ-128).
    pub actuator: u8,
    /// The group in whose level it is scheduled.
    pub level: GroupId,
    /// Virtual time at which its service starts.
    pub start: u64,
    /// Virtual time at which its budget is used up.
    pub finish: u64,
    /// Smallest `start` in its subtree of the active tree.
    pub min_start: u64,
    /// Sectors received in the present slot, or by injection since the last one.
    pub service: u64,
    /// Sectors it may receive in a slot.
    pub budget: u64,
    /// Effective weight: `base_weight` times `raise`.
    pub weight: u64,
    /// Weight without raising.
    pub base_weight: u64,
    /// Base weight that was asked for.
    pub requested_weight: u64,
    /// Factor of weight raising, 1 if it is not raised (BFQ-91).
    pub raise: u64,
    /// Its class: an index of a service tree.
    pub class: usize,
    /// Class that was asked for.
    pub requested_class: usize,
    /// A change of weight, raising or class waits to be applied (BFQ-19).
    pub change_pending: bool,
    /// Which tree it is on.
    pub on: Membership,
    /// Its weight is in its tree's sum: it is on a tree or in service.
    pub accounted: bool,
    /// The weight under which it is in the weight counters, if it is (BFQ-75).
    pub counted_weight: Option<u64>,
    /// Allocated requests of its subtree, queued or in flight (BFQ-115).
    pub allocated: u32,
}

impl Entity {
    /// A new entity that is on no tree.
    pub fn new(owner: Owner, level: GroupId, class: usize, weight: u64) -> Self {
        Entity {
            owner,
            label: None,
            actuator: 0,
            level,
            start: 0,
            finish: 0,
            min_start: 0,
            service: 0,
            budget: 0,
            weight,
            base_weight: weight,
            requested_weight: weight,
            raise: 1,
            class,
            requested_class: class,
            change_pending: false,
            on: Membership::None,
            accounted: false,
            counted_weight: None,
            allocated: 0,
        }
    }

    /// Budget that is left; negative after more service than the budget.
    pub fn budget_left(&self) -> i64 {
        self.budget as i64 - self.service as i64
    }
}

/// All entities, and their nodes in the trees of all levels.
#[derive(Clone, Debug, Default)]
pub(super) struct Entities {
    list: Vec<Entity>,
    free: Vec<EntityId>,
    pub nodes: Nodes,
}

impl Entities {
    /// Adds an entity.
    pub fn add(&mut self, entity: Entity) -> EntityId {
        if let Some(id) = self.free.pop() {
            self.list[id.0 as usize] = entity;
            return id;
        }
        self.list.push(entity);
        self.nodes.grow(self.list.len());
        EntityId(self.list.len() as u32 - 1)
    }

    /// Frees an entity that is not accounted.
    pub fn remove(&mut self, id: EntityId) {
        debug_assert!(!self[id].accounted, "an entity that is freed is on no tree and not in service");
        self.free.push(id);
    }

    /// The nodes of the trees together with what they know about subtrees.
    pub fn augmented(&mut self) -> (&mut Nodes, MinStart<'_>) {
        (&mut self.nodes, MinStart(&mut self.list))
    }
}

impl std::ops::Index<EntityId> for Entities {
    type Output = Entity;
    #[inline]
    fn index(&self, id: EntityId) -> &Entity {
        &self.list[id.0 as usize]
    }
}

impl std::ops::IndexMut<EntityId> for Entities {
    #[inline]
    fn index_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.list[id.0 as usize]
    }
}

/// Keeps [`Entity::min_start`] up to date.
pub(super) struct MinStart<'a>(&'a mut [Entity]);

impl Augment for MinStart<'_> {
    fn recompute(&mut self, node: u32, left: Option<u32>, right: Option<u32>) {
        let mut min = self.0[node as usize].start;
        for child in [left, right].into_iter().flatten() {
            let below = self.0[child as usize].min_start;
            if super::vtime::is_after(min, below) {
                min = below;
            }
        }
        self.0[node as usize].min_start = min;
    }
}
