//! Red-black trees of small numbers without allocation: the nodes of all trees lie in one table that is indexed by the
//! number. Equal keys keep the order of insertion.
//!
//! Insertion and deletion follow the textbook (a node with two children is replaced by its in-order successor), because
//! bfq's decisions depend on the shape of its tree: BFQ-21, BFQ-22.

/// No node.
const NIL: u32 = u32::MAX;

/// Data that is aggregated over subtrees, for searches that need more than the order of keys.
pub trait Augment {
    /// Recomputes the data of `node` from itself and its children.
    fn recompute(&mut self, node: u32, left: Option<u32>, right: Option<u32>);
}

/// No aggregated data.
#[derive(Debug)]
pub struct Plain;

impl Augment for Plain {
    #[inline(always)]
    fn recompute(&mut self, _: u32, _: Option<u32>, _: Option<u32>) {}
}

/// The nodes of every number.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    parent: u32,
    left: u32,
    right: u32,
    red: bool,
}

/// One tree: its root. The nodes are in the [`Nodes`] that every call takes.
#[derive(Clone, Copy, Debug)]
pub struct SortedTree {
    root: u32,
}

impl Default for SortedTree {
    fn default() -> Self {
        SortedTree { root: NIL }
    }
}

fn some(id: u32) -> Option<u32> {
    (id != NIL).then_some(id)
}

impl Nodes {
    /// Nodes for the numbers below `count`.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Nodes { nodes: vec![Node { key: 0, parent: NIL, left: NIL, right: NIL, red: false }; count] }
    }

    /// Makes room for the numbers below `count`.
    pub fn grow(&mut self, count: usize) {
        if count > self.nodes.len() {
            self.nodes.resize(count, Node { key: 0, parent: NIL, left: NIL, right: NIL, red: false });
        }
    }

    /// The key that `id` was inserted with.
    #[inline]
    #[must_use]
    pub fn key(&self, id: u32) -> u64 {
        self.nodes[id as usize].key
    }

    /// Sets the key of a number that is in no tree, so that it is remembered.
    #[inline]
    pub fn set_key(&mut self, id: u32, key: u64) {
        self.nodes[id as usize].key = key;
    }

    /// The left child of a node in a tree.
    #[inline]
    #[must_use]
    pub fn left(&self, id: u32) -> Option<u32> {
        some(self.at(id).left)
    }

    /// The right child of a node in a tree.
    #[inline]
    #[must_use]
    pub fn right(&self, id: u32) -> Option<u32> {
        some(self.at(id).right)
    }

    /// The parent of a node in a tree.
    #[inline]
    #[must_use]
    pub fn parent(&self, id: u32) -> Option<u32> {
        some(self.at(id).parent)
    }

    #[inline]
    fn at(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    #[inline]
    fn at_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    fn is_red(&self, id: u32) -> bool {
        id != NIL && self.at(id).red
    }

    fn recompute(&self, id: u32, augment: &mut impl Augment) {
        let node = self.at(id);
        augment.recompute(id, some(node.left), some(node.right));
    }

    fn recompute_upwards(&self, mut id: u32, augment: &mut impl Augment) {
        while id != NIL {
            self.recompute(id, augment);
            id = self.at(id).parent;
        }
    }
}

impl SortedTree {
    /// Whether there is nothing in it.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// The root node.
    #[inline]
    #[must_use]
    pub fn root(&self) -> Option<u32> {
        some(self.root)
    }

    /// The number with the smallest key.
    #[must_use]
    pub fn first(&self, nodes: &Nodes) -> Option<u32> {
        let mut id = some(self.root)?;
        while let Some(left) = nodes.left(id) {
            id = left;
        }
        Some(id)
    }

    /// The number with the greatest key, of equal ones the youngest.
    #[must_use]
    pub fn last(&self, nodes: &Nodes) -> Option<u32> {
        let mut id = some(self.root)?;
        while let Some(right) = nodes.right(id) {
            id = right;
        }
        Some(id)
    }

    /// The number with the smallest key of at least `key`, of equal ones the oldest.
    #[inline]
    #[must_use]
    pub fn at_or_after(&self, nodes: &Nodes, key: u64) -> Option<u32> {
        let (mut id, mut found) = (self.root, NIL);
        while id != NIL {
            let node = nodes.at(id);
            if node.key >= key {
                found = id;
                id = node.left;
            } else {
                id = node.right;
            }
        }
        some(found)
    }

