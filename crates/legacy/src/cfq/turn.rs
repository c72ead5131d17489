//! Turns: how a queue becomes active, when its slice starts, how the turn ends and what its group is charged.
//!
//! Rules: CFQ-31, CFQ-32, CFQ-34, CFQ-36 to CFQ-39, CFQ-43.

use hoistway_blk::ground::CfqGeneration;
use hoistway_blk::policy::PolicyCx;

use super::Cfq;
use super::group::SavedWorkload;
use super::log::{CfqEvent, CfqLog};
use super::queue::{QueueId, Slice};
use super::round_robin::Position;

/// What happens to the rest of a slice after a turn, or to its overrun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Residual {
    /// It shifts the queue's next key.
    Kept,
    /// It is forgotten.
    Dropped,
}

impl<L: CfqLog> Cfq<L> {
    /// Makes a queue active.
    pub(super) fn set_active(&mut self, cx: &mut PolicyCx<'_>, id: QueueId) {
        let event = CfqEvent::SetActive { class: self.serving.class as u8, workload: self.serving.workload as u8 };
        self.note(Some(id), event);
        let now = self.now(cx);
        self.queue_mut(id).begin_turn(now);
        self.cancel_timer(cx);
        self.active = Some(id);
    }

    /// Starts the slice of the active queue: its first request has completed.
    pub(super) fn start_slice(&mut self, id: QueueId, now: i64) {
        let length = self.slice_length(id);
        self.queue_mut(id).slice = Some(Slice { start: now, end: now + length, allocated: length });
        self.note(Some(id), CfqEvent::SetSlice(length));
    }

    /// The length of a slice. Computing it also samples the number of busy queues.
    fn slice_length(&mut self, id: QueueId) -> i64 {
        let queue = self.queue(id);
        let (class, group) = (queue.priority.class, queue.group);
        let slice = self.settings.level_slice(queue.sync, queue.priority.level);
        if !self.settings.low_latency {
            return slice;
        }
        let average = self.groups[group].update_average(class);
        let group_slice = self.groups[group].share_of(self.settings.target_latency);
        self.settings.scaled_slice(slice, average, group_slice)
    }

    /// Ends the turn of the active queue, if there is one.
    pub(super) fn expire_active(&mut self, cx: &mut PolicyCx<'_>, residual: Residual) {
        if let Some(id) = self.active {
            self.expire(cx, id, residual);
        }
    }

    /// Ends the turn of a queue: the active one, or one that is being drained.
    pub(super) fn expire(&mut self, cx: &mut PolicyCx<'_>, id: QueueId, residual: Residual) {
        let now = self.now(cx);
        self.note(Some(id), CfqEvent::SliceExpired { timed: residual == Residual::Kept });
        if self.queue(id).waiting_for_request {
            self.cancel_timer(cx);
        }
        let queue = self.queue_mut(id);
        queue.waiting_for_request = false;
        queue.waiting_busy = false;
        if queue.shared && queue.is_seeky() {
            queue.to_be_split = true;
        }
        if residual == Residual::Kept {
            let rest = match self.queue(id).slice {
                None => self.slice_length(id),
                Some(slice) => slice.end - now,
            };
            self.queue_mut(id).residual = rest;
            self.note(Some(id), CfqEvent::Residual(rest));
        }
        self.charge_turn(id, now);
        if self.queue(id).busy {
            if self.queue(id).backlog.is_empty() {
                self.del_from_round_robin(id);
            } else {
                self.place_in_tree(id, Position::Ordinary, now);
                self.place_in_position_tree(id);
            }
        }
        if self.active == Some(id) {
            self.active = None;
        }
        if let Some(context) = self.turn_context.take() {
            self.contexts.release(context);
        }
    }

    /// Charges a turn to its group, and saves the rest of the workload slice for the group's next turn.
    fn charge_turn(&mut self, id: QueueId, now: i64) {
        let queue = self.queue(id);
        let group = queue.group;
        // Kernels that count in jiffies cannot distinguish a slice that has just started from one that has not.
        let coarse = self.config.generation == CfqGeneration::Ticks;
        let started = queue.slice.filter(|slice| !coarse || slice.start != now);
        let used = match started {
            Some(slice) => (now - slice.start).min(slice.allocated),
            None => (now - queue.turn_start).max(self.clock.jiffy()),
        };
        let iops = self.is_iops_mode();
        let charge = if iops {
            i64::from(queue.turn_requests)
        } else if !queue.sync && self.groups[group].busy_sync_queues == 0 {
            queue.slice.map_or(0, |slice| slice.allocated)
        } else {
            used
        };
        let event =
            CfqEvent::SliceUsed { used, dispatched: queue.turn_requests, charge, iops, sectors: queue.turn_sectors };
        self.groups.charge(group, charge);
        let remaining = self.serving.end - now;
        self.groups[group].saved = (remaining > 0).then_some(SavedWorkload {
            remaining,
            class: self.serving.class,
            workload: self.serving.workload,
        });
        let (vdisktime, min_vdisktime) = (self.groups[group].vdisktime, self.groups.min_vdisktime);
        self.note(None, CfqEvent::Served { vdisktime, min_vdisktime });
        self.note(Some(id), event);
    }

    /// Cancels the idle timer.
    pub(super) fn cancel_timer(&mut self, cx: &mut PolicyCx<'_>) {
        if self.timer_armed {
            self.timer_armed = false;
            cx.requested.set_timer = None;
            cx.requested.cancel_timer = true;
        }
    }
}
