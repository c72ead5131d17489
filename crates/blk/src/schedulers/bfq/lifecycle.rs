//! Lifetimes of queues: created with the first request of a process, freed after its end with the last reference.
//! Rules: BFQ-112, BFQ-118, BFQ-124, BFQ-125.

use super::Bfq;
use super::contexts::{Context, ContextId, ContextQueues};
use super::entity::{Entity, IDLE, Owner, QueueId};
use super::queue::{NewQueue, Queue};
use super::state_lines::{Expiration, QueueLabel, StateChange};
use super::weights::{class_and_level, weight_of_level};
use crate::bio::ioprio::IoPriority;
use crate::ground::ids::IoContextId;
use crate::request::Request;

/// All queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    list: Vec<Queue>,
    free: Vec<QueueId>,
}

impl Queues {
    /// Slots, used and free.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The slot that the next queue gets.
    fn next_id(&self) -> QueueId {
        self.free.last().copied().unwrap_or(QueueId(self.list.len() as u32))
    }

    fn add(&mut self, queue: Queue) {
        match self.free.pop() {
            Some(id) => self.list[id.0 as usize] = queue,
            None => self.list.push(queue),
        }
    }
}

impl std::ops::Index<QueueId> for Queues {
    type Output = Queue;
    #[inline]
    fn index(&self, id: QueueId) -> &Queue {
        &self.list[id.0 as usize]
    }
}

impl std::ops::IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.list[id.0 as usize]
    }
}

impl Bfq {
    /// The process of a request.
    pub(super) fn meet(&mut self, rq: &Request) -> ContextId {
        let actuators = self.in_driver_of.len();
        self.contexts.find_or_create(rq.io_context, || Context {
            queues: vec![ContextQueues::default(); actuators],
            reported_ioprio: IoPriority::UNSET,
            ioprio: rq.ioprio,
            cgroup: rq.cgroup,
        })
    }

    /// The queue for a request of a process. It is created if necessary, and left if the process is to split off from
    /// it.
    pub(super) fn queue_for(&mut self, context: ContextId, sync: bool, actuator: u8) -> QueueId {
        let queues = &self.contexts[context].queues[usize::from(actuator)];
        let (current, bound) = (if sync { queues.sync } else { queues.async_ }, queues.stably_merged);
        if !sync {
            return current.unwrap_or_else(|| self.join_async_queue(context, actuator));
        }
        let Some(q) = current else {
            let q = self.create_sync_queue(context, actuator);
            self.compare_with_last_created(q, context);
            let q = self.contexts[context].queues[usize::from(actuator)].sync.unwrap_or(q);
            self.claim_ownership(context, q);
            return q;
        };
        if !self.queues[q].split_wanted || bound {
            self.claim_ownership(context, q);
            return q;
        }
        let waker = self.queues[q].waker.known;
        if self.leave_shared(context, q) {
            return q;
        }
        let q = self.create_sync_queue(context, actuator);
        self.claim_ownership(context, q);
        self.continue_after_split(context, q, waker);
        q
    }

    /// A process that is alone in a queue owns it, even if it was shared before.
    fn claim_ownership(&mut self, context: ContextId, q: QueueId) {
        if self.queues[q].process_refs == 1 {
            self.queues[q].owner = Some(context);
        }
    }

    fn create_sync_queue(&mut self, context: ContextId, actuator: u8) -> QueueId {
        let q = self.create_queue(context, true, actuator);
        self.contexts[context].queues[usize::from(actuator)].sync = Some(q);
        self.queues[q].process_refs += 1;
        q
    }

    /// Lets a process use the async queue of its level in its group (BFQ-112).
    fn join_async_queue(&mut self, context: ContextId, actuator: u8) -> QueueId {
        let (class, level) = class_and_level(self.contexts[context].ioprio);
        let cgroup = self.contexts[context].cgroup;
        let group = self.group_of(cgroup);
        let q = match *self.groups[group].async_queue(actuator, class, level) {
            Some(q) => q,
            None => {
                let q = self.create_queue(context, false, actuator);
                *self.groups[group].async_queue(actuator, class, level) = Some(q);
                // The group's own reference: the queue lives as long as the group.
                self.queues[q].process_refs += 1;
                q
            }
        };
        self.contexts[context].queues[usize::from(actuator)].async_ = Some(q);
        self.queues[q].process_refs += 1;
        q
    }

