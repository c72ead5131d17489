//! A latency histogram with fio's bins.
//!
//! Used by: `io_log`, `fio`, `measurement`; crates `answer`, `calibrate`, `evidence`, `load`.
//! Tests: below, `crates/measure/src/histogram/bins.rs`, `crates/measure/tests/histogram.rs`, `crates/measure/tests/fio_output.rs`.
//!
//! Values up to 127 ns have one bin each; above, every power of two is divided into 64 bins, so the width of a bin is
//! at most 1/64 of its values, and its midpoint is off by at most 1/128. Count, extremes, mean and deviation are exact:
//! they do not depend on the bins. The bins are those of fio, so that percentiles and `bins` correspond to its output,
//! plus additional ones for longer values, which fio only counts as 17.2 s or longer.

mod bins;

pub use bins::{BINNED_NS_END, FIO_BIN_COUNT};
use bins::{Bins, bin_of, midpoint_of};

/// Counts of latencies in fio's bins, with exact count, minimum, maximum, mean and standard deviation.
///
/// An empty histogram takes 128 bytes. Only powers of two with values have bins (512 bytes each, 19 KiB at most), so
/// thousands of processes with a histogram each take little memory and little space in caches.
#[derive(Clone)]
pub struct LatencyHistogram {
    bins: Bins,
    /// Number of values.
    count: u64,
    /// Smallest value, ns; `u64::MAX` when empty.
    min_ns: u64,
    /// Largest value, ns; 0 when empty.
    max_ns: u64,
    /// Sum of the values, ns. 128 bits, because the sum of a long run's latencies may exceed 64 bits.
    sum_ns: u128,
    /// Sum of the squared values, ns^2. An integer, because a float would lose the deviation of many similar values.
    sum_squares_ns2: u128,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram, without bins.
    pub const fn new() -> Self {
        Self { bins: Bins::new(), count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0, sum_squares_ns2: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.bins.add(bin_of(ns), 1);
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
        let square = u128::from(ns) * u128::from(ns);
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(square);
    }

    /// Counts one value `times` times.
    pub fn record_many(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.bins.add(bin_of(ns), times);
        self.count += times;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns) * u128::from(times);
        let square = u128::from(ns) * u128::from(ns);
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(square.saturating_mul(u128::from(times)));
    }

    /// A histogram of which only the bins, by values in them, and the exact figures are known: smallest, largest, mean, and standard
    /// deviation, ns.
    #[must_use]
    pub fn from_bins(bins: impl IntoIterator<Item = (u64, u64)>, [min, max]: [u64; 2], mean: f64, stddev: f64) -> Self {
        let mut histogram = Self::new();
        bins.into_iter().for_each(|(ns, count)| histogram.record_many(ns, count));
        if !histogram.is_empty() {
            let count = histogram.count as f64;
            (histogram.min_ns, histogram.max_ns) = (min, max);
            histogram.sum_ns = (mean * count).round() as u128;
            histogram.sum_squares_ns2 = (stddev * stddev * (count - 1.0) + mean * mean * count).round() as u128;
        }
        histogram
    }

    /// Adds all values of `other`, as if they had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        self.bins.merge(&other.bins);
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(other.sum_squares_ns2);
    }

    /// Removes all values; keeps the bins' memory.
    pub fn reset(&mut self) {
        let mut bins = std::mem::take(&mut self.bins);
        bins.reset();
        *self = Self { bins, ..Self::new() };
    }

    /// Number of values.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether it contains no values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Smallest value, ns, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// Largest value, ns, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Sum of the values, ns, exact.
    pub fn sum(&self) -> u128 {
        self.sum_ns
    }

    /// Mean of the values, ns, exact except for rounding; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = u128::from(self.count);
        // Whole and fractional part separately: the sum may have more bits than a float.
        (self.sum_ns / count) as f64 + (self.sum_ns % count) as f64 / self.count as f64
    }

    /// Standard deviation of the sample (divisor N - 1, as in fio), ns; 0 with fewer than two values.
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = u128::from(self.count);
        let (whole_mean, rest) = (self.sum_ns / count, self.sum_ns % count);
        // Squares about the whole part of the mean, in integers to avoid cancellation; then about the mean itself.
        let about_whole_mean = self.sum_squares_ns2.saturating_sub(whole_mean.saturating_mul(self.sum_ns + rest));
        let rest = rest as f64;
        let about_mean = (about_whole_mean as f64 - rest * rest / self.count as f64).max(0.0);
        (about_mean / (self.count - 1) as f64).sqrt()
    }

    /// The value at or below which `percent` percent of all values lie: the midpoint of the first bin whose cumulative
    /// count reaches `percent / 100 * count`. `None` when empty.
    ///
    /// As a midpoint, it may slightly exceed [`max`](Self::max). A `percent` above 100 counts as 100; one below 0, or
    /// NaN, as 0, which gives the first non-empty bin.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = rank_of(percent, self.count);
        let mut cumulative = 0;
        for (midpoint_ns, count) in self.bins() {
            cumulative += count;
            if cumulative >= rank {
                return Some(midpoint_ns);
            }
        }
        None
    }

    /// The non-empty bins in ascending order: midpoint in ns (fio's name of the bin) and count.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.used().map(|(bin, count)| (midpoint_of(bin), count))
    }

    /// The non-empty bins in ascending order: fio's bin number and count. Values beyond fio's range count in its last bin, which may be
    /// returned more than once.
    pub fn fio_counts(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.bins.used().map(|(bin, count)| (bin.min(FIO_BIN_COUNT - 1) as u16, count))
    }

    /// The non-empty bins of fio in ascending order: midpoint in ns and count; each bin is returned once.
    pub fn fio_bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut bins = self.fio_counts().peekable();
        std::iter::from_fn(move || {
            let (bin, mut count) = bins.next()?;
            while let Some((_, more)) = bins.next_if(|(next, _)| *next == bin) {
                count += more;
            }
            Some((midpoint_of(usize::from(bin)), count))
        })
    }

    /// The number of values in the bin of `ns` and in higher bins.
    pub fn count_from(&self, ns: u64) -> u64 {
        let from = bin_of(ns);
        self.bins.used().filter(|(bin, _)| *bin >= from).map(|(_, count)| count).sum()
    }
}

