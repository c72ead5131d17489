//! Recognises sequential streams: a write that begins where a recent one ended.
//!
//! Used by: `ssd`, `flash`.
//! Tests: `crates/device/tests/models.rs`, `crates/device/tests/exact.rs`.

use hoistway_blk::ground::Sector;

/// Number of streams that are distinguished: the maximum number of interleaved streams that is recognised.
pub(crate) const STREAMS: usize = 8;

/// The sectors after the last [`STREAMS`] writes.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    ends: [Sector; STREAMS],
    /// The entry that is replaced next.
    oldest: usize,
}

impl Default for Streams {
    fn default() -> Streams {
        // No write starts there, since it would have to end beyond the largest device.
        Streams { ends: [Sector(u64::MAX); STREAMS], oldest: 0 }
    }
}

impl Streams {
    /// Whether the write starts where a recent one ended. Records the end of this one.
    #[inline]
    pub(crate) fn continues(&mut self, sector: Sector, sectors: u32) -> bool {
        let end = sector + sectors;
        for known in &mut self.ends {
            if *known == sector {
                *known = end;
                return true;
            }
        }
        self.ends[self.oldest] = end;
        self.oldest = (self.oldest + 1) % STREAMS;
        false
    }
}
