//! Groups: cgroups on this device. Which are active, their shares of the device, and their charges.
//!
//! The group tree sorts active groups by virtual time, which advances faster the smaller the share.
//!
//! Rules: CFQ-6, CFQ-27 to CFQ-35; weights CG-1, CG-2, CG-7, CG-8.

use hoistway_blk::ground::{CgroupId, Nodes, SortedTree};
use hoistway_blk::kit::process_queue::ThinkTime;

use super::class::{Class, TreeId, Workload};
use super::queue::QueueId;
use super::slice::busy_average;

/// A group is identified by its cgroup.
pub(super) type GroupId = CgroupId;

/// The fixed-point value of 1 for shares.
const ONE: u64 = 4096;

/// The weights of a cgroup hierarchy (CG-1, CG-2, CG-7, CG-8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupVersion {
    /// `blkio.weight`: 10 to 1000, 500 by default; the root 1000.
    V1,
    /// `io.weight`: 1 to 10000, 100 by default; the root 200.
    V2,
}

impl CgroupVersion {
    fn default_weight(self, cgroup: CgroupId) -> u32 {
        match (self, cgroup == CgroupId::ROOT) {
            (CgroupVersion::V1, false) => 500,
            (CgroupVersion::V1, true) => 1000,
            (CgroupVersion::V2, false) => 100,
            (CgroupVersion::V2, true) => 200,
        }
    }
}

/// Busy queues of one class and kind, by key.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceTree {
    pub(super) queues: SortedTree,
    /// Their number.
    pub(super) count: u32,
    /// Think time of all of them combined.
    pub(super) think: ThinkTime,
}

/// A weight, and the one that will replace it.
#[derive(Clone, Copy, Debug)]
struct Weight {
    current: u32,
    pending: u32,
}

impl Weight {
    fn new(weight: u32) -> Self {
        Weight { current: weight, pending: weight }
    }

    fn apply(&mut self) {
        self.current = self.pending;
    }
}

/// The rest of a workload slice when the group was last served.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedWorkload {
    pub(super) remaining: i64,
    pub(super) class: Class,
    pub(super) workload: Workload,
}

/// A group. Times are in the clock's unit.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Whether its cgroup has done any I/O on this device.
    pub(super) exists: bool,
    /// The parent group; `None` for the root.
    parent: Option<GroupId>,

    /// Virtual time: charges divided by share.
    pub(super) vdisktime: u64,
    /// Relative to its siblings.
    weight: Weight,
    /// Of its own tasks relative to its child groups.
    leaf_weight: Weight,
    /// Number of active members: child groups, and its own tasks as one.
    active_members: u32,
    /// Sum of the active members' weights.
    pub(super) children_weight: u64,
    /// Its share of the device in units of 1 / [`ONE`], when last computed.
    pub(super) fraction: u64,

    /// Busy queues.
    pub(super) busy_queues: u32,
    /// Busy sync queues.
    pub(super) busy_sync_queues: u32,
    /// Busy queues by class and kind.
    pub(super) trees: [ServiceTree; 7],
    /// Smoothed number of busy queues in class best effort and in class real time.
    pub(super) busy_average: [u32; 2],
    /// The rest of its workload slice.
    pub(super) saved: Option<SavedWorkload>,
    /// Requests at the dispatch list or the driver.
    pub(super) in_flight: u32,
    /// Think time of the whole group.
    pub(super) think: ThinkTime,
    /// The async queues: real time and best effort by level, and idle.
    pub(super) async_queues: [[Option<QueueId>; 8]; 3],
}

impl Group {
    fn absent(cgroup: CgroupId, version: CgroupVersion) -> Self {
        let weight = Weight::new(version.default_weight(cgroup));
        Group {
            exists: false,
            parent: (cgroup != CgroupId::ROOT).then_some(CgroupId::ROOT),
            vdisktime: 0,
            weight,
            leaf_weight: weight,
            active_members: 0,
            children_weight: 0,
            fraction: 0,
            busy_queues: 0,
            busy_sync_queues: 0,
            trees: Default::default(),
            busy_average: [0; 2],
            saved: None,
            in_flight: 0,
            think: ThinkTime::default(),
            async_queues: [[None; 8]; 3],
        }
    }

