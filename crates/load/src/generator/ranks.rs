//! Distributions that favour some blocks or files: zipf, pareto and normal.

use crate::Popularity;
use crate::stream::Stream;

/// Draws ranks, counted from 0.
#[derive(Clone, Debug)]
pub(super) enum Ranks {
    Zipf(Zipf),
    Pareto {
        exponent: f64,
        last: f64,
    },
    Bell {
        n: u64,
        /// Width of the uniform draw, as a fraction of all ranks.
        spread: f64,
    },
}

impl Ranks {
    /// Ranks below `n`.
    pub(super) fn new(popularity: Popularity, n: u64) -> Ranks {
        match popularity {
            Popularity::Zipf { theta } => Ranks::Zipf(Zipf::new(n, theta)),
            Popularity::Pareto { h } => {
                Ranks::Pareto { exponent: libm::log(h) / libm::log(1.0 - h), last: (n - 1) as f64 }
            }
            Popularity::Normal { spread_percent } => Ranks::Bell { n, spread: spread_percent.min(50.0) / 100.0 },
        }
    }

    /// The most frequent rank.
    pub(super) fn hottest(&self) -> u64 {
        match self {
            Ranks::Zipf(_) | Ranks::Pareto { .. } => 0,
            Ranks::Bell { n, .. } => n / 2,
        }
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Ranks::Zipf(zipf) => zipf.draw(stream) - 1,
            Ranks::Pareto { exponent, last } => (last * libm::pow(stream.fraction(), *exponent)) as u64,
            Ranks::Bell { n, spread } => {
                // The mean of this many uniform draws has a standard deviation of a twelfth.
                const DRAWS: usize = 12;
                let bell = (0..DRAWS).map(|_| stream.fraction()).sum::<f64>() / DRAWS as f64;
                let position = bell + (stream.fraction() - 0.5) * spread;
                ((position.clamp(0.0, 1.0) * *n as f64) as u64).min(n - 1)
            }
        }
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
    /// Draws at least this close to a rank are accepted at once.
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
        // Rounding may push the argument below -1, where the logarithm is undefined.
        libm::exp(libm::log1p((e * y).max(-1.0)) / e)
    }
}
