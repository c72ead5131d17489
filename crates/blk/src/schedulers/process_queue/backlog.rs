//! The requests that wait in one queue: by sector, by arrival with a deadline, and the next one to dispatch.
//!
//! The tables that the lists and trees of *all* queues live in are in one [`RequestTable`], indexed by request, so
//! that a queue itself is small and nothing is allocated per request.
//!
//! Rules: BFQ-57 to BFQ-63, CFQ-14 to CFQ-19.

use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{RqId, Sector};
use crate::ground::sorted_tree::{Nodes, SortedTree};

use super::choice::{Candidate, Chooser};

/// The data of each request, for the backlogs of all queues of a scheduler.
#[derive(Clone, Debug)]
pub struct RequestTable {
    nodes: Nodes,
    links: Links,
    waiting: Vec<Waiting>,
}

/// The data of a waiting request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    /// When it expires, in the unit of the scheduler.
    pub deadline: i64,
    /// Whether a task waits for it.
    pub sync: bool,
    /// Whether it is flagged as important.
    pub prio: bool,
}

/// The requests that wait in one queue.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    /// By start sector; equal sectors keep the order of arrival.
    sorted: SortedTree,
    /// By arrival.
    fifo: IdList,
    /// The next one to dispatch, unless an older one has expired.
    next: Option<RqId>,
    /// The number of requests.
    len: u32,
    /// How many of them are flagged as important.
    prio: u32,
}

impl RequestTable {
    /// For request ids below `capacity`.
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        RequestTable {
            nodes: Nodes::new(capacity),
            links: Links::new(capacity),
            waiting: vec![Waiting::default(); capacity],
        }
    }

    /// Makes room for the request ids below `capacity`.
    pub fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.waiting.len());
        self.nodes.grow(capacity);
        self.links.grow(capacity);
        self.waiting.resize(capacity, Waiting::default());
    }

    /// The start sector of a request that waits.
    #[inline]
    pub fn sector(&self, id: RqId) -> Sector {
        Sector(self.nodes.key(id.0))
    }

    /// Whether a request that waits is flagged as important.
    pub fn is_prio(&self, id: RqId) -> bool {
        self.waiting[id.index()].prio
    }

    /// When a waiting request expires.
    pub fn deadline(&self, id: RqId) -> i64 {
        self.waiting[id.index()].deadline
    }

    /// A waiting request, as input of a [`Chooser`].
    #[inline]
    pub fn candidate(&self, id: RqId) -> Candidate {
        let Waiting { sync, prio, .. } = self.waiting[id.index()];
        Candidate { id, sector: self.sector(id), sync, prio }
    }
}

impl Backlog {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many requests wait.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether one of them is flagged as important.
    #[inline]
    pub fn has_prio(&self) -> bool {
        self.prio > 0
    }

    /// The next one to dispatch.
    #[inline]
    pub fn next(&self) -> Option<RqId> {
        self.next
    }

    /// The oldest one, if it has expired.
    #[inline]
    pub fn expired(&self, table: &RequestTable, now: i64) -> Option<RqId> {
        let oldest = RqId(self.fifo.first()?);
        (now >= table.waiting[oldest.index()].deadline).then_some(oldest)
    }

    /// Adds `id`. The next one to dispatch changes only in [`reconsider`](Self::reconsider).
    #[inline]
    pub fn insert(&mut self, table: &mut RequestTable, id: RqId, sector: Sector, waiting: Waiting) {
        table.waiting[id.index()] = waiting;
        self.sorted.insert(&mut table.nodes, id.0, sector.0);
        self.fifo.push_back(&mut table.links, id.0);
        self.len += 1;
        self.prio += u32::from(waiting.prio);
    }

    /// Compares `id`, which has just arrived or moved, with the next one to dispatch, as seen from `position`. Returns
    /// whether the next one has changed.
    #[inline]
    pub fn reconsider(&mut self, table: &RequestTable, chooser: Chooser, id: RqId, position: Sector) -> bool {
        let current = self.next.map(|next| table.candidate(next));
        let better = chooser.better(current, Some(table.candidate(id)), position);
        let has_changed = better != self.next;
        self.next = better;
        has_changed
    }

    /// The request to dispatch after `id`: the neighbour that is better as seen from the first sector of `id`. The last
    /// one is followed by the first.
    #[inline]
    pub fn successor(&self, table: &RequestTable, chooser: Chooser, id: RqId) -> Option<RqId> {
        let nodes = &table.nodes;
        let above = self.sorted.next(nodes, id.0).or_else(|| self.sorted.first(nodes).filter(|&first| first != id.0));
        let below = self.sorted.previous(nodes, id.0);
        let candidate = |neighbour: Option<u32>| neighbour.map(|id| table.candidate(RqId(id)));
        chooser.better(candidate(above), candidate(below), table.sector(id))
    }

    /// Makes `next` the next one to dispatch.
    #[inline]
    pub fn set_next(&mut self, next: Option<RqId>) {
        self.next = next;
    }

    /// Takes `id` out. If it was the next one, the caller has set another before.
    #[inline]
    pub fn remove(&mut self, table: &mut RequestTable, id: RqId) {
        debug_assert!(self.next != Some(id), "the next request to dispatch is in the backlog");
        self.sorted.remove(&mut table.nodes, id.0);
        self.fifo.remove(&mut table.links, id.0);
        self.len -= 1;
        self.prio -= u32::from(table.waiting[id.index()].prio);
    }

