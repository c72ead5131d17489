//! A latency distribution reduced to a few points, for charts.

use serde::{Deserialize, Serialize};

use hoistway_measure::histogram::LatencyHistogram;

/// Points per decade of the share of slower I/Os: from 100 % to 10 %, from 10 % to 1 %, and so on.
const POINTS_PER_DECADE: u32 = 8;
/// Decades, down to one I/O of ten thousand: p99.99.
const DECADES: u32 = 4;

/// A distribution of latencies by percentiles that get denser towards 100. Percentiles without a single I/O beyond them are left
/// out: a hundred I/Os have no 99.9th.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyDistribution {
    /// Percentiles, from 0 up to 99.99 at most; 50, 90, 99 and 99.9 are among them.
    pub percent: Vec<f64>,
    /// The latency at each percentile, ns: the midpoint of a bin, so it may be off by 1/128.
    pub lat_ns: Vec<u64>,
}

impl LatencyDistribution {
    /// Whether it has no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.percent.is_empty()
    }
}

impl From<&LatencyHistogram> for LatencyDistribution {
    fn from(histogram: &LatencyHistogram) -> Self {
        let count = histogram.count() as f64;
        let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else { return Self::default() };
        // 0.9995 instead of 1 allows for rounding errors.
        let is_known = |percent: &f64| (1.0 - percent / 100.0) * count >= 0.9995;
        let percent: Vec<f64> = percents().filter(is_known).collect();
        let latency_at = |percent: &f64| histogram.percentile(*percent).map_or(max, |ns| ns.clamp(min, max));
        Self { lat_ns: percent.iter().map(latency_at).collect(), percent }
    }
}

/// The percentiles, rounded to four decimals.
fn percents() -> impl Iterator<Item = f64> {
    let slower = |point| (-f64::from(point) / f64::from(POINTS_PER_DECADE) * std::f64::consts::LN_10).exp();
    let spaced = (0..=DECADES * POINTS_PER_DECADE).map(|point| 100.0 - 100.0 * slower(point));
    let mut percents: Vec<f64> = spaced.chain([50.0]).map(|percent| (percent * 1e4).round() / 1e4).collect();
    percents.sort_by(f64::total_cmp);
    percents.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64) -> LatencyDistribution {
        let mut histogram = LatencyHistogram::new();
        (1..=count).for_each(|ns| histogram.record(ns * 1000));
        LatencyDistribution::from(&histogram)
    }

    #[test]
    fn common_percentiles_are_among_the_points_and_match_the_histogram() {
        let distribution = of(100_000);
        for (percent, us) in [(50.0, 50_000), (90.0, 90_000), (99.0, 99_000), (99.9, 99_900), (99.99, 99_990)] {
            let point = distribution.percent.iter().position(|known| *known == percent).unwrap();
            let off = distribution.lat_ns[point] as f64 / (us as f64 * 1e3);
            assert!((off - 1.0).abs() < 1.0 / 128.0, "p{percent}: {off}");
        }
        assert!(distribution.lat_ns.is_sorted() && distribution.percent.is_sorted());
    }

    #[test]
    fn percentiles_beyond_the_sample_count_are_left_out() {
        for (count, last) in [(1, 0.0), (10, 90.0), (100, 99.0), (1000, 99.9), (10_000, 99.99), (1_000_000, 99.99)] {
            assert_eq!(of(count).percent.last(), Some(&last), "of {count}");
        }
        assert!(LatencyDistribution::from(&LatencyHistogram::new()).is_empty() && !of(1).is_empty());
    }
}
