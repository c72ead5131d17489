//! Warm-up detection: whether a run had settled, by the MSER rule.
//!
//! Used by: crates `render`, `answer`, `experiment`.
//! Tests: below.
//!
//! The rule is MSER (White 1997): of all prefixes that could be cut off, the right one leaves the mean of the rest with
//! the smallest standard error. Cutting off a warm-up reduces the spread by more than the lost values increase the error;
//! without a warm-up there is nothing to gain. The values are sums over intervals, as in MSER-5 over batches. If more
//! than half would have to be cut off, the run was too short to settle.
//!
//! MSER finds a prefix even in pure noise, so only a significant one is reported: it changes the mean by at least 2 %,
//! and by more than the noise of the rest.

use serde::{Deserialize, Serialize};

use crate::series::Interval;

/// With fewer intervals the result is unknown.
const INTERVALS_MIN: usize = 16;
/// A relative change of the mean that is worth reporting.
const MATERIAL_CHANGE: f64 = 0.02;
/// A difference of more standard errors than this is not noise.
const SIGNIFICANT_ERRORS: f64 = 3.0;

/// Whether a run had settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Settling {
    /// Too short, or too few I/Os, to decide.
    #[default]
    Unknown,
    /// No sign of a warm-up.
    Settled,
    /// It settled after a warm-up that differs from the rest.
    WarmUp {
        /// Length of the warm-up, s.
        seconds: f64,
        /// The figure that shows it.
        figure: SettlingFigure,
        /// The relative difference of the warm-up's mean from the mean of the rest.
        difference: f64,
    },
    /// It was still changing when it ended.
    Unsettled {
        /// The figure that shows it.
        figure: SettlingFigure,
        /// The relative difference of the start's mean from the mean of the end.
        difference: f64,
    },
}

/// A figure whose change over time is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettlingFigure {
    /// I/Os a second.
    Iops,
    /// Mean total latency.
    MeanLatency,
}

impl Settling {
    /// The result for the complete intervals of a run.
    pub fn of(intervals: &[Interval], length_ns: u64) -> Self {
        let ios: Vec<f64> = intervals.iter().map(|interval| interval.ios as f64).collect();
        let busy = intervals.iter().filter(|interval| interval.ios > 0);
        let latencies: Vec<f64> = busy.map(|interval| interval.lat_ns as f64 / interval.ios as f64).collect();
        if latencies.len() < INTERVALS_MIN {
            return Self::Unknown;
        }
        let by_iops = assess(&ios, length_ns, SettlingFigure::Iops);
        // An interval without I/Os has no latency, so indices would no longer correspond to times.
        let by_latency = if latencies.len() == ios.len() {
            assess(&latencies, length_ns, SettlingFigure::MeanLatency)
        } else {
            Self::Settled
        };
        // The worse of the two is reported; if both are as bad, that of the rate.
        match (by_iops, by_latency) {
            (unsettled @ Self::Unsettled { .. }, _) | (_, unsettled @ Self::Unsettled { .. }) => unsettled,
            (warm_up @ Self::WarmUp { .. }, _) => warm_up,
            (_, other) => other,
        }
    }
}

fn assess(values: &[f64], length_ns: u64, figure: SettlingFigure) -> Settling {
    let cut = mser(values);
    let (beginning, rest) = values.split_at(cut);
    if cut == 0 {
        return Settling::Settled;
    }
    let (whole, beginning_moments, rest_moments) = (Moments::of(values), Moments::of(beginning), Moments::of(rest));
    let distance = beginning_moments.mean - rest_moments.mean;
    let error = rest_moments.variance() * (1.0 / beginning_moments.count + 1.0 / rest_moments.count);
    let is_beyond_noise = distance.abs() > SIGNIFICANT_ERRORS * error.sqrt();
    let shift = ((whole.mean - rest_moments.mean) / rest_moments.mean).abs();
    let difference = distance / rest_moments.mean;
    // Written so that a mean of zero is not significant.
    if !(shift >= MATERIAL_CHANGE && difference.is_finite() && is_beyond_noise) {
        Settling::Settled
    } else if cut > values.len() / 2 {
        Settling::Unsettled { figure, difference }
    } else {
        Settling::WarmUp { seconds: cut as f64 * length_ns as f64 / 1e9, figure, difference }
    }
}

