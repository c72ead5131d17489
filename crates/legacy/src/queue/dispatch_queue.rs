//! The dispatch queue: requests that have left the elevator and wait for the driver, in order (LQ-18 to LQ-20).

use std::collections::VecDeque;

use hoistway_blk::ground::{RqId, Sector};
use hoistway_blk::request::{Marks, Request, Rq};

/// The dispatch queue of a device.
#[derive(Default)]
pub(super) struct DispatchQueue {
    list: VecDeque<Rq>,
    /// Where the sweep of sorted dispatch begins and, after wrapping, ends.
    end_sector: Sector,
    /// The request that set `end_sector`, until the driver has looked at it.
    boundary: Option<RqId>,
}

impl DispatchQueue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Inserts in the order of one sweep from `end_sector` upwards, which then continues at the lowest sector. Sorting
    /// does not pass requests of another kind, requests that the driver has seen, or barriers.
    pub(super) fn add_sorted(&mut self, rq: Rq) {
        let passed = self.list.iter().rev().take_while(|queued| self.precedes(&rq, queued)).count();
        self.list.insert(self.list.len() - passed, rq);
    }

    /// Whether `rq` may, and must, go before `queued`.
    fn precedes(&self, rq: &Request, queued: &Request) -> bool {
        let has_wrapped = |rq: &Request| rq.sector < self.end_sector;
        rq.op == queued.op
            && !queued.marks.intersects(Marks::STARTED.with(Marks::SOFT_BARRIER))
            && (has_wrapped(rq), rq.sector) < (has_wrapped(queued), queued.sector)
    }

    /// Appends a request; later sorting starts behind it.
    #[inline]
    pub(super) fn add_tail(&mut self, rq: Rq) {
        self.set_boundary(&rq);
        self.list.push_back(rq);
    }

    /// Appends a request without affecting sorting.
    pub(super) fn push_back(&mut self, rq: Rq) {
        self.list.push_back(rq);
    }

    pub(super) fn push_front(&mut self, rq: Rq) {
        self.list.push_front(rq);
    }

    /// The sweep begins behind this request.
    #[inline]
    pub(super) fn set_boundary(&mut self, rq: &Request) {
        self.end_sector = rq.end();
        self.boundary = Some(rq.id());
    }

    /// The driver looks at the head, if there is one: the sweep begins behind it, unless a boundary is still ahead.
    #[inline]
    pub(super) fn peek_head(&mut self) -> Option<&mut Rq> {
        let head = self.list.front_mut()?;
        if self.boundary.is_none_or(|boundary| boundary == head.id()) {
            self.end_sector = head.end();
            self.boundary = None;
        }
        Some(head)
    }

    /// Takes the head.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Rq> {
        self.list.pop_front()
    }

    #[cfg(test)]
    pub(super) fn sectors(&self) -> Vec<u64> {
        self.list.iter().map(|rq| rq.sector.0).collect()
    }

    #[cfg(test)]
    pub(super) fn end_sector(&self) -> Sector {
        self.end_sector
    }
}
