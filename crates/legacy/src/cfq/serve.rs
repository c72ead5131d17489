//! Serving the active queue: the choice of a request, and the effects of dispatching it.
//!
//! Rules: CFQ-49, CFQ-53, CFQ-73.

use hoistway_blk::ground::RqId;
use hoistway_blk::policy::{Choice, PolicyCx};
use hoistway_blk::watch::Reason;

use super::class::Class;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;
use super::turn::Residual;
use super::{Cfq, Entry, Location};

impl<L: CfqLog> Cfq<L> {
    /// Chooses the next request, if one may be dispatched.
    pub(super) fn choose_request(&mut self, cx: &mut PolicyCx<'_>) -> Choice {
        if self.busy_queues == 0 {
            return Choice { rq: None, reason: Reason::Empty };
        }
        let served = self.select(cx).and_then(|queue| self.serve(cx, queue).map(|chosen| (queue, chosen)));
        match served {
            Err(reason) => Choice { rq: None, reason },
            Ok((queue, (id, reason))) => {
                self.after_dispatch(cx, queue, id);
                Choice { rq: Some(id), reason }
            }
        }
    }

    /// Dispatches a request of the active queue, or returns the reason why not.
    fn serve(&mut self, cx: &mut PolicyCx<'_>, queue: QueueId) -> Result<(RqId, Reason), Reason> {
        let now = self.now(cx);
        let expired = self.check_fifo(queue, now);
        if expired.is_some() {
            self.queue_mut(queue).must_dispatch = true;
        }
        if let Some(reason) = self.reason_to_hold(queue, now) {
            return Err(reason);
        }
        let next = self.queue(queue).backlog.next().map(|next| (next, Reason::InService));
        let (id, reason) = expired.map(|expired| (expired, Reason::OverTime)).or(next).ok_or(Reason::Empty)?;
        self.move_to_dispatch_list(cx, queue, id);
        Ok((id, reason))
    }

    /// The oldest request of a queue if it has expired; checked once per turn.
    fn check_fifo(&mut self, id: QueueId, now: i64) -> Option<RqId> {
        if std::mem::replace(&mut self.queue_mut(id).fifo_checked, true) {
            return None;
        }
        let expired = self.queue(id).backlog.expired(&self.requests, now)?;
        self.note(Some(id), CfqEvent::Fifo);
        Some(expired)
    }

    /// Moves a request from its queue to the dispatch list.
    fn move_to_dispatch_list(&mut self, cx: &mut PolicyCx<'_>, queue: QueueId, id: RqId) {
        let rq = cx.rq(id);
        let (sector, sectors) = (rq.sector, rq.sectors);
        let successor = self.queue(queue).backlog.successor(&self.requests, self.chooser(), id);
        self.leave_backlog(queue, id, successor);
        let entry = &mut self.entries[id.index()];
        entry.location = Location::Dispatched;
        entry.sector = sector;
        entry.sectors = sectors;
        let q = self.queue_mut(queue);
        q.in_flight += 1;
        q.turn_sectors += u64::from(sectors);
        let (sync, group) = (q.sync, q.group);
        self.groups[group].in_flight += 1;
        self.in_flight[usize::from(sync)] += 1;
    }

    /// Removes a request from its queue's backlog; `next` is then the next one.
    pub(super) fn leave_backlog(&mut self, queue: QueueId, id: RqId, next: Option<RqId>) {
        let backlog = &mut self.queues[queue.0 as usize].backlog;
        backlog.set_next(next);
        backlog.remove(&mut self.requests, id);
        self.waiting -= 1;
        if self.queue(queue).backlog.is_empty() {
            self.leave_position_tree(queue);
        } else {
            self.note_position(queue);
        }
    }

    /// Counts a dispatched request of the active queue, and ends the turn if its limit is reached.
    fn after_dispatch(&mut self, cx: &mut PolicyCx<'_>, id: QueueId, rq: RqId) {
        if let (None, Some((_, context))) = (self.turn_context, self.entries[rq.index()].owner) {
            // Idling is for the process that started the turn.
            self.contexts.hold(context);
            self.turn_context = Some(context);
        }
        let queue = self.queue_mut(id);
        queue.turn_requests += 1;
        queue.must_dispatch = false;
        let queue = self.queue(id);
        let level = u32::from(queue.priority.level);
        let cap = self.settings.slice_async_rq.saturating_mul(2 * (8 - level));
        let is_over = queue.priority.class == Class::Idle || (!queue.sync && queue.turn_requests >= cap);
        if self.busy_queues > 1 && is_over {
            self.expire(cx, id, Residual::Dropped);
        }
    }

    /// Dispatches everything, queue by queue, regardless of limits and times.
    pub(super) fn drain_all(&mut self, cx: &mut PolicyCx<'_>, out: &mut Vec<RqId>) {
        self.expire_active(cx, Residual::Dropped);
        while let Some(queue) = self.first_to_drain() {
            let now = self.now(cx);
            self.queue_mut(queue).begin_turn(now);
            while let Some(id) = self.queue(queue).backlog.next() {
                self.move_to_dispatch_list(cx, queue, id);
                self.queue_mut(queue).turn_requests += 1;
                out.push(id);
            }
            self.expire(cx, queue, Residual::Dropped);
        }
        debug_assert!(self.waiting == 0 && self.busy_queues == 0, "everything is out");
    }

    /// Makes `id` the dispatched request, as if it had been chosen: its queue becomes active if it is not.
    pub(super) fn adopt_request(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        let Entry { owner: Some((queue, _)), location: Location::Waiting, .. } = self.entries[id.index()] else {
            return;
        };
        if self.active != Some(queue) {
            self.expire_active(cx, Residual::Dropped);
            self.set_active(cx, queue);
        }
        self.queue_mut(queue).fifo_checked = true;
        self.move_to_dispatch_list(cx, queue, id);
        self.after_dispatch(cx, queue, id);
    }
}
