//! Budgets: how much service a queue may receive in a slot, learned from how its last slot ended. Rules: BFQ-36 to
//! BFQ-43.

use super::Bfq;
use super::config::{DEFAULT_MAX_BUDGET, MS};
use super::entity::QueueId;
use super::rate::RATE_SHIFT;
use super::state_lines::{Expiration, StateChange};
use super::tunables::default_timeout;

/// The device's largest budget is used once the counter of slots has reached this.
const SLOTS_MIN: u32 = 194;
/// The smallest budget is the largest divided by this.
const MIN_PART: u64 = 32;
/// Slots shorter than this say nothing about speed, ns.
const SHORT: u64 = MS;
/// Slots longer than this say how fast a queue really is, ns.
const LONG: u64 = 20 * MS;

/// How long a slot was, and whether its queue was slow (BFQ-37).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    pub slow: bool,
    /// Duration, ms.
    pub millis: u64,
}

impl Bfq {
    /// The sectors that the device transfers in one slot at its peak rate (BFQ-38).
    pub(super) fn auto_max_budget(&self) -> u64 {
        let millis = self.config.millis(self.settings.timeout) as u64;
        (self.rate.rate * 1000 * millis) >> RATE_SHIFT
    }

    /// The peak rate has changed.
    pub(super) fn rate_updated(&mut self) {
        if self.settings.user_max_budget == 0 {
            self.max_budget = self.auto_max_budget();
            let budget = self.max_budget;
            self.hierarchy.log.device(|| StateChange::MaxBudget { budget });
        }
    }

    /// The largest budget, from which the budget of new queues and the smallest budget follow (BFQ-39).
    pub(super) fn current_max_budget(&self) -> u64 {
        if self.budgets_assigned < SLOTS_MIN { DEFAULT_MAX_BUDGET } else { self.max_budget }
    }

    /// The smallest budget.
    pub(super) fn min_budget(&self) -> u64 {
        self.current_max_budget() / MIN_PART
    }

    /// A slot starts.
    pub(super) fn count_slot(&mut self) {
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
    }

    /// How fast the queue in service was (BFQ-37). `until_idling`: without the time spent idling.
    pub(super) fn pace(&self, q: QueueId, until_idling: bool) -> Pace {
        let queue = &self.queues[q];
        if !queue.sync {
            return Pace { slow: false, millis: 0 };
        }
        let end = if until_idling { self.idling_start } else { self.now.ns };
        // The clock may have stood still. Then the slot has taken no time.
        let duration = (end.wrapping_sub(self.slot_start) as i64).max(0) as u64;
        let seeky = self.is_seeky(q);
        if duration < SHORT {
            return Pace { slow: seeky, millis: if self.config.rotational { 8 } else { 2 } };
        }
        let millis = duration / MS;
        if duration > LONG {
            return Pace { slow: self.entity(q).service < self.max_budget / 2, millis };
        }
        Pace { slow: seeky, millis }
    }

    /// Charges a queue for the time of its slot rather than its sectors (BFQ-36).
    pub(super) fn charge_time(&mut self, q: QueueId, millis: u64) {
        let timeout = self.config.millis(default_timeout(&self.config)) as u64;
        let service = self.entity(q).service;
        let mut total = service;
        if !self.config.variant.long_slots_uncharged || (millis > 0 && millis < timeout) {
            total = total.max(self.max_budget * millis.min(timeout) / timeout);
        }
        let entity = self.entity_mut(q);
        entity.budget = entity.budget.max(total);
        self.serve(q, total - service);
    }

    /// Learns from the end of a slot (BFQ-41, BFQ-42).
    pub(super) fn learn_budget(&mut self, q: QueueId, reason: Expiration) {
        let min = self.min_budget();
        let raised = self.is_raised(q);
        let (sync, in_flight) = (self.queues[q].sync, self.queues[q].dispatched > 0);
        let mut budget = if raised { 2 * min } else { self.queues[q].max_budget };
        let (last, left) = (self.entity(q).budget, self.entity(q).budget_left());
        let (seeky, queue_max) = (self.is_seeky(q), budget);
        self.log_queue(q, || StateChange::BudgetInputs { sync, seeky, last, left, queue_max, min });
        if !sync {
            budget = self.max_budget;
        } else if !raised {
            budget = match reason {
                Expiration::TooIdle if in_flight => (2 * budget).min(self.max_budget),
                Expiration::TooIdle if budget > 5 * min => budget - 4 * min,
                Expiration::TooIdle => min,
                Expiration::BudgetTimeout => (2 * budget).min(self.max_budget),
                Expiration::BudgetExhausted => (4 * budget).min(self.max_budget),
                Expiration::NoMoreRequests => self.entity(q).service.max(min),
                Expiration::Preempted => return,
            };
        }
        if self.budgets_assigned >= SLOTS_MIN && self.settings.user_max_budget == 0 {
            budget = budget.min(self.max_budget);
        }
        self.queues[q].max_budget = budget;
        if self.queues[q].next().is_some() {
            let budget = budget.max(self.charge_of_next(q));
            self.entity_mut(q).budget = budget;
        }
        let head_n = self.queues[q].next().map_or(0, |id| self.entries[id as usize].sectors);
        let budget = self.entity(q).budget;
        self.log_queue(q, || StateChange::Budget { head_n, budget });
    }
}
