//! Random offsets that favour some blocks, which are spread over the region.

use super::permutation::Permutation;
use super::ranks::Ranks;
use crate::Popularity;
use crate::stream::{Purpose, Stream};

/// Draws blocks by popularity. As in fio the ranks are scattered: hot blocks are not adjacent, even with a normal
/// distribution. The hottest block lies at the centre if one is given, and otherwise at random.
#[derive(Clone, Debug)]
pub(super) struct Skewed {
    ranks: Ranks,
    scatter: Permutation,
    /// The block of the hottest rank before the shift to `base`.
    first: u64,
    base: u64,
    stream: Stream,
}

impl Skewed {
    /// For the blocks below `n`; the centre is a fraction of the region.
    pub(super) fn new(popularity: Popularity, centre: Option<f64>, n: u64, mut stream: Stream) -> Skewed {
        let ranks = Ranks::new(popularity, n);
        // With a centre, all processes have their hot blocks in the same places.
        let scatter = match centre {
            Some(_) => Permutation::new(n, &mut Stream::new(0, 0, Purpose::Offset)),
            None => Permutation::new(n, &mut stream),
        };
        let base = match centre {
            Some(centre) => ((centre * n as f64) as u64).min(n - 1),
            None => stream.below(n),
        };
        Skewed { first: scatter.permute(ranks.hottest()), ranks, scatter, base, stream }
    }

    pub(super) fn next(&mut self) -> u64 {
        let n = self.scatter.len();
        let rank = self.ranks.draw(&mut self.stream);
        let block = self.scatter.permute(rank.min(n - 1));
        // Everything is below 2^62, so that the sums cannot overflow.
        (block + (n - self.first) + self.base) % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn shares(popularity: Popularity, centre: Option<f64>, n: u64) -> Vec<f64> {
        const DRAWS: usize = 100_000;
        let mut skewed = Skewed::new(popularity, centre, n, Stream::new(5, 0, Purpose::Offset));
        let mut counts: HashMap<u64, f64> = HashMap::new();
        for _ in 0..DRAWS {
            *counts.entry(skewed.next()).or_default() += 1.0 / DRAWS as f64;
        }
        assert!(counts.keys().all(|&block| block < n));
        let mut shares: Vec<f64> = counts.into_values().collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }

    #[test]
    fn zipf_has_the_shares_of_its_formula() {
        for (theta, n) in [(1.2, 256), (0.8, 1000), (1.1, 50), (2.5, 3)] {
            let total: f64 = (1..=n).map(|k| f64::powf(k as f64, -theta)).sum();
            let shares = shares(Popularity::Zipf { theta }, None, n);
            for k in 1..=3 {
                let expected = f64::powf(k as f64, -theta) / total;
                assert!((shares[k - 1] - expected).abs() < 0.01, "{theta} {n} {k}: {} {expected}", shares[k - 1]);
            }
        }
    }

    #[test]
    fn pareto_gives_most_draws_to_few_blocks() {
        let shares = shares(Popularity::Pareto { h: 0.2 }, None, 1000);
        let hottest: f64 = shares[..200].iter().sum();
        assert!((hottest - 0.8).abs() < 0.02, "{hottest}");
    }

    #[test]
    fn the_last_block_of_a_pareto_distribution_is_never_drawn() {
        assert_eq!(shares(Popularity::Pareto { h: 0.2 }, None, 2).len(), 1);
        assert_eq!(shares(Popularity::Pareto { h: 0.2 }, None, 3).len(), 2);
    }

    #[test]
    fn a_bell_has_the_shares_of_its_formula_wherever_its_blocks_lie() {
        for (spread_percent, deviation) in [(0.0, 1.0 / 12.0), (20.0, f64::hypot(1.0 / 12.0, 0.2 / f64::sqrt(12.0)))] {
            let n = 1000;
            let shares = shares(Popularity::Normal { spread_percent }, Some(0.5), n);
            // The hottest 100 are those within 0.05 of the middle, and so on.
            for (hottest, within) in [(100, 0.05), (200, 0.1), (400, 0.2)] {
                let share: f64 = shares[..hottest].iter().sum();
                let expected = libm::erf(within / deviation / f64::sqrt(2.0));
                assert!((share - expected).abs() < 0.03, "{spread_percent} {hottest}: {share} {expected}");
            }
        }
    }

    #[test]
    fn extreme_parameters_neither_hang_nor_leave_the_range() {
        for n in [1, 2, 3, 1 << 40, 1 << 55] {
            for theta in [0.000_001, 0.999_999, 1.000_001, 3.0, 100.0] {
                shares(Popularity::Zipf { theta }, Some(1.0), n);
            }
            for h in [0.000_001, 0.5, 0.999_999] {
                shares(Popularity::Pareto { h }, Some(0.0), n);
            }
            for spread_percent in [0.0, 0.5, 99.9] {
                shares(Popularity::Normal { spread_percent }, Some(0.5), n);
            }
        }
    }

    #[test]
    fn the_hottest_block_lies_at_the_centre() {
        let zipf = Popularity::Zipf { theta: 3.0 };
        let mut skewed = Skewed::new(zipf, Some(0.5), 1000, Stream::new(5, 0, Purpose::Offset));
        let hits = (0..1000).filter(|_| skewed.next() == 500).count();
        assert!(hits > 700, "{hits}");
        // The end of the region is its last block.
        let mut skewed = Skewed::new(zipf, Some(1.0), 1000, Stream::new(5, 0, Purpose::Offset));
        let hits = (0..1000).filter(|_| skewed.next() == 999).count();
        assert!(hits > 700, "{hits}");
    }
}
