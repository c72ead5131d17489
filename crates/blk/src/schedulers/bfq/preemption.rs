//! What happens when an empty queue gets work again: service recovery, and preemption of the queue in service. Rules:
//! BFQ-80 to BFQ-84.

use super::Bfq;
use super::entity::QueueId;
use super::state_lines::Expiration;

/// A queue recovers its service if it is back within this many `slice_idle`.
const RECOVERY_WINDOW: u64 = 3;

impl Bfq {
    /// Whether the queue gets work again soon after its last completion.
    pub(super) fn is_back_in_time(&self, q: QueueId) -> bool {
        let window = (RECOVERY_WINDOW * self.settings.slice_idle) as i64;
        self.now.ns as i64 <= self.queues[q].think.last_end().saturating_add(window)
    }

    /// Sets the budget of a queue that gets work. Returns whether it recovers what it had not used (BFQ-81).
    pub(super) fn set_budget_for_return(&mut self, q: QueueId, in_time: bool) -> bool {
        let learned = self.queues[q].max_budget;
        let left = self.entity(q).budget_left();
        let something_left = left > 0 || !self.config.variant.recovery_needs_budget;
        if self.queues[q].non_blocking_wait && in_time && something_left {
            let entity = self.entity_mut(q);
            entity.budget = (left.max(0) as u64).min(learned);
            entity.service = 0;
            return true;
        }
        let budget = learned.max(self.charge_of_next(q));
        let entity = self.entity_mut(q);
        entity.service = 0;
        entity.budget = budget;
        self.queues[q].non_blocking_wait = false;
        false
    }

    /// Whether a queue ranks above the one in service by class or by weight, the latter even from a lower class
    /// (BFQ-82).
    fn ranks_above(&self, q: QueueId, other: QueueId) -> bool {
        if self.entity(q).class < self.entity(other).class {
            return true;
        }
        if self.queues[q].group == self.queues[other].group {
            return self.entity(q).weight > self.entity(other).weight;
        }
        let weight = |q: QueueId| {
            let group = self.groups[self.queues[q].group].entity;
            group.map_or(self.entity(q), |group| &self.hierarchy.entities[group]).weight
        };
        weight(q) > weight(other)
    }

    /// Lets a queue that has just got work preempt the one in service, if it may (BFQ-83). `recovers`: it recovers its
    /// service.
    pub(super) fn maybe_preempt(&mut self, q: QueueId, recovers: bool) {
        let Some(served) = self.in_service else { return };
        let (raise, served_raise) = (self.entity(q).raise, self.entity(served).raise);
        let may = if self.config.variant.modern_preemption {
            let unworthy = self.config.variant.unworthy_preempted && !self.better_to_idle(served);
            ((recovers && raise >= served_raise) || self.ranks_above(q, served) || unworthy)
                && self.hierarchy.next_differs_from_in_service()
        } else {
            recovers && served_raise < raise
        };
        if may {
            self.expire(served, false, Expiration::Preempted);
        }
    }
}
