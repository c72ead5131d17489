//! Shares of device time in a hierarchy of groups (IC-7 to IC-10).
//!
//! Each group has its place among its siblings, and one leaf for its own I/O, which competes with its children. Only
//! active leaves, and groups above such, have a share. A leaf may want less than its share; what it leaves goes to its
//! siblings by weight, and if they want no more, to the siblings of its parent.

/// The whole device.
pub(super) const WHOLE: u64 = 1 << 32;

/// The least share of a leaf, so that the inverse of a share stays small.
const SHARE_MIN: u64 = 1 << 10;

const NONE: u32 = u32::MAX;

/// Weight of a group, and of the own I/O of a group beside its children.
pub(super) const WEIGHT_DEFAULT: u32 = 100;

/// Number of a group; its leaf has the same one.
pub(super) type Group = usize;

/// A group or a leaf.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    first_child: u32,
    next_sibling: u32,
    weight: u32,
    /// Active leaves at or below it.
    active: u32,
    /// The most that it wants; of a group the sum of what is below, at most [`WHOLE`].
    demand: u64,
    /// Its part of the device.
    share: u64,
    /// Whether it has got what it wants in the current planning.
    is_satisfied: bool,
}

/// The shares of all groups. Group 0 is the root.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// The group's place and its leaf, alternately; parents come first.
    nodes: Vec<Node>,
}

impl Shares {
    pub fn new() -> Shares {
        let mut shares = Shares { nodes: Vec::new() };
        shares.push_group(NONE);
        shares
    }

    /// Adds a group below `parent`.
    pub fn add(&mut self, parent: Group) -> Group {
        self.push_group(2 * parent as u32)
    }

    fn push_group(&mut self, parent: u32) -> Group {
        let group = self.nodes.len() as u32;
        for parent in [parent, group] {
            let node = self.nodes.len() as u32;
            let mut next_sibling = NONE;
            if let Some(above) = self.nodes.get_mut(parent as usize) {
                next_sibling = std::mem::replace(&mut above.first_child, node);
            }
            self.nodes.push(Node {
                parent,
                first_child: NONE,
                next_sibling,
                weight: WEIGHT_DEFAULT,
                active: 0,
                demand: WHOLE,
                share: 0,
                is_satisfied: false,
            });
        }
        group as usize / 2
    }

    pub fn weight(&self, group: Group) -> u32 {
        self.nodes[2 * group].weight
    }

    pub fn set_weight(&mut self, group: Group, weight: u32) {
        self.nodes[2 * group].weight = weight;
    }

    pub fn set_active(&mut self, group: Group, is_active: bool) {
        let mut node = 2 * group as u32 + 1;
        while node != NONE {
            let active = &mut self.nodes[node as usize].active;
            *active = if is_active { *active + 1 } else { *active - 1 };
            node = self.nodes[node as usize].parent;
        }
    }

    /// The most that the own I/O of a group wants; [`WHOLE`] if it does not lend any of its share.
    pub fn demand(&self, group: Group) -> u64 {
        self.nodes[2 * group + 1].demand
    }

    pub fn set_demand(&mut self, group: Group, demand: u64) {
        self.nodes[2 * group + 1].demand = demand;
    }

    /// The share of the own I/O of a group, as planned last.
    pub fn share(&self, group: Group) -> u64 {
        self.nodes[2 * group + 1].share.max(SHARE_MIN)
    }

    /// Plans the shares of all active groups.
    pub fn plan(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            if self.nodes[index].first_child != NONE {
                let wanted = self.children(index).map(|child| self.nodes[child].demand).sum::<u64>();
                self.nodes[index].demand = wanted.min(WHOLE);
            }
        }
        self.nodes[0].share = WHOLE;
        for index in 0..self.nodes.len() {
            if self.nodes[index].active > 0 && self.nodes[index].first_child != NONE {
                self.distribute(index);
            }
        }
    }

    /// The active children of a node.
    fn children(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let node = |index: u32| (index != NONE).then_some(index as usize);
        std::iter::successors(node(self.nodes[index].first_child), move |&child| node(self.nodes[child].next_sibling))
            .filter(|&child| self.nodes[child].active > 0)
    }

    /// Distributes the share of a node to its active children: none gets more than it wants while another wants more.
    fn distribute(&mut self, index: usize) {
        let node = |index: u32| (index != NONE).then_some(index as usize);
        let (mut left, mut weights) = (self.nodes[index].share, 0_u64);
        let first = node(self.nodes[index].first_child);
        let mut next = first;
        while let Some(child) = next {
            self.nodes[child].is_satisfied = self.nodes[child].active == 0;
            weights += if self.nodes[child].active > 0 { u64::from(self.nodes[child].weight) } else { 0 };
            next = node(self.nodes[child].next_sibling);
        }
        let all_weights = weights;
        let mut has_changed = true;
        while has_changed && weights > 0 {
            has_changed = false;
            let (budget, of) = (left, weights);
            let mut next = first;
            while let Some(child) = next {
                let Node { demand, weight, is_satisfied, next_sibling, .. } = &mut self.nodes[child];
                let fair = part(budget, *weight, of);
                if !*is_satisfied && *demand <= fair {
                    *is_satisfied = true;
                    left -= *demand;
                    weights -= u64::from(*weight);
                    has_changed = true;
                }
                next = node(*next_sibling);
            }
        }
        let mut next = first;
        while let Some(child) = next {
            let Node { demand, weight, is_satisfied, active, share, next_sibling, .. } = &mut self.nodes[child];
            if *active > 0 {
                *share = match *is_satisfied {
                    // What nobody wants is divided by weight, so that no share is smaller than it has to be.
                    true if weights == 0 => *demand + part(left, *weight, all_weights),
                    true => *demand,
                    false => part(left, *weight, weights),
                };
            }
            next = node(*next_sibling);
        }
    }
}

