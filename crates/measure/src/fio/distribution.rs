//! fio's percentage tables: queue depths, batch sizes and completion latencies.

use indexmap::IndexMap;

use crate::histogram::LatencyHistogram;

/// Upper ends of the buckets below 1000 of a unit.
const LATENCY_BUCKET_ENDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// fio shows any depth that occurred with at least 0.1 %.
const LEAST_LEVEL_PERCENT: f64 = 0.1;
/// fio shows any latency that occurred with at least 0.01 %.
const LEAST_LATENCY_PERCENT: f64 = 0.01;

/// Shares of the levels, in percent of `total`.
pub(super) fn level_percents(names: [&str; 7], counts: &[u64; 7], total: u64) -> IndexMap<String, f64> {
    let percents = counts.iter().map(|&count| percent(count, total, LEAST_LEVEL_PERCENT));
    names.map(str::to_owned).into_iter().zip(percents).collect()
}

/// Shares of completion latencies below 1 us, below 1 ms, and above, in percent of `total`.
pub(super) struct LatencyPercents {
    pub(super) ns: IndexMap<String, f64>,
    pub(super) us: IndexMap<String, f64>,
    pub(super) ms: IndexMap<String, f64>,
}

impl LatencyPercents {
    /// Sorts the histogram's bins into fio's buckets, by their midpoints.
    pub(super) fn new(clat: &LatencyHistogram, total: u64) -> Self {
        let mut ns = [0; 10];
        let mut us = [0; 10];
        // Two more buckets: up to 2000 ms, and above.
        let mut ms = [0; 12];
        for (latency_ns, count) in clat.bins() {
            let bucket = |value| LATENCY_BUCKET_ENDS.partition_point(|&end| end <= value);
            match latency_ns {
                0..1_000 => ns[bucket(latency_ns)] += count,
                1_000..1_000_000 => us[bucket(latency_ns / 1_000)] += count,
                1_000_000..2_000_000_000 => ms[bucket(latency_ns / 1_000_000)] += count,
                2_000_000_000.. => ms[11] += count,
            }
        }
        let named = |counts: &[u64]| {
            let ends = LATENCY_BUCKET_ENDS.iter().map(u64::to_string);
            let names = ends.chain(["2000".to_owned(), ">=2000".to_owned()]);
            names.zip(counts).map(|(name, &count)| (name, percent(count, total, LEAST_LATENCY_PERCENT))).collect()
        };
        Self { ns: named(&ns), us: named(&us), ms: named(&ms) }
    }
}

fn percent(count: u64, total: u64, least: f64) -> f64 {
    if count == 0 || total == 0 {
        return 0.0;
    }
    six_decimals((count as f64 / total as f64 * 100.0).max(least))
}

/// Rounds to the six decimals that fio writes.
pub(super) fn six_decimals(value: f64) -> f64 {
    // Beyond 2^33 a float's resolution is coarser than a millionth.
    if value.abs() < 8e9 { (value * 1e6).round() / 1e6 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_the_bucket_named_by_its_end() {
        let mut histogram = LatencyHistogram::new();
        for ns in [1, 2, 3, 900, 1_500, 40_000, 700_000, 1_500_000, 1_200_000_000, 3_000_000_000] {
            histogram.record(ns);
        }
        let percents = LatencyPercents::new(&histogram, 10);
        let met = |map: &IndexMap<String, f64>| {
            map.iter().filter(|(_, percent)| **percent > 0.0).map(|(name, &p)| (name.to_owned(), p)).collect::<Vec<_>>()
        };
        let shares = |list: &[(&str, f64)]| list.iter().map(|(n, p)| ((*n).to_owned(), *p)).collect::<Vec<_>>();
        assert_eq!(met(&percents.ns), shares(&[("2", 10.0), ("4", 20.0), ("1000", 10.0)]));
        assert_eq!(met(&percents.us), shares(&[("2", 10.0), ("50", 10.0), ("750", 10.0)]));
        assert_eq!(met(&percents.ms), shares(&[("2", 10.0), ("2000", 10.0), (">=2000", 10.0)]));
    }

    #[test]
    fn a_latency_share_above_zero_is_never_shown_as_zero() {
        // fio 3.33: 2 of 400000 latencies are 0.01 %.
        assert_eq!(percent(2, 400_000, LEAST_LATENCY_PERCENT), 0.01);
        assert_eq!(percent(0, 400_000, LEAST_LATENCY_PERCENT), 0.0);
        assert_eq!(percent(1, 3, LEAST_LATENCY_PERCENT), 33.333_333);
    }
}
