//! Cooperating processes: those that alternately read one area of the disk are served from one queue.
//!
//! Rules: CFQ-65 to CFQ-69.

use hoistway_blk::ground::Sector;
use hoistway_blk::policy::PolicyCx;

use super::Cfq;
use super::class::Class;
use super::context::ContextId;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;

/// Requests within this distance of the head continue where it stopped. Sectors.
pub(super) const CLOSE: u64 = 8192;

impl<L: CfqLog> Cfq<L> {
    /// The queue that could continue where the active queue, which is empty, stopped.
    pub(super) fn close_cooperator(&self, id: QueueId) -> Option<QueueId> {
        let queue = self.queue(id);
        let is_real_time = queue.priority.class == Class::RealTime;
        if queue.priority.class == Class::Idle || !queue.sync || queue.is_seeky() {
            return None;
        }
        if self.groups[queue.group].busy_queues == 1 {
            return None;
        }
        let tree = &self.position_trees[usize::from(queue.original.level)];
        let close = |sector: Sector| sector.0.abs_diff(self.head.0) <= CLOSE;
        let other_id = QueueId(tree.close_to(&self.position_nodes, self.head, close)?);
        let other = self.queue(other_id);
        let can_cooperate = other.group == queue.group
            && other.sync
            && !other.is_seeky()
            && (other.priority.class == Class::RealTime) == is_real_time;
        can_cooperate.then_some(other_id)
    }

    /// Plans a merge of two queues: the processes of the queue with fewer processes will move to the other, which gets
    /// the references now.
    pub(super) fn plan_merge(&mut self, id: QueueId, other: QueueId) {
        if self.queue(other).process_refs == 0 {
            return;
        }
        let mut target = other;
        while let Some(next) = self.queue(target).merge_target {
            if next == id {
                return;
            }
            target = next;
        }
        let [ours, theirs] = [id, target].map(|queue| self.queue(queue).process_refs);
        if ours == 0 || theirs == 0 {
            return;
        }
        let (from, to, gained) = if theirs >= ours { (id, target, ours) } else { (target, id, theirs) };
        self.queue_mut(from).merge_target = Some(to);
        self.queue_mut(to).process_refs += gained;
    }

    /// A process whose queue is being merged moves to the target.
    pub(super) fn follow_merge(&mut self, cx: &mut PolicyCx<'_>, context: ContextId, from: QueueId, to: QueueId) {
        self.note(Some(from), CfqEvent::Merging);
        self.contexts[context].queues[1] = Some(to);
        self.queue_mut(to).shared = true;
        self.drop_process_ref(cx, from);
    }

    /// A process leaves a shared queue that has turned out to be seeky. The last process keeps the queue. Returns
    /// whether it left.
    pub(super) fn split(&mut self, cx: &mut PolicyCx<'_>, context: ContextId, id: QueueId) -> bool {
        self.note(Some(id), CfqEvent::BreakingApart);
        let owner = self.contexts[context].id;
        let queue = self.queue_mut(id);
        if queue.process_refs == 1 {
            queue.owner = owner;
            queue.shared = false;
            queue.to_be_split = false;
            return true;
        }
        self.contexts[context].queues[1] = None;
        self.drop_with_merge_chain(cx, id);
        false
    }

    /// A process drops its reference to a queue, and to all queues that it is to be merged into.
    pub(super) fn drop_with_merge_chain(&mut self, cx: &mut PolicyCx<'_>, id: QueueId) {
        let mut next = self.queue(id).merge_target;
        while let Some(target) = next {
            next = self.queue(target).merge_target;
            self.drop_process_ref(cx, target);
        }
        self.drop_process_ref(cx, id);
    }
}
