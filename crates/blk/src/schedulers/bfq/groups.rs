//! Groups: the inner nodes of the hierarchy, each with its async queues and its index for cooperation. Rules: BFQ-17,
//! BFQ-75, BFQ-105, BFQ-112, BFQ-126, BFQ-127.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::super::process_queue::{PositionTree, Scatter};
use super::Bfq;
use super::contexts::ContextId;
use super::entity::{BE, Entity, EntityId, GroupId, Owner, QueueId, RT};
use super::weights::{self, DEFAULT_GROUP_WEIGHT, LEVELS};
use crate::ground::ids::CgroupId;

/// Async queues of one actuator: RT and BE by level, and one for IDLE.
const ASYNC_QUEUES: usize = 2 * LEVELS + 1;

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// Its entity; the root has none.
    pub entity: Option<EntityId>,
    /// The group above it.
    pub parent: GroupId,
    /// Its async queues, for each actuator by class and level.
    async_queues: Vec<[Option<QueueId>; ASYNC_QUEUES]>,
    /// Queues by the sector of their next request (BFQ-105).
    pub index: PositionTree,
    /// Queues directly in it with something queued or in flight.
    pub pending_queues: u32,
    /// The sync queue that was created last, for stable merging (BFQ-109).
    pub last_created: Option<QueueId>,
}

/// All groups by the names of their cgroups.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    list: Vec<Group>,
    by_cgroup: HashMap<CgroupId, GroupId, BuildHasherDefault<Scatter>>,
    actuators: usize,
}

impl Groups {
    /// The root alone.
    pub fn new(actuators: usize) -> Self {
        let root = Group::new(CgroupId::ROOT, None, GroupId::ROOT, actuators);
        let by_cgroup = [(CgroupId::ROOT, GroupId::ROOT)].into_iter().collect();
        Groups { list: vec![root], by_cgroup, actuators }
    }

    /// The group of a cgroup, if it is known.
    pub fn find(&self, cgroup: CgroupId) -> Option<GroupId> {
        self.by_cgroup.get(&cgroup).copied()
    }

    /// Removes a cgroup that no longer exists: what is still charged to it is charged to `heir`.
    fn transfer_cgroup_charges(&mut self, cgroup: CgroupId, heir: GroupId) {
        self.by_cgroup.insert(cgroup, heir);
    }
}

impl Group {
    fn new(cgroup: CgroupId, entity: Option<EntityId>, parent: GroupId, actuators: usize) -> Self {
        Group {
            cgroup,
            entity,
            parent,
            async_queues: vec![[None; ASYNC_QUEUES]; actuators],
            index: PositionTree::default(),
            pending_queues: 0,
            last_created: None,
        }
    }

    /// The entry of the async queue for a class and level.
    pub fn async_queue(&mut self, actuator: u8, class: usize, level: u8) -> &mut Option<QueueId> {
        let place = match class {
            RT => usize::from(level),
            BE => LEVELS + usize::from(level),
            _ => 2 * LEVELS,
        };
        &mut self.async_queues[usize::from(actuator)][place]
    }
}

impl std::ops::Index<GroupId> for Groups {
    type Output = Group;
    #[inline]
    fn index(&self, id: GroupId) -> &Group {
        &self.list[id.0 as usize]
    }
}

impl std::ops::IndexMut<GroupId> for Groups {
    #[inline]
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.list[id.0 as usize]
    }
}

impl Bfq {
    /// The group of a cgroup. An unknown one is added as a child of the root with the default weight.
    pub(super) fn group_of(&mut self, cgroup: CgroupId) -> GroupId {
        match self.groups.find(cgroup) {
            Some(group) => group,
            None => self.add_group(cgroup, CgroupId::ROOT, DEFAULT_GROUP_WEIGHT),
        }
    }

    /// Adds the group of a cgroup below that of `parent`, or gives a known one its weight.
    pub(super) fn add_group(&mut self, cgroup: CgroupId, parent: CgroupId, weight: u16) -> GroupId {
        if let Some(group) = self.groups.find(cgroup) {
            self.set_group_weight(group, weight);
            return group;
        }
        let parent = self.group_of(parent);
        let next = GroupId(self.groups.list.len() as u32);
        let weight = weights::clamp(u64::from(weight));
        let entity = self.hierarchy.add_entity(Entity::new(Owner::Group(next), parent, BE, weight));
        let group = self.hierarchy.add_level(entity);
        debug_assert_eq!(group, next, "groups and levels have the same numbers");
        self.groups.list.push(Group::new(cgroup, Some(entity), parent, self.groups.actuators));
        self.groups.by_cgroup.insert(cgroup, group);
        group
    }

    /// A cgroup was created below another one. It may have the number of a removed one, with which it has nothing to do.
    pub(super) fn register_group(&mut self, cgroup: CgroupId, parent: CgroupId) {
        if self.groups.find(cgroup).is_some_and(|group| self.groups[group].cgroup == cgroup) {
            return;
        }
        self.groups.by_cgroup.remove(&cgroup);
        self.add_group(cgroup, parent, DEFAULT_GROUP_WEIGHT);
    }

