//! Ratios of a measure between two variants, repeat by repeat, as logarithms with an interval.

use crate::document::Change;
use hoistway_measure::stats;

/// Differences of logarithms below this may be rounding errors; variants that differ by less count as equal.
const ROUNDING: f64 = 1e-9;

/// The logarithm of a ratio: doubling and halving are equally far from no change, and several can be averaged. Positive
/// is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogRatio {
    /// Mean over the repeats.
    pub(super) mean: f64,
    /// Half the width of its interval; `None` for a single repeat.
    half_width: Option<f64>,
}

impl LogRatio {
    /// From logarithms, one for each repeat; `None` without any.
    pub(super) fn of(logarithms: &[f64]) -> Option<Self> {
        Some(Self { mean: stats::mean(logarithms)?, half_width: stats::half_width(logarithms) })
    }

    /// Whether it is better beyond the noise; false for a single repeat.
    pub(super) fn is_better(self) -> bool {
        self.half_width.is_some_and(|half_width| self.mean > half_width + ROUNDING)
    }

    /// Whether it is worse beyond the noise; false for a single repeat.
    pub(super) fn is_worse(self) -> bool {
        Self { mean: -self.mean, ..self }.is_better()
    }

    /// Whether it differs from no change beyond the noise; `None` for a single repeat.
    pub(super) fn is_significant(self) -> Option<bool> {
        self.half_width.map(|half_width| self.mean.abs() > half_width + ROUNDING)
    }

    pub(super) fn as_change(self) -> Change {
        let bound_of =
            |bound: fn(f64, f64) -> f64| self.half_width.map(|half_width| bound(self.mean, half_width).exp());
        Change {
            factor: self.mean.exp(),
            low: bound_of(|mean, half| mean - half),
            high: bound_of(|mean, half| mean + half),
        }
    }
}

impl Change {
    /// The change with these logarithms, one for each repeat; `None` without any.
    pub fn of(logarithms: &[f64]) -> Option<Change> {
        LogRatio::of(logarithms).map(LogRatio::as_change)
    }

    /// The change with this mean logarithm and this half-width of its interval.
    pub fn within(mean: f64, half_width: Option<f64>) -> Change {
        LogRatio { mean, half_width }.as_change()
    }

    /// Whether it is better beyond the noise; false for a single repeat.
    pub fn is_better(self) -> bool {
        self.low.is_some_and(|low| low.ln() > ROUNDING)
    }

    /// Whether it is worse beyond the noise; false for a single repeat.
    pub fn is_worse(self) -> bool {
        self.high.is_some_and(|high| high.ln() < -ROUNDING)
    }
}

/// The logarithm of the improvement from `from` to `to`; `None` if either is zero.
pub(crate) fn logarithm(from: f64, to: f64, higher_is_better: bool) -> Option<f64> {
    let logarithm = (to / from).ln();
    logarithm.is_finite().then_some(if higher_is_better { logarithm } else { -logarithm })
}

/// A logarithm as a sort key, rounded to [`ROUNDING`] so that variants with equal results compare equal.
pub(super) fn rounded(logarithm: f64) -> i64 {
    (logarithm / ROUNDING).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounding_error_does_not_count_as_a_difference() {
        // Equal sums in different orders: the difference is not 0, but only a rounding error.
        let left = (0.1 + 0.2 + 0.3) - (0.3 + 0.2 + 0.1_f64);
        assert!(left > 0.0);
        let ratio = LogRatio::of(&[left; 3]).unwrap();
        assert!(!ratio.is_better() && !ratio.is_worse() && ratio.is_significant() == Some(false), "{ratio:?}");
        assert!(!ratio.as_change().is_better() && !Change::of(&[-left; 3]).unwrap().is_worse());
        // One nanosecond in half a second is more than a rounding error.
        let step = LogRatio::of(&[2e-9; 3]).unwrap();
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
