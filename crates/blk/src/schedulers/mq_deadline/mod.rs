//! mq-deadline: sorted, expiry-bounded queues for a whole device.
//!
//! Used by: `schedulers`, `schedulers::registry`, `elevator`; crates `evidence`, `legacy`.
//! Tests: `crates/blk/src/schedulers/mq_deadline/tests/`, `checks/tests/shuttle.rs`.
//!
//! **Promises**: service in sweeps by sector; a request that has expired starts the next batch of its direction; writes
//! wait for at most `writes_starved` batches of reads; a lower priority class waits for the higher ones, but not longer
//! than `prio_aging_expire`. **Costs**: O(log n) an insertion and a dispatch, one lock. **Rules**:
//! docs/rules/mq-deadline.md; with generation A those of docs/rules/deadline.md.

mod tunables;

#[cfg(test)]
mod tests;

pub use tunables::MqDeadlineConfig;

use crate::bio::ioprio::PriorityClass;
use crate::bio::{Bio, Direction, is_sync};
use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{HctxId, RqId};
use crate::ground::kernel::DeadlineGeneration;
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::key_order::KeyOrder;
use crate::policy::{Choice, Completions, Needs, Place, PolicyCx, Replayable, Scheduler, SchedulerEvent};
use crate::request::Request;
use crate::request::merge::Edge;
use crate::watch::reason::Reason;

/// The three priority classes, best first: indexes into [`MqDeadline::classes`].
const CLASSES: usize = 3;
const BEST_EFFORT: usize = 1;

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct MqDeadline {
    config: MqDeadlineConfig,
    /// Expiry given to reads and writes at insertion, ticks.
    expire_ticks: [u64; 2],
    /// Batches of reads that may start while writes wait; negative values compare as very large ones.
    writes_starved: i32,
    front_merges: bool,
    /// Longest batch, requests.
    fifo_batch: u32,
    /// Scheduler tags for everything but sync reads.
    async_depth: u32,
    /// How long lower classes may be held back, ticks.
    prio_aging_ticks: u64,

    /// Direction of the running batch.
    last_direction: Direction,
    /// Requests dispatched in the running batch.
    batching: u32,
    /// Batches of reads that started while writes waited, since the last batch of writes.
    starved: u32,
    classes: [Class; CLASSES],
    /// Head-inserted requests, newest first: one list for the device, or (B1 to C) one for each class.
    heads: [IdList; CLASSES],
    /// Waiting requests in all classes and head lists.
    waiting: u32,

    entries: Vec<Entry>,
    links: Links,
}

/// The requests of one priority class.
#[derive(Clone, Default)]
struct Class {
    /// By start sector, for each direction.
    sort: [KeyOrder; 2],
    /// By arrival, for each direction.
    fifo: [IdList; 2],
    /// C: start sector of the last dispatched request in each direction; the sweep continues from there.
    position: [u64; 2],
    /// A, B: the request after the last dispatched one in each direction.
    next: [Option<u32>; 2],
    /// Requests that exist: inserted and not yet completed, in flight included.
    queued: u32,
    /// Requests that wait here, sorted or in the head list.
    waiting: u32,
}

/// The state of a request.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// When it expires, ticks.
    expiry: u64,
    /// Its first sector when it was inserted or last grew at its front, which is its key in `sort`.
    sector: u64,
    class: u8,
    direction: u8,
    location: Location,
    /// It is counted in its class's `queued`, which happens only once.
    is_counted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Location {
    #[default]
    Elsewhere,
    Sorted,
    Head,
}

impl MqDeadline {
    /// A fresh scheduler with default tunables, for request ids below `capacity`.
    #[must_use]
    pub fn new(config: MqDeadlineConfig, capacity: u32) -> Self {
        let capacity = capacity as usize;
        let ticks = |ms| config.hz.ticks_from_millis(ms);
        MqDeadline {
            expire_ticks: [ticks(500), ticks(5000)],
            writes_starved: 2,
            front_merges: true,
            fifo_batch: 16,
            async_depth: config.default_async_depth(),
            prio_aging_ticks: ticks(10_000),
            last_direction: Direction::Write,
            batching: 0,
            starved: 0,
            classes: Default::default(),
            heads: Default::default(),
            waiting: 0,
            entries: vec![Entry::default(); capacity],
            links: Links::new(capacity),
            config,
        }
    }