    /// The oldest number with exactly this key.
    #[must_use]
    pub fn find(&self, nodes: &Nodes, key: u64) -> Option<u32> {
        self.at_or_after(nodes, key).filter(|&id| nodes.key(id) == key)
    }

    /// The successor of `id` in the order of keys.
    #[must_use]
    pub fn next(&self, nodes: &Nodes, id: u32) -> Option<u32> {
        if let Some(mut next) = nodes.right(id) {
            while let Some(left) = nodes.left(next) {
                next = left;
            }
            return Some(next);
        }
        let mut child = id;
        let mut parent = nodes.at(id).parent;
        while parent != NIL && nodes.at(parent).right == child {
            child = parent;
            parent = nodes.at(parent).parent;
        }
        some(parent)
    }

    /// The predecessor of `id` in the order of keys.
    #[must_use]
    pub fn previous(&self, nodes: &Nodes, id: u32) -> Option<u32> {
        if let Some(mut previous) = nodes.left(id) {
            while let Some(right) = nodes.right(previous) {
                previous = right;
            }
            return Some(previous);
        }
        let mut child = id;
        let mut parent = nodes.at(id).parent;
        while parent != NIL && nodes.at(parent).left == child {
            child = parent;
            parent = nodes.at(parent).parent;
        }
        some(parent)
    }

    /// Inserts `id`, which is in no tree, behind all equal keys.
    #[inline]
    pub fn insert(&mut self, nodes: &mut Nodes, id: u32, key: u64) {
        self.insert_augmented(nodes, id, key, &mut Plain);
    }

    /// Inserts `id` and updates aggregated data.
    #[inline]
    pub fn insert_augmented(&mut self, nodes: &mut Nodes, id: u32, key: u64, augment: &mut impl Augment) {
        self.insert_ordered(nodes, id, key, augment, |first, second| first < second);
    }

    /// Inserts `id` by a custom order of keys, `is_before`, which all insertions into the tree must share. The searches by
    /// key ([`at_or_after`](Self::at_or_after), [`find`](Self::find)) do not support such an order.
    pub fn insert_ordered(
        &mut self,
        nodes: &mut Nodes,
        id: u32,
        key: u64,
        augment: &mut impl Augment,
        is_before: impl Fn(u64, u64) -> bool,
    ) {
        let (mut parent, mut at) = (NIL, self.root);
        while at != NIL {
            parent = at;
            at = if is_before(key, nodes.at(at).key) { nodes.at(at).left } else { nodes.at(at).right };
        }
        *nodes.at_mut(id) = Node { key, parent, left: NIL, right: NIL, red: true };
        if parent == NIL {
            self.root = id;
        } else if is_before(key, nodes.at(parent).key) {
            nodes.at_mut(parent).left = id;
        } else {
            nodes.at_mut(parent).right = id;
        }
        nodes.recompute_upwards(id, augment);
        self.rebalance_insertion(nodes, id, augment);
    }

