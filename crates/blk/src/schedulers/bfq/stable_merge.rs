//! Stable merging: queues that are created together stay together. Rules: BFQ-109.

use super::Bfq;
use super::config::{BURST_INTERVAL_MS, STABLE_MERGE_MS};
use super::contexts::ContextId;
use super::entity::QueueId;

impl Bfq {
    /// A sync queue was created for a process: it may be merged into its predecessor at once, or be marked for that.
    pub(super) fn compare_with_last_created(&mut self, q: QueueId, context: ContextId) {
        if !self.config.variant.stable_merging {
            return;
        }
        let group = self.queues[q].group;
        let Some(last) = self.groups[group].last_created else {
            self.groups[group].last_created = Some(q);
            return;
        };
        let now = self.now.tick;
        let created = self.queues[last].created;
        let alike = self.queues[last].group == group
            && self.queues[last].level == self.queues[q].level
            && self.entity(last).requested_class == self.entity(q).requested_class
            && self.queues[last].actuator == self.queues[q].actuator;
        if !alike || created + self.config.ticks(STABLE_MERGE_MS) < now {
            self.groups[group].last_created = Some(q);
        } else if created + self.config.ticks(BURST_INTERVAL_MS) >= now {
            if self.is_queueing_flash() {
                if self.plan_permanent_merge(q, last, context).is_some() {
                    self.execute_merge(context, q);
                }
            } else {
                self.queues[last].merge_refs += 1;
                self.contexts[context].queues[usize::from(self.queues[q].actuator)].stable_merge = Some(last);
            }
        }
    }

    /// The queue that a process's queue is now to be merged with permanently; it is remembered no longer.
    pub(super) fn due_stable_merge(&mut self, q: QueueId, context: ContextId) -> Option<QueueId> {
        let queue = &self.queues[q];
        let late = self.now.tick - self.config.ticks(STABLE_MERGE_MS);
        if !queue.sync || queue.just_created || queue.created >= late || queue.split >= late {
            return None;
        }
        let actuator = usize::from(queue.actuator);
        let candidate = self.contexts[context].queues[actuator].stable_merge.take()?;
        self.queues[candidate].merge_refs -= 1;
        self.free_if_unused(candidate);
        Some(candidate)
    }

    /// Plans a merge that is due, unless idling serves the queue better.
    pub(super) fn plan_stable_merge(&mut self, q: QueueId, target: QueueId, context: ContextId) -> Option<QueueId> {
        if !self.queues[target].alive || self.idling_is_free(q) {
            return None;
        }
        self.plan_permanent_merge(q, target, context)
    }

    /// Plans a merge after which neither process ever splits off.
    fn plan_permanent_merge(&mut self, q: QueueId, target: QueueId, context: ContextId) -> Option<QueueId> {
        let target = self.plan_merge(q, target)?;
        let actuator = usize::from(self.queues[q].actuator);
        self.contexts[context].queues[actuator].stably_merged = true;
        if let Some(owner) = self.queues[target].owner {
            self.contexts[owner].queues[actuator].stably_merged = true;
        }
        Some(target)
    }
}
