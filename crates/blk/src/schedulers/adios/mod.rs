//! ADIOS, an out-of-tree scheduler that some distributions add to their kernels: requests by deadline, dispatched in
//! batches whose predicted latency fits a window.
//!
//! Used by: `schedulers::registry`.
//! Tests: `crates/blk/src/schedulers/adios/latency_model.rs`, `crates/blk/src/schedulers/adios/tests.rs`.
//!
//! **Promises**: sync requests go in the order in which they came, async ones when their deadline comes; the requests
//! that are dispatched and not completed are expected to take no longer than `global_latency_window`. **Costs**: O(log
//! n) an insertion and a dispatch, one lock; no fairness between processes, no priorities. **Rules**:
//! docs/rules/adios.md.

mod latency_model;
mod tunables;

#[cfg(test)]
mod tests;

use crate::bio::{Op, is_flush_type};
use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{HctxId, RqId};
use crate::ground::time::Instant;
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::key_order::KeyOrder;
use crate::policy::{Choice, Place, PolicyCx, Scheduler};
use crate::request::Request;
use crate::request::merge::Edge;
use crate::watch::reason::Reason;

use latency_model::LatencyModel;
use tunables::{Settings, TUNABLES};

/// The kinds of requests that have a model and limits of their own.
const READ: usize = 0;
const WRITE: usize = 1;
const DISCARD: usize = 2;

/// A step of `read_priority`, ns (ADIOS-9).
const READ_STEP_NS: i64 = 125_000;

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct Adios {
    settings: Settings,
    models: [LatencyModel; 3],
    /// Requests that precede all others, and after them those that must be durable.
    tiers: [IdList; 2],
    /// By deadline: reads, and all other requests.
    by_deadline: [KeyOrder; 2],
    /// The next requests, in dispatch order: the batch being dispatched, and the one behind it.
    batches: [IdList; 2],
    /// Which of the two is being dispatched.
    current: usize,
    /// Waiting requests, including those in batches.
    waiting: u32,
    /// Predicted latency of the requests in a batch or at the device, ns.
    predicted_ns: u64,
    /// Counts insertions, to tell equal deadlines apart.
    arrivals: u64,
    entries: Vec<Entry>,
    links: Links,
}

/// The state of a request.
#[derive(Clone, Copy, Default)]
struct Entry {
    location: Location,
    kind: u8,
    sectors: u32,
    /// Its key in the order by deadline, ns.
    deadline: u64,
    arrival: u64,
    /// What it adds to `predicted_ns` while it is in a batch or at the device.
    predicted_ns: u64,
    /// When it was dispatched.
    dispatched_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Location {
    #[default]
    NotHere,
    Tier(u8),
    Ordered,
    Batch(u8),
    Device,
}

/// The kind of a request (ADIOS-1).
fn kind_of(op: Op) -> usize {
    match op {
        Op::Read | Op::Flush => READ,
        Op::Write | Op::WriteZeroes => WRITE,
        Op::Discard => DISCARD,
    }
}

impl Adios {
    /// A fresh scheduler for request ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32, is_rotational: bool) -> Self {
        let capacity = capacity as usize;
        Adios {
            settings: Settings::new(is_rotational),
            models: Default::default(),
            tiers: Default::default(),
            by_deadline: Default::default(),
            batches: Default::default(),
            current: 0,
            waiting: 0,
            predicted_ns: 0,
            arrivals: 0,
            entries: vec![Entry::default(); capacity],
            links: Links::new(capacity),
        }
    }

    /// The index in `by_deadline` for a kind of request.
    fn order_index(kind: u8) -> usize {
        usize::from(usize::from(kind) != READ)
    }

    /// The deadline of a request (ADIOS-4 to ADIOS-6). The largest key is reserved by [`KeyOrder`].
    fn deadline(&self, rq: &Request, kind: usize) -> u64 {
        let start = rq.start.0;
        if rq.is_sync() {
            return start.min(u64::MAX - 1);
        }
        let prediction = if self.settings.adds_prediction { self.models[kind].predict(rq.sectors) } else { 0 };
        start.saturating_add(self.settings.target_ns[kind]).saturating_add(prediction).min(u64::MAX - 1)
    }