    /// `id` has grown at its front and now begins at `sector`. Returns whether it has overtaken the one before it.
    pub fn resort(&mut self, table: &mut RequestTable, id: RqId, sector: Sector) -> bool {
        let overtakes = self.before(table, id).is_some_and(|before| table.sector(before) > sector);
        self.sorted.remove(&mut table.nodes, id.0);
        self.sorted.insert(&mut table.nodes, id.0, sector.0);
        overtakes
    }

    /// `survivor` absorbs `absorbed`, which is about to be removed: it inherits an earlier deadline together with the
    /// place in the order of arrival, and becomes the next one if `absorbed` was that.
    pub fn inherit(&mut self, table: &mut RequestTable, survivor: RqId, absorbed: RqId) {
        let earlier = table.waiting[absorbed.index()].deadline;
        if earlier < table.waiting[survivor.index()].deadline {
            self.fifo.remove(&mut table.links, survivor.0);
            self.fifo.insert_before(&mut table.links, absorbed.0, survivor.0);
            table.waiting[survivor.index()].deadline = earlier;
        }
        if self.next == Some(absorbed) {
            self.next = Some(survivor);
        }
    }

    /// The request that begins at `sector`.
    #[inline]
    pub fn starting_at(&self, table: &RequestTable, sector: Sector) -> Option<RqId> {
        self.sorted.find(&table.nodes, sector.0).map(RqId)
    }

    /// The request before `id` by sector.
    #[inline]
    pub fn before(&self, table: &RequestTable, id: RqId) -> Option<RqId> {
        self.sorted.previous(&table.nodes, id.0).map(RqId)
    }

    /// The request after `id` by sector.
    #[inline]
    pub fn after(&self, table: &RequestTable, id: RqId) -> Option<RqId> {
        self.sorted.next(&table.nodes, id.0).map(RqId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOOSER: Chooser = Chooser { back_sectors_max: 32_768, back_penalty: 2 };

    fn filled(sectors: &[u64]) -> (Backlog, RequestTable) {
        let (mut backlog, mut table) = (Backlog::default(), RequestTable::new(16));
        for (id, &sector) in sectors.iter().enumerate() {
            let id = RqId(id as u32);
            let waiting = Waiting { deadline: i64::from(id.0), sync: true, prio: false };
            backlog.insert(&mut table, id, Sector(sector), waiting);
            backlog.reconsider(&table, CHOOSER, id, Sector(0));
        }
        (backlog, table)
    }

    #[test]
    fn the_successor_of_the_last_request_is_the_first_unless_the_one_before_is_nearer() {
        let (backlog, table) = filled(&[100, 200_000, 200_100]);
        assert_eq!(backlog.successor(&table, CHOOSER, RqId(2)), Some(RqId(1)));
        let (backlog, table) = filled(&[100, 200_000, 400_000]);
        assert_eq!(backlog.successor(&table, CHOOSER, RqId(2)), Some(RqId(0)), "both wrapped: the lowest");
        let (backlog, table) = filled(&[100]);
        assert_eq!(backlog.successor(&table, CHOOSER, RqId(0)), None);
    }

    #[test]
    fn the_successor_is_judged_from_the_start_of_its_predecessor() {
        // From 1000: 400 forward against 150 * 2 backward.
        let (backlog, table) = filled(&[850, 1_000, 1_400]);
        assert_eq!(backlog.successor(&table, CHOOSER, RqId(1)), Some(RqId(0)));
    }

    #[test]
    fn a_merge_survivor_inherits_the_earlier_deadline_its_place_and_the_turn() {
        let (mut backlog, mut table) = filled(&[300, 900, 200]);
        backlog.set_next(Some(RqId(0)));
        backlog.inherit(&mut table, RqId(2), RqId(0));
        backlog.remove(&mut table, RqId(0));
        assert_eq!(backlog.next(), Some(RqId(2)));
        assert_eq!(backlog.expired(&table, 0), Some(RqId(2)));
        assert_eq!(backlog.len(), 2);
    }

    #[test]
    fn equal_sectors_keep_the_order_of_arrival() {
        let (backlog, table) = filled(&[500, 500, 500]);
        assert_eq!(backlog.after(&table, RqId(0)), Some(RqId(1)));
        assert_eq!(backlog.before(&table, RqId(2)), Some(RqId(1)));
        assert_eq!(backlog.starting_at(&table, Sector(500)), Some(RqId(0)));
    }

    #[test]
    fn a_request_grown_to_the_start_of_its_predecessor_has_not_overtaken_it() {
        for (sector, overtakes) in [(201, false), (200, false), (199, true)] {
            let (mut backlog, mut table) = filled(&[100, 200, 300]);
            assert_eq!(backlog.resort(&mut table, RqId(2), Sector(sector)), overtakes, "{sector}");
            assert_eq!(backlog.before(&table, RqId(2)), Some(RqId(u32::from(!overtakes))));
        }
    }

    #[test]
    fn a_survivor_that_is_due_as_early_as_the_absorbed_one_keeps_its_place() {
        let (mut backlog, mut table) = (Backlog::default(), RequestTable::new(4));
        for id in (0..3).map(RqId) {
            let waiting = Waiting { deadline: 7, sync: true, prio: id.0 == 1 };
            backlog.insert(&mut table, id, Sector(u64::from(id.0) * 100), waiting);
        }
        backlog.inherit(&mut table, RqId(2), RqId(0));
        backlog.remove(&mut table, RqId(0));
        assert_eq!(backlog.expired(&table, 7), Some(RqId(1)));
        assert!(backlog.has_prio());
        backlog.remove(&mut table, RqId(1));
        assert!(!backlog.has_prio(), "the important one has gone");
    }
}