    fn class_of(&self, rq: &Request) -> usize {
        if self.config.generation == DeadlineGeneration::A {
            return BEST_EFFORT;
        }
        match rq.ioprio.class() {
            PriorityClass::RealTime => 0,
            PriorityClass::None | PriorityClass::BestEffort => BEST_EFFORT,
            PriorityClass::Idle => 2,
        }
    }

    /// Whether there is one head list for the device, which precedes classes and ageing.
    fn has_one_head_list(&self) -> bool {
        matches!(self.config.generation, DeadlineGeneration::A | DeadlineGeneration::CPrime)
    }

    fn head_list_of(&self, class: usize) -> usize {
        if self.has_one_head_list() { 0 } else { class }
    }

    fn sweeps_by_position(&self) -> bool {
        self.config.generation >= DeadlineGeneration::C
    }

    fn is_strict(&self) -> bool {
        self.config.generation >= DeadlineGeneration::B2
    }

    // --- dispatch, top down ---

    /// The next request to dispatch (DD-11 to DD-13).
    fn choose(&mut self, now: u64) -> (Option<u32>, Reason) {
        if self.has_one_head_list()
            && let Some(id) = self.heads[0].first()
        {
            self.dispatch_head(id);
            return (Some(id), Reason::HeadList);
        }
        if self.is_strict() && self.classes.iter().filter(|class| class.queued > 0).count() >= 2 {
            let limit = now as i64 - self.prio_aging_ticks as i64;
            for class in [BEST_EFFORT, 2] {
                if self.classes[class].waiting > 0
                    && let (Some(id), _) = self.choose_in_class(class, now, limit)
                {
                    return (Some(id), Reason::Aged);
                }
            }
        }
        // After the expiry times were reduced, waiting requests seem to have been inserted in the future.
        let newest = if self.is_strict() { now as i64 } else { i64::MAX };
        for class in 0..CLASSES {
            if self.classes[class].waiting > 0 {
                let (chosen, reason) = self.choose_in_class(class, now, newest);
                if chosen.is_some() {
                    return (chosen, reason);
                }
            }
            if self.is_strict() && self.classes[class].queued > 0 {
                return (None, Reason::HigherClassInFlight);
            }
        }
        (None, Reason::Empty)
    }

    /// DD-14 to DD-17: the next request of one class, if it was inserted at or before tick `limit`. Changes of
    /// direction and batch are kept even if the limit then rules the request out.
    #[inline(always)]
    fn choose_in_class(&mut self, class: usize, now: u64, limit: i64) -> (Option<u32>, Reason) {
        if !self.has_one_head_list()
            && let Some(id) = self.heads[class].first()
        {
            if self.inserted_at(id) > limit {
                return (None, Reason::Empty);
            }
            self.dispatch_head(id);
            return (Some(id), Reason::HeadList);
        }
        let (id, reason) = match self.continuation(class) {
            Some(id) if self.batching < self.fifo_batch => (id, Reason::Batch),
            _ => {
                let Some(direction) = self.choose_direction(class) else { return (None, Reason::Empty) };
                let start = self.start_of_batch(class, direction, now);
                self.last_direction = direction;
                self.batching = 0;
                start
            }
        };
        if self.inserted_at(id) > limit {
            return (None, Reason::Empty);
        }
        self.batching = self.batching.saturating_add(1);
        self.dispatch_sorted(id);
        (Some(id), reason)
    }

    /// The next request of the sweep in `direction`.
    fn next_in_sweep(&self, class: usize, direction: Direction) -> Option<u32> {
        let (class, d) = (&self.classes[class], direction.index());
        if self.sweeps_by_position() { class.sort[d].at_or_after(class.position[d]) } else { class.next[d] }
    }

    /// The request that would continue the running batch.
    fn continuation(&self, class: usize) -> Option<u32> {
        if self.config.generation == DeadlineGeneration::A {
            let next = &self.classes[class].next;
            next[Direction::Write.index()].or(next[Direction::Read.index()])
        } else {
            self.next_in_sweep(class, self.last_direction)
        }
    }

    /// The direction of a new batch. Counts the batches of reads that writes had to wait for.
    fn choose_direction(&mut self, class: usize) -> Option<Direction> {
        let [has_reads, has_writes] = Direction::BOTH.map(|d| !self.classes[class].fifo[d.index()].is_empty());
        if has_reads {
            if !has_writes {
                return Some(Direction::Read);
            }
            let writes_starve = self.starved >= self.writes_starved as u32;
            self.starved = self.starved.wrapping_add(1);
            if !writes_starve {
                return Some(Direction::Read);
            }
        } else if !has_writes {
            return None;
        }
        self.starved = 0;
        Some(Direction::Write)
    }

