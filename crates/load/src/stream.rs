//! Random numbers: one stream for each process and purpose, so that drawing a size does not change the offsets, and an
//! additional process does not change the others.
//!
//! Used by: `generator`, `pace`; crates `fio`, `program`.
//! Tests: below.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The purpose of a stream of random numbers. A seed's results depend on these values: never change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Offsets.
    Offset = 1,
    /// Directions.
    Direction = 2,
    /// Sizes of reads, writes and trims: 3, 4 and 5.
    Size = 3,
    /// Random or sequential.
    Order = 6,
    /// Gaps between I/Os.
    Pace = 7,
    /// When a process starts.
    StartDelay = 8,
    /// Which file is next.
    File = 9,
    /// Priorities of single I/Os.
    Priority = 10,
    /// Sizes of files.
    FileSize = 11,
    /// Random parts of recorded I/Os.
    Records = 12,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `process` for `purpose`.
    pub fn new(seed: u64, process: u64, purpose: Purpose) -> Stream {
        Stream::numbered(seed, process, purpose as u64)
    }

    pub(crate) fn numbered(seed: u64, process: u64, purpose: u64) -> Stream {
        let key = splitmix(splitmix(splitmix(seed) ^ process) ^ purpose);
        Stream(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform draw from 0 to `n` - 1; 0 if `n` is 0. Its bias is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// A uniform draw from 0 (inclusive) to 1 (exclusive).
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True `percent` times out of a hundred.
    #[inline]
    pub(crate) fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }
}

/// The output function of SplitMix64: spreads every bit of `x` over the result.
pub(crate) fn splitmix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_process_and_purpose_and_repeat() {
        let first = |seed, process, purpose| Stream::numbered(seed, process, purpose).bits();
        let all = [first(1, 0, 1), first(2, 0, 1), first(1, 1, 1), first(1, 0, 2), first(0, 1, 0), first(0, 0, 1)];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert_eq!(first(1, 0, 1), all[0]);
    }

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut stream = Stream::new(1, 0, Purpose::Offset);
        assert_eq!([stream.below(1000), stream.below(1000), stream.below(1000)], [864, 587, 953]);
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut stream = Stream::new(1, 0, Purpose::Offset);
        assert!((0..1000).all(|_| stream.below(7) < 7 && stream.fraction() < 1.0));
        assert_eq!(stream.below(0), 0);
        assert!((0..100).all(|_| stream.percent(100) && !stream.percent(0)));
    }
}
