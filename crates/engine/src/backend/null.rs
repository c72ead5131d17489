//! A target that completes everything at once without doing anything: it shows the cost of the engine itself.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hoistway_blk::bio::{Limits, Status};
use hoistway_blk::ground::{Instant, SECTOR_BYTES, Sector};

use super::{Backend, Command, Ended, IoChannel, Shape, Started, VolumeShape};
use crate::memory::Segments;
use crate::wake::{Parker, Wake};

const QUEUE_DEPTH: u32 = 256;

/// Volumes that discard writes, and leave the buffers of reads unchanged.
pub struct Null {
    shape: Shape,
}

impl Null {
    /// One volume of this many sectors.
    #[must_use]
    pub fn new(sectors: u64) -> Self {
        Null::with_volumes(&[sectors * SECTOR_BYTES])
    }

    /// Volumes of these lengths in bytes.
    #[must_use]
    pub fn with_volumes(bytes: &[u64]) -> Self {
        let mut volumes = Vec::new();
        let mut sectors = 0;
        for &bytes in bytes {
            let length = bytes.div_ceil(SECTOR_BYTES);
            volumes.push(VolumeShape { bytes, ..VolumeShape::new(Sector(sectors), length) });
            sectors += length;
        }
        let limits = Limits { capacity: Sector(sectors), max_write_zeroes_sectors: u32::MAX >> 9, ..Limits::default() };
        let shape = Shape { volumes, limits, hw_queues_max: u16::MAX, queue_depth: QUEUE_DEPTH, host_wide_tags: false };
        Null { shape }
    }
}

impl Backend for Null {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn channel(&self, _: usize) -> io::Result<Box<dyn IoChannel>> {
        Ok(Box::new(NullChannel(Arc::default())))
    }
}

struct NullChannel(Arc<Parker>);

impl IoChannel for NullChannel {
    #[inline]
    fn start(&mut self, _: Instant, _: &Command, _: Segments<'_>) -> Started {
        Started::Done(Status::Ok)
    }

    fn reap(&mut self, _: Instant, _: &mut Vec<Ended>) {}

    fn sleep(&mut self, timeout: Option<Duration>) {
        self.0.park(timeout);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.0) as Arc<dyn Wake>
    }
}
