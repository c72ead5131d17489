//! A service tree, for one class of one level: its virtual time, and the entities that have work or are still
//! accounted. Rules: BFQ-9, BFQ-21 to BFQ-23, BFQ-29.

use super::entity::{Entities, EntityId, Membership};
use super::vtime::{delta, is_after};
use crate::ground::sorted_tree::SortedTree;

/// A service tree.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceTree {
    /// Virtual time. It stands still while nothing of the tree is served.
    pub vtime: u64,
    /// Sum of the weights of all accounted entities: active, idle and in service.
    pub weight_sum: u64,
    /// Entities with work, by finish time.
    pub active: SortedTree,
    /// Entities without work whose finish time lies ahead, by finish time.
    pub idle: SortedTree,
}

impl ServiceTree {
    /// Puts an entity with its start and finish set on the active tree, behind those of equal finish time.
    pub fn insert_active(&mut self, entities: &mut Entities, id: EntityId) {
        entities[id].on = Membership::Active;
        let finish = entities[id].finish;
        let (nodes, mut min_start) = entities.augmented();
        self.active.insert_ordered(nodes, id.0, finish, &mut min_start, |a, b| is_after(b, a));
    }

    /// Takes an entity off the active tree.
    pub fn extract_active(&mut self, entities: &mut Entities, id: EntityId) {
        entities[id].on = Membership::None;
        let (nodes, mut min_start) = entities.augmented();
        self.active.remove_augmented(nodes, id.0, &mut min_start);
    }

    /// Puts an entity on the idle tree.
    pub fn insert_idle(&mut self, entities: &mut Entities, id: EntityId) {
        entities[id].on = Membership::Idle;
        let finish = entities[id].finish;
        let (nodes, mut min_start) = entities.augmented();
        self.idle.insert_ordered(nodes, id.0, finish, &mut min_start, |a, b| is_after(b, a));
    }

    /// Takes an entity off the idle tree; it stays accounted.
    pub fn extract_idle(&mut self, entities: &mut Entities, id: EntityId) {
        entities[id].on = Membership::None;
        let (nodes, mut min_start) = entities.augmented();
        self.idle.remove_augmented(nodes, id.0, &mut min_start);
    }

    /// The earliest start on the active tree.
    pub fn min_start(&self, entities: &Entities) -> Option<u64> {
        self.active.root().map(|root| entities[EntityId(root)].min_start)
    }

    /// The choice among the entities that are eligible at the virtual time `at`.
    ///
    /// It is meant to be the one with the smallest finish time, but depends on the shape of the tree: when the walk
    /// goes left of an eligible node to a node that is not eligible itself and whose eligible descendants are on its
    /// right, it stops there and returns the eligible ancestor (BFQ-21, BFQ-22, decided by recordings).
    pub fn first_eligible(&self, entities: &Entities, at: u64) -> Option<EntityId> {
        let mut found = None;
        let mut node = self.active.root()?;
        loop {
            if !is_after(entities[EntityId(node)].start, at) {
                found = Some(EntityId(node));
            }
            match entities.nodes.left(node) {
                Some(left) if !is_after(entities[EntityId(left)].min_start, at) => node = left,
                _ if found.is_some() => return found,
                _ => node = entities.nodes.right(node)?,
            }
        }
    }

    /// Advances virtual time by the service of `sectors`. Returns the entity that is to be forgotten, if any.
    pub fn advance(&mut self, entities: &Entities, sectors: u64) -> Option<EntityId> {
        self.vtime = self.vtime.wrapping_add(delta(sectors, self.weight_sum.max(1)));
        self.overtaken(entities)
    }

    /// After virtual time has moved: the entity of the idle tree that it has caught up with, one at a time.
    pub fn overtaken(&mut self, entities: &Entities) -> Option<EntityId> {
        let first = self.idle.first(&entities.nodes).map(EntityId)?;
        let last = self.idle.last(&entities.nodes).map_or(first, EntityId);
        let latest = entities[last].finish;
        // The condition seems intended to push virtual time forward to the end of the idle tree, but in effect it
        // leaves it unchanged or moves it back.
        if self.active.is_empty() && !is_after(latest, self.vtime) {
            self.vtime = latest;
        }
        (!is_after(entities[first].finish, self.vtime)).then_some(first)
    }
}