    /// Where a new batch begins; the direction has something.
    fn start_of_batch(&self, class: usize, direction: Direction, now: u64) -> (u32, Reason) {
        let oldest = self.classes[class].fifo[direction.index()].first().expect("the direction has requests");
        match self.next_in_sweep(class, direction) {
            _ if now >= self.entries[oldest as usize].expiry => (oldest, Reason::Expired),
            Some(next) => (next, Reason::Resumed),
            None => (oldest, Reason::Wrapped),
        }
    }

    /// When a request was inserted, computed from its expiry with the *present* value of the tunable.
    fn inserted_at(&self, id: u32) -> i64 {
        let entry = &self.entries[id as usize];
        entry.expiry as i64 - self.expire_ticks[usize::from(entry.direction)] as i64
    }

    /// Dispatches the first request of a head list. Batch, direction and starvation do not change.
    fn dispatch_head(&mut self, id: u32) {
        let entry = self.entries[id as usize];
        let list = self.head_list_of(usize::from(entry.class));
        self.heads[list].remove(&mut self.links, id);
        // The sector from which the sweep continues.
        self.classes[usize::from(entry.class)].position[usize::from(entry.direction)] = entry.sector;
        self.classes[usize::from(entry.class)].waiting -= 1;
        self.entries[id as usize].location = Location::Elsewhere;
        self.waiting -= 1;
    }

    /// Dispatches a sorted request; the sweep of its direction continues behind it.
    #[inline(always)]
    fn dispatch_sorted(&mut self, id: u32) {
        let Entry { class, direction, sector, .. } = self.entries[id as usize];
        let d = usize::from(direction);
        let class = &mut self.classes[usize::from(class)];
        if self.config.generation < DeadlineGeneration::C {
            class.next[d] = class.sort[d].next(id, sector);
        }
        if self.config.generation == DeadlineGeneration::A {
            class.next[1 - d] = None;
        }
        class.position[d] = sector;
        self.remove_sorted(id);
    }

    /// Takes a request out of the sorted order and the fifo.
    #[inline(always)]
    fn remove_sorted(&mut self, id: u32) {
        let Entry { class, direction, sector, .. } = self.entries[id as usize];
        let d = usize::from(direction);
        let class = &mut self.classes[usize::from(class)];
        if class.next[d] == Some(id) {
            class.next[d] = class.sort[d].next(id, sector);
        }
        class.sort[d].remove(id, sector);
        class.fifo[d].remove(&mut self.links, id);
        class.waiting -= 1;
        self.entries[id as usize].location = Location::Elsewhere;
        self.waiting -= 1;
    }
}

