//! A keyed permutation: every block once, in random order, without a map of visited blocks.
//!
//! fio keeps a bitmap of visited blocks; for a terabyte of 4k blocks that is 32 MiB, which fits into no cache. A
//! permutation of the block numbers gives the same guarantee with a few words. It permutes the numbers below the next
//! power of two with invertible steps (add a key, fold the high bits into the low ones, multiply by an odd number).
//! Values out of range are skipped; they are fewer than those in range.

use crate::stream::Stream;

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

    /// The number of values.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.n
    }

    /// The image of `i`, which is below `n`: it is permuted repeatedly until the result is in range.
    pub(super) fn permute(&self, i: u64) -> u64 {
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

/// Visits each number below `n` once, in the order of a permutation.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    permutation: Permutation,
    /// The next number to permute.
    next: u64,
    /// The next values, at `taken..filled`. Several are permuted at once without a branch that depends on the result:
    /// such a branch would cost more than the permutation itself.
    ahead: [u64; AHEAD],
    taken: usize,
    filled: usize,
}

const AHEAD: usize = 16;

impl Walk {
    pub(super) fn new(n: u64, stream: &mut Stream) -> Walk {
        Walk { permutation: Permutation::new(n, stream), next: 0, ahead: [0; AHEAD], taken: 0, filled: 0 }
    }

    /// The next number, or `None` when all were visited.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.taken == self.filled && !self.fill_ahead() {
            return None;
        }
        let number = self.ahead[self.taken % AHEAD];
        self.taken += 1;
        Some(number)
    }

    fn fill_ahead(&mut self) -> bool {
        let Permutation { n, mask, .. } = self.permutation;
        self.taken = 0;
        self.filled = 0;
        while self.filled == 0 && self.next <= mask {
            let end = mask.min(self.next + (AHEAD as u64 - 1));
            for i in self.next..=end {
                let number = self.permutation.mix(i);
                self.ahead[self.filled % AHEAD] = number;
                self.filled += usize::from(number < n);
            }
            self.next = end + 1;
        }
        self.filled > 0
    }

    /// Starts over: in the same order, or in a new order with a key from `stream`.
    pub(super) fn restart(&mut self, stream: Option<&mut Stream>) {
        if let Some(stream) = stream {
            self.permutation = Permutation::new(self.permutation.n, stream);
        }
        (self.next, self.taken, self.filled) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;
    use proptest::prelude::*;

    fn stream(seed: u64) -> Stream {
        Stream::new(seed, 0, Purpose::Offset)
    }

    fn is_permutation(n: u64, mut numbers: Vec<u64>) -> bool {
        numbers.sort_unstable();
        numbers.into_iter().eq(0..n)
    }

    fn walked(walk: &mut Walk) -> Vec<u64> {
        std::iter::from_fn(|| walk.next()).collect()
    }

    #[test]
    fn each_number_occurs_once_for_small_prime_and_round_counts() {
        for n in (1..=130).chain([251, 256, 257, 1000, 4095, 4096, 4097, 65_521, 65_536, 100_003]) {
            let mut walk = Walk::new(n, &mut stream(n));
            assert!(is_permutation(n, walked(&mut walk)), "{n}");
            assert_eq!(walk.next(), None);
            let permutation = Permutation::new(n, &mut stream(n));
            assert!(is_permutation(n, (0..n).map(|i| permutation.permute(i)).collect()), "{n}");
        }
    }

    #[test]
    fn a_second_pass_has_the_same_order_or_with_a_new_key_another() {
        let mut walk = Walk::new(1000, &mut stream(1));
        let first = walked(&mut walk);
        walk.restart(None);
        assert_eq!(walked(&mut walk), first);
        walk.restart(Some(&mut stream(2)));
        let other = walked(&mut walk);
        assert!(other != first && is_permutation(1000, other));
    }

    proptest! {
        #[test]
        fn each_number_occurs_once_for_any_count_and_key(n in 1u64..5_000, seed: u64) {
            prop_assert!(is_permutation(n, walked(&mut Walk::new(n, &mut stream(seed)))));
        }

        #[test]
        fn large_counts_stay_in_range(n in 1u64..=1 << 62, seed: u64, i: u64) {
            prop_assert!(Permutation::new(n, &mut stream(seed)).permute(i % n) < n);
            let mut walk = Walk::new(n, &mut stream(seed));
            for _ in 0..100.min(n) {
                prop_assert!(walk.next().unwrap() < n);
            }
        }
    }

    /// Consecutive values must be independent of each other: seek distances determine the speed of a disk.
    #[test]
    fn the_order_looks_random() {
        for (n, seed) in [(390_000_000u64, 1), (262_144, 2), (100_003, 3), (1 << 30, 4), (3_000, 5)] {
            let mut walk = Walk::new(n, &mut stream(seed));
            let draws = n.min(100_000);
            let (mut distance, mut previous, mut rising) = (0.0, walk.next().unwrap(), 0u64);
            let mut buckets = [0u64; 16];
            for _ in 1..draws {
                let block = walk.next().unwrap();
                distance += block.abs_diff(previous) as f64 / n as f64;
                rising += u64::from(block > previous);
                buckets[(u128::from(block) * 16 / u128::from(n)) as usize] += 1;
                previous = block;
            }
            let count = (draws - 1) as f64;
            // Independent uniform draws are a third of the range apart on average.
            assert!((distance / count - 1.0 / 3.0).abs() < 0.02, "{n}: {}", distance / count);
            assert!((rising as f64 / count - 0.5).abs() < 0.02, "{n}: {}", rising as f64 / count);
            let expected = count / 16.0;
            assert!(buckets.iter().all(|&b| (b as f64 - expected).abs() < 0.1 * expected), "{n}: {buckets:?}");
        }
    }
}
