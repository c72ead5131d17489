//! Statistics over repeats of a run.
//!
//! Used by: crates `answer`, `experiment`, `evidence`, `calibrate`, `render`.
//! Tests: below.

use crate::beta::{incomplete_beta, t_exceeded_with};

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median; `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some((values[(values.len() - 1) / 2] + upper) / 2.0)
}

/// Standard deviation of a sample (divisor n - 1); `None` with fewer than two values.
pub fn sample_stddev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Half the width of the [`CONFIDENCE`] interval of the mean of a sample (Student's t); `None` with fewer than two
/// values.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let deviation = sample_stddev(values)?;
    Some(t_quantile(values.len() - 1) * deviation / (values.len() as f64).sqrt())
}

/// The (1 + [`CONFIDENCE`]) / 2 quantile of Student's t, for this number of degrees of freedom (at least 1).
fn t_quantile(freedom: usize) -> f64 {
    // Rounded to a number of digits on which the math libraries of all platforms agree.
    (t_exceeded_with(1.0 - CONFIDENCE, freedom.max(1) as f64) * 1e6).round() / 1e6
}

/// The mean of the second sample minus the mean of the first, and half the width of its interval (Welch's test, which does not assume
/// equal variances); no interval if a sample has fewer than two values. `None` if a sample is empty.
pub fn welch(before: &[f64], after: &[f64]) -> Option<(f64, Option<f64>)> {
    let difference = mean(after)? - mean(before)?;
    let variance_of_mean =
        |values: &[f64]| sample_stddev(values).map(|deviation| deviation * deviation / values.len() as f64);
    let Some((before_variance, after_variance)) = variance_of_mean(before).zip(variance_of_mean(after)) else {
        return Some((difference, None));
    };
    let total_variance = before_variance + after_variance;
    if total_variance == 0.0 {
        return Some((difference, Some(0.0)));
    }
    let part = |variance: f64, count: usize| variance * variance / (count - 1) as f64;
    // Welch-Satterthwaite; rounding the degrees of freedom down is conservative.
    let freedom =
        total_variance * total_variance / (part(before_variance, before.len()) + part(after_variance, after.len()));
    Some((difference, Some(t_quantile(freedom as usize) * total_variance.sqrt())))
}

/// The p-value of an F test: the probability that chance alone gives a ratio of two variances at least this large, for these
/// degrees of freedom of numerator and denominator.
pub fn chance_of_ratio(ratio: f64, freedom: [usize; 2]) -> f64 {
    let [numerator, denominator] = freedom.map(|freedom| freedom.max(1) as f64);
    match ratio.max(0.0) * numerator {
        infinite if infinite == f64::INFINITY => 0.0,
        _ if ratio.is_nan() => 1.0,
        scaled => incomplete_beta(denominator / (denominator + scaled), denominator / 2.0, numerator / 2.0),
    }
}

/// The relative difference of `value` from `reference`: 0.1 means 10 % more. `None` if the reference is zero or either is
/// not finite.
pub fn relative_difference(value: f64, reference: f64) -> Option<f64> {
    let difference = (value - reference) / reference.abs();
    difference.is_finite().then_some(difference)
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one of n has everything. `None` with fewer than two shares, or if
/// all are zero.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_of_a_sample() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((sample_stddev(&values).unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(mean(&[]), None);
        assert_eq!(sample_stddev(&[1.0]), None);
    }

    #[test]
    fn intervals_are_those_of_the_tables_of_students_t() {
        for (freedom, t) in
            [(1, 12.706_205), (2, 4.302_653), (4, 2.776_445), (9, 2.262_157), (30, 2.042_272), (100_000, 1.959_988)]
        {
            assert!((t_quantile(freedom) - t).abs() < 2e-6, "{freedom}: {}", t_quantile(freedom));
        }
        // Mean 2, deviation 1, n = 3.
        assert!((half_width(&[1.0, 2.0, 3.0]).unwrap() - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-6);
        assert_eq!(half_width(&[5.0, 5.0]), Some(0.0));
        assert_eq!(half_width(&[5.0]), None);
    }

    #[test]
    fn welchs_interval_is_that_of_the_books() {
        // By hand: variances 15/11 and 18/11, so 21.8 degrees of freedom; t of 21 is 2.079 614.
        let before: Vec<f64> = (0..12).map(|n| 10.0 + f64::from(n % 4)).collect();
        let after: Vec<f64> = (0..12).map(|n| 12.0 + f64::from(n % 3) * 1.5).collect();
        let (mean, half) = welch(&before, &after).unwrap();
        let error =
            (sample_stddev(&before).unwrap().powi(2) / 12.0 + sample_stddev(&after).unwrap().powi(2) / 12.0).sqrt();
        assert!((mean - 2.0).abs() < 1e-12);
        assert!((half.unwrap() / error - 2.079_614).abs() < 1e-5, "{half:?} {error}");
        assert_eq!(welch(&[1.0], &[2.0, 3.0]), Some((1.5, None)));
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), Some((1.0, Some(0.0))));
        assert_eq!(welch(&[], &[2.0]), None);
    }

    #[test]
    fn ratios_of_variances_are_those_of_the_tables_of_f() {
        for (freedom, five_percent) in [([1, 10], 4.964_6), ([3, 20], 3.098_4), ([6, 60], 2.254_1)] {
            assert!((chance_of_ratio(five_percent, freedom) - 0.05).abs() < 1e-5, "{freedom:?}");
        }
        assert_eq!((chance_of_ratio(f64::INFINITY, [1, 1]), chance_of_ratio(f64::NAN, [1, 1])), (0.0, 1.0));
        assert_eq!(chance_of_ratio(0.0, [2, 5]), 1.0);
    }

    #[test]
    fn jains_index_is_one_of_equal_shares_and_falls_to_one_of_n() {
        assert_eq!(jain_index(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain_index(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain_index(&[1.0]), jain_index(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn differences_are_relative_to_the_reference() {
        assert_eq!(relative_difference(150.0, 100.0), Some(0.5));
        assert_eq!(relative_difference(50.0, 100.0), Some(-0.5));
        assert_eq!(relative_difference(1.0, 0.0), None);
        assert_eq!(relative_difference(f64::NAN, 1.0), None);
    }
}