    fn insert_by_deadline(&mut self, id: u32) {
        let Entry { kind, deadline, .. } = self.entries[id as usize];
        self.by_deadline[Self::order_index(kind)].insert(id, deadline);
        self.entries[id as usize].location = Location::Ordered;
    }

    /// Takes a request out of the list or order in which it waits.
    fn dequeue(&mut self, id: u32) {
        let Entry { location, kind, deadline, predicted_ns, .. } = self.entries[id as usize];
        match location {
            Location::Tier(tier) => self.tiers[usize::from(tier)].remove(&mut self.links, id),
            Location::Ordered => {
                self.by_deadline[Self::order_index(kind)].remove(id, deadline);
            }
            Location::Batch(batch) => {
                self.batches[usize::from(batch)].remove(&mut self.links, id);
                self.predicted_ns -= predicted_ns;
            }
            Location::NotHere | Location::Device => return,
        }
        self.waiting -= 1;
        self.entries[id as usize].location = Location::NotHere;
    }

    /// The ordered request that goes next (ADIOS-9).
    fn earliest(&self) -> Option<u32> {
        let [read, other] = [0, 1].map(|order: usize| self.by_deadline[order].at_or_after(0));
        let (Some(read_id), Some(other_id)) = (read, other) else { return read.or(other) };
        let [read_entry, other_entry] = [read_id, other_id].map(|id| &self.entries[id as usize]);
        let deadline = read_entry.deadline.saturating_add_signed(-READ_STEP_NS * self.settings.read_priority);
        let is_read = (deadline, read_entry.arrival) < (other_entry.deadline, other_entry.arrival);
        Some(if is_read { read_id } else { other_id })
    }

    /// Whether so little is left of the batch that the next one may be filled (ADIOS-8).
    fn may_fill(&self) -> bool {
        self.batches[1 - self.current].is_empty()
            && self.predicted_ns * 100 <= self.settings.window_ns * self.settings.refill_percent
    }

    fn has_ordered(&self) -> bool {
        self.by_deadline.iter().any(|order| !order.is_empty())
    }

    /// Fills the batch behind the one being dispatched (ADIOS-7).
    fn fill(&mut self) {
        let mut counts = [0; 3];
        while let Some(id) = self.earliest() {
            let Entry { kind, sectors, deadline, .. } = self.entries[id as usize];
            let kind_index = usize::from(kind);
            let predicted_ns = self.models[kind_index].predict(sectors);
            let exceeds = self.predicted_ns + predicted_ns > self.settings.window_ns
                || counts[kind_index] >= self.settings.batch_limit[kind_index];
            if exceeds && counts != [0; 3] {
                break;
            }
            counts[kind_index] += 1;
            self.by_deadline[Self::order_index(kind)].remove(id, deadline);
            let batch = 1 - self.current;
            self.batches[batch].push_back(&mut self.links, id);
            let entry = &mut self.entries[id as usize];
            entry.location = Location::Batch(batch as u8);
            entry.predicted_ns = predicted_ns;
            self.predicted_ns += predicted_ns;
        }
    }

    /// The next request to dispatch (ADIOS-3, ADIOS-7 and ADIOS-8).
    fn choose(&mut self) -> (Option<u32>, Reason) {
        for (tier, reason) in [Reason::HeadList, Reason::Durable].into_iter().enumerate() {
            if let Some(id) = self.tiers[tier].first() {
                return (Some(id), reason);
            }
        }
        if self.has_ordered() && self.may_fill() {
            self.fill();
        }
        if self.batches[self.current].is_empty() {
            self.current = 1 - self.current;
        }
        match self.batches[self.current].first() {
            Some(id) => (Some(id), Reason::DeadlineBatch),
            None if self.has_ordered() => (None, Reason::WindowFull),
            None => (None, Reason::Empty),
        }
    }

    /// A request is no longer at the device: subtracts its prediction from the sum.
    fn return_from_device(&mut self, id: RqId) -> Option<Entry> {
        let entry = &mut self.entries[id.index()];
        if entry.location != Location::Device {
            return None;
        }
        entry.location = Location::NotHere;
        self.predicted_ns -= entry.predicted_ns;
        Some(*entry)
    }
}

