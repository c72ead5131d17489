//! The end of a request. Rules: BFQ-121, BFQ-122.

use super::Bfq;
use super::config::RAISE_INTERACTIVE;
use super::entity::QueueId;
use super::requests::Whereabouts;
use super::state_lines::Expiration;

impl Bfq {
    /// A request is released: it completed, was requeued, or was absorbed by another.
    pub(super) fn release_request(&mut self, id: u32) {
        let entry = std::mem::take(&mut self.entries[id as usize]);
        let (Some(q), Some(context)) = (entry.queue, entry.context) else { return };
        if entry.whereabouts == Whereabouts::Dispatched {
            self.completed(q, id);
        }
        self.count_allocated(q, false);
        self.contexts.release(context);
        self.free_if_unused(q);
    }

    fn completed(&mut self, q: QueueId, id: u32) {
        self.maybe_learn_limit(q, id);
        self.sample_ncq();
        self.in_driver -= 1;
        self.in_driver_of[usize::from(self.queues[q].actuator)] -= 1;
        self.queues[q].dispatched -= 1;
        if !self.queues[q].busy && self.queues[q].dispatched == 0 {
            self.queues[q].budget_timeout = self.now.tick;
            self.no_longer_pending(q);
        }
        self.queues[q].think.ended(self.now.ns as i64);
        let event = self.rate.completed(self.now.ns);
        self.note_rate_event(event);
        // A completion of a shared queue does not show which process wakes which.
        self.last_completed = (!self.queues[q].shared).then_some(q);
        let raised_interactively = self.config.variant.soft_rt_filters && self.entity(q).raise == RAISE_INTERACTIVE;
        let queue = &self.queues[q];
        if queue.soft_rt_pending && queue.dispatched == 0 && queue.is_empty() && !raised_interactively {
            self.compute_soft_rt_start(q);
        }
        if self.in_service == Some(q) {
            if self.must_idle(q) {
                if self.queues[q].dispatched == 0 {
                    self.wait_for(q);
                    return;
                }
                // 4.12 looks at the time of the slot nevertheless (BFQ-76).
                if self.config.variant.modern_idling {
                    return;
                }
            }
            if self.may_time_out(q) {
                self.expire(q, false, Expiration::BudgetTimeout);
            } else if self.queues[q].is_empty() && (self.queues[q].dispatched == 0 || !self.better_to_idle(q)) {
                self.expire(q, false, Expiration::NoMoreRequests);
            }
        }
        // 4.12 itself did not ask for a run here and could stand still; its row is that of 4.13, too, which does
        // (BFQ-123).
        if self.in_driver == 0 {
            self.schedule_dispatch();
        }
    }

    /// Takes a sample of whether the device queues commands (BFQ-70).
    pub(super) fn sample_ncq(&mut self) {
        self.ncq.note(self.in_driver);
        let thinker = self.config.variant.ncq_skips_thinkers
            && self.in_driver < 3
            && self.in_service.is_some_and(|served| {
                let queue = &self.queues[served];
                queue.short_think && queue.dispatched + queue.queued() < 3
            });
        self.ncq.sample(self.in_driver + self.queued, thinker, self.config.variant.ncq_above);
    }
}
