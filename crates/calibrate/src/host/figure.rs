//! A measured cost over the rounds of a measurement: median, minimum and maximum. All costs of `hoistway calibrate host` are such figures.

/// The median, minimum and maximum of the rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MedianOfRounds {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub most: f64,
}

impl MedianOfRounds {
    /// The figure of these rounds; `None` if there are none.
    #[must_use]
    pub fn of(mut rounds: Vec<f64>) -> Option<MedianOfRounds> {
        rounds.sort_by(f64::total_cmp);
        let (&least, &most) = (rounds.first()?, rounds.last()?);
        Some(MedianOfRounds { median: percentile(&rounds, 0.5), least, most })
    }

    /// The median as a whole number, at least 0.
    #[must_use]
    pub fn rounded(&self) -> u64 {
        self.median.max(0.0).round() as u64
    }
}

impl std::fmt::Display for MedianOfRounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} ({:.0} to {:.0})", self.median, self.least, self.most)
    }
}

/// A percentile of sorted values, given as a fraction; 0 if there are none.
pub(super) fn percentile(sorted: &[f64], fraction: f64) -> f64 {
    match sorted.len() {
        0 => 0.0,
        len => sorted[((len - 1) as f64 * fraction).round() as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_median_and_the_ends_of_its_rounds() {
        assert_eq!(
            MedianOfRounds::of(vec![3.0, 1.0, 2.0]),
            Some(MedianOfRounds { median: 2.0, least: 1.0, most: 3.0 })
        );
        assert_eq!(MedianOfRounds::of(vec![3.0, 1.0, 2.4]).unwrap().to_string(), "2 (1 to 3)");
        assert_eq!(MedianOfRounds::of(Vec::new()), None);
    }
}