    /// Takes `id`, which is in this tree, out.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, id: u32) {
        self.remove_augmented(nodes, id, &mut Plain);
    }

    /// Removes `id` and updates aggregated data.
    pub fn remove_augmented(&mut self, nodes: &mut Nodes, id: u32, augment: &mut impl Augment) {
        let Node { left, right, red, .. } = *nodes.at(id);
        // `hole` is the node that moved up (or NIL) and `hole_parent` its parent: a black node may be missing there.
        let (hole, hole_parent, removed_red);
        if left == NIL || right == NIL {
            hole = if left == NIL { right } else { left };
            hole_parent = nodes.at(id).parent;
            removed_red = red;
            self.transplant(nodes, id, hole);
        } else {
            let mut successor = right;
            while nodes.at(successor).left != NIL {
                successor = nodes.at(successor).left;
            }
            removed_red = nodes.at(successor).red;
            hole = nodes.at(successor).right;
            if nodes.at(successor).parent == id {
                hole_parent = successor;
            } else {
                hole_parent = nodes.at(successor).parent;
                self.transplant(nodes, successor, hole);
                nodes.at_mut(successor).right = right;
                nodes.at_mut(right).parent = successor;
            }
            self.transplant(nodes, id, successor);
            nodes.at_mut(successor).left = left;
            nodes.at_mut(left).parent = successor;
            nodes.at_mut(successor).red = red;
        }
        nodes.recompute_upwards(hole_parent, augment);
        if !removed_red {
            self.rebalance_removal(nodes, hole, hole_parent, augment);
        }
    }

    /// Puts the subtree `new` (perhaps NIL) in the place of the subtree `old`.
    fn transplant(&mut self, nodes: &mut Nodes, old: u32, new: u32) {
        let parent = nodes.at(old).parent;
        if parent == NIL {
            self.root = new;
        } else if nodes.at(parent).left == old {
            nodes.at_mut(parent).left = new;
        } else {
            nodes.at_mut(parent).right = new;
        }
        if new != NIL {
            nodes.at_mut(new).parent = parent;
        }
    }

    fn rotate_left(&mut self, nodes: &mut Nodes, id: u32, augment: &mut impl Augment) {
        let pivot = nodes.at(id).right;
        let moved = nodes.at(pivot).left;
        nodes.at_mut(id).right = moved;
        if moved != NIL {
            nodes.at_mut(moved).parent = id;
        }
        self.transplant(nodes, id, pivot);
        nodes.at_mut(pivot).left = id;
        nodes.at_mut(id).parent = pivot;
        nodes.recompute(id, augment);
        nodes.recompute(pivot, augment);
    }

    fn rotate_right(&mut self, nodes: &mut Nodes, id: u32, augment: &mut impl Augment) {
        let pivot = nodes.at(id).left;
        let moved = nodes.at(pivot).right;
        nodes.at_mut(id).left = moved;
        if moved != NIL {
            nodes.at_mut(moved).parent = id;
        }
        self.transplant(nodes, id, pivot);
        nodes.at_mut(pivot).right = id;
        nodes.at_mut(id).parent = pivot;
        nodes.recompute(id, augment);
        nodes.recompute(pivot, augment);
    }

    fn rebalance_insertion(&mut self, nodes: &mut Nodes, mut id: u32, augment: &mut impl Augment) {
        loop {
            let parent = nodes.at(id).parent;
            if !nodes.is_red(parent) {
                break;
            }
            // A red parent is not the root, so there is a grandparent.
            let grandparent = nodes.at(parent).parent;
            let parent_is_left = nodes.at(grandparent).left == parent;
            let uncle = if parent_is_left { nodes.at(grandparent).right } else { nodes.at(grandparent).left };
            if nodes.is_red(uncle) {
                nodes.at_mut(parent).red = false;
                nodes.at_mut(uncle).red = false;
                nodes.at_mut(grandparent).red = true;
                id = grandparent;
                continue;
            }
            let outer = if parent_is_left {
                if nodes.at(parent).right == id {
                    self.rotate_left(nodes, parent, augment);
                    id
                } else {
                    parent
                }
            } else if nodes.at(parent).left == id {
                self.rotate_right(nodes, parent, augment);
                id
            } else {
                parent
            };
            nodes.at_mut(outer).red = false;
            nodes.at_mut(grandparent).red = true;
            if parent_is_left {
                self.rotate_right(nodes, grandparent, augment);
            } else {
                self.rotate_left(nodes, grandparent, augment);
            }
            break;
        }
        let root = self.root;
        nodes.at_mut(root).red = false;
    }

    fn rebalance_removal(&mut self, nodes: &mut Nodes, mut id: u32, mut parent: u32, augment: &mut impl Augment) {
        while id != self.root && !nodes.is_red(id) {
            let is_left = nodes.at(parent).left == id;
            let mut sibling = if is_left { nodes.at(parent).right } else { nodes.at(parent).left };
            if nodes.is_red(sibling) {
                nodes.at_mut(sibling).red = false;
                nodes.at_mut(parent).red = true;
                if is_left {
                    self.rotate_left(nodes, parent, augment);
                    sibling = nodes.at(parent).right;
                } else {
                    self.rotate_right(nodes, parent, augment);
                    sibling = nodes.at(parent).left;
                }
            }
            let Node { left, right, .. } = *nodes.at(sibling);
            if !nodes.is_red(left) && !nodes.is_red(right) {
                nodes.at_mut(sibling).red = true;
                id = parent;
                parent = nodes.at(id).parent;
                continue;
            }
            if is_left {
                if !nodes.is_red(right) {
                    nodes.at_mut(left).red = false;
                    nodes.at_mut(sibling).red = true;
                    self.rotate_right(nodes, sibling, augment);
                    sibling = nodes.at(parent).right;
                }
                nodes.at_mut(sibling).red = nodes.at(parent).red;
                nodes.at_mut(parent).red = false;
                let outer = nodes.at(sibling).right;
                nodes.at_mut(outer).red = false;
                self.rotate_left(nodes, parent, augment);
            } else {
                if !nodes.is_red(left) {
                    nodes.at_mut(right).red = false;
                    nodes.at_mut(sibling).red = true;
                    self.rotate_left(nodes, sibling, augment);
                    sibling = nodes.at(parent).left;
                }
                nodes.at_mut(sibling).red = nodes.at(parent).red;
                nodes.at_mut(parent).red = false;
                let outer = nodes.at(sibling).left;
                nodes.at_mut(outer).red = false;
                self.rotate_right(nodes, parent, augment);
            }
            id = self.root;
            break;
        }
        if id != NIL {
            nodes.at_mut(id).red = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks order, colours, parents and black height; returns the numbers in order.
    fn checked(tree: &SortedTree, nodes: &Nodes) -> Vec<u32> {
        fn walk(nodes: &Nodes, id: u32, parent: u32, out: &mut Vec<u32>) -> u32 {
            if id == NIL {
                return 1;
            }
            let node = nodes.at(id);
            assert_eq!(node.parent, parent, "parents point back");
            assert!(!(node.red && nodes.is_red(parent)), "no red node has a red parent");
            let left = walk(nodes, node.left, id, out);
            out.push(id);
            let right = walk(nodes, node.right, id, out);
            assert_eq!(left, right, "all paths have the same number of black nodes");
            left + u32::from(!node.red)
        }
        let mut out = Vec::new();
        assert!(!nodes.is_red(tree.root));
        walk(nodes, tree.root, NIL, &mut out);
        out
    }

    /// Keeps the smallest number of each subtree.
    struct Smallest(Vec<u32>);

    impl Augment for Smallest {
        fn recompute(&mut self, node: u32, left: Option<u32>, right: Option<u32>) {
            let below = [left, right].into_iter().flatten().map(|child| self.0[child as usize]);
            self.0[node as usize] = below.chain([node]).min().unwrap();
        }
    }

    proptest! {
        #[test]
        fn a_tree_stays_sorted_stable_balanced_and_augmented(
            steps in prop::collection::vec((0u32..64, 0u64..16), 1..400),
        ) {
            let mut nodes = Nodes::new(64);
            let mut tree = SortedTree::default();
            let mut smallest = Smallest((0..64).collect());
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (id, key) in steps {
                if let Some(at) = model.iter().position(|&(_, other)| other == id) {
                    tree.remove_augmented(&mut nodes, id, &mut smallest);
                    model.remove(at);
                } else {
                    tree.insert_augmented(&mut nodes, id, key, &mut smallest);
                    let at = model.partition_point(|&(other, _)| other <= key);
                    model.insert(at, (key, id));
                }
                let order: Vec<u32> = model.iter().map(|&(_, id)| id).collect();
                prop_assert_eq!(checked(&tree, &nodes), order.clone());
                if let Some(root) = tree.root() {
                    prop_assert_eq!(smallest.0[root as usize], *order.iter().min().unwrap());
                }
                let lowest = model.iter().find(|&&(other, _)| other >= key).map(|&(_, id)| id);
                prop_assert_eq!(tree.at_or_after(&nodes, key), lowest);
                for pair in order.windows(2) {
                    prop_assert_eq!(tree.next(&nodes, pair[0]), Some(pair[1]));
                    prop_assert_eq!(tree.previous(&nodes, pair[1]), Some(pair[0]));
                }
                prop_assert_eq!(tree.first(&nodes), order.first().copied());
                prop_assert_eq!(tree.last(&nodes), order.last().copied());
            }
        }
    }
}
