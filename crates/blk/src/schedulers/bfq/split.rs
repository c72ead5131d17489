//! Splitting: a process leaves a shared queue whose users no longer cooperate, and gets a queue with the saved state of
//! its own. Rules: BFQ-110.

use super::Bfq;
use super::config::RAISE_SOFT_RT;
use super::contexts::{ContextId, Saved};
use super::entity::QueueId;
use super::state_lines::StateChange;

impl Bfq {
    /// A process leaves a shared queue. Returns whether it may keep it after all, because it is alone in it.
    pub(super) fn leave_shared(&mut self, context: ContextId, q: QueueId) -> bool {
        self.log_queue(q, || StateChange::SplitQueue);
        let actuator = usize::from(self.queues[q].actuator);
        if self.queues[q].in_large_burst
            && let Some(saved) = &mut self.contexts[context].queues[actuator].saved
        {
            saved.in_large_burst = true;
        }
        if self.queues[q].process_refs == 1 {
            let io_context = self.contexts[context].id;
            let queue = &mut self.queues[q];
            queue.shared = false;
            queue.split_wanted = false;
            queue.owner = Some(context);
            if let Some(label) = &mut self.entity_mut(q).label {
                label.io_context = Some(io_context);
            }
            self.restore_state(context, q);
            return true;
        }
        self.contexts[context].queues[actuator].sync = None;
        self.put_merge_chain(q);
        self.release_process_ref(Some(q));
        false
    }

    /// A queue was created for a process that left a shared one.
    pub(super) fn continue_after_split(&mut self, context: ContextId, q: QueueId, waker: Option<QueueId>) {
        let actuator = usize::from(self.queues[q].actuator);
        if let Some(saved) = self.contexts[context].queues[actuator].saved {
            if saved.in_large_burst || (saved.in_burst_list && self.burst.large) {
                self.queues[q].in_large_burst = true;
            } else if saved.in_burst_list {
                self.burst.readmit(q);
            }
        }
        self.queues[q].split = self.now.tick;
        if waker.is_some_and(|waker| self.queues[waker].alive) {
            self.set_waker(q, waker);
        }
        self.restore_state(context, q);
    }

    /// Gives a queue the state that was saved for its process.
    fn restore_state(&mut self, context: ContextId, q: QueueId) {
        let actuator = usize::from(self.queues[q].actuator);
        let Some(saved) = self.contexts[context].queues[actuator].saved else { return };
        let Saved { raise, raising, weight, .. } = saved;
        let queue = &mut self.queues[q];
        queue.think = saved.think;
        queue.short_think = saved.short_think;
        queue.idle_window = saved.idle_window;
        queue.io_bound = saved.io_bound;
        queue.injection = saved.injection;
        queue.service_since_backlogged = saved.service_since_backlogged;
        queue.raising = raising;
        let entity = self.queues[q].entity;
        self.hierarchy.request_change(entity, |entity| entity.requested_weight = weight);
        if !self.settings.low_latency {
            return;
        }
        self.set_raise(q, raise);
        let expired = raising.start + raising.duration < self.now.tick;
        if raise > 1 && (self.queues[q].in_large_burst || expired) {
            let interactive_until = raising.start_at_switch + self.interactive_duration();
            if raise == RAISE_SOFT_RT && !self.queues[q].in_large_burst && interactive_until >= self.now.tick {
                self.end_or_resume_interactive_raise(q);
            } else {
                self.set_raise(q, 1);
            }
        }
    }
}
