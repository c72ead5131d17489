//! Random offsets that favour some blocks: zipf and pareto.

use super::permutation::Permutation;
use super::stream::{Purpose, Stream};

/// How random offsets are distributed over the region.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Distribution {
    /// All blocks alike.
    Uniform,
    /// The block of rank k is drawn in proportion to k^-theta.
    Zipf { theta: f64, centre: Option<f64> },
    /// A share of `h` of the blocks gets 1 - `h` of the draws, and so on within it (fio's parameter).
    Pareto { h: f64, centre: Option<f64> },
}

/// Draws blocks from a skewed distribution. As in fio the ranks are scattered: hot blocks are spread over the
/// region, not adjacent. The hottest lies at the centre if one is given, and at random if not.
#[derive(Clone, Debug)]
pub(super) struct Skewed {
    ranks: Ranks,
    scatter: Permutation,
    /// Where rank 0 goes before it is shifted to `base`.
    first: u64,
    base: u64,
    stream: Stream,
}

/// Draws ranks, from 0 on.
#[derive(Clone, Debug)]
pub(super) enum Ranks {
    Zipf(Zipf),
    Pareto { exponent: f64, last: f64 },
}

impl Ranks {
    /// Below `n`, and where the hottest is to lie; `None` if all are alike.
    pub(super) fn new(distribution: Distribution, n: u64) -> Option<(Ranks, Option<f64>)> {
        match distribution {
            Distribution::Uniform => None,
            Distribution::Zipf { theta, centre } => Some((Ranks::Zipf(Zipf::new(n, theta)), centre)),
            Distribution::Pareto { h, centre } => {
                let exponent = libm::log(h) / libm::log(1.0 - h);
                Some((Ranks::Pareto { exponent, last: (n - 1) as f64 }, centre))
            }
        }
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Ranks::Zipf(zipf) => zipf.draw(stream) - 1,
            Ranks::Pareto { exponent, last } => (last * libm::pow(stream.fraction(), *exponent)) as u64,
        }
    }
}

impl Skewed {
    /// For the blocks below `n`; `None` if all are alike.
    pub(super) fn new(distribution: Distribution, n: u64, mut stream: Stream) -> Option<Skewed> {
        let (ranks, centre) = Ranks::new(distribution, n)?;
        // With a centre, all processes have their hot blocks in the same places.
        let scatter = match centre {
            Some(_) => Permutation::new(n, &mut Stream::new(0, 0, Purpose::Offset)),
            None => Permutation::new(n, &mut stream),
        };
        let base = match centre {
            Some(centre) => ((centre * n as f64) as u64).min(n - 1),
            None => stream.below(n),
        };
        Some(Skewed { ranks, first: scatter.at(0), scatter, base, stream })
    }

    pub(super) fn next(&mut self) -> u64 {
        let n = self.scatter.len();
        let rank = self.ranks.draw(&mut self.stream);
        let block = self.scatter.at(rank.min(n - 1));
        // Everything is below 2^62, so that the sums cannot overflow.
        (block + (n - self.first) + self.base) % n
    }
}

/// Ranks 1 to n with probabilities in proportion to k^-theta, by rejection-inversion (Hörmann and Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions", 1996): constant time and
/// memory for any n, where fio sums up a series of n terms first.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    n: f64,
    theta: f64,
    /// The integral at 1.5, less 1; and at n + 0.5.
    low: f64,
    high: f64,
    /// Draws that are this close to a rank are accepted at once.
    near: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { n: n as f64, theta, low: 0.0, high: 0.0, near: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.n + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u = self.high + stream.fraction() * (self.low - self.high);
            let x = self.inverse(u);
            let rank = libm::floor(x + 0.5).clamp(1.0, self.n);
            if rank - x <= self.near || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        libm::pow(x, -self.theta)
    }

    /// The integral of `weight` from 1 to `x`; theta is never 1.
    fn integral(&self, x: f64) -> f64 {
        let e = 1.0 - self.theta;
        libm::expm1(e * libm::log(x)) / e
    }

    fn inverse(&self, y: f64) -> f64 {
        let e = 1.0 - self.theta;
        // Rounding may carry the argument past -1, where there is no logarithm.
        libm::exp(libm::log1p((e * y).max(-1.0)) / e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn shares(distribution: Distribution, n: u64) -> Vec<f64> {
        const DRAWS: usize = 100_000;
        let mut skewed = Skewed::new(distribution, n, Stream::new(5, 0, Purpose::Offset)).unwrap();
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
            let shares = shares(Distribution::Zipf { theta, centre: None }, n);
            for k in 1..=3 {
                let expected = f64::powf(k as f64, -theta) / total;
                assert!((shares[k - 1] - expected).abs() < 0.01, "{theta} {n} {k}: {} {expected}", shares[k - 1]);
            }
        }
    }

    #[test]
    fn pareto_gives_most_draws_to_few_blocks() {
        let shares = shares(Distribution::Pareto { h: 0.2, centre: None }, 1000);
        let hottest: f64 = shares[..200].iter().sum();
        assert!((hottest - 0.8).abs() < 0.02, "{hottest}");
    }

    #[test]
    fn extreme_parameters_neither_hang_nor_leave_the_range() {
        for n in [1, 2, 3, 1 << 40, 1 << 55] {
            for theta in [0.000_001, 0.999_999, 1.000_001, 3.0, 100.0] {
                shares(Distribution::Zipf { theta, centre: Some(1.0) }, n);
            }
            for h in [0.000_001, 0.5, 0.999_999] {
                shares(Distribution::Pareto { h, centre: Some(0.0) }, n);
            }
        }
    }

    #[test]
    fn the_hottest_block_lies_at_the_centre() {
        let zipf = Distribution::Zipf { theta: 3.0, centre: Some(0.5) };
        let mut skewed = Skewed::new(zipf, 1000, Stream::new(5, 0, Purpose::Offset)).unwrap();
        let hits = (0..1000).filter(|_| skewed.next() == 500).count();
        assert!(hits > 700, "{hits}");
    }
}
