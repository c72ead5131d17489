//! The data of requests in flight: a worker may carry out a command of another worker's client.
//!
//! Used by: `worker`, `engine`.
//! Tests: `crates/engine/tests/model.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::SECTOR_BYTES;

use crate::backend::Zeroing;
use crate::memory::RawSegment;

const MAY_UNMAP: u32 = 1;
const NON_BLOCKING_ONLY: u32 = 2;

/// A request in flight. Its fields are accessed `Relaxed`: the request passes between workers under the locks of the
/// queue, which order the accesses.
#[derive(Default)]
struct Slot {
    address: AtomicUsize,
    first_sector: AtomicU64,
    zeroing: AtomicU32,
}

/// The requests of all workers. Each worker has a share of the numbers and allocates only from it.
#[derive(Clone)]
pub struct Slots {
    slots: Arc<[Slot]>,
    per_worker: u32,
    /// Low bits of a number: the index at its worker.
    bits: u32,
}

impl Slots {
    /// This many slots per worker.
    pub fn new(workers: usize, per_worker: u32) -> Self {
        // The numbers of each worker start at a multiple of a power of two, because shifting is faster than dividing.
        let bits = per_worker.next_power_of_two().trailing_zeros();
        Slots { slots: (0..workers << bits).map(|_| Slot::default()).collect(), per_worker, bits }
    }

    /// The numbers of a worker.
    pub fn range_of(&self, worker: usize) -> std::ops::Range<u32> {
        let first = (worker as u32) << self.bits;
        first..first + self.per_worker
    }

    /// The worker of a number, and the index at that worker.
    #[inline]
    pub fn worker_and_index(&self, slot: u32) -> (usize, usize) {
        ((slot >> self.bits) as usize, (slot & ((1 << self.bits) - 1)) as usize)
    }

    /// A request begins, with its data at `address`.
    #[inline]
    pub fn set(&self, slot: u32, address: usize, first_sector: u64, zeroing: Zeroing) {
        let slot = &self.slots[slot as usize];
        slot.address.store(address, Relaxed);
        slot.first_sector.store(first_sector, Relaxed);
        let zeroing = (u32::from(zeroing.may_unmap) * MAY_UNMAP) | (u32::from(zeroing.fast_only) * NON_BLOCKING_ONLY);
        slot.zeroing.store(zeroing, Relaxed);
    }

    /// The data of a bio.
    #[inline]
    pub fn segment(&self, bio: &Bio) -> RawSegment {
        let slot = &self.slots[bio.owner as usize];
        let offset = (bio.sector.0 - slot.first_sector.load(Relaxed)) * SECTOR_BYTES;
        RawSegment::at(slot.address.load(Relaxed) + offset as usize, (u64::from(bio.sectors) * SECTOR_BYTES) as usize)
    }

    /// The first sector of a request.
    pub fn first_sector(&self, slot: u32) -> u64 {
        self.slots[slot as usize].first_sector.load(Relaxed)
    }

    /// How a write-zeroes may zero.
    pub fn zeroing(&self, bio: &Bio) -> Zeroing {
        let bits = self.slots[bio.owner as usize].zeroing.load(Relaxed);
        Zeroing { may_unmap: bits & MAY_UNMAP != 0, fast_only: bits & NON_BLOCKING_ONLY != 0 }
    }
}
