//! Types for unaligned requests: parts of whole blocks, fences of workers and locks of ranges.

use std::ops::Range;

use hoistway_blk::bio::{Bio, Op};
use hoistway_blk::ground::Sector;

use crate::request::Request;

/// A part of an unaligned request, of whole blocks.
pub struct Part {
    /// The request for this part; its token identifies the unaligned request and the part.
    pub(super) request: Request,
    pub(super) first: Sector,
    pub(super) sectors: u32,
}

/// Sectors that clients of a worker may not write, because an unaligned request has read them.
pub struct Fence {
    /// The worker of the unaligned request, and the request's number there.
    pub(super) worker: usize,
    pub(super) op: u32,
    pub(super) sectors: Range<u64>,
    /// Writes to them in flight.
    pub(super) writes: Vec<u32>,
}

/// The fences of a worker.
#[derive(Default)]
pub struct Fences(pub(super) Vec<Fence>);

impl Fences {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a bio has to wait.
    #[cold]
    pub fn must_wait_for_fence(&self, bio: &Bio) -> bool {
        let (start, end) = (bio.sector.0, bio.sector.0 + u64::from(bio.sectors));
        matches!(bio.op, Op::Write | Op::WriteZeroes)
            && end > start
            && self.0.iter().any(|fence| start < fence.sectors.end && fence.sectors.start < end)
    }
}

/// The blocks that an unaligned request locks.
#[derive(Clone)]
pub(super) struct Lock {
    pub(super) worker: usize,
    pub(super) op: u32,
    /// In bytes.
    pub(super) blocks: Range<u64>,
    pub(super) is_held: bool,
}

/// The locks of all unaligned writes, in the order of arrival. A lock is held if no earlier one overlaps it.
#[derive(Default)]
pub struct RangeLocks(pub(super) Vec<Lock>);

impl RangeLocks {
    /// Adds a lock. Returns it if it is held at once.
    pub(super) fn add(&mut self, lock: Lock) -> Vec<Lock> {
        self.0.push(lock);
        self.grant()
    }

    /// Releases a lock. Returns those that are held now.
    pub(super) fn remove(&mut self, worker: usize, op: u32) -> Vec<Lock> {
        self.0.retain(|lock| (lock.worker, lock.op) != (worker, op));
        self.grant()
    }

    fn grant(&mut self) -> Vec<Lock> {
        let mut granted = Vec::new();
        for index in 0..self.0.len() {
            let (earlier, rest) = self.0.split_at_mut(index);
            let lock = &mut rest[0];
            let overlaps = |other: &Lock| lock.blocks.start < other.blocks.end && other.blocks.start < lock.blocks.end;
            if !lock.is_held && !earlier.iter().any(overlaps) {
                lock.is_held = true;
                granted.push(lock.clone());
            }
        }
        granted
    }
}