    #[inline]
    pub(super) fn tree(&self, class: Class, workload: Workload) -> &ServiceTree {
        &self.trees[TreeId::of(class, workload).index()]
    }

    /// Busy queues of a class.
    pub(super) fn busy_in_class(&self, class: Class) -> u32 {
        match class {
            Class::Idle => self.trees[TreeId::IDLE.index()].count,
            class => Workload::ALL.iter().map(|&workload| self.tree(class, workload).count).sum(),
        }
    }

    /// Busy async queues of the classes real time and best effort.
    pub(super) fn busy_async(&self) -> u32 {
        self.tree(Class::BestEffort, Workload::Async).count + self.tree(Class::RealTime, Workload::Async).count
    }

    /// Adds the current number of busy queues to the average of a class and returns the average.
    pub(super) fn update_average(&mut self, class: Class) -> u32 {
        let index = usize::from(class == Class::RealTime);
        let busy = self.busy_in_class(if index == 1 { Class::RealTime } else { Class::BestEffort });
        self.busy_average[index] = busy_average(self.busy_average[index], busy);
        self.busy_average[index]
    }

    /// Its share of a span that is divided among all groups.
    pub(super) fn share_of(&self, span: i64) -> i64 {
        (i128::from(span) * i128::from(self.fraction) / i128::from(ONE)) as i64
    }
}

/// All groups, and the active ones sorted by virtual time.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    version: CgroupVersion,
    groups: Vec<Group>,
    /// Active groups.
    tree: SortedTree,
    nodes: Nodes,
    /// Lower bound of the virtual time of all active groups when the next group was last chosen. Never decreases.
    pub(super) min_vdisktime: u64,
}

impl std::ops::Index<GroupId> for Groups {
    type Output = Group;
    #[inline]
    fn index(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }
}

impl std::ops::IndexMut<GroupId> for Groups {
    #[inline]
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.groups[id.index()]
    }
}

impl Groups {
    /// Only the root group.
    pub(super) fn new(version: CgroupVersion, now: i64) -> Self {
        let tree = SortedTree::default();
        let mut groups = Groups { version, groups: Vec::new(), tree, nodes: Nodes::new(0), min_vdisktime: 0 };
        groups.create(CgroupId::ROOT, now);
        groups
    }

    /// The record of a cgroup, which may not have done any I/O yet.
    fn record_mut(&mut self, cgroup: CgroupId) -> &mut Group {
        for index in self.groups.len()..=cgroup.index() {
            self.groups.push(Group::absent(CgroupId(index as u32), self.version));
        }
        self.nodes.grow(self.groups.len());
        &mut self.groups[cgroup.index()]
    }

    /// A cgroup has submitted a bio: the first one creates its group, and those above.
    pub(super) fn create(&mut self, cgroup: CgroupId, now: i64) {
        let mut next = Some(cgroup);
        while let Some(id) = next.filter(|&id| !self.exists(id)) {
            let group = self.record_mut(id);
            group.exists = true;
            group.think = ThinkTime::new(now);
            group.trees.iter_mut().for_each(|tree| tree.think = ThinkTime::new(now));
            next = group.parent;
        }
    }

    /// Whether a cgroup has done any I/O on this device.
    pub(super) fn exists(&self, cgroup: CgroupId) -> bool {
        self.groups.get(cgroup.index()).is_some_and(|group| group.exists)
    }

    /// Sets the parent of a cgroup.
    pub(super) fn set_parent(&mut self, cgroup: CgroupId, parent: CgroupId) {
        self.record_mut(parent);
        let group = self.record_mut(cgroup);
        debug_assert!(group.active_members == 0, "a cgroup is announced before it does I/O");
        if cgroup != CgroupId::ROOT {
            group.parent = Some(parent);
        }
    }

    /// A cgroup was removed: a later one with the same number starts fresh. Returns its async queues.
    pub(super) fn remove(&mut self, cgroup: CgroupId) -> [[Option<QueueId>; 8]; 3] {
        let weight = Weight::new(self.version.default_weight(cgroup));
        let group = self.record_mut(cgroup);
        group.exists = false;
        group.weight.pending = weight.pending;
        group.leaf_weight.pending = weight.pending;
        std::mem::take(&mut group.async_queues)
    }

