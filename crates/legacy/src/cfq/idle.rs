//! Idling: keeping the device idle for a process that is about to continue.
//!
//! Rules: CFQ-55 to CFQ-60.

use hoistway_blk::policy::PolicyCx;

use super::Cfq;
use super::class::Class;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;
use super::turn::Residual;

impl<L: CfqLog> Cfq<L> {
    /// Whether to idle for a busy queue: for its own sake, or because it is the last one of its tree and the others are
    /// about to return.
    pub(super) fn should_idle(&mut self, id: QueueId) -> bool {
        let queue = self.queue(id);
        if self.settings.slice_idle == 0 || queue.priority.class == Class::Idle {
            return false;
        }
        if queue.idle_window && !self.is_queueing_flash() {
            return true;
        }
        let Some(tree) = queue.tree else { return false };
        let tree = &self.groups[queue.group].trees[tree.index()];
        if tree.count == 1 && queue.sync && !tree.think.exceeds(self.settings.slice_idle) {
            return true;
        }
        let count = tree.count;
        self.note(Some(id), CfqEvent::NotIdling(count));
        false
    }

    /// The active queue became empty at a completion: sets the idle timer if idling is worthwhile.
    pub(super) fn try_to_idle(&mut self, cx: &mut PolicyCx<'_>, id: QueueId) {
        if self.is_queueing_flash() && self.settings.group_idle == 0 {
            return;
        }
        let for_group = !self.should_idle(id);
        if for_group && self.settings.group_idle == 0 {
            return;
        }
        let now = self.now(cx);
        let queue = self.queue(id);
        if queue.in_flight > 0 {
            return;
        }
        let Some(context) = self.turn_context.filter(|&context| !self.contexts[context].exited) else { return };
        if let Some(mean) = self.contexts[context].think.trusted_mean()
            && queue.remaining(now) < mean
        {
            self.note(Some(id), CfqEvent::NotIdlingThinks(mean));
            return;
        }
        if for_group {
            let group = &self.groups[queue.group];
            let limit = self.settings.group_idle;
            let thinks_long = queue.tree.is_some_and(|tree| group.trees[tree.index()].think.exceeds(limit));
            if group.busy_queues > 1 || thinks_long {
                return;
            }
        }
        let period = if for_group { self.settings.group_idle } else { self.settings.slice_idle };
        self.queue_mut(id).waiting_for_request = true;
        self.timer_armed = true;
        cx.requested.cancel_timer = false;
        cx.requested.set_timer = Some(self.clock.instant(now + period));
        self.note(Some(id), CfqEvent::ArmIdle { period, group: for_group });
    }

    /// The idle timer has fired.
    pub(super) fn idle_timer(&mut self, cx: &mut PolicyCx<'_>) {
        self.timer_armed = false;
        self.note(None, CfqEvent::TimerFired);
        if let Some(id) = self.active {
            let now = self.now(cx);
            let queue = self.queue(id);
            // A small request that arrived alone is now large enough. (The rule also asks whether any queue is busy:
            // the active one is until its turn ends.)
            let has_come = queue.must_dispatch;
            if !has_come {
                if queue.slice_used(now) {
                    self.expire(cx, id, Residual::Dropped);
                } else if queue.backlog.is_empty() {
                    self.queue_mut(id).deep = false;
                    self.expire(cx, id, Residual::Dropped);
                }
            }
        }
        self.schedule_dispatch(cx);
    }

    /// Whether to keep the only queue of a group active beyond its slice until its next request: if the group lost its
    /// last queue now, it would later join as a new group.
    pub(super) fn should_wait_busy(&self, id: QueueId, now: i64) -> bool {
        let queue = self.queue(id);
        let group = &self.groups[queue.group];
        if !queue.backlog.is_empty() || group.busy_queues > 1 || group.think.exceeds(self.settings.group_idle) {
            return false;
        }
        let remaining = queue.remaining(now);
        let thinks = self.turn_context.and_then(|context| self.contexts[context].think.trusted_mean());
        queue.slice_used(now) || thinks.is_some_and(|mean| remaining < mean) || remaining <= self.clock.jiffy()
    }
}
