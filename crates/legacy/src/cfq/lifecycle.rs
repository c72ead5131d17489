//! Assignment of queues: allocation of requests and queues, changes of priority and cgroup, exit.
//!
//! Rules: CFQ-11, CFQ-12, CFQ-70 to CFQ-74.

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, is_sync};
use hoistway_blk::ground::{CgroupId, IoContextId, RqId};
use hoistway_blk::policy::{MayQueue, PolicyCx};
use hoistway_blk::request::Request;

use super::class::{Class, Priority, is_noidle_write};
use super::context::{Context, ContextId};
use super::group::GroupId;
use super::log::{CfqEvent, CfqLog};
use super::queue::{Queue, QueueId};
use super::turn::Residual;
use super::{Cfq, Entry, Location};

impl<L: CfqLog> Cfq<L> {
    /// A process submits a bio: its first bio creates its record, and its cgroup's first bio creates the group.
    pub(super) fn find_or_create_context(&mut self, io_context: IoContextId, cgroup: CgroupId, now: i64) -> ContextId {
        self.groups.create(cgroup, now);
        self.contexts.find_or_create(io_context, || Context::new(now))
    }

    /// A request is about to be allocated: an important one boosts its queue until the next unimportant one, and one
    /// that is idled for may exceed the limit once per turn.
    pub(super) fn hint_allocation(&mut self, bio: &Bio) -> MayQueue {
        let sync = is_sync(bio.op, bio.flags);
        let Some(context) = self.contexts.find(bio.io_context) else { return MayQueue::May };
        let Some(id) = self.contexts[context].queues[usize::from(sync)] else { return MayQueue::May };
        self.apply_priority(id, context);
        let queue = self.queue_mut(id);
        let is_prio = bio.flags.contains(BioFlags::PRIO);
        queue.priority = if is_prio { queue.priority.boosted() } else { queue.original };
        if queue.waiting_for_request && !queue.must_allocate_used {
            queue.must_allocate_used = true;
            return MayQueue::Must;
        }
        MayQueue::May
    }

    /// A request was allocated: finds its queue. Planned merges and splits happen here.
    pub(super) fn allocate(&mut self, cx: &mut PolicyCx<'_>, rq: &Request) -> (QueueId, ContextId) {
        if self.entries[rq.id().index()].owner.is_some() {
            // The previous request in this slot was not released explicitly.
            self.release(cx, rq.id());
        }
        let now = self.now(cx);
        let context = self.find_or_create_context(rq.io_context, rq.cgroup, now);
        self.check_cgroup(cx, context, rq.cgroup);
        self.check_priority(cx, context, rq.ioprio);
        let sync = rq.is_sync();
        let queue = if sync { self.sync_queue_of(cx, context) } else { self.async_queue_of(context) };
        self.queue_mut(queue).request_refs += 1;
        self.contexts.hold(context);
        self.entries[rq.id().index()] = Entry {
            owner: Some((queue, context)),
            location: Location::Outside,
            allocated: now,
            sync,
            noidle_write: is_noidle_write(rq.op, rq.flags),
            sector: rq.sector,
            sectors: rq.sectors,
        };
        (queue, context)
    }

    /// The queue and the process of a request.
    pub(super) fn owner_of(&mut self, cx: &mut PolicyCx<'_>, id: RqId) -> (QueueId, ContextId) {
        if let Some(owner) = self.entries[id.index()].owner {
            return owner;
        }
        // There was no notification of the allocation: it counts as made now.
        let requests = cx.requests;
        self.allocate(cx, requests.get(id))
    }

    /// A request has been released.
    pub(super) fn release(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        let Entry { owner: Some((queue, context)), .. } = std::mem::take(&mut self.entries[id.index()]) else { return };
        self.contexts.release(context);
        self.queue_mut(queue).request_refs -= 1;
        self.free_if_unused(cx, queue);
    }

    /// The sync queue for the next request of a process.
    fn sync_queue_of(&mut self, cx: &mut PolicyCx<'_>, context: ContextId) -> QueueId {
        if let Some(id) = self.contexts[context].queues[1] {
            let queue = self.queue(id);
            let keeps_queue = !(queue.shared && queue.to_be_split) || self.split(cx, context, id);
            if keeps_queue {
                let Some(target) = self.queue(id).merge_target else { return id };
                self.follow_merge(cx, context, id, target);
                return target;
            }
        }
        let Context { priority, cgroup, .. } = *self.contexts[context];
        let owner = self.contexts[context].id;
        let queue = self.new_queue(owner, true, cgroup.unwrap_or_default(), priority.unwrap_or_default());
        self.contexts[context].queues[1] = Some(queue);
        queue
    }

