//! A latency histogram with fio's bins.
//!
//! Values up to 127 ns have a bin each; from there on every power of two is cut into 64 bins, so that a bin is at most
//! 1/64 of its values wide and its midpoint at most 1/128 off. Count, extremes, mean and deviation are exact: they do
//! not come from the bins. The bins are those of fio, so that percentiles and `bins` compare with its output one to
//! one.

/// Bins of one group: the values that share their highest set bit.
const GROUP_BINS: usize = 64;
/// log2 of [`GROUP_BINS`].
const GROUP_BITS: u32 = 6;
/// Groups of bins; the first two both have bins of 1 ns.
const GROUPS: usize = 29;

/// Number of bins of a [`LatencyHistogram`] (fio's histogram logs have as many columns).
pub const BIN_COUNT: usize = GROUPS * GROUP_BINS;

/// Values from here on (about 17.2 s) share the last bin, as in fio; minimum, maximum and mean stay exact.
pub const BINNED_NS_END: u64 = 1 << (GROUPS as u32 - 1 + GROUP_BITS);

/// Counts of latencies in fio's bins, with exact count, minimum, maximum, mean and standard deviation.
///
/// An empty histogram is 80 bytes: the bins (14.5 KiB) are allocated by the first [`record`](Self::record) and never
/// again.
#[derive(Clone)]
pub struct LatencyHistogram {
    /// Counts by bin; none until something was recorded.
    bins: Option<Box<[u64; BIN_COUNT]>>,
    /// Number of values.
    count: u64,
    /// Smallest value, ns; `u64::MAX` when empty.
    min_ns: u64,
    /// Largest value, ns; 0 when empty.
    max_ns: u64,
    /// Sum of the values, ns. Wide, as a long run's sum of long latencies passes 64 bits.
    sum_ns: u128,
    /// Sum of the squared values, ns^2. An integer, as a float would lose the deviation of many similar values.
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
        Self { bins: None, count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0, sum_squares_ns2: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.bins_mut()[bin_of(ns)] += 1;
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
        self.bins_mut()[bin_of(ns)] += times;
        self.count += times;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns) * u128::from(times);
        let square = u128::from(ns) * u128::from(ns);
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(square.saturating_mul(u128::from(times)));
    }

    #[inline]
    fn bins_mut(&mut self) -> &mut [u64; BIN_COUNT] {
        match &mut self.bins {
            Some(bins) => bins,
            empty => empty.insert(allocate_bins()),
        }
    }

    /// Counts all of `other`'s values, as if they had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        let Some(others) = &other.bins else { return };
        let bins = self.bins.get_or_insert_with(allocate_bins);
        for (bin, other) in bins.iter_mut().zip(others.iter()) {
            *bin += other;
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(other.sum_squares_ns2);
    }

    /// Forgets all values; keeps the bins' memory.
    pub fn reset(&mut self) {
        let mut bins = self.bins.take();
        if let Some(bins) = &mut bins {
            bins.fill(0);
        }
        *self = Self { bins, ..Self::new() };
    }

    /// Number of values.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
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

    /// Mean of the values, ns, exact but for rounding; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = u128::from(self.count);
        // Whole and fractional part apart: the sum itself may have more bits than a float.
        (self.sum_ns / count) as f64 + (self.sum_ns % count) as f64 / self.count as f64
    }

    /// Standard deviation of the sample (divisor N - 1, as fio has it), ns; 0 with fewer than two values.
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = u128::from(self.count);
        let (whole_mean, rest) = (self.sum_ns / count, self.sum_ns % count);
        // Squares about the whole part of the mean, in integers, so that nothing cancels; then about the mean itself.
        let about_whole_mean = self.sum_squares_ns2.saturating_sub(whole_mean.saturating_mul(self.sum_ns + rest));
        let rest = rest as f64;
        let about_mean = (about_whole_mean as f64 - rest * rest / self.count as f64).max(0.0);
        (about_mean / (self.count - 1) as f64).sqrt()
    }

    /// The value below or at which `percent` percent of all values lie: the midpoint of the first bin whose cumulative
    /// count reaches `percent / 100 * count`. None when empty.
    ///
    /// As a midpoint, it may be a little above [`max`](Self::max). A `percent` above 100 counts as 100; one below 0, or
    /// no number, as 0, which gives the first bin that holds something.
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

    /// The bins that hold something, from small to large: midpoint in ns (as fio names it) and count.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins
            .iter()
            .flat_map(|bins| bins.iter().enumerate())
            .filter(|&(_, &count)| count > 0)
            .map(|(bin, &count)| (midpoint_of(bin), count))
    }

    /// The bins that hold something, from small to large: number and count.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let bins = self.bins.iter().flat_map(|bins| (0..).zip(bins.iter().copied()));
        bins.filter(|&(_, count)| count > 0)
    }
}

impl PartialEq for LatencyHistogram {
    /// Whether both hold the same values, as far as a histogram can tell; allocated but empty bins do not matter.
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

#[cold]
#[inline(never)]
fn allocate_bins() -> Box<[u64; BIN_COUNT]> {
    // By way of a vector, which asks the allocator for zeroed memory instead of copying an array off the stack.
    let bins = vec![0; BIN_COUNT].into_boxed_slice();
    bins.try_into().unwrap_or_else(|_| unreachable!("the vector has BIN_COUNT elements"))
}

/// The bin of a value: the seven highest bits select it.
#[inline]
fn bin_of(ns: u64) -> usize {
    // Setting bit 6 makes the first two groups (1 ns bins) fall out of the same formula, without a branch.
    let highest_bit = 63 - (ns | GROUP_BINS as u64).leading_zeros();
    let shift = highest_bit - GROUP_BITS;
    let bin = ((shift as usize) << GROUP_BITS) + (ns >> shift) as usize;
    bin.min(BIN_COUNT - 1)
}

/// The value that stands for a bin, ns.
fn midpoint_of(bin: usize) -> u64 {
    if bin < 2 * GROUP_BINS {
        return bin as u64;
    }
    let shift = bin / GROUP_BINS - 1;
    let start = ((GROUP_BINS + bin % GROUP_BINS) as u64) << shift;
    start + (1 << shift) / 2
}

/// The smallest whole number that is at least `percent / 100 * count`, and at least 1.
///
/// Computed exactly from the float that `percent` is: 99.9 as a float is a little more than 99.9, so that of 1000
/// values it means the last one, not the 999th. fio decides so too.
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
    fn bins_meet_without_gap_or_overlap() {
        let mut previous = bin_of(0);
        for ns in 1..1 << 16 {
            let bin = bin_of(ns);
            assert!(bin == previous || bin == previous + 1, "{ns} ns");
            previous = bin;
        }
        for group in 7..34 {
            assert_eq!(bin_of((1 << group) - 1) + 1, bin_of(1 << group), "2^{group} ns");
        }
        assert_eq!(bin_of(BINNED_NS_END - 1), BIN_COUNT - 1);
        assert_eq!(bin_of(u64::MAX), BIN_COUNT - 1);
    }

    #[test]
    fn midpoints_are_those_of_fio() {
        assert_eq!(midpoint_of(bin_of(127)), 127);
        assert_eq!(midpoint_of(bin_of(2544)), 2544);
        assert_eq!(midpoint_of(bin_of(22_700)), 22_656);
        assert_eq!(
            (0..BIN_COUNT).map(|bin| bin_of(midpoint_of(bin))).collect::<Vec<_>>(),
            (0..BIN_COUNT).collect::<Vec<_>>()
        );
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
