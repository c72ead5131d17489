//! The requests in a queue: by sector, by arrival, and which is next. Rules: BFQ-57 to BFQ-63.

use super::super::process_queue::{Chooser, Waiting};
use super::Bfq;
use super::contexts::ContextId;
use super::entity::QueueId;
use super::state_lines::StateChange;
use crate::ground::ids::{RqId, Sector};

/// The state of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    pub sync: bool,
    /// It carries metadata.
    pub meta: bool,
    /// Its queue; `None` if it bypasses them.
    pub queue: Option<QueueId>,
    /// Its process.
    pub context: Option<ContextId>,
    pub whereabouts: Whereabouts,
}

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Whereabouts {
    /// Unknown here, or dispatched without being counted.
    #[default]
    Elsewhere,
    /// It has arrived and counts as allocated, but waits nowhere.
    SetUp,
    /// In its queue.
    Queued,
    /// In the list of those that go first.
    Immediate,
    /// Dispatched and counted.
    Dispatched,
    /// It comes back from the driver and will be inserted without a queue.
    Requeued,
}

impl Bfq {
    /// How two requests of a queue are compared (BFQ-58).
    pub(super) fn chooser(&self) -> Chooser {
        Chooser { back_sectors_max: self.settings.back_seek_max, back_penalty: self.settings.back_seek_penalty }
    }

    /// The sectors that a request is charged (BFQ-34).
    pub(super) fn charge_of(&self, q: QueueId, id: u32) -> u64 {
        let sectors = u64::from(self.entries[id as usize].sectors);
        let variant = &self.config.variant;
        if self.queues[q].sync || self.is_raised(q) {
            return sectors;
        }
        if variant.async_charge_doubles {
            let factor = if self.raised_busy > 0 { 2 } else { 1 };
            return sectors * variant.async_charge_factor * factor;
        }
        if self.is_asymmetric_for(q) { sectors } else { sectors * variant.async_charge_factor }
    }

    /// The charge of a queue's next request, 0 without one.
    pub(super) fn charge_of_next(&self, q: QueueId) -> u64 {
        self.queues[q].next().map_or(0, |id| self.charge_of(q, id))
    }

    /// Whether a queue has a next request that fits in the rest of its budget.
    pub(super) fn next_fits(&self, q: QueueId) -> bool {
        let charge = self.charge_of_next(q) as i64;
        self.queues[q].next().is_some() && charge <= self.entity(q).budget_left()
    }

    /// Adds a request, and makes it next if it is better. Returns whether it became so.
    pub(super) fn take_in(&mut self, q: QueueId, id: u32) -> bool {
        let Entry { sector, sync, meta, .. } = self.entries[id as usize];
        let deadline = self.now.ns.saturating_add(self.settings.fifo_expire[usize::from(sync)]) as i64;
        let waiting = Waiting { deadline, sync, prio: meta };
        self.queues[q].backlog.insert(&mut self.requests, RqId(id), Sector(sector), waiting);
        self.consider_next(q, id)
    }

    /// Lets a request of the queue compete for being next. Returns whether that changed.
    fn consider_next(&mut self, q: QueueId, id: u32) -> bool {
        let (chooser, position) = (self.chooser(), Sector(self.last_position));
        self.queues[q].backlog.reconsider(&self.requests, chooser, RqId(id), position)
    }

    /// The next request after one that leaves the queue (BFQ-60).
    fn successor(&mut self, q: QueueId, leaving: RqId) -> Option<RqId> {
        let expired = self.expired(q, leaving);
        expired.or_else(|| self.queues[q].backlog.successor(&self.requests, self.chooser(), leaving))
    }

    /// The oldest request if it has expired. Checked once in a slot, at the first removal.
    fn expired(&mut self, q: QueueId, leaving: RqId) -> Option<RqId> {
        if std::mem::replace(&mut self.queues[q].fifo_checked, true) {
            return None;
        }
        let oldest = self.queues[q].backlog.expired(&self.requests, self.now.ns as i64)?;
        if oldest == leaving {
            return None;
        }
        self.log_queue(q, || StateChange::Fifo);
        Some(oldest)
    }

    /// Takes a request out of its queue (BFQ-60, BFQ-61).
    pub(super) fn remove_request(&mut self, q: QueueId, id: u32) {
        if self.queues[q].next() == Some(id) {
            let successor = self.successor(q, RqId(id));
            self.queues[q].backlog.set_next(successor);
            self.update_budget_for_next_request(q);
        }
        self.queues[q].backlog.remove(&mut self.requests, RqId(id));
        self.queued -= 1;
        if self.queues[q].is_empty() {
            if self.queues[q].busy && self.in_service != Some(q) {
                self.leave_busy(q, false);
                let entity = self.entity_mut(q);
                entity.service = 0;
                entity.budget = 0;
            }
            self.unindex(q);
        } else {
            self.reindex(q);
        }
    }

    /// Fits the budget of a waiting queue to its next request (BFQ-61).
    pub(super) fn update_budget_for_next_request(&mut self, q: QueueId) {
        if self.queues[q].next().is_none() || self.in_service == Some(q) {
            return;
        }
        let mut budget = self.queues[q].max_budget.max(self.charge_of_next(q));
        if !self.config.variant.service_reset_at_selection {
            budget = budget.max(self.entity(q).service);
        }
        if budget != self.entity(q).budget {
            self.entity_mut(q).budget = budget;
            self.log_queue(q, || StateChange::Rebudget { budget });
            self.hierarchy.enqueue(self.queues[q].entity, false, false);
        }
    }

    /// A queued request grew at its front. Only if that moves it before its predecessor is the next request chosen anew
    /// (BFQ-62).
    pub(super) fn moved_forward(&mut self, q: QueueId, id: u32) {
        let sector = Sector(self.entries[id as usize].sector);
        let overtakes = self.queues[q].backlog.resort(&mut self.requests, RqId(id), sector);
        if overtakes && self.consider_next(q, id) {
            self.update_budget_for_next_request(q);
            self.reindex(q);
        } else {
            self.note_position(q);
        }
    }

    /// A queued request is absorbed by another one of the same or another queue (BFQ-63).
    pub(super) fn inherit(&mut self, survivor: RqId, absorbed: RqId) {
        if let Some(q) = self.queue_if_queued(absorbed)
            && self.queue_if_queued(survivor) == Some(q)
        {
            self.queues[q].backlog.inherit(&mut self.requests, survivor, absorbed);
        }
    }
}
