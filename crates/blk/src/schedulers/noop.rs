//! noop: first come, first served, with merging.
//!
//! **Promises**: requests are dispatched in the order in which they came; a merged one keeps the place of its oldest
//! part. **Costs**: O(1) everywhere. **Rules**: docs/rules/noop.md.

use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{HctxId, RqId};
use crate::policy::{Choice, Completions, LegacyHooks, Needs, Place, PolicyCx, Replayable, Scheduler};
use crate::watch::reason::Reason;

/// The policy. Clone it to look ahead.
#[derive(Clone, Debug)]
pub struct Noop {
    /// The waiting requests, by arrival.
    arrivals: IdList,
    links: Links,
    /// Whether a request is in the list.
    is_queued: Vec<bool>,
}

impl Noop {
    /// A fresh scheduler for request ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Noop { arrivals: IdList::default(), links: Links::new(capacity), is_queued: vec![false; capacity] }
    }

    fn remove(&mut self, id: RqId) {
        self.arrivals.remove(&mut self.links, id.0);
        self.is_queued[id.index()] = false;
    }
}

impl Scheduler for Noop {
    fn needs(&self) -> Needs {
        Needs { completions: Completions::Deferred, ..Needs::default() }
    }

    fn insert(&mut self, _cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        self.is_queued[id.index()] = true;
        match place {
            Place::Sorted => self.arrivals.push_back(&mut self.links, id.0),
            Place::Head => self.arrivals.push_front(&mut self.links, id.0),
        }
    }

    fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.is_queued.len());
        self.links.grow(capacity);
        self.is_queued.resize(capacity, false);
    }

    fn dispatch(&mut self, _cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        let Some(oldest) = self.arrivals.first().map(RqId) else {
            return Choice { rq: None, reason: Reason::Empty };
        };
        self.remove(oldest);
        Choice { rq: Some(oldest), reason: Reason::Fifo }
    }

    fn finish(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId) {}

    fn has_work(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// The request that came before it, since noop does not sort by sector.
    fn previous(&self, id: RqId) -> Option<RqId> {
        self.is_queued[id.index()].then(|| self.arrivals.previous(&self.links, id.0)).flatten().map(RqId)
    }

    /// The request that came after it.
    fn next(&self, id: RqId) -> Option<RqId> {
        self.is_queued[id.index()].then(|| self.arrivals.next(&self.links, id.0)).flatten().map(RqId)
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, _survivor: RqId, absorbed: RqId) {
        self.remove(absorbed);
    }

    fn legacy_hooks(&mut self) -> Option<&mut dyn LegacyHooks> {
        Some(self)
    }
}

impl LegacyHooks for Noop {
    fn dispatches_sorted(&self) -> bool {
        true
    }
}

impl Replayable for Noop {
    fn adopt(&mut self, _cx: &mut PolicyCx<'_>, _hctx: HctxId, id: RqId) {
        if self.is_queued[id.index()] {
            self.remove(id);
        }
    }
}

#[cfg(test)]
mod tests;
