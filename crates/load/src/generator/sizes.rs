//! Draws the sizes of I/Os.

use std::sync::Arc;

use crate::stream::Stream;
use crate::{Share, Sizes};

/// How the sizes of a direction are drawn.
#[derive(Clone, Debug)]
pub(super) enum Draw {
    Fixed(u32),
    Range {
        min: u32,
        max: u32,
        step: u32,
    },
    /// Sizes with their shares. The last share ends at 2^32.
    Split(Arc<[SizeShare]>),
}

/// A size and its share of the draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizeShare {
    /// A 32-bit draw below this, and not below the end of the previous share, has this size.
    end: u64,
    bytes: u32,
}

impl Draw {
    pub(super) fn new(sizes: &Sizes) -> Draw {
        let shares = match sizes {
            Sizes::Fixed(bytes) => return Draw::Fixed(*bytes),
            Sizes::Range { min, max, step } => return Draw::Range { min: *min, max: *max, step: *step },
            Sizes::Split(shares) => shares,
        };
        let mut total = 0.0;
        let mut sizes: Vec<SizeShare> = Vec::with_capacity(shares.len());
        for share in Share::drawn(shares) {
            total += share.percent;
            sizes.push(SizeShare { end: (total / 100.0 * (1u64 << 32) as f64) as u64, bytes: share.bytes });
        }
        if let Some(last) = sizes.last_mut() {
            last.end = 1 << 32;
        }
        Draw::Split(sizes.into())
    }

    /// A size that fits into `room`, which must be at least the smallest size. As in fio, a draw that does not fit is
    /// repeated, so smaller blocks fill the end of a region.
    #[inline]
    pub(super) fn draw(&self, room: u64, stream: &mut Stream) -> u32 {
        match self {
            Draw::Fixed(bytes) => *bytes,
            _ => self.draw_varied(room, stream),
        }
    }

    fn draw_varied(&self, room: u64, stream: &mut Stream) -> u32 {
        const DRAWS_MAX: usize = 64;
        for _ in 0..DRAWS_MAX {
            let bytes = self.draw_any(stream);
            if u64::from(bytes) <= room {
                return bytes;
            }
        }
        self.largest_within(room)
    }

    fn draw_any(&self, stream: &mut Stream) -> u32 {
        match self {
            Draw::Fixed(bytes) => *bytes,
            Draw::Range { min, max, step } => {
                let bytes = u64::from(*min) + stream.below(u64::from(*max));
                (bytes - bytes % u64::from(*step)).min(u64::from(*max)) as u32
            }
            Draw::Split(shares) => {
                let draw = stream.bits() >> 32;
                shares.iter().find(|share| draw < share.end).map_or(0, |share| share.bytes)
            }
        }
    }

    fn largest_within(&self, room: u64) -> u32 {
        match self {
            Draw::Fixed(bytes) => *bytes,
            Draw::Range { min, step, .. } => {
                // All draws failed, so the room is below `max`.
                let room = room.min(u64::from(u32::MAX)) as u32;
                (room - room % step).max(*min)
            }
            Draw::Split(shares) => {
                let fitting = shares.iter().map(|share| share.bytes).filter(|&bytes| u64::from(bytes) <= room);
                fitting.max().unwrap_or_else(|| shares.iter().map(|share| share.bytes).min().unwrap_or(0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;
    use std::collections::BTreeMap;

    fn shares(sizes: &Draw, room: u64) -> BTreeMap<u32, f64> {
        let mut stream = Stream::new(3, 0, Purpose::Size);
        let mut counts = BTreeMap::new();
        for _ in 0..40_000 {
            *counts.entry(sizes.draw(room, &mut stream)).or_insert(0.0) += 1.0 / 40_000.0;
        }
        counts
    }

    fn split<const N: usize>(shares: [(u32, f64); N]) -> Sizes {
        Sizes::Split(Arc::new(shares.map(|(bytes, percent)| Share { bytes, percent })))
    }

    #[test]
    fn a_range_is_even_over_its_multiples() {
        let range = Draw::Range { min: 4096, max: 16384, step: 4096 };
        let shares = shares(&range, u64::MAX);
        assert_eq!(shares.keys().copied().collect::<Vec<_>>(), [4096, 8192, 12288, 16384]);
        assert!(shares.values().all(|share| (share - 0.25).abs() < 0.02), "{shares:?}");
    }

    #[test]
    fn a_range_that_ends_between_multiples_is_cut_to_its_end_as_in_fio() {
        let shares = shares(&Draw::Range { min: 4096, max: 10240, step: 4096 }, u64::MAX);
        assert_eq!(shares.keys().copied().collect::<Vec<_>>(), [4096, 8192, 10240]);
        assert!((shares[&4096] - 0.4).abs() < 0.02 && (shares[&10240] - 0.2).abs() < 0.02, "{shares:?}");
    }

    #[test]
    fn a_split_keeps_its_shares() {
        let split = Draw::new(&split([(512, 50.0), (4096, 25.0), (65536, 25.0)]));
        let shares = shares(&split, u64::MAX);
        for (bytes, share) in [(512, 0.5), (4096, 0.25), (65536, 0.25)] {
            assert!((shares[&bytes] - share).abs() < 0.02, "{shares:?}");
        }
    }

    #[test]
    fn a_size_that_does_not_fit_is_drawn_again() {
        let split = Draw::new(&split([(4096, 1e-7), (65536, 100.0)]));
        assert_eq!(shares(&split, 8192).keys().copied().collect::<Vec<_>>(), [4096]);
        let range = Draw::Range { min: 4096, max: 16384, step: 4096 };
        assert!(shares(&range, 13_000).keys().all(|&bytes| bytes <= 12_288));
    }

    #[test]
    fn a_share_of_nothing_is_never_drawn_not_even_where_it_would_fit_best() {
        let split = Draw::new(&split([(4096, 1e-7), (8192, 0.0), (65536, 100.0)]));
        assert_eq!(shares(&split, 8192).keys().copied().collect::<Vec<_>>(), [4096]);
    }

    #[test]
    fn after_repeated_failed_draws_the_largest_fitting_size_is_used() {
        let range = Draw::Range { min: 1024, max: 1 << 30, step: 512 };
        for (room, bytes) in [(1024, 1024), (1535, 1024), (1536, 1536), (9_999, 9_728)] {
            assert_eq!(shares(&range, room).keys().copied().max(), Some(bytes), "{room}");
        }
        let coarse = Draw::Range { min: 1024, max: 1 << 30, step: 4096 };
        assert_eq!(coarse.largest_within(3000), 1024, "the smallest is no multiple");
        let split = Draw::new(&split([(4096, 30.0), (8192, 30.0), (65536, 40.0)]));
        assert_eq!([4096, 8191, 8192, 65535].map(|room| split.largest_within(room)), [4096, 4096, 8192, 8192]);
    }
}
