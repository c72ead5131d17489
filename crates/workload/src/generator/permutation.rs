//! A keyed permutation: every block once, in random order, without a map of what was visited.
//!
//! fio keeps a bitmap of visited blocks; for a terabyte of 4k blocks that is 32 MiB that no cache holds. A
//! permutation of the block numbers gives the same guarantee from a few words. It mixes on the next power of
//! two with steps that can each be undone (add a key, fold the high bits into the low ones, multiply by an odd
//! number), and walks on from a value that is out of range until one is in range: on average less than one
//! extra step, since the range is more than half of the power of two.

use super::stream::Stream;

/// A permutation of the numbers below `n`.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    n: u64,
    mask: u64,
    /// Half the bits, rounded up.
    fold: u32,
    add: [u64; ROUNDS],
    multiply: [u64; ROUNDS],
}

const ROUNDS: usize = 3;

impl Permutation {
    /// The permutation of the numbers below `n` (at least 1, at most 2^62) whose key comes from `stream`.
    pub(super) fn new(n: u64, stream: &mut Stream) -> Permutation {
        debug_assert!((1..=1 << 62).contains(&n));
        let bits = 64 - (n - 1).leading_zeros();
        let mask = (1u64 << bits) - 1;
        Permutation {
            n,
            mask,
            fold: bits.div_ceil(2),
            add: [(); ROUNDS].map(|()| stream.bits() & mask),
            multiply: [(); ROUNDS].map(|()| stream.bits() & mask | 1),
        }
    }

    /// How many numbers are permuted.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.n
    }

    /// Where `i`, which is below `n`, goes.
    #[inline]
    pub(super) fn at(&self, i: u64) -> u64 {
        let mut x = i;
        loop {
            x = self.mix(x);
            if x < self.n {
                return x;
            }
        }
    }

    #[inline]
    fn mix(&self, mut x: u64) -> u64 {
        for (add, multiply) in self.add.iter().zip(self.multiply) {
            x = x.wrapping_add(*add) & self.mask;
            x ^= x >> self.fold;
            x = x.wrapping_mul(multiply) & self.mask;
        }
        x ^ (x >> self.fold)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Purpose;
    use super::*;
    use proptest::prelude::*;

    fn keyed(n: u64, seed: u64) -> Permutation {
        Permutation::new(n, &mut Stream::new(seed, 0, Purpose::Offset))
    }

    fn visits_each_once(n: u64, seed: u64) -> bool {
        let permutation = keyed(n, seed);
        let mut seen = vec![false; n as usize];
        (0..n).all(|i| !std::mem::replace(&mut seen[permutation.at(i) as usize], true))
    }

    #[test]
    fn each_number_occurs_once_for_small_prime_and_round_counts() {
        for n in (1..=130).chain([251, 256, 257, 1000, 4095, 4096, 4097, 65_521, 65_536, 100_003]) {
            assert!(visits_each_once(n, n ^ 5), "{n}");
        }
    }

    proptest! {
        #[test]
        fn each_number_occurs_once_for_any_count_and_key(n in 1u64..5_000, seed: u64) {
            prop_assert!(visits_each_once(n, seed));
        }

        #[test]
        fn large_counts_stay_in_range(n in 1u64..=1 << 62, seed: u64, i: u64) {
            prop_assert!(keyed(n, seed).at(i % n) < n);
        }
    }

    /// Consecutive numbers must land independently of each other: seek distances decide what a disk does.
    #[test]
    fn the_order_looks_random() {
        for (n, seed) in [(390_000_000u64, 1), (262_144, 2), (100_003, 3), (1 << 30, 4), (3_000, 5)] {
            let permutation = keyed(n, seed);
            let draws = n.min(100_000);
            let (mut distance, mut previous, mut rising) = (0.0, permutation.at(0), 0u64);
            let mut buckets = [0u64; 16];
            for i in 1..draws {
                let block = permutation.at(i);
                distance += block.abs_diff(previous) as f64 / n as f64;
                rising += u64::from(block > previous);
                buckets[(block as u128 * 16 / n as u128) as usize] += 1;
                previous = block;
            }
            let count = (draws - 1) as f64;
            // Independent even draws are a third of the range apart on average.
            assert!((distance / count - 1.0 / 3.0).abs() < 0.02, "{n}: {}", distance / count);
            assert!((rising as f64 / count - 0.5).abs() < 0.02, "{n}: {}", rising as f64 / count);
            let expected = count / 16.0;
            assert!(buckets.iter().all(|&b| (b as f64 - expected).abs() < 0.1 * expected), "{n}: {buckets:?}");
        }
    }
}
