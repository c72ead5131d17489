//! The requests inside a queue: by sector, by arrival, and which is next. Rules: bfq.md 12.

use super::Bfq;
use super::contexts::ContextId;
use super::entity::QueueId;
use super::state_lines::StateChange;

/// What is known of a request slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    pub sync: bool,
    /// It carries metadata.
    pub meta: bool,
    /// When its time in the fifo is over, ns.
    pub deadline: u64,
    /// Its queue; none for what by-passes them.
    pub queue: Option<QueueId>,
    /// Its process.
    pub context: Option<ContextId>,
    pub whereabouts: Whereabouts,
}

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Whereabouts {
    /// Unknown here, or given out without being counted.
    #[default]
    Elsewhere,
    /// It has arrived and counts as allocated, but waits nowhere.
    SetUp,
    /// In its queue.
    Queued,
    /// In the list of what goes first.
    Immediate,
    /// Given out and counted.
    Dispatched,
    /// It comes back from the driver and will be inserted without a queue.
    Requeued,
}

/// The distance of a request from a position as 12.2 costs it: none if it lies too far behind.
fn cost(sector: u64, position: u64, back_max: u64, penalty: u64) -> Option<u64> {
    if sector >= position {
        Some(sector - position)
    } else if sector + back_max >= position {
        Some((position - sector) * penalty)
    } else {
        None
    }
}

impl Bfq {
    /// The better of two requests to follow a position (12.2).
    pub(super) fn better(&self, one: u32, other: u32, position: u64) -> u32 {
        let (a, b) = (&self.entries[one as usize], &self.entries[other as usize]);
        if a.sync != b.sync {
            return if a.sync { one } else { other };
        }
        if a.meta != b.meta {
            return if a.meta { one } else { other };
        }
        let cost = |sector| cost(sector, position, self.settings.back_seek_max, self.settings.back_seek_penalty);
        let first = match (cost(a.sector), cost(b.sector)) {
            (Some(x), Some(y)) if x != y => x < y,
            (Some(_), Some(_)) => a.sector >= b.sector,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => a.sector <= b.sector,
        };
        if first { one } else { other }
    }

    /// The sectors that a request is charged (8.1).
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
        self.queues[q].next.map_or(0, |id| self.charge_of(q, id))
    }

    /// Whether a queue has a next request, and that fits in what is left of its budget.
    pub(super) fn next_fits(&self, q: QueueId) -> bool {
        let charge = self.charge_of_next(q) as i64;
        self.queues[q].next.is_some() && charge <= self.entity(q).budget_left()
    }

    /// Adds a request by sector, and makes it next if it is better. Answers whether it became so.
    pub(super) fn sort_in(&mut self, q: QueueId, id: u32) -> bool {
        let sector = self.entries[id as usize].sector;
        self.queues[q].sort.insert(&mut self.sort_nodes, id, sector);
        self.consider_next(q, id)
    }

    /// Lets a request of the queue compete for being next. Answers whether that changed.
    pub(super) fn consider_next(&mut self, q: QueueId, id: u32) -> bool {
        let before = self.queues[q].next;
        let next = match before {
            Some(next) if next != id => self.better(next, id, self.last_position),
            _ => id,
        };
        self.queues[q].next = Some(next);
        before != Some(next)
    }

    /// What follows a request that leaves (12.4).
    fn successor(&mut self, q: QueueId, leaving: u32) -> Option<u32> {
        if let Some(expired) = self.expired(q, leaving) {
            return Some(expired);
        }
        let sort = self.queues[q].sort;
        let previous = sort.previous(&self.sort_nodes, leaving);
        let next = sort.next(&self.sort_nodes, leaving).or_else(|| {
            let first = sort.first(&self.sort_nodes);
            first.filter(|&first| first != leaving)
        });
        match (next, previous) {
            (Some(next), Some(previous)) => Some(self.better(next, previous, self.entries[leaving as usize].sector)),
            (next, previous) => next.or(previous),
        }
    }

    /// The oldest request if its time is over. Looked at once in a slot, by the first removal.
    fn expired(&mut self, q: QueueId, leaving: u32) -> Option<u32> {
        if std::mem::replace(&mut self.queues[q].fifo_checked, true) {
            return None;
        }
        let oldest = self.queues[q].fifo.first()?;
        if oldest == leaving || self.now.ns < self.entries[oldest as usize].deadline {
            return None;
        }
        self.log_queue(q, || StateChange::Fifo);
        Some(oldest)
    }

    /// Takes a request out of its queue (12.4, 12.5).
    pub(super) fn remove_request(&mut self, q: QueueId, id: u32) {
        if self.queues[q].next == Some(id) {
            self.queues[q].next = self.successor(q, id);
            self.follow_next(q);
        }
        self.queues[q].fifo.remove(&mut self.fifo_links, id);
        self.queues[q].sort.remove(&mut self.sort_nodes, id);
        self.queues[q].queued -= 1;
        self.queued -= 1;
        if self.queues[q].is_empty() {
            self.queues[q].next = None;
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

    /// Fits the budget of a waiting queue to its next request (12.5).
    pub(super) fn follow_next(&mut self, q: QueueId) {
        if self.queues[q].next.is_none() || self.in_service == Some(q) {
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

    /// A queued request grew at its front. Only if that moves it before its predecessor is the next request chosen
    /// anew (12.6).
    pub(super) fn moved_forward(&mut self, q: QueueId, id: u32) {
        let sector = self.entries[id as usize].sector;
        let previous = self.queues[q].sort.previous(&self.sort_nodes, id);
        let overtakes = previous.is_some_and(|previous| self.entries[previous as usize].sector > sector);
        self.queues[q].sort.remove(&mut self.sort_nodes, id);
        self.queues[q].sort.insert(&mut self.sort_nodes, id, sector);
        if overtakes && self.consider_next(q, id) {
            self.follow_next(q);
            self.reindex(q);
        }
    }

    /// A queued request is absorbed by another one of the same or another queue (12.7).
    pub(super) fn inherit(&mut self, survivor: u32, absorbed: u32) {
        let [one, other] = [survivor, absorbed].map(|id| self.entries[id as usize]);
        let (Some(q), Some(from)) = (one.queue, other.queue) else { return };
        if q == from && other.deadline < one.deadline {
            let queue = &mut self.queues[q];
            queue.fifo.remove(&mut self.fifo_links, survivor);
            queue.fifo.insert_before(&mut self.fifo_links, absorbed, survivor);
            self.entries[survivor as usize].deadline = other.deadline;
        }
        if self.queues[from].next == Some(absorbed) && q == from {
            self.queues[from].next = Some(survivor);
        }
    }
}
