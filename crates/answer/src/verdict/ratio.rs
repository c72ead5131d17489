//! How a measure changes from one variant to another: ratios, repeat by repeat.

use crate::document::Change;
use hoistway_measure::stats;

/// Differences of logarithms below this may be rounding errors; variants that differ by less did the same.
const ROUNDING: f64 = 1e-9;

/// Ratios as logarithms: twice and half are equally far from no change, and several can be weighed together. Above 0 is
/// better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// Mean over the repeats.
    pub(super) mean: f64,
    /// Half the width of its interval; None of one repeat.
    half_width: Option<f64>,
}

impl Ratio {
    /// Of logarithms, one for each repeat; None without any.
    pub(super) fn of(logarithms: &[f64]) -> Option<Self> {
        Some(Self { mean: stats::mean(logarithms)?, half_width: stats::half_width(logarithms) })
    }

    /// Whether it is better beyond the noise; never of one repeat.
    pub(super) fn is_better(self) -> bool {
        self.half_width.is_some_and(|half_width| self.mean > half_width + ROUNDING)
    }

    /// Whether it is worse beyond the noise.
    pub(super) fn is_worse(self) -> bool {
        Self { mean: -self.mean, ..self }.is_better()
    }

    /// Whether it is a change beyond the noise; None of one repeat.
    pub(super) fn is_significant(self) -> Option<bool> {
        self.half_width.map(|half_width| self.mean.abs() > half_width + ROUNDING)
    }

    pub(super) fn as_change(self) -> Change {
        let at = |of: fn(f64, f64) -> f64| self.half_width.map(|half_width| of(self.mean, half_width).exp());
        Change { factor: self.mean.exp(), low: at(|mean, half| mean - half), high: at(|mean, half| mean + half) }
    }
}

impl Change {
    /// The change whose logarithms, one for each repeat, are these; none without any.
    pub fn of(logarithms: &[f64]) -> Option<Change> {
        Ratio::of(logarithms).map(Ratio::as_change)
    }

    /// The change with this mean of logarithms, and half the width of its interval.
    pub fn within(mean: f64, half_width: Option<f64>) -> Change {
        Ratio { mean, half_width }.as_change()
    }

    /// Whether it is better beyond the noise; never of one repeat.
    pub fn is_better(self) -> bool {
        self.low.is_some_and(|low| low.ln() > ROUNDING)
    }

    /// Whether it is worse beyond the noise.
    pub fn is_worse(self) -> bool {
        self.high.is_some_and(|high| high.ln() < -ROUNDING)
    }
}

/// How much better `to` is than `from`, as a logarithm; None if either is zero.
pub(crate) fn logarithm(from: f64, to: f64, higher_is_better: bool) -> Option<f64> {
    let logarithm = (to / from).ln();
    logarithm.is_finite().then_some(if higher_is_better { logarithm } else { -logarithm })
}

/// A logarithm, or a sum of some, by which variants are put in an order: without what may be rounding, so that those that did the same
/// stay as they were.
pub(super) fn rounded(logarithm: f64) -> i64 {
    (logarithm / ROUNDING).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounding_error_does_not_count_as_a_difference() {
        // The same steps there and back, in another order: not 0, but no step either.
        let left = (0.1 + 0.2 + 0.3) - (0.3 + 0.2 + 0.1_f64);
        assert!(left > 0.0);
        let ratio = Ratio::of(&[left; 3]).unwrap();
        assert!(!ratio.is_better() && !ratio.is_worse() && ratio.is_significant() == Some(false), "{ratio:?}");
        assert!(!ratio.as_change().is_better() && !Change::of(&[-left; 3]).unwrap().is_worse());
        // A nanosecond of half a second is more.
        let step = Ratio::of(&[2e-9; 3]).unwrap();
        assert!(step.is_better() && step.as_change().is_better());
    }

    #[test]
    fn sums_of_the_same_in_another_order_are_put_at_the_same_place() {
        let (one, other) = (0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1);
        assert!(one != other);
        assert_eq!(rounded(one), rounded(other));
        assert!(rounded(one) < rounded(one + 1e-8));
    }
}