impl Scheduler for MqDeadline {
    fn needs(&self) -> Needs {
        Needs {
            completions: Completions::Deferred,
            min_shallow: self.config.announced_depth(self.async_depth),
            ..Needs::default()
        }
    }

    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        let rq = cx.rq(id);
        let (class, direction, sector) = (self.class_of(rq), rq.direction(), rq.sector.0);
        let entry = &mut self.entries[id.index()];
        entry.class = class as u8;
        entry.direction = direction as u8;
        entry.sector = sector;
        if !entry.is_counted {
            entry.is_counted = true;
            self.classes[class].queued += 1;
        }
        self.waiting += 1;
        self.classes[class].waiting += 1;
        match place {
            Place::Head => {
                entry.location = Location::Head;
                entry.expiry = cx.now.tick.0;
                let list = self.head_list_of(class);
                self.heads[list].push_front(&mut self.links, id.0);
            }
            Place::Sorted => {
                entry.location = Location::Sorted;
                entry.expiry = cx.now.tick.0 + self.expire_ticks[direction.index()];
                let class = &mut self.classes[class];
                class.sort[direction.index()].insert(id.0, sector);
                class.fifo[direction.index()].push_back(&mut self.links, id.0);
            }
        }
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        let (id, reason) = self.choose(cx.now.tick.0);
        Choice { rq: id.map(RqId), reason }
    }

    fn finish(&mut self, _cx: &mut PolicyCx<'_>, id: RqId) {
        let entry = &mut self.entries[id.index()];
        if entry.is_counted {
            entry.is_counted = false;
            self.classes[usize::from(entry.class)].queued -= 1;
        }
    }

    fn has_work(&self) -> bool {
        self.waiting > 0
    }

    #[inline(always)]
    fn front_candidate(&self, cx: &PolicyCx<'_>, bio: &Bio) -> Option<RqId> {
        if !self.front_merges {
            return None;
        }
        let class = match (self.config.generation, bio.ioprio.class()) {
            (DeadlineGeneration::A, _) | (_, PriorityClass::None | PriorityClass::BestEffort) => BEST_EFFORT,
            (_, PriorityClass::RealTime) => 0,
            (_, PriorityClass::Idle) => 2,
        };
        let order = &self.classes[class].sort[bio.op.direction().index()];
        let id = RqId(order.find(bio.end().0)?);
        crate::request::merge::mergeable(cx.rq(id)).then_some(id)
    }

    fn previous(&self, id: RqId) -> Option<RqId> {
        let entry = &self.entries[id.index()];
        if entry.location != Location::Sorted {
            return None;
        }
        let order = &self.classes[usize::from(entry.class)].sort[usize::from(entry.direction)];
        order.previous(id.0, entry.sector).map(RqId)
    }

    fn next(&self, id: RqId) -> Option<RqId> {
        let entry = &self.entries[id.index()];
        if entry.location != Location::Sorted {
            return None;
        }
        let order = &self.classes[usize::from(entry.class)].sort[usize::from(entry.direction)];
        order.next(id.0, entry.sector).map(RqId)
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, edge: Edge) {
        let entry = self.entries[id.index()];
        if edge == Edge::Front && entry.location == Location::Sorted {
            let order = &mut self.classes[usize::from(entry.class)].sort[usize::from(entry.direction)];
            let sector = cx.rq(id).sector.0;
            order.remove(id.0, entry.sector);
            order.insert(id.0, sector);
            self.entries[id.index()].sector = sector;
        }
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        let [survivor_entry, absorbed_entry] = [survivor, absorbed].map(|id| self.entries[id.index()]);
        debug_assert!(survivor_entry.location == Location::Sorted && absorbed_entry.location == Location::Sorted);
        if absorbed_entry.expiry < survivor_entry.expiry {
            // The survivor takes over the earlier expiry and the place that goes with it.
            let fifo = &mut self.classes[usize::from(survivor_entry.class)].fifo[usize::from(survivor_entry.direction)];
            fifo.remove(&mut self.links, survivor.0);
            fifo.insert_before(&mut self.links, absorbed.0, survivor.0);
            self.entries[survivor.index()].expiry = absorbed_entry.expiry;
        }
        self.remove_sorted(absorbed.0);
    }

    fn limit_depth(&mut self, _cx: &mut PolicyCx<'_>, bio: &Bio) -> Option<u32> {
        let sync_read = bio.op.direction() == Direction::Read && is_sync(bio.op, bio.flags);
        if sync_read { None } else { self.config.shallow_depth(self.async_depth) }
    }

    fn on_event(&mut self, _cx: &mut PolicyCx<'_>, event: SchedulerEvent) {
        if let SchedulerEvent::Depths { nr_requests, async_depth } = event {
            self.config.nr_requests = nr_requests;
            self.async_depth = async_depth.unwrap_or_else(|| self.config.default_async_depth());
        }
    }

    fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.entries.len());
        self.entries.resize(capacity, Entry::default());
        self.links.grow(capacity);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        tunables::tunables(&self.config).shown(self)
    }

    fn set_tunable(&mut self, _cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        tunables::tunables(&self.config).store(self, name, text)
    }
}

impl Replayable for MqDeadline {
    fn adopt(&mut self, _cx: &mut PolicyCx<'_>, _hctx: HctxId, id: RqId) {
        let entry = self.entries[id.index()];
        match entry.location {
            Location::Elsewhere => {}
            Location::Head => self.dispatch_head(id.0),
            Location::Sorted => {
                let direction = if entry.direction == 0 { Direction::Read } else { Direction::Write };
                if direction != self.last_direction || self.batching >= self.fifo_batch {
                    let fifo = &self.classes[usize::from(entry.class)].fifo;
                    match direction {
                        Direction::Write => self.starved = 0,
                        Direction::Read if !fifo[1].is_empty() => self.starved = self.starved.wrapping_add(1),
                        Direction::Read => {}
                    }
                    self.last_direction = direction;
                    self.batching = 0;
                }
                self.batching = self.batching.saturating_add(1);
                self.dispatch_sorted(id.0);
            }
        }
    }
}
