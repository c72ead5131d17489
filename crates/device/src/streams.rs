//! Recognises sequential streams: a write that begins where a recent one ended.

use hoistway_blk::ground::Sector;

/// Streams that are distinguished: the longest pattern of interleaved streams that is recognised.
pub(crate) const STREAMS: usize = 8;

/// The sectors after the last [`STREAMS`] writes.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    ends: [Sector; STREAMS],
    /// Which of them is replaced next.
    oldest: usize,
}

impl Default for Streams {
    fn default() -> Streams {
        // No write starts there: it would have to end beyond the largest device.
        Streams { ends: [Sector(u64::MAX); STREAMS], oldest: 0 }
    }
}

impl Streams {
    /// Whether the write begins where a recent one ended. Remembers where this one ends.
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