/// The number of values to cut off, at most three quarters.
fn mser(values: &[f64]) -> usize {
    let limit = values.len() * 3 / 4;
    let errors = (0..=limit).map(|cut| Moments::of(&values[cut..]).squared_error());
    let best = errors.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map_or(0, |(cut, _)| cut)
}

/// Mean and spread of some values.
struct Moments {
    count: f64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        Self { count, mean, squares: values.iter().map(|value| (value - mean) * (value - mean)).sum() }
    }

    fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0).max(1.0)
    }

    /// Squared standard error of the mean.
    fn squared_error(&self) -> f64 {
        self.squares / (self.count * self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH_NS: u64 = 500_000_000;

    /// Deterministic noise of a few percent.
    fn noise(index: usize) -> u64 {
        (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59
    }

    fn settling(ios: impl Fn(usize) -> u64) -> Settling {
        let intervals: Vec<_> = (0..100).map(|index| Interval { ios: ios(index), lat_ns: ios(index) * 1000 }).collect();
        Settling::of(&intervals, LENGTH_NS)
    }

    #[test]
    fn noise_alone_is_settled() {
        assert_eq!(settling(|_| 1000), Settling::Settled);
        assert_eq!(settling(|index| 1000 + noise(index)), Settling::Settled);
        // An occasional pause of the device.
        assert_eq!(settling(|index| if index % 9 == 0 { 700 } else { 1000 + noise(index) }), Settling::Settled);
    }

    #[test]
    fn a_slow_or_fast_beginning_is_found_with_its_length() {
        for level in [300, 3000] {
            let Settling::WarmUp { seconds, figure, difference } =
                settling(|index| if index < 20 { level } else { 1000 + noise(index) })
            else {
                panic!("not found: {level}");
            };
            assert_eq!((seconds, figure), (10.0, SettlingFigure::Iops));
            assert_eq!(difference > 0.0, level > 1000);
        }
    }

    #[test]
    fn a_series_that_changes_until_its_end_is_unsettled() {
        assert!(matches!(settling(|index| 1000 + 10 * index as u64), Settling::Unsettled { .. }));
        assert!(
            matches!(settling(|index| 5000 - 20 * index as u64), Settling::Unsettled { difference, .. } if difference > 0.0)
        );
    }

    #[test]
    fn a_steady_rate_with_growing_latency_has_not_settled() {
        let intervals: Vec<_> =
            (0..100).map(|index| Interval { ios: 1000, lat_ns: 1000 * (1_000 + 50 * index) }).collect();
        let settling = Settling::of(&intervals, LENGTH_NS);
        assert!(matches!(settling, Settling::Unsettled { figure: SettlingFigure::MeanLatency, .. }), "{settling:?}");
    }

    #[test]
    fn settling_does_not_depend_on_the_unit() {
        for unit in [0.01, 1.0, 1000.0] {
            let value = |index: usize| {
                let noise = if index.is_multiple_of(2) { 0.95 } else { 1.05 };
                unit * if index < 16 { 1.5 } else { noise }
            };
            let values: Vec<f64> = (0..100).map(value).collect();
            let Settling::WarmUp { seconds, difference, .. } = assess(&values, LENGTH_NS, SettlingFigure::MeanLatency)
            else {
                panic!("not found with {unit}");
            };
            assert_eq!(seconds, 8.0);
            assert!((difference - 0.5).abs() < 0.01, "{difference}");
        }
    }

    #[test]
    fn the_variance_is_that_of_a_sample() {
        assert_eq!(Moments::of(&[1.0, 2.0, 3.0]).variance(), 1.0);
        assert_eq!(Moments::of(&[4.0]).variance(), 0.0);
    }

    #[test]
    fn too_few_intervals_leave_settling_unknown() {
        assert_eq!(Settling::of(&[], LENGTH_NS), Settling::Unknown);
        assert_eq!(Settling::of(&[Interval { ios: 1, lat_ns: 1 }; 15], LENGTH_NS), Settling::Unknown);
        assert_eq!(Settling::of(&[Interval { ios: 1, lat_ns: 1 }; 16], LENGTH_NS), Settling::Settled);
        assert_eq!(Settling::of(&[Interval::default(); 100], LENGTH_NS), Settling::Unknown);
    }
}