    fn create_queue(&mut self, context: ContextId, sync: bool, actuator: u8) -> QueueId {
        let (class, level) = class_and_level(self.contexts[context].ioprio);
        let cgroup = self.contexts[context].cgroup;
        let group = self.group_of(cgroup);
        let id = self.queues.next_id();
        let io_context = self.contexts[context].id;
        let mut entity = Entity::new(Owner::Queue(id), group, class, weight_of_level(level));
        entity.label = Some(QueueLabel { io_context: Some(io_context), sync });
        entity.actuator = actuator;
        let entity = self.hierarchy.add_entity(entity);
        let max_budget = 2 * self.current_max_budget() / 3;
        let new = NewQueue { entity, sync, actuator, group, level, max_budget, ns: self.now.ns, tick: self.now.tick };
        self.queues.add(Queue::new(&new, &self.config.variant));
        self.index_nodes.grow(self.queues.len());
        self.log_queue(id, || StateChange::New);
        id
    }

    /// Counts a request in or out, in the queue and all groups above it.
    pub(super) fn count_allocated(&mut self, q: QueueId, more: bool) {
        let mut at = Some(self.queues[q].entity);
        while let Some(id) = at {
            let allocated = &mut self.hierarchy.entities[id].allocated;
            *allocated = if more { *allocated + 1 } else { *allocated - 1 };
            at = self.hierarchy.parent(id);
        }
    }

    /// Follows the priority of a process according to its I/O (BFQ-125).
    pub(super) fn follow_priority(&mut self, context: ContextId, ioprio: IoPriority) {
        if self.contexts[context].ioprio == ioprio {
            return;
        }
        self.contexts[context].ioprio = ioprio;
        let (class, level) = class_and_level(ioprio);
        for actuator in 0..self.contexts[context].queues.len() {
            // Its next async request goes to the queue of the new level.
            let left = self.contexts[context].queues[actuator].async_.take();
            self.release_process_ref(left);
            if let Some(q) = self.contexts[context].queues[actuator].sync {
                self.queues[q].level = level;
                let entity = self.queues[q].entity;
                self.hierarchy.request_change(entity, |entity| {
                    entity.requested_class = class;
                    entity.requested_weight = weight_of_level(level);
                });
            }
        }
    }

    /// A process has ended (BFQ-124).
    pub(super) fn context_exited(&mut self, io_context: IoContextId) {
        let Some(context) = self.contexts.find(io_context) else { return };
        for actuator in 0..self.contexts[context].queues.len() {
            let queues = std::mem::take(&mut self.contexts[context].queues[actuator]);
            if let Some(candidate) = queues.stable_merge {
                self.queues[candidate].merge_refs -= 1;
                self.free_if_unused(candidate);
            }
            for q in [queues.sync, queues.async_].into_iter().flatten() {
                if self.in_service == Some(q) {
                    self.put_back(q, Expiration::BudgetTimeout);
                    self.schedule_dispatch();
                }
                self.put_merge_chain(q);
                self.release_process_ref(Some(q));
            }
        }
        self.contexts.exit(context);
    }

    /// A process leaves a queue without having moved to the queues that it was to be merged into: they no longer expect
    /// it.
    pub(super) fn put_merge_chain(&mut self, q: QueueId) {
        let mut at = self.queues[q].merge_target;
        while let Some(target) = at {
            at = self.queues[target].merge_target;
            self.release_process_ref(Some(target));
        }
    }

    /// A process, or a group, no longer uses a queue.
    pub(super) fn release_process_ref(&mut self, q: Option<QueueId>) {
        let Some(q) = q else { return };
        self.queues[q].process_refs -= 1;
        if self.queues[q].busy && self.queues[q].is_empty() && self.in_service != Some(q) {
            self.leave_busy(q, false);
        }
        let group = self.queues[q].group;
        if self.groups[group].last_created == Some(q) {
            self.groups[group].last_created = None;
        }
        self.free_if_unused(q);
    }

    /// Frees the queues that virtual time has caught up with and that are no longer needed.
    pub(super) fn free_forgotten(&mut self) {
        while let Some(q) = self.hierarchy.forgotten.pop() {
            self.free_if_unused(q);
        }
    }

    /// Frees a queue that no process uses and that has no requests and no place in the hierarchy.
    pub(super) fn free_if_unused(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let entity = self.entity(q);
        let used = !queue.alive || queue.process_refs > 0 || queue.merge_refs > 0 || queue.busy;
        if used || entity.accounted || entity.allocated > 0 || self.in_service == Some(q) {
            return;
        }
        let owned = queue.owner.is_some();
        let entity = queue.entity;
        self.queues[q].alive = false;
        self.unindex(q);
        self.no_longer_pending(q);
        self.burst.leave(q, owned && self.config.variant.careful_bursts);
        self.forget_waker(q);
        if self.last_completed == Some(q) {
            self.last_completed = None;
        }
        self.hierarchy.entities.remove(entity);
        self.queues.free.push(q);
    }

    /// Whether a queue is of the IDLE class.
    pub(super) fn is_idle_class(&self, q: QueueId) -> bool {
        self.entity(q).class == IDLE
    }
}
