//! The index of queues by the position of their next request, to find a queue that can be served without a seek.
//!
//! **The shape of the tree is observable**: the search considers the last node on its way down, on whichever side of
//! the position that is, and one neighbour of it. A queue's next request may change without the queue being moved in
//! the tree. Comparisons use the present one, so a change must be reported ([`PositionTree::moved`]).
//!
//! Rules: BFQ-105, BFQ-106, CFQ-8, CFQ-9, CFQ-65, CFQ-66.

use crate::ground::ids::Sector;
use crate::ground::sorted_tree::{Nodes, SortedTree};

/// Queues by the sector of their next request. The nodes, indexed by queue, are in the [`Nodes`] of every call.
#[derive(Clone, Copy, Debug, Default)]
pub struct PositionTree {
    tree: SortedTree,
}

impl PositionTree {
    /// Inserts `queue`, which is in no tree, at `sector`, unless another queue is there already. Returns whether it
    /// did.
    pub fn insert(&mut self, nodes: &mut Nodes, queue: u32, sector: Sector) -> bool {
        let is_free = self.descend(nodes, sector).is_none_or(|last| nodes.key(last) != sector.0);
        if is_free {
            self.tree.insert(nodes, queue, sector.0);
        }
        is_free
    }

    /// Takes `queue`, which is in this tree, out.
    pub fn remove(&mut self, nodes: &mut Nodes, queue: u32) {
        self.tree.remove(nodes, queue);
    }

    /// The next request of `queue` is now at `sector`; its node stays where it is.
    pub fn moved(nodes: &mut Nodes, queue: u32, sector: Sector) {
        nodes.set_key(queue, sector.0);
    }

    /// The one queue that can be served next at `position`: an exact match; or the last node on the way to it; or, if
    /// that is not `is_close`, its neighbour on the other side of `position`, if that is.
    pub fn close_to(&self, nodes: &Nodes, position: Sector, is_close: impl Fn(Sector) -> bool) -> Option<u32> {
        let last = self.descend(nodes, position)?;
        let sector = |queue| Sector(nodes.key(queue));
        if is_close(sector(last)) {
            return Some(last);
        }
        let neighbour =
            if sector(last) < position { self.tree.next(nodes, last) } else { self.tree.previous(nodes, last) };
        neighbour.filter(|&queue| is_close(sector(queue)))
    }

    /// The node at `sector`, or the last one on the way to where it would be.
    fn descend(&self, nodes: &Nodes, sector: Sector) -> Option<u32> {
        let mut node = self.tree.root()?;
        loop {
            let child = match sector.0.cmp(&nodes.key(node)) {
                std::cmp::Ordering::Less => nodes.left(node),
                std::cmp::Ordering::Greater => nodes.right(node),
                std::cmp::Ordering::Equal => None,
            };
            match child {
                Some(child) => node = child,
                None => return Some(node),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(distance: u64, position: u64) -> impl Fn(Sector) -> bool {
        move |sector| sector.0.abs_diff(position) <= distance
    }

    #[test]
    fn the_shape_of_the_tree_decides_not_the_distance() {
        let mut nodes = Nodes::new(8);
        let mut tree = PositionTree::default();
        // 1 is the root, 0 and 2 are its children.
        for (queue, sector) in [(1, 1_000), (0, 616), (2, 2_000)] {
            assert!(tree.insert(&mut nodes, queue, Sector(sector)));
        }
        // On the way to 1100 the last node is 2, although 1 is nearer.
        assert_eq!(tree.close_to(&nodes, Sector(1_100), within(1_000, 1_100)), Some(2));
        // If that is too far, the neighbour below is considered.
        assert_eq!(tree.close_to(&nodes, Sector(1_100), within(500, 1_100)), Some(1));
        assert_eq!(tree.close_to(&nodes, Sector(1_100), within(50, 1_100)), None);
    }

    #[test]
    fn an_exact_match_ends_the_search_and_occupies_its_sector() {
        let mut nodes = Nodes::new(4);
        let mut tree = PositionTree::default();
        assert!(tree.insert(&mut nodes, 0, Sector(500)));
        assert!(!tree.insert(&mut nodes, 1, Sector(500)), "the sector is taken");
        assert_eq!(tree.close_to(&nodes, Sector(500), within(0, 500)), Some(0));
        tree.remove(&mut nodes, 0);
        assert_eq!(tree.close_to(&nodes, Sector(500), within(0, 500)), None);
    }

    #[test]
    fn comparisons_use_the_present_sector_of_a_queue_that_was_not_moved() {
        let mut nodes = Nodes::new(4);
        let mut tree = PositionTree::default();
        tree.insert(&mut nodes, 0, Sector(500));
        PositionTree::moved(&mut nodes, 0, Sector(9_000));
        assert_eq!(tree.close_to(&nodes, Sector(9_000), within(0, 9_000)), Some(0));
    }
}