    /// Asks for another weight of a group; it is applied at its next activation (BFQ-19).
    pub(super) fn set_group_weight(&mut self, group: GroupId, weight: u16) {
        if let Some(entity) = self.groups[group].entity {
            let weight = weights::clamp(u64::from(weight));
            self.hierarchy.request_change(entity, |entity| entity.requested_weight = weight);
        }
    }

    /// A queue of a group has something queued or in flight.
    pub(super) fn enter_pending(&mut self, q: QueueId) {
        if !std::mem::replace(&mut self.queues[q].pending_in_group, true) {
            let group = &mut self.groups[self.queues[q].group];
            group.pending_queues += 1;
            self.groups_pending += u32::from(group.pending_queues == 1);
        }
    }

    /// Nothing of a queue is queued or in flight any more.
    pub(super) fn leave_pending(&mut self, q: QueueId) {
        if std::mem::replace(&mut self.queues[q].pending_in_group, false) {
            let group = &mut self.groups[self.queues[q].group];
            group.pending_queues -= 1;
            self.groups_pending -= u32::from(group.pending_queues == 0);
        }
    }

    /// 4.12: whether two groups with work differ in weight.
    pub(super) fn group_weights_differ(&self) -> bool {
        let pending = self.groups.list.iter().filter(|group| group.pending_queues > 0);
        let mut weights = pending.filter_map(|group| group.entity).map(|entity| self.hierarchy.entities[entity].weight);
        weights.next().is_some_and(|first| weights.any(|weight| weight != first))
    }

    /// A process's cgroup, as its I/O shows it (BFQ-126): the group that a write is charged to, whichever task submits it.
    pub(super) fn follow_cgroup(&mut self, context: ContextId, cgroup: CgroupId) {
        if self.contexts[context].cgroup == cgroup {
            return;
        }
        self.contexts[context].cgroup = cgroup;
        let group = self.group_of(cgroup);
        for actuator in 0..self.contexts[context].queues.len() {
            let queues = &mut self.contexts[context].queues[actuator];
            if queues.async_.is_some_and(|q| self.queues[q].group != group) {
                let left = queues.async_.take();
                self.release_process_ref(left);
            }
            let Some(q) = self.contexts[context].queues[actuator].sync else { continue };
            if self.queues[q].group == group {
                continue;
            }
            if self.queues[q].shared || self.queues[q].merge_target.is_some() {
                // It stays with the processes that share it; this process gets a new queue with its next request.
                self.contexts[context].queues[actuator].sync = None;
                self.put_merge_chain(q);
                self.release_process_ref(Some(q));
            } else {
                self.move_queue(q, group);
            }
        }
    }

    /// Moves a queue to another group: service and learned budget stay (BFQ-126).
    pub(super) fn move_queue(&mut self, q: QueueId, group: GroupId) {
        if self.in_service == Some(q) {
            self.expire(q, false, super::Expiration::Preempted);
        }
        let (entity, busy) = (self.queues[q].entity, self.queues[q].busy);
        let service = self.entity(q).service;
        self.hierarchy.deactivate(entity, false, false);
        self.entity_mut(q).service = service;
        self.unindex(q);
        let pending = self.queues[q].pending_in_group;
        self.leave_pending(q);
        for below in [true, false] {
            let allocated = self.hierarchy.entities[entity].allocated;
            let mut at = self.hierarchy.parent(entity);
            while let Some(id) = at {
                let count = &mut self.hierarchy.entities[id].allocated;
                *count = if below { *count - allocated } else { *count + allocated };
                at = self.hierarchy.parent(id);
            }
            self.hierarchy.entities[entity].level = group;
        }
        self.queues[q].group = group;
        if pending {
            self.enter_pending(q);
        }
        if busy {
            self.reindex(q);
            self.hierarchy.enqueue(entity, false, false);
        }
        if self.in_service.is_none() && self.in_driver == 0 {
            self.schedule_dispatch();
        }
    }

    /// A cgroup was removed: its queues go to the root, and what is charged to it from now on to its parent (BFQ-127).
    pub(super) fn remove_group(&mut self, cgroup: CgroupId) {
        let Some(group) = self.groups.find(cgroup).filter(|&group| group != GroupId::ROOT) else { return };
        if self.groups[group].cgroup != cgroup {
            return;
        }
        self.groups.transfer_cgroup_charges(cgroup, self.groups[group].parent);
        for at in 0..self.queues.len() {
            let q = QueueId(at as u32);
            if !self.queues[q].alive || self.queues[q].group != group {
                continue;
            }
            // A move takes it off the idle tree, too, so that no test can miss this; the rule names it as a step of its
            // own.
            self.hierarchy.drop_idle(self.queues[q].entity);
            self.move_queue(q, GroupId::ROOT);
        }
        for actuator in 0..self.groups.actuators {
            for place in 0..ASYNC_QUEUES {
                let released = self.groups.list[group.0 as usize].async_queues[actuator][place].take();
                self.release_process_ref(released);
            }
        }
        self.groups[group].last_created = None;
        // A group with child groups cannot be removed; should it happen, these go on below it.
        let level = self.hierarchy.level(group);
        if let (Some(entity), None, None) = (level.entity, level.next, level.in_service) {
            self.hierarchy.deactivate(entity, false, false);
        }
    }
}
