//! Insertion: a request joins its queue, the queue joins the round robin, and the arrival updates the state of the
//! process.
//!
//! Rules: CFQ-14 to CFQ-17, CFQ-20 to CFQ-23.

use hoistway_blk::bio::BioFlags;
use hoistway_blk::ground::{RqId, SECTOR_BYTES};
use hoistway_blk::kit::process_queue::Waiting;
use hoistway_blk::policy::PolicyCx;

use super::class::Class;
use super::context::ContextId;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;
use super::{Cfq, Location};

/// A queue with this many waiting requests is flagged deep.
const DEEP: u32 = 4;
/// A request of at most this size that arrives alone may still grow, so it does not end idling at once. Bytes.
const SMALL_BYTES: u64 = 4096;

impl<L: CfqLog> Cfq<L> {
    /// Inserts a request.
    pub(super) fn insert_request(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        let now = self.now(cx);
        let (queue, context) = self.owner_of(cx, id);
        self.apply_priority(queue, context);
        self.enqueue(cx, queue, id, now);
        self.end_think_time(queue, context, now);
        let rq = cx.rq(id);
        let (sector, sectors) = (rq.sector, rq.sectors);
        let rotational = self.config.rotational;
        self.queue_mut(queue).note_seek(rotational, sector, sectors);
        self.update_idle_window(queue, context);
        if self.active == Some(queue) {
            if self.queue(queue).waiting_for_request {
                if u64::from(sectors) * SECTOR_BYTES > SMALL_BYTES || self.busy_queues > 1 {
                    self.cancel_timer(cx);
                    self.queue_mut(queue).waiting_for_request = false;
                    cx.requested.run_queues = true;
                } else {
                    self.queue_mut(queue).must_dispatch = true;
                }
            }
        } else if self.should_preempt(queue, id, now) {
            self.preempt(cx, queue, now);
            cx.requested.run_queues = true;
        }
    }

    /// Adds a request to the backlog of its queue, and the queue to the round robin.
    fn enqueue(&mut self, cx: &PolicyCx<'_>, queue: QueueId, id: RqId, now: i64) {
        let rq = cx.rq(id);
        let sync = rq.is_sync();
        let waiting = Waiting {
            deadline: now + self.settings.fifo_expire[usize::from(sync)],
            sync,
            prio: rq.flags.contains(BioFlags::PRIO),
        };
        self.queues[queue.0 as usize].backlog.insert(&mut self.requests, id, rq.sector, waiting);
        self.entries[id.index()].location = Location::Waiting;
        self.waiting += 1;
        if !self.queue(queue).busy {
            self.add_to_round_robin(queue, now);
        }
        self.reconsider(queue, id);
    }

    /// Considers a new or moved request as its queue's next one.
    fn reconsider(&mut self, queue: QueueId, id: RqId) {
        let (chooser, head) = (self.chooser(), self.head);
        if self.queues[queue.0 as usize].backlog.reconsider(&self.requests, chooser, id, head) {
            self.place_in_position_tree(queue);
        } else {
            self.note_position(queue);
        }
    }

    /// Samples think time for the process, for the tree of its queue and for the group.
    fn end_think_time(&mut self, id: QueueId, context: ContextId, now: i64) {
        let queue = &self.queues[id.0 as usize];
        let group = &mut self.groups[queue.group];
        if queue.sync {
            self.contexts[context].think.arrived(now, self.settings.slice_idle);
            if let Some(tree) = queue.tree {
                group.trees[tree.index()].think.arrived(now, self.settings.slice_idle);
            }
        }
        group.think.arrived(now, self.settings.group_idle);
    }

    /// Decides again whether to idle for a queue.
    fn update_idle_window(&mut self, id: QueueId, context: ContextId) {
        let slice_idle = self.settings.slice_idle;
        let queue = &mut self.queues[id.0 as usize];
        if !queue.sync || queue.priority.class == Class::Idle {
            return;
        }
        queue.deep |= queue.backlog.len() >= DEEP;
        let context = &self.contexts[context];
        let next_is_last = queue.backlog.next().is_some_and(|next| self.entries[next.index()].noidle_write);
        let idle_window = if next_is_last || context.exited || slice_idle == 0 || (!queue.deep && queue.is_seeky()) {
            false
        } else {
            context.think.trusted_mean().map_or(queue.idle_window, |mean| mean <= slice_idle)
        };
        if idle_window != queue.idle_window {
            self.note(Some(id), CfqEvent::IdleWindow(idle_window));
            self.queue_mut(id).idle_window = idle_window;
        }
    }

    /// A waiting request has grown at its front: its new start may make it the next one.
    pub(super) fn grown_at_front(&mut self, cx: &PolicyCx<'_>, id: RqId) {
        let entry = &self.entries[id.index()];
        if let (Some((queue, _)), Location::Waiting) = (entry.owner, entry.location) {
            let sector = cx.rq(id).sector;
            self.queues[queue.0 as usize].backlog.resort(&mut self.requests, id, sector);
            self.reconsider(queue, id);
        }
    }

    /// A waiting request absorbs another one of its queue.
    pub(super) fn absorb(&mut self, survivor: RqId, absorbed: RqId) {
        let entry = &self.entries[absorbed.index()];
        let (Some((queue, _)), Location::Waiting) = (entry.owner, entry.location) else { return };
        debug_assert_eq!(self.entries[survivor.index()].owner.map(|(queue, _)| queue), Some(queue));
        self.queues[queue.0 as usize].backlog.inherit(&mut self.requests, survivor, absorbed);
        let next = self.queue(queue).backlog.next();
        self.leave_backlog(queue, absorbed, next);
        self.entries[absorbed.index()].location = Location::Outside;
        // Only requests of one queue merge, so this queue is not empty.
        debug_assert!(!self.queue(queue).backlog.is_empty(), "the survivor waits in the same queue");
    }
}