impl PartialEq for LatencyHistogram {
    /// Whether both contain the same values, up to the resolution of bins; empty bins are ignored.
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
            && self.min_ns == other.min_ns
            && self.max_ns == other.max_ns
            && self.sum_ns == other.sum_ns
            && self.sum_squares_ns2 == other.sum_squares_ns2
            && self.bins().eq(other.bins())
    }
}

impl Eq for LatencyHistogram {}

impl std::fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatencyHistogram")
            .field("count", &self.count)
            .field("min_ns", &self.min())
            .field("mean_ns", &self.mean())
            .field("max_ns", &self.max())
            .finish_non_exhaustive()
    }
}

/// The smallest integer that is at least `percent / 100 * count`, and at least 1.
///
/// Computed exactly from the float `percent`: 99.9 as a float is slightly more than 99.9, so of 1000 values it selects
/// the last one, not the 999th. fio does the same.
fn rank_of(percent: f64, count: u64) -> u64 {
    if percent.is_nan() || percent <= 0.0 {
        return 1;
    }
    if percent >= 100.0 {
        return count;
    }
    // percent = mantissa * 2^-shift. Below 2^-60 the rank is 1 whatever the count.
    let bits = percent.to_bits();
    let exponent = (bits >> 52) as i32;
    let mantissa = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
    let shift = 1075 - exponent;
    if exponent == 0 || shift > 112 {
        return 1;
    }
    // percent < 100 keeps the mantissa below 2^53 and the count below 2^64: the product fits in 117 bits. Dividing by
    // 100 first and by the power of two second, both rounding up, gives the same as dividing by their product.
    let hundredths = (mantissa * u128::from(count)).div_ceil(100);
    let rank = (hundredths + ((1_u128 << shift) - 1)) >> shift;
    (rank as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_recorded_many_at_a_time_are_those_recorded_one_by_one() {
        let (mut many, mut single) = (LatencyHistogram::new(), LatencyHistogram::new());
        for (ns, times) in [(300, 3), (5_000_000, 2), (7, 0)] {
            many.record_many(ns, times);
            assert!(times == 0 || many != single, "what differs is not equal");
            (0..times).for_each(|_| single.record(ns));
            assert_eq!(many, single);
        }
        assert_eq!((many.count(), many.sum()), (5, 10_000_900));
        assert!((many.stddev() - 2_738_448.47).abs() < 0.01, "{}", many.stddev());
    }

    #[test]
    fn ranks_are_exact() {
        assert_eq!(rank_of(50.0, 3000), 1500);
        assert_eq!(rank_of(50.0, 3001), 1501);
        assert_eq!(rank_of(1.0, 100), 1);
        assert_eq!(rank_of(99.0, 100), 99);
        // The float nearest to 99.9 is above it: see the doc comment.
        assert_eq!(rank_of(99.9, 3000), 2998);
        assert_eq!(rank_of(99.9, 3001), 2998);
        assert_eq!(rank_of(100.0, u64::MAX), u64::MAX);
        assert_eq!(rank_of(f64::MIN_POSITIVE, u64::MAX), 1);
        assert_eq!(rank_of(1e-300, 7), 1);
        assert_eq!(rank_of(f64::NAN, 7), 1);
        assert_eq!(rank_of(-1.0, 7), 1);
        assert_eq!(rank_of(1000.0, 7), 7);
    }

    #[test]
    fn resetting_forgets_everything() {
        let mut histogram = LatencyHistogram::new();
        histogram.record(5);
        histogram.reset();
        assert_eq!(histogram, LatencyHistogram::new());
        assert_eq!(histogram.percentile(50.0), None);
        assert_eq!((histogram.min(), histogram.max()), (None, None));
    }

    #[test]
    fn the_deviation_of_many_similar_values_is_not_lost() {
        let mut histogram = LatencyHistogram::new();
        for i in 0..1000 {
            histogram.record(10_000_000_000 + i % 2);
        }
        assert!((histogram.mean() - 10_000_000_000.5).abs() < 1e-3);
        assert!((histogram.stddev() - 0.500_250_187_6).abs() < 1e-9, "{}", histogram.stddev());
    }
}
