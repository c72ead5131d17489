//! A request completes: slices start, turns end, and the device may be kept idle for a process that is about to
//! continue.
//!
//! Rules: CFQ-55, CFQ-56, CFQ-61, CFQ-74.

use hoistway_blk::ground::RqId;
use hoistway_blk::policy::PolicyCx;

use super::class::Class;
use super::context::ContextId;
use super::depth_detector::ActiveLoad;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;
use super::turn::Residual;
use super::{Cfq, Entry, Location};

impl<L: CfqLog> Cfq<L> {
    /// The driver has started a request.
    pub(super) fn start(&mut self, id: RqId) {
        let entry = &mut self.entries[id.index()];
        if entry.location == Location::Dispatched {
            entry.location = Location::Started;
            self.in_driver += 1;
            self.head = entry.sector + entry.sectors;
        }
    }

    /// The driver has returned a request; it goes to the head of the dispatch queue.
    pub(super) fn take_back_from_driver(&mut self, id: RqId) {
        let entry = &mut self.entries[id.index()];
        if entry.location == Location::Started {
            entry.location = Location::Dispatched;
            let owner = entry.owner;
            self.in_driver -= 1;
            self.note(owner.map(|(queue, _)| queue), CfqEvent::Deactivate(self.in_driver));
        }
    }

    /// A dispatched request has completed.
    pub(super) fn complete(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        let Entry { owner: Some((queue, context)), sync, allocated, location, .. } = self.entries[id.index()] else {
            return;
        };
        self.sample_depth();
        self.in_driver -= u32::from(location == Location::Started);
        self.decrement_in_flight(queue);
        self.begin_think_time(queue, context, sync, allocated, self.now(cx));
        cx.now.at += self.config.completion_step;
        if self.active == Some(queue) {
            self.active_completed(cx, queue, sync);
        }
        if self.in_driver == 0 {
            self.schedule_dispatch(cx);
        }
    }

    fn sample_depth(&mut self) {
        let active = self.active.map(|id| {
            let queue = self.queue(id);
            ActiveLoad { idle_window: queue.idle_window, requests: queue.backlog.len() + queue.in_flight }
        });
        self.depth.sample(self.waiting, self.in_driver, active);
    }

    /// `queue` has one dispatched request fewer.
    fn decrement_in_flight(&mut self, queue: QueueId) {
        let queue = &mut self.queues[queue.0 as usize];
        queue.in_flight -= 1;
        self.groups[queue.group].in_flight -= 1;
        self.in_flight[usize::from(queue.sync)] -= 1;
    }

    /// Think time begins for the process, for the tree of its queue and for the group.
    fn begin_think_time(&mut self, queue: QueueId, context: ContextId, sync: bool, allocated: i64, now: i64) {
        let queue = &self.queues[queue.0 as usize];
        let group = &mut self.groups[queue.group];
        if sync {
            self.contexts[context].think.ended(now);
            let tree = queue.tree.unwrap_or_else(|| queue.fitting_tree());
            group.trees[tree.index()].think.ended(now);
            if now - allocated >= self.settings.fifo_expire[1] {
                self.last_delayed_sync = now;
            }
        }
        group.think.ended(now);
    }

    /// A request of the active queue has completed.
    fn active_completed(&mut self, cx: &mut PolicyCx<'_>, id: QueueId, sync: bool) {
        let now = self.now(cx);
        if self.queue(id).slice.is_none() {
            self.start_slice(id, now);
        }
        if self.should_wait_busy(id, now) {
            let idle = self.settings.slice_idle;
            let grace = if idle > 0 { idle } else { self.settings.group_idle };
            let queue = self.queue_mut(id);
            if let Some(slice) = &mut queue.slice {
                slice.end = now + grace;
            }
            queue.waiting_busy = true;
            self.note(Some(id), CfqEvent::WillBusyWait);
        }
        let queue = self.queue(id);
        if queue.slice_used(now) || queue.priority.class == Class::Idle {
            self.expire(cx, id, Residual::Kept);
        } else if sync && queue.backlog.is_empty() && self.close_cooperator(id).is_none() {
            self.try_to_idle(cx, id);
        }
    }
}