/// The part of `whole` that belongs to `weight` of `weights`.
fn part(whole: u64, weight: u32, weights: u64) -> u64 {
    (u128::from(whole) * u128::from(weight) / u128::from(weights.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(shares: &Shares, group: Group) -> f64 {
        shares.share(group) as f64 / WHOLE as f64
    }

    #[test]
    fn shares_are_products_of_the_parts_among_active_siblings() {
        let mut shares = Shares::new();
        let (a, b) = (shares.add(0), shares.add(0));
        let (aa, ab) = (shares.add(a), shares.add(a));
        let (aaa, aab) = (shares.add(aa), shares.add(aa));
        for (group, weight) in [(a, 300), (b, 100), (aa, 200), (ab, 100), (aaa, 100), (aab, 400)] {
            shares.set_weight(group, weight);
        }
        for leaf in [b, ab, aaa, aab] {
            shares.set_active(leaf, true);
        }
        shares.plan();
        for (leaf, expected) in [(b, 0.25), (ab, 0.25), (aaa, 0.1), (aab, 0.4)] {
            assert!((share(&shares, leaf) - expected).abs() < 1e-6, "{leaf}: {}", share(&shares, leaf));
        }
        shares.set_active(aab, false);
        shares.plan();
        assert!((share(&shares, aaa) - 0.5).abs() < 1e-6, "alone in its parent");
        shares.set_active(b, false);
        shares.plan();
        assert!((share(&shares, aaa) - 2.0 / 3.0).abs() < 1e-6, "its grandparent is alone");
    }

    #[test]
    fn what_a_group_lends_goes_to_its_siblings_first() {
        let mut shares = Shares::new();
        let (a, b) = (shares.add(0), shares.add(0));
        let (lender, sibling) = (shares.add(a), shares.add(a));
        for leaf in [b, lender, sibling] {
            shares.set_active(leaf, true);
        }
        shares.set_demand(lender, WHOLE / 20);
        shares.plan();
        assert!((share(&shares, sibling) - 0.45).abs() < 1e-6);
        assert!((share(&shares, b) - 0.5).abs() < 1e-6);
        shares.set_demand(sibling, WHOLE / 20);
        shares.plan();
        assert!((share(&shares, b) - 0.9).abs() < 1e-6, "its sibling wants no more, either");
    }

    #[test]
    fn the_own_io_of_a_group_competes_with_its_children_as_one_of_weight_100() {
        let mut shares = Shares::new();
        let parent = shares.add(0);
        let child = shares.add(parent);
        shares.set_weight(child, 300);
        shares.set_active(parent, true);
        shares.plan();
        assert!((share(&shares, parent) - 1.0).abs() < 1e-6);
        shares.set_active(child, true);
        shares.plan();
        assert!((share(&shares, parent) - 0.25).abs() < 1e-6);
    }

    proptest! {
        /// Parents, weights, activity and demands of groups.
        #[test]
        fn the_shares_of_active_leaves_add_up_to_the_device_and_a_wanting_leaf_has_at_least_its_own(
            groups in prop::collection::vec((0..8_usize, 1..=10_000_u32, any::<bool>(), 0..WHOLE, any::<bool>()), 1..12),
        ) {
            let mut shares = Shares::new();
            for (number, &(parent, weight, is_active, demand, lends)) in groups.iter().enumerate() {
                let group = shares.add(parent % (number + 1));
                shares.set_weight(group, weight);
                if is_active {
                    shares.set_active(group, true);
                }
                shares.set_demand(group, if lends { demand } else { WHOLE });
            }
            let mut alone = shares.clone();
            for group in 1..=groups.len() {
                alone.set_demand(group, WHOLE);
            }
            alone.plan();
            shares.plan();
            let active: Vec<Group> = (1..=groups.len()).filter(|&group| groups[group - 1].2).collect();
            let sum: u64 = active.iter().map(|&group| shares.nodes[2 * group + 1].share).sum();
            let rounding = 64 * groups.len() as u64;
            prop_assert!(active.is_empty() || (sum <= WHOLE && sum >= WHOLE - rounding), "{sum}");
            for &group in &active {
                let wanted = shares.demand(group).min(alone.share(group));
                prop_assert!(shares.share(group) + rounding >= wanted, "{group}");
            }
        }
    }
}
