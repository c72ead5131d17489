//! Idling: whether to keep the device for a queue that has become empty. Rules: BFQ-71 to BFQ-79.

use super::Bfq;
use super::TimerRequest;
use super::config::{MIN_THINK, RAISED_IDLE_MIN};
use super::entity::QueueId;
use super::state_lines::Expiration;

/// The device also idles for a raised queue if this many requests of other queues are in flight.
const FOREIGN_IN_FLIGHT: u32 = 4;

impl Bfq {
    /// Whether the queue is empty and the device is to be kept for it (BFQ-71).
    pub(super) fn must_idle(&self, q: QueueId) -> bool {
        self.queues[q].is_empty() && self.better_to_idle(q)
    }

    /// Whether keeping the device for the queue is better than serving another queue (BFQ-72, BFQ-76).
    pub(super) fn better_to_idle(&self, q: QueueId) -> bool {
        if self.queues[q].process_refs == 0 {
            return false;
        }
        if self.settings.strict_guarantees {
            return true;
        }
        if self.settings.slice_idle == 0 || !self.queues[q].sync {
            return false;
        }
        if !self.config.variant.modern_idling {
            return self.better_to_idle_by_window(q);
        }
        !self.is_idle_class(q) && (self.idling_is_free(q) || self.idling_is_needed(q))
    }

    /// 4.12: idling for throughput or for guarantees (BFQ-76).
    fn better_to_idle_by_window(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let for_guarantees = self.is_raised(q) || self.hierarchy.weights.differ() || self.group_weights_differ();
        self.idling_is_free(q) || (for_guarantees && !queue.in_large_burst)
    }

    /// Whether idling costs no throughput and hurts no queue that is raised (BFQ-73, BFQ-76).
    pub(super) fn idling_is_free(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let queues = self.ncq.queues();
        let pays = if self.config.variant.idling_by_pattern {
            let streams = !self.is_seeky(q) && queue.io_bound.is && queue.short_think;
            (self.config.rotational && !queues) || ((self.config.rotational || !queues) && streams)
        } else {
            !queues || (self.config.rotational && queue.io_bound.is && queue.idle_window)
        };
        pays && self.raised_busy == 0
    }

    /// Whether the queue would get less than its share without idling (BFQ-74).
    pub(super) fn idling_is_needed(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        if queue.process_refs == 0 {
            return false;
        }
        let busy = self.busy_queues();
        let raised_among_others =
            self.is_raised(q) && (self.raised_busy < busy || self.in_driver >= queue.dispatched + FOREIGN_IN_FLIGHT);
        raised_among_others || self.is_asymmetric_for(q) || (busy == 1 && self.config.variant.lone_queue_kept)
    }

    /// Whether weights, classes or groups differ such that this queue would be at a disadvantage if all were treated
    /// alike (BFQ-75).
    pub(super) fn is_asymmetric_for(&self, q: QueueId) -> bool {
        let weights = &self.hierarchy.weights;
        let is_smallest = self.entity(q).counted_weight.is_some_and(|weight| Some(weight) == weights.smallest());
        let weights_matter = weights.differ() && !is_smallest;
        let classes_matter = self.busy.iter().filter(|&&busy| busy > 0).count() > 1;
        if !self.config.variant.modern_idling {
            return weights.differ() || self.group_weights_differ();
        }
        weights_matter || classes_matter || self.groups_pending > 1
    }

    /// Sets the idle timer for the queue in service (BFQ-77).
    pub(super) fn wait_for(&mut self, q: QueueId) {
        self.queues[q].waiting = true;
        let raised = self.is_raised(q);
        let mut length = self.settings.slice_idle;
        if self.is_seeky(q) && !raised && !self.is_asymmetric_for(q) {
            length = length.min(MIN_THINK);
        } else if raised && self.config.variant.raised_timer_floor {
            length = length.max(RAISED_IDLE_MIN);
        }
        self.idling_start = self.now.ns;
        self.requested.timer = Some(TimerRequest::At(self.now.ns.saturating_add(length)));
    }

    /// The idle timer has fired (BFQ-79).
    pub(super) fn idle_timer_fired(&mut self) {
        if let Some(q) = self.in_service
            && std::mem::replace(&mut self.queues[q].waiting, false)
        {
            if self.timed_out(q) {
                self.expire(q, true, Expiration::BudgetTimeout);
            } else if self.queues[q].is_empty() {
                self.expire(q, true, Expiration::TooIdle);
            }
        }
        self.schedule_dispatch();
    }
}