impl Scheduler for Adios {
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        // A requeued request is no longer at the device.
        self.return_from_device(id);
        let rq = cx.rq(id);
        let kind = kind_of(rq.op);
        let deadline = self.deadline(rq, kind);
        self.arrivals += 1;
        self.waiting += 1;
        let tier = match place {
            Place::Head => Some(0),
            Place::Sorted if is_flush_type(rq.op, rq.flags) => Some(1),
            Place::Sorted => None,
        };
        let entry = &mut self.entries[id.index()];
        entry.kind = kind as u8;
        entry.sectors = rq.sectors;
        entry.deadline = deadline;
        entry.arrival = self.arrivals;
        match tier {
            Some(tier) => {
                entry.location = Location::Tier(tier);
                let list = &mut self.tiers[usize::from(tier)];
                match place {
                    Place::Head => list.push_front(&mut self.links, id.0),
                    Place::Sorted => list.push_back(&mut self.links, id.0),
                }
            }
            None => self.insert_by_deadline(id.0),
        }
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        let (chosen, reason) = self.choose();
        let Some(id) = chosen else { return Choice { rq: None, reason } };
        self.dequeue(id);
        let entry = &mut self.entries[id as usize];
        entry.location = Location::Device;
        entry.dispatched_at = cx.now.at;
        entry.predicted_ns = self.models[usize::from(entry.kind)].predict(entry.sectors);
        self.predicted_ns += entry.predicted_ns;
        Choice { rq: Some(RqId(id)), reason }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        let was_held_back = !self.has_work();
        let Some(entry) = self.return_from_device(id) else { return };
        let latency_ns = cx.now.at.since(entry.dispatched_at).0;
        if latency_ns <= self.settings.sample_limit_ns {
            let model = &mut self.models[usize::from(entry.kind)];
            model.learn(cx.now.at, entry.sectors, latency_ns, &self.settings.decay);
        }
        cx.requested.run_queues |= was_held_back && self.has_work();
    }

    fn has_work(&self) -> bool {
        self.waiting > 0 && (self.tiers.iter().chain(&self.batches).any(|list| !list.is_empty()) || self.may_fill())
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, _edge: Edge) {
        self.resize(id, cx.rq(id).sectors);
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        let absorbed_entry = self.entries[absorbed.index()];
        self.resize(survivor, self.entries[survivor.index()].sectors + absorbed_entry.sectors);
        let entry = self.entries[survivor.index()];
        let is_earlier = (absorbed_entry.deadline, absorbed_entry.arrival) < (entry.deadline, entry.arrival);
        if is_earlier && entry.location == Location::Ordered {
            self.dequeue(survivor.0);
            // Its place among equal deadlines is that of the request that it absorbs.
            if absorbed_entry.location == Location::Ordered {
                self.by_deadline[Self::order_index(absorbed_entry.kind)].replace(
                    absorbed.0,
                    absorbed_entry.deadline,
                    survivor.0,
                );
                self.entries[absorbed.index()].location = Location::NotHere;
            } else {
                self.dequeue(absorbed.0);
                self.by_deadline[Self::order_index(absorbed_entry.kind)].insert(survivor.0, absorbed_entry.deadline);
                self.waiting += 1;
            }
            self.entries[survivor.index()].location = Location::Ordered;
        } else {
            self.dequeue(absorbed.0);
        }
        if is_earlier {
            let entry = &mut self.entries[survivor.index()];
            (entry.deadline, entry.arrival) = (absorbed_entry.deadline, absorbed_entry.arrival);
        }
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
        cx.requested.run_queues |= self.has_work();
        Ok(())
    }
}

impl Adios {
    /// A waiting request has grown: in a batch it takes more of the window (ADIOS-15).
    fn resize(&mut self, id: RqId, sectors: u32) {
        let entry = &mut self.entries[id.index()];
        entry.sectors = sectors;
        if matches!(entry.location, Location::Batch(_)) {
            let predicted_ns = self.models[usize::from(entry.kind)].predict(sectors);
            self.predicted_ns = self.predicted_ns - entry.predicted_ns + predicted_ns;
            entry.predicted_ns = predicted_ns;
        }
    }
}
