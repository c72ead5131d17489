//! Compares the histogram with a sorted list of the same values.

use hoistway_measure::LatencyHistogram;
use hoistway_measure::histogram::{BINNED_NS_END, FIO_BIN_COUNT};
use proptest::prelude::*;

/// Values spread evenly over the orders of magnitude, and some at the powers of two where bins change their width.
fn latency() -> impl Strategy<Value = u64> {
    let any_size = (0_u32..34, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1));
    let at_edge = (0_u32..34, -1_i64..=1).prop_map(|(bits, offset)| (1_u64 << bits).saturating_add_signed(offset));
    prop_oneof![4 => any_size, 1 => at_edge].prop_map(|ns| ns.min(BINNED_NS_END - 1))
}

fn latencies() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(latency(), 1..400)
}

fn recorded(values: &[u64]) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    values.iter().for_each(|&ns| histogram.record(ns));
    histogram
}

proptest! {
    #[test]
    fn a_percentile_is_within_one_128th_of_the_sorted_value(mut values in latencies(), percent in 0.0..=100.0_f64) {
        let histogram = recorded(&values);
        values.sort_unstable();
        let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
        // Where the product is almost an integer, the test's float and the exact rule may differ by one rank.
        let exact = (percent / 100.0 * values.len() as f64).fract();
        prop_assume!(exact > 1e-9 && exact < 1.0 - 1e-9);
        let expected = values[rank.max(1) - 1] as f64;
        let found = histogram.percentile(percent).unwrap() as f64;
        prop_assert!((found - expected).abs() <= expected / 128.0, "{found} for {expected}");
    }

    #[test]
    fn a_median_is_within_one_128th_of_the_sorted_value(mut values in latencies()) {
        let histogram = recorded(&values);
        values.sort_unstable();
        let expected = values[values.len().div_ceil(2) - 1] as f64;
        let found = histogram.percentile(50.0).unwrap() as f64;
        prop_assert!((found - expected).abs() <= expected / 128.0, "{found} for {expected}");
    }

    #[test]
    fn percentiles_never_fall(values in latencies(), a in 0.0..=100.0_f64, b in 0.0..=100.0_f64) {
        let histogram = recorded(&values);
        prop_assert!(histogram.percentile(a.min(b)) <= histogram.percentile(a.max(b)));
    }

    #[test]
    fn merging_is_recording_both(first in latencies(), second in latencies()) {
        let mut merged = recorded(&first);
        merged.merge(&recorded(&second));
        prop_assert_eq!(merged, recorded(&[first, second].concat()));
    }

    #[test]
    fn merging_an_empty_one_changes_nothing(values in latencies()) {
        let mut merged = recorded(&values);
        merged.merge(&LatencyHistogram::new());
        prop_assert_eq!(&merged, &recorded(&values));
        let mut into_empty = LatencyHistogram::new();
        into_empty.merge(&merged);
        prop_assert_eq!(into_empty, merged);
    }

    #[test]
    fn count_extremes_sum_and_mean_are_exact(values in prop::collection::vec(any::<u64>(), 1..400)) {
        let histogram = recorded(&values);
        let sum: u128 = values.iter().map(|&ns| u128::from(ns)).sum();
        prop_assert_eq!(histogram.count(), values.len() as u64);
        prop_assert_eq!(histogram.min(), values.iter().min().copied());
        prop_assert_eq!(histogram.max(), values.iter().max().copied());
        prop_assert_eq!(histogram.sum(), sum);
        let mean = sum as f64 / values.len() as f64;
        prop_assert!((histogram.mean() - mean).abs() <= mean * 1e-15);
        prop_assert_eq!(histogram.bins().map(|(_, count)| count).sum::<u64>(), histogram.count());
    }

    #[test]
    fn the_deviation_is_that_of_the_values(values in prop::collection::vec(latency(), 2..400)) {
        let histogram = recorded(&values);
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        let squares: f64 = values.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum();
        let expected = (squares / (values.len() - 1) as f64).sqrt();
        prop_assert!((histogram.stddev() - expected).abs() <= expected * 1e-9 + 1e-6);
    }
}

#[test]
fn values_beyond_the_last_bin_are_counted_there() {
    let histogram = recorded(&[BINNED_NS_END, u64::MAX]);
    assert_eq!(histogram.bins().collect::<Vec<_>>(), [(BINNED_NS_END - (1 << 35), 2)]);
    assert_eq!(histogram.max(), Some(u64::MAX));
}

#[test]
fn latencies_beyond_fios_bins_are_in_the_last_one_and_keep_percentiles() {
    let hours = 3_600_000_000_000;
    let histogram = recorded(&[1000, 17_150_000_000, 30_000_000_000, hours, 2 * hours]);
    assert_eq!(histogram.fio_bins().map(|(_, count)| count).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(histogram.fio_counts().last().map(|(bin, _)| usize::from(bin)), Some(FIO_BIN_COUNT - 1));
    let p99 = histogram.percentile(99.0).unwrap() as f64;
    assert!((p99 / (2 * hours) as f64 - 1.0).abs() < 1.0 / 128.0, "{p99}");
    assert_eq!((histogram.count_from(0), histogram.count_from(hours), histogram.count_from(u64::MAX)), (5, 2, 0));
}
