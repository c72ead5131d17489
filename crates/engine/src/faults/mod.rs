//! Fault injection below the engine, determined by a seed. A disk in memory has a ring that fails, transfers short, refuses and
//! stalls. The disk can be removed and put back, and after a power cut it lacks data that was not durable. For tests that run
//! everything on one thread and in virtual time; compiled only with the feature `faults`.
//!
//! Used by: crate `serve`.
//! Tests: `crates/engine/src/faults/` (in its files), `crates/serve/src/faults/`.

mod allocator;
mod disk;
#[cfg(test)]
mod history;
mod random;
mod ring;
#[cfg(test)]
mod shared_block;

pub use allocator::CountingAllocator;
pub use disk::Disk;
pub use random::Random;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hoistway_blk::bio::Limits;
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES, Sector};

use crate::backend::{Backend, Extent, FileChannel, FileListing, FileTable, IoChannel, Shape, VolumeShape};
use crate::clock::Clock;
use ring::FaultyRing;

/// A clock that a test advances. Clones are the same clock.
#[derive(Clone, Default, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Advances the clock by `time`.
    pub fn advance(&self, time: Nanos) {
        self.0.fetch_add(time.0, Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant(self.0.load(Relaxed))
    }
}

/// A target over a faulty disk: one volume, two hardware queues of four commands.
pub struct FaultyTarget {
    shape: Shape,
    disk: Disk,
    seed: u64,
    /// Bytes in which I/O gets no EIO or ENOSPC.
    sound: Range<u64>,
}

impl FaultyTarget {
    /// A target over this disk. I/O wholly within `sound`, in bytes from the start, gets no EIO or ENOSPC. Everything else
    /// happens there, too: refused jobs, short transfers, EINTR, EAGAIN, stalls, unsupported punches, and ENODEV while the
    /// disk is removed. Syncs have no range and can always fail.
    #[must_use]
    pub fn new(disk: Disk, seed: u64, sound: Range<u64>) -> Self {
        let sectors = disk.bytes() / SECTOR_BYTES;
        let limits = Limits {
            capacity: Sector(sectors),
            max_write_zeroes_sectors: 64,
            write_cache: true,
            fua: seed.is_multiple_of(2),
            ..Limits::new(1, 1, 16, 2560, 4)
        };
        let volumes = vec![VolumeShape::new(Sector(0), sectors)];
        let shape = Shape { volumes, limits, hw_queues_max: 2, queue_depth: 4, host_wide_tags: false };
        FaultyTarget { shape, disk, seed, sound }
    }
}

impl Backend for FaultyTarget {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Worker `worker`'s ring over the disk; the worker's number is part of its seed.
    fn channel(&self, worker: usize) -> io::Result<Box<dyn IoChannel>> {
        let random = Random::new(self.seed * 31 + worker as u64);
        let ring = FaultyRing::new(self.disk.clone(), random, self.sound.clone());
        let table = FileTable::new(FileListing::without_files(&self.shape.volumes));
        Ok(Box::new(FileChannel::new(ring, Arc::new(table))))
    }

    /// Extents of the disk: sectors of zeroes are reported as holes, as in a sparse file.
    fn extents(&self, range: Range<Sector>, extents_max: usize) -> io::Result<Vec<Extent>> {
        let pieces = self.disk.pieces(range.start.0 as usize..range.end.0 as usize);
        let pieces = pieces.ok_or_else(|| io::Error::other("the disk is gone"))?;
        Ok(pieces
            .into_iter()
            .take(extents_max.max(1))
            .map(|(sectors, is_hole)| Extent { bytes: sectors * SECTOR_BYTES, is_hole })
            .collect())
    }
}
