//! K2, a scheduler from research that is not in the Linux kernel: few requests at the device, and the others wait in
//! order of priority.
//!
//! **Promises**: at most `max_inflight` requests are at the device; of those that wait, real-time requests go first, by
//! level. **Costs**: O(1) everywhere with `merge=0`, one lock, less throughput where that needs more requests in
//! flight; a higher level starves lower ones without limit. **Rules**: docs/rules/k2.md.

use crate::bio::Bio;
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{HctxId, RqId};
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
use crate::policy::key_order::KeyOrder;
use crate::policy::{Choice, Needs, Place, PolicyCx, Scheduler};
use crate::request::merge::Edge;
use crate::watch::reason::Reason;

/// The list that precedes all levels: requeued requests (K2-9).
const HEAD: usize = 0;
/// The list of the highest real-time level; those of the others follow.
const FIRST_LEVEL: usize = 1;
/// The list of all requests that are not real-time.
const COMMON: usize = 9;

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct K2 {
    /// Maximum number of requests at the device.
    max_inflight: u32,
    /// Whether queued requests are merged.
    merges: bool,
    /// Requests that were dispatched and have not completed.
    inflight: u32,
    /// The waiting requests, in lists in the order in which they are served.
    lists: [IdList; COMMON + 1],
    /// A bit for each list that has requests.
    non_empty_lists: u16,
    /// The requests that came while `merge` was 1, by start sector, for each direction.
    by_sector: [KeyOrder; 2],
    entries: Vec<Entry>,
    links: Links,
}

/// The state of a request.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// Its key in `by_sector`: where it began when it was inserted or last grew at its front.
    sector: u64,
    /// Its list while it waits.
    list: u8,
    direction: u8,
    /// In `by_sector`.
    is_sorted: bool,
    /// Counted in `inflight`.
    is_counted: bool,
}

static TUNABLES: Tunables<K2> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "max_inflight",
            (Unit::Requests, 32, 1, 65_535),
            "Most requests at the device. Smaller: real-time requests wait less behind others; larger: throughput.",
            |k2| i128::from(k2.max_inflight),
            |k2, requests| k2.max_inflight = requests as u32,
        ),
        TunableRow::new(
            "merge",
            (Unit::Switch, 0, 0, 1),
            "Whether queued requests are merged, whatever their classes and levels.",
            |k2| i128::from(k2.merges),
            |k2, on| k2.merges = on != 0,
        ),
    ],
};

/// The list for a priority (K2-2, K2-3). Without a class the nice level decides, and the request is never real-time.
fn list_of(priority: IoPriority) -> usize {
    match priority.class() {
        PriorityClass::RealTime => FIRST_LEVEL + usize::from(priority.level()),
        PriorityClass::None | PriorityClass::BestEffort | PriorityClass::Idle => COMMON,
    }
}

impl K2 {
    /// A fresh scheduler for request ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        K2 {
            max_inflight: 32,
            merges: false,
            inflight: 0,
            lists: Default::default(),
            non_empty_lists: 0,
            by_sector: Default::default(),
            entries: vec![Entry::default(); capacity],
            links: Links::new(capacity),
        }
    }

    /// Removes a request from its list and from the index by sector.
    fn dequeue(&mut self, id: RqId) {
        let entry = &mut self.entries[id.index()];
        let list = usize::from(entry.list);
        self.lists[list].remove(&mut self.links, id.0);
        if self.lists[list].is_empty() {
            self.non_empty_lists &= !(1 << list);
        }
        if std::mem::take(&mut entry.is_sorted) {
            self.by_sector[usize::from(entry.direction)].remove(id.0, entry.sector);
        }
    }

    /// Asks for a run if there is a waiting request and the limit allows it (K2-6).
    fn request_run(&self, cx: &mut PolicyCx<'_>) {
        cx.requested.run_queues |= self.has_work();
    }

    /// The neighbour of a sorted request.
    fn neighbour(&self, id: RqId, lookup: impl FnOnce(&KeyOrder, u32, u64) -> Option<u32>) -> Option<RqId> {
        let entry = self.entries[id.index()];
        let order = &self.by_sector[usize::from(entry.direction)];
        entry.is_sorted.then(|| lookup(order, id.0, entry.sector)).flatten().map(RqId)
    }
}

impl Scheduler for K2 {
    /// Completions must be reported at once: each may allow another request, and then restarts the queues.
    fn needs(&self) -> Needs {
        Needs { request_merges: true, ..Needs::default() }
    }

    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        let rq = cx.rq(id);
        let entry = &mut self.entries[id.index()];
        if std::mem::take(&mut entry.is_counted) {
            // It comes back from the device.
            self.inflight -= 1;
        }
        let list = match place {
            Place::Head => HEAD,
            Place::Sorted => list_of(rq.ioprio),
        };
        entry.list = list as u8;
        self.non_empty_lists |= 1 << list;
        match place {
            Place::Head => self.lists[list].push_front(&mut self.links, id.0),
            Place::Sorted => self.lists[list].push_back(&mut self.links, id.0),
        }
        if self.merges && place == Place::Sorted {
            entry.direction = rq.direction() as u8;
            entry.sector = rq.sector.0;
            entry.is_sorted = true;
            self.by_sector[rq.direction().index()].insert(id.0, rq.sector.0);
        }
    }

    fn dispatch(&mut self, _cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        if self.inflight >= self.max_inflight {
            return Choice { rq: None, reason: Reason::BoundReached };
        }
        let first = self.non_empty_lists.trailing_zeros() as usize;
        let Some(id) = self.lists.get(first).and_then(IdList::first).map(RqId) else {
            return Choice { rq: None, reason: Reason::Empty };
        };
        self.dequeue(id);
        self.entries[id.index()].is_counted = true;
        self.inflight += 1;
        let reason = match first {
            HEAD => Reason::HeadList,
            COMMON => Reason::Fifo,
            _ => Reason::RealTimeLevel,
        };
        Choice { rq: Some(id), reason }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        if std::mem::take(&mut self.entries[id.index()].is_counted) {
            self.inflight -= 1;
            self.request_run(cx);
        }
    }

    fn has_work(&self) -> bool {
        self.non_empty_lists != 0 && self.inflight < self.max_inflight
    }

    fn allow_merge(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId, _bio: &Bio) -> bool {
        self.merges
    }

    fn allow_request_merge(&self, _first: RqId, _second: RqId) -> bool {
        self.merges
    }

    fn front_candidate(&self, cx: &PolicyCx<'_>, bio: &Bio) -> Option<RqId> {
        if !self.merges {
            return None;
        }
        let id = RqId(self.by_sector[bio.op.direction().index()].find(bio.end().0)?);
        crate::request::merge::mergeable(cx.rq(id)).then_some(id)
    }

    fn previous(&self, id: RqId) -> Option<RqId> {
        self.neighbour(id, KeyOrder::previous)
    }

    fn next(&self, id: RqId) -> Option<RqId> {
        self.neighbour(id, KeyOrder::next)
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, edge: Edge) {
        let entry = &mut self.entries[id.index()];
        if edge == Edge::Front && entry.is_sorted {
            let order = &mut self.by_sector[usize::from(entry.direction)];
            order.remove(id.0, entry.sector);
            entry.sector = cx.rq(id).sector.0;
            order.insert(id.0, entry.sector);
        }
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, _survivor: RqId, absorbed: RqId) {
        self.dequeue(absorbed);
    }

    fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.entries.len());
        self.entries.resize(capacity, Entry::default());
        self.links.grow(capacity);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(self)
    }

    fn set_tunable(&mut self, cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store(self, name, text)?;
        self.request_run(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