    /// The async queue for the next request of a process.
    fn async_queue_of(&mut self, context: ContextId) -> QueueId {
        if let Some(id) = self.contexts[context].queues[0] {
            return id;
        }
        let Context { priority, cgroup, .. } = *self.contexts[context];
        let owner = self.contexts[context].id;
        let (group, priority) = (cgroup.unwrap_or_default(), priority.unwrap_or_default());
        let level = if priority.class == Class::Idle { 0 } else { usize::from(priority.level) };
        let queue = match self.groups[group].async_queues[priority.class as usize][level] {
            Some(queue) => {
                self.queue_mut(queue).process_refs += 1;
                queue
            }
            None => {
                let queue = self.new_queue(owner, false, group, priority);
                // The group holds a reference to it.
                self.queue_mut(queue).process_refs += 1;
                self.groups[group].async_queues[priority.class as usize][level] = Some(queue);
                queue
            }
        };
        self.contexts[context].queues[0] = Some(queue);
        queue
    }

    /// A new queue, with one process.
    fn new_queue(&mut self, owner: IoContextId, sync: bool, group: GroupId, priority: Priority) -> QueueId {
        let queue = Queue::new(owner, sync, group, priority);
        let id = match self.free_queues.pop() {
            Some(id) => {
                *self.queue_mut(id) = queue;
                id
            }
            None => {
                self.queues.push(queue);
                self.service_nodes.grow(self.queues.len());
                self.position_nodes.grow(self.queues.len());
                QueueId(self.queues.len() as u32 - 1)
            }
        };
        self.note(Some(id), CfqEvent::Allocated);
        id
    }

    /// A process drops its reference to a queue.
    pub(super) fn drop_process_ref(&mut self, cx: &mut PolicyCx<'_>, id: QueueId) {
        self.queue_mut(id).process_refs -= 1;
        self.free_if_unused(cx, id);
    }

    fn free_if_unused(&mut self, cx: &mut PolicyCx<'_>, id: QueueId) {
        let queue = self.queue(id);
        if queue.process_refs > 0 || queue.request_refs > 0 {
            return;
        }
        self.note(Some(id), CfqEvent::Freed);
        if self.active == Some(id) {
            self.expire(cx, id, Residual::Dropped);
            self.schedule_dispatch(cx);
        }
        debug_assert!(!self.queue(id).busy, "a queue without requests is active or not busy");
        self.free_queues.push(id);
    }

    /// Applies a changed priority of a process to a queue that it uses.
    pub(super) fn apply_priority(&mut self, id: QueueId, context: ContextId) {
        let priority = self.contexts[context].priority;
        let queue = self.queue_mut(id);
        if queue.priority_changed {
            queue.set_priority(priority.unwrap_or(queue.original));
        }
    }

    /// Checks whether the priority of a process has changed since its last allocation: its async queue is replaced at
    /// once, its sync queue gets the new priority at its next use.
    fn check_priority(&mut self, cx: &mut PolicyCx<'_>, context: ContextId, ioprio: IoPriority) {
        let ioprio = if ioprio == IoPriority::UNSET { self.contexts[context].ioprio } else { ioprio };
        let priority = Priority::of(ioprio);
        let previous = self.contexts[context].priority.replace(priority);
        if previous.is_none() || previous == Some(priority) {
            return;
        }
        if let Some(queue) = self.contexts[context].queues[0].take() {
            self.drop_process_ref(cx, queue);
        }
        if let Some(queue) = self.contexts[context].queues[1] {
            self.queue_mut(queue).priority_changed = true;
        }
    }

    /// Checks whether a process has moved to another cgroup since its last allocation: it leaves its queues. Their
    /// requests are served in the old group.
    fn check_cgroup(&mut self, cx: &mut PolicyCx<'_>, context: ContextId, cgroup: CgroupId) {
        let previous = self.contexts[context].cgroup.replace(cgroup);
        if previous.is_none() || previous == Some(cgroup) {
            return;
        }
        for queue in std::mem::take(&mut self.contexts[context].queues).into_iter().flatten() {
            self.note(Some(queue), CfqEvent::ChangedCgroup);
            self.drop_with_merge_chain(cx, queue);
        }
    }

    /// A cgroup was removed. Remaining requests of its processes are still served, but the group drops its references
    /// to its async queues.
    pub(super) fn remove_group(&mut self, cx: &mut PolicyCx<'_>, cgroup: CgroupId) {
        for queue in self.groups.remove(cgroup).into_iter().flatten().flatten() {
            self.drop_process_ref(cx, queue);
        }
    }

    /// A process has exited: ends the turns of its queues, including the shared async one.
    pub(super) fn exit(&mut self, cx: &mut PolicyCx<'_>, io_context: IoContextId) {
        let Some(context) = self.contexts.find(io_context) else { return };
        let queues = std::mem::take(&mut self.contexts[context].queues);
        self.contexts.exit(context);
        for queue in queues.into_iter().flatten() {
            if self.active == Some(queue) {
                self.expire(cx, queue, Residual::Dropped);
                self.schedule_dispatch(cx);
            }
            self.drop_with_merge_chain(cx, queue);
        }
    }
}
