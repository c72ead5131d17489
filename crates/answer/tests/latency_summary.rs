//! The summary of a histogram.

use hoistway_answer::document::LatencySummary;
use hoistway_measure::LatencyHistogram;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_summary_rises_from_its_minimum_to_its_maximum(values in prop::collection::vec(0_u64..20_000_000_000, 1..200)) {
        let mut histogram = LatencyHistogram::default();
        values.iter().for_each(|&ns| histogram.record(ns));
        let LatencySummary { min, p50, p99, p99_9, max, .. } = LatencySummary::from(&histogram);
        prop_assert!(min <= p50 && p50 <= p99 && p99 <= p99_9 && p99_9 <= max);
    }
}
