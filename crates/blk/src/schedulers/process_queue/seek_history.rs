//! Seek history: the last 32 requests of a process, one bit each, set if the request was a seek. The scheduler decides
//! what counts as a seek and how many make a process seeky; the distances are the same.
//!
//! Rules: BFQ-64, CFQ-22.

use crate::ground::ids::Sector;

/// A request further than this from the end of the one before is far. Sectors.
pub const SEEK_DISTANCE: u64 = 800;
/// On devices that do not rotate only requests shorter than this can be seeks. Sectors.
pub const SMALL_ON_FLASH: u32 = 64;

/// The distance of `sector` from the end of the previous request. If `last_end` is 0, there was none.
#[inline]
pub fn distance(last_end: Sector, sector: Sector) -> u64 {
    if last_end == Sector(0) { 0 } else { last_end.0.abs_diff(sector.0) }
}

/// The bits: the newest request is the lowest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeekHistory {
    bits: u32,
    /// Where the last request ended; 0 before the first.
    last_end: Sector,
}

impl SeekHistory {
    /// A history with one seek long ago.
    pub fn with_a_seek() -> Self {
        SeekHistory { bits: 1, last_end: Sector(0) }
    }

    /// Adds the next request.
    #[inline]
    pub fn push(&mut self, is_seek: bool) {
        self.bits = self.bits << 1 | u32::from(is_seek);
    }

    /// Sets the end of the last request.
    #[inline]
    pub fn set_last_end(&mut self, end: Sector) {
        self.last_end = end;
    }

    /// Where the last request ended; 0 before the first.
    #[inline]
    pub fn last_end(self) -> Sector {
        self.last_end
    }

    /// How many of the last 32 requests were seeks.
    #[inline]
    pub fn seeks(self) -> u32 {
        self.bits.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_is_forgotten_after_thirty_two_requests() {
        let mut history = SeekHistory::default();
        history.push(true);
        for _ in 0..31 {
            history.push(false);
            assert_eq!(history.seeks(), 1);
        }
        history.push(false);
        assert_eq!(history.seeks(), 0);
        assert_eq!(SeekHistory::with_a_seek().seeks(), 1);
    }

    #[test]
    fn the_first_request_is_near_wherever_it_begins() {
        assert_eq!(distance(Sector(0), Sector(1 << 40)), 0);
        assert_eq!((distance(Sector(900), Sector(100)), distance(Sector(100), Sector(900))), (800, 800));
    }
}
