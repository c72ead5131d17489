//! Statistics of values sampled at a fixed interval.
//!
//! Used by: `measurement`, `fio`; crate `load`.
//! Tests: below.

/// Minimum, maximum, mean and deviation of fio's samples of bandwidth (KiB/s) or IOPS, one per [`SAMPLE_INTERVAL_NS`]
/// of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleStats {
    min: u64,
    max: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
    count: u64,
}

/// Interval between two samples of bandwidth and IOPS, ns: fio's `bwavgtime` and `iopsavgtime`.
pub const SAMPLE_INTERVAL_NS: u64 = 500_000_000;

impl SampleStats {
    /// Adds one sample.
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        let distance = value as f64 - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value as f64 - self.mean);
    }

    /// Adds the samples of a process that ran *at the same time*, as fio does for a group: rates add up, so minima,
    /// maxima and means are summed, not pooled.
    pub fn add_parallel(&mut self, other: &Self) {
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
        self.count += other.count;
    }

    /// Smallest sample; 0 without samples.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// Largest sample; 0 without samples.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Mean of the samples; 0 without samples.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard deviation of the samples (divisor N - 1); 0 with fewer than two.
    pub fn stddev(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_samples_have_a_deviation_and_one_has_none() {
        let of = |values: &[u64]| {
            let mut stats = SampleStats::default();
            values.iter().for_each(|&value| stats.add(value));
            (stats.mean(), stats.stddev())
        };
        assert_eq!(of(&[1, 3]), (2.0, 2.0_f64.sqrt()));
        assert_eq!((of(&[7]), of(&[])), ((7.0, 0.0), (0.0, 0.0)));
    }

    #[test]
    fn parallel_processes_add_up_as_in_fio() {
        // fio 3.33, two clones at 500 IOPS: each 500..502, mean 500.4; the group's figures are from its output.
        let mut clone = SampleStats::default();
        for value in [500, 500, 500, 500, 502] {
            clone.add(value);
        }
        assert_eq!((clone.min(), clone.max(), clone.count()), (500, 502, 5));
        assert!((clone.stddev() - 0.894_427).abs() < 1e-6);
        let mut group = clone;
        group.add_parallel(&clone);
        assert_eq!((group.min(), group.max(), group.count()), (1000, 1004, 10));
        assert!((group.stddev() - 0.843_274).abs() < 1e-6);
    }
}
