//! A target in memory: only written blocks take space.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use hoistway_blk::bio::{Limits, Op, Status};
use hoistway_blk::ground::{Instant, SECTOR_BYTES, Sector};

use super::sparse::SparseBytes;
use super::{Backend, Command, Ended, Extent, IoChannel, Shape, Started, VolumeShape};
use crate::memory::Segments;
use crate::wake::{Parker, Wake};

/// Commands per hardware queue. They end when they are started, so it only has to be large enough for a batch.
const QUEUE_DEPTH: u32 = 256;

/// A volume of zeroes in memory; its content is lost with the engine.
pub struct Memory {
    shape: Shape,
    bytes: Arc<SparseBytes>,
}

impl Memory {
    /// A volume of this many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let sectors = bytes.div_ceil(SECTOR_BYTES);
        let limits = Limits { capacity: Sector(sectors), max_write_zeroes_sectors: u32::MAX >> 9, ..Limits::default() };
        let shape = Shape {
            volumes: vec![VolumeShape { bytes, ..VolumeShape::new(Sector(0), sectors) }],
            limits,
            hw_queues_max: u16::MAX,
            queue_depth: QUEUE_DEPTH,
            host_wide_tags: false,
        };
        Memory { shape, bytes: Arc::new(SparseBytes::new(sectors * SECTOR_BYTES)) }
    }
}

impl Backend for Memory {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn channel(&self, _: usize) -> io::Result<Box<dyn IoChannel>> {
        Ok(Box::new(MemoryChannel { bytes: Arc::clone(&self.bytes), parker: Arc::default() }))
    }

    fn extents(&self, range: Range<Sector>, extents_max: usize) -> io::Result<Vec<Extent>> {
        Ok(self.bytes.extents(range.start, range.end, extents_max))
    }
}

struct MemoryChannel {
    bytes: Arc<SparseBytes>,
    parker: Arc<Parker>,
}

impl IoChannel for MemoryChannel {
    #[inline]
    fn start(&mut self, _: Instant, command: &Command, data: Segments<'_>) -> Started {
        carry_out(&self.bytes, command, data);
        Started::Done(Status::Ok)
    }

    fn reap(&mut self, _: Instant, _: &mut Vec<Ended>) {}

    fn sleep(&mut self, timeout: Option<Duration>) {
        self.parker.park(timeout);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.parker) as Arc<dyn Wake>
    }
}

/// Carries a command out on the content.
pub(super) fn carry_out(bytes: &SparseBytes, command: &Command, mut data: Segments<'_>) {
    let (offset, len) = (command.sector.0 * SECTOR_BYTES, u64::from(command.sectors) * SECTOR_BYTES);
    match command.op {
        Op::Read => data.for_each(|before, piece| bytes.read(offset + before, piece)),
        Op::Write => data.for_each(|before, piece| bytes.write(offset + before, piece)),
        Op::Flush => {}
        Op::Discard => bytes.zero(offset, len, true),
        Op::WriteZeroes => bytes.zero(offset, len, command.zeroing.may_unmap),
    }
}