    /// Sets a weight. The root has no siblings: there it is the weight of its own tasks.
    pub(super) fn set_weight(&mut self, cgroup: CgroupId, weight: u32) {
        let group = self.record_mut(cgroup);
        match cgroup {
            CgroupId::ROOT => group.leaf_weight.pending = weight,
            _ => group.weight.pending = weight,
        }
    }

    /// Sets the weight of a cgroup's own tasks against its child groups.
    pub(super) fn set_leaf_weight(&mut self, cgroup: CgroupId, weight: u32) {
        self.record_mut(cgroup).leaf_weight.pending = weight;
    }

    /// Whether `group` is `above` or one of its descendants.
    pub(super) fn is_within(&self, group: GroupId, ancestor: GroupId) -> bool {
        let mut current = Some(group);
        while let Some(id) = current {
            if id == ancestor {
                return true;
            }
            current = self[id].parent;
        }
        false
    }

    /// The first group of the tree. Raises the lower bound of virtual time to it.
    pub(super) fn first(&mut self) -> Option<GroupId> {
        let first = self.tree.first(&self.nodes)?;
        self.min_vdisktime = self.min_vdisktime.max(self.nodes.key(first));
        Some(CgroupId(first))
    }

    /// A group has got its first busy queue. It joins `delay` behind the last group.
    pub(super) fn join(&mut self, id: GroupId, delay: u64) {
        let vdisktime = match self.tree.last(&self.nodes) {
            Some(last) => self.nodes.key(last) + delay,
            None => self.min_vdisktime,
        };
        self[id].vdisktime = vdisktime;
        self.activate(id);
        self.tree.insert(&mut self.nodes, id.0, vdisktime);
    }

    /// A group has lost its last busy queue.
    pub(super) fn leave(&mut self, id: GroupId) {
        self.tree.remove(&mut self.nodes, id.0);
        self.deactivate(id);
        self[id].saved = None;
    }

    /// Charges a group. Its share is then recomputed; others keep theirs.
    pub(super) fn charge(&mut self, id: GroupId, charge: i64) {
        let group = &mut self.groups[id.index()];
        let scaled = charge.max(0) as u128 * u128::from(ONE * ONE) / u128::from(group.fraction.max(1));
        group.vdisktime = group.vdisktime.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX));
        let vdisktime = group.vdisktime;
        self.tree.remove(&mut self.nodes, id.0);
        group.children_weight -= u64::from(group.leaf_weight.current);
        group.leaf_weight.apply();
        group.children_weight += u64::from(group.leaf_weight.current);
        self.recompute_fraction(id);
        self.tree.insert(&mut self.nodes, id.0, vdisktime);
    }

    /// The tasks of a group become active, and so does every group above.
    fn activate(&mut self, id: GroupId) {
        let group = &mut self.groups[id.index()];
        group.leaf_weight.apply();
        group.children_weight += u64::from(group.leaf_weight.current);
        group.active_members += 1;
        let mut newly_active = group.active_members == 1;
        let mut child = id;
        while newly_active && let Some(parent) = self[child].parent {
            self[child].weight.apply();
            let weight = self[child].weight.current;
            let parent_group = &mut self[parent];
            parent_group.children_weight += u64::from(weight);
            parent_group.active_members += 1;
            newly_active = parent_group.active_members == 1;
            child = parent;
        }
        self.recompute_fraction(id);
    }

    fn deactivate(&mut self, id: GroupId) {
        let group = &mut self.groups[id.index()];
        group.children_weight -= u64::from(group.leaf_weight.current);
        group.active_members -= 1;
        let mut inactive = group.active_members == 0;
        let mut child = id;
        while inactive && let Some(parent) = self[child].parent {
            let weight = self[child].weight.current;
            let parent_group = &mut self[parent];
            parent_group.children_weight -= u64::from(weight);
            parent_group.active_members -= 1;
            inactive = parent_group.active_members == 0;
            child = parent;
        }
    }

    /// The share of an active group's own tasks: the product of their shares at all levels up to the root.
    fn recompute_fraction(&mut self, id: GroupId) {
        let group = &self[id];
        let mut fraction = ONE * u64::from(group.leaf_weight.current) / group.children_weight.max(1);
        let mut child = id;
        while let Some(parent) = self[child].parent {
            fraction = fraction * u64::from(self[child].weight.current) / self[parent].children_weight.max(1);
            child = parent;
        }
        self[id].fraction = fraction.max(1);
    }
}
