//! Uniformly distributed times.
//!
//! Used by: `cpu`, `simulation`, `disk`, `io_thread`, `workers`.
//! Tests: below.

use hoistway_blk::ground::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// A time drawn uniformly from a range.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    least: Nanos,
    /// Number of possible values.
    count: u64,
}

impl Span {
    pub(crate) fn new([least, most]: [u64; 2]) -> Self {
        Span { least: Nanos(least), count: most - least + 1 }
    }

    /// A range around a mean with the same relative spread as `like`.
    pub(crate) fn about(mean: u64, reference: [u64; 2]) -> Self {
        let sum = u128::from(reference[0] + reference[1]);
        // Host profiles allow a second at most, so that a quotient fits.
        let scaled = |end: u64| (2 * u128::from(mean) * u128::from(end)).checked_div(sum).map_or(mean, |ns| ns as u64);
        Span::new(reference.map(scaled))
    }

    pub(crate) fn max(self) -> Nanos {
        Nanos(self.least.0 + self.count - 1)
    }

    pub(crate) fn mean(self) -> Nanos {
        Nanos(self.least.0 + (self.count - 1) / 2)
    }

    #[inline]
    pub(crate) fn draw(self, random: &mut Xoshiro256PlusPlus) -> Nanos {
        if self.count == 1 {
            return self.least;
        }
        // Host profiles allow a second at most, so that the product fits.
        Nanos(self.least.0 + ((u64::from(random.next_u32()) * self.count) >> 32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_scatters_about_its_mean_as_another_one_does_about_its_own() {
        let ends = |span: Span| [span.least.0, span.max().0];
        assert_eq!(ends(Span::about(1000, [3000, 5000])), [750, 1250]);
        assert_eq!(ends(Span::about(1000, [0, 0])), [1000, 1000], "nothing to be like");
        assert_eq!(ends(Span::about(0, [3000, 5000])), [0, 0]);
        assert_eq!(ends(Span::about(1_000_000_000, [0, 1_000_000_000])), [0, 2_000_000_000]);
    }
}
