//! The service slot: how a queue gets the device and how it loses it. Rules: BFQ-44, BFQ-48 to BFQ-50, BFQ-80.

use super::Bfq;
use super::TimerRequest;
use super::config::RAISE_SOFT_RT;
use super::entity::QueueId;
use super::state_lines::{Expiration, StateChange};

impl Bfq {
    /// Puts the next queue in service, if any has work (BFQ-44).
    pub(super) fn start_slot(&mut self) -> Option<QueueId> {
        debug_assert!(self.in_service.is_none(), "one slot at a time");
        if self.busy_queues() == 0 {
            return None;
        }
        let q = self.hierarchy.select()?;
        self.in_service = Some(q);
        self.queues[q].fifo_checked = false;
        self.count_slot();
        self.exclude_wait_from_soft_rt(q);
        self.slot_start = self.now.ns;
        let entity = self.entity(q);
        let stretch = if entity.raise == RAISE_SOFT_RT { 1 } else { entity.weight / entity.base_weight };
        self.queues[q].budget_timeout = self.now.tick + self.settings.timeout * stretch as i64;
        self.in_service_last_position = 0;
        let budget = self.entity(q).budget;
        self.log_queue(q, || StateChange::Serve { budget });
        Some(q)
    }

    /// Whether the slot has timed out.
    pub(super) fn timed_out(&self, q: QueueId) -> bool {
        self.now.tick >= self.queues[q].budget_timeout
    }

    /// Whether the slot may time out: not while the device idles for the queue and its budget is nearly used up
    /// (BFQ-48).
    pub(super) fn may_time_out(&self, q: QueueId) -> bool {
        let entity = self.entity(q);
        self.timed_out(q) && (!self.queues[q].waiting || entity.budget_left() >= (entity.budget / 3) as i64)
    }

    /// Counts service of a queue (BFQ-35).
    pub(super) fn serve(&mut self, q: QueueId, sectors: u64) {
        let raised = self.is_raised(q);
        let tick = self.now.tick;
        let counts_now = !self.config.variant.service_counted_at_expiration;
        let queue = &mut self.queues[q];
        if counts_now {
            if queue.service_since_backlogged == 0 {
                queue.first_io = tick;
            }
            queue.service_since_backlogged += sectors;
        }
        if raised {
            queue.raising.service += sectors;
        }
        let entity = queue.entity;
        self.hierarchy.charge(entity, sectors);
    }

    /// Ends the slot of the queue in service (BFQ-49). `until_idling`: the time spent idling does not count for its
    /// pace.
    pub(super) fn expire(&mut self, q: QueueId, until_idling: bool, reason: Expiration) {
        debug_assert_eq!(self.in_service, Some(q));
        let pace = self.pace(q, until_idling);
        if self.config.variant.service_counted_at_expiration {
            self.queues[q].service_since_backlogged += self.entity(q).service;
        }
        let entity = self.entity(q);
        let timeout_with_budget =
            reason == Expiration::BudgetTimeout && entity.budget_left() >= (entity.budget / 3) as i64;
        if !self.is_raised(q) && (pace.slow || timeout_with_budget) {
            self.charge_time(q, pace.millis);
        }
        if !self.config.variant.io_bound_by_window
            && reason == Expiration::TooIdle
            && self.entity(q).service <= self.entity(q).budget / 5
        {
            self.queues[q].io_bound.refute();
        }
        if self.settings.low_latency && !self.is_raised(q) {
            self.queues[q].raising.start = self.now.tick;
        }
        if self.settings.low_latency && self.queues[q].is_empty() {
            if self.queues[q].dispatched == 0 {
                self.compute_soft_rt_start(q);
            } else {
                if !self.config.variant.soft_rt_filters {
                    self.queues[q].raising.soft_rt_next_start = i64::MAX;
                }
                self.queues[q].soft_rt_pending = true;
            }
        }
        let (in_driver, short_think) = (self.queues[q].dispatched, self.queues[q].short_think);
        self.log_queue(q, || StateChange::Expire { reason, slow: pace.slow, in_driver, short_think });
        self.measurement.cancel();
        self.learn_budget(q, reason);
        let kept = self.put_back(q, reason);
        if kept || matches!(reason, Expiration::BudgetTimeout | Expiration::BudgetExhausted) {
            if !self.config.variant.service_reset_at_selection {
                self.entity_mut(q).service = 0;
            }
        } else {
            // What it has received is needed if it comes back soon (BFQ-81).
            self.queues[q].non_blocking_wait = true;
        }
        self.hierarchy.reset_service_above(self.queues[q].entity);
    }

    /// Takes the queue in service out of it, without learning, charging or resetting service: all that happens when its
    /// process ends. Returns whether it is still busy (BFQ-50).
    pub(super) fn put_back(&mut self, q: QueueId, reason: Expiration) -> bool {
        if self.queues[q].shared && self.is_seeky(q) {
            self.queues[q].split_wanted = true;
        }
        let kept_empty =
            self.config.variant.preempted_empty_kept && reason == Expiration::Preempted && self.idling_is_needed(q);
        if self.queues[q].is_empty() && !kept_empty {
            if self.queues[q].dispatched == 0 {
                self.queues[q].budget_timeout = self.now.tick;
            }
            self.leave_busy(q, true);
        } else {
            self.hierarchy.enqueue(self.queues[q].entity, false, true);
            self.reindex(q);
        }
        self.stop_waiting(q);
        self.hierarchy.leave_service(self.queues[q].entity);
        self.in_service = None;
        self.queues[q].busy
    }

    /// Switches the idle timer off.
    pub(super) fn stop_waiting(&mut self, q: QueueId) {
        if std::mem::replace(&mut self.queues[q].waiting, false) {
            self.requested.timer = Some(TimerRequest::Off);
        }
    }

    /// A queue gets work (BFQ-80).
    pub(super) fn become_busy(&mut self, q: QueueId) {
        self.log_queue(q, || StateChange::Busy);
        let recover = std::mem::replace(&mut self.queues[q].non_blocking_wait, false);
        let entity = self.queues[q].entity;
        self.hierarchy.enqueue(entity, recover, false);
        let class = self.entity(q).class;
        let queue = &mut self.queues[q];
        queue.busy = true;
        queue.busy_class = class;
        self.busy[class] += 1;
        if self.queues[q].dispatched == 0 {
            if !self.is_raised(q) {
                self.hierarchy.count_weight(entity);
            }
            self.enter_pending(q);
        }
        if self.is_raised(q) {
            self.raised_busy += 1;
        }
        self.move_up_among_woken(q);
    }

    /// A queue has no work any more, and nothing keeps it scheduled.
    pub(super) fn leave_busy(&mut self, q: QueueId, expiring: bool) {
        self.log_queue(q, || StateChange::Idle);
        self.queues[q].busy = false;
        self.busy[self.queues[q].busy_class] -= 1;
        if self.is_raised(q) {
            self.raised_busy -= 1;
        }
        self.hierarchy.deactivate(self.queues[q].entity, true, expiring);
        if self.queues[q].dispatched == 0 {
            self.no_longer_pending(q);
        }
    }

    /// Nothing of a queue is queued or in flight: it does not count for symmetry any more (BFQ-75).
    pub(super) fn no_longer_pending(&mut self, q: QueueId) {
        self.hierarchy.uncount_weight(self.queues[q].entity);
        self.leave_pending(q);
    }
}
