//! Statistics over repeats of a run.

/// Arithmetic mean; None of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of a sample (divisor n - 1); None of fewer than two values.
pub fn sample_stddev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// How much `value` lies above (or, negative, below) `reference`, as a fraction of the reference: 0.1 is 10 % more.
/// None if the reference is zero or either is not finite.
pub fn relative_difference(value: f64, reference: f64) -> Option<f64> {
    let difference = (value - reference) / reference.abs();
    difference.is_finite().then_some(difference)
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
    fn differences_are_relative_to_the_reference() {
        assert_eq!(relative_difference(150.0, 100.0), Some(0.5));
        assert_eq!(relative_difference(50.0, 100.0), Some(-0.5));
        assert_eq!(relative_difference(1.0, 0.0), None);
        assert_eq!(relative_difference(f64::NAN, 1.0), None);
    }
}
