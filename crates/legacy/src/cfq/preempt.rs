//! Preemption: a new request may take the device away from the active queue.
//!
//! Rules: CFQ-62 to CFQ-64.

use hoistway_blk::ground::RqId;
use hoistway_blk::policy::PolicyCx;

use super::Cfq;
use super::class::{Class, Workload};
use super::cooperate::CLOSE;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;
use super::round_robin::Position;
use super::turn::Residual;

impl<L: CfqLog> Cfq<L> {
    /// Whether `newcomer`, an inactive queue that has just got the request `id`, takes the device. The first rule that
    /// matches decides.
    pub(super) fn should_preempt(&mut self, newcomer: QueueId, id: RqId, now: i64) -> bool {
        let Some(active_id) = self.active else { return false };
        let (new, active) = (self.queue(newcomer), self.queue(active_id));
        let (new_class, active_class) = (new.priority.class, active.priority.class);
        let active_empty = active.backlog.is_empty();
        if new_class == Class::Idle {
            return false;
        }
        if active_class == Class::Idle {
            return true;
        }
        if active_class == Class::RealTime && new_class != Class::RealTime {
            return false;
        }
        if self.entries[id.index()].sync && !active.sync && !active.must_dispatch {
            return true;
        }
        if !self.groups.is_within(active.group, new.group) {
            return false;
        }
        if active.slice_used(now) || (new_class == Class::RealTime && active_class != Class::RealTime) {
            return true;
        }
        let both_noidle = self.serving.workload == Workload::NoIdle && new.workload() == Workload::NoIdle;
        if both_noidle && active_empty {
            return true;
        }
        if self.requests.is_prio(id) && !active.backlog.has_prio() {
            return true;
        }
        if active_empty && !self.should_idle(active_id) {
            return true;
        }
        let waits = self.queue(active_id).waiting_for_request;
        if self.turn_context.is_none() || !waits {
            return false;
        }
        self.requests.sector(id).0.abs_diff(self.head.0) <= CLOSE
    }

    /// Ends the turn of the active queue and puts `newcomer` first in its tree. Then no queue is active.
    pub(super) fn preempt(&mut self, cx: &mut PolicyCx<'_>, newcomer: QueueId, now: i64) {
        let served_workload = self.active.map(|active| self.queue(active).workload());
        self.note(Some(newcomer), CfqEvent::Preempt);
        self.expire_active(cx, Residual::Kept);
        let queue = self.queue(newcomer);
        let group = queue.group;
        // Otherwise the kind that was served before would continue with the rest of its time.
        if served_workload != Some(queue.workload()) {
            self.groups[group].saved = None;
        }
        // Its turn and its slice begin when it is chosen.
        self.place_in_tree(newcomer, Position::Front, now);
    }
}
