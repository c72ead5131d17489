//! A histogram of times whose bins are 1/16 of their values wide.
//!
//! Used by: `infer`, `track`.
//! Tests: below.

const BINS_OF_OCTAVE: u64 = 16;
const OCTAVES: u64 = 44;

/// A histogram of nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    bins: Vec<u32>,
    count: u64,
    sum_ns: u128,
}

fn bin(value: u64) -> usize {
    let octave = u64::from((value | (BINS_OF_OCTAVE - 1)).ilog2() - (BINS_OF_OCTAVE.ilog2() - 1));
    let bin = if octave <= 1 { value } else { (octave - 1) * BINS_OF_OCTAVE + (value >> (octave - 1)) };
    bin.min(OCTAVES * BINS_OF_OCTAVE - 1) as usize
}

/// The value in the middle of a bin.
fn middle(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < 2 * BINS_OF_OCTAVE {
        return bin;
    }
    let shift = bin / BINS_OF_OCTAVE - 1;
    ((bin % BINS_OF_OCTAVE + BINS_OF_OCTAVE) << shift) + (1 << shift) / 2
}

impl Histogram {
    pub(crate) fn add(&mut self, value_ns: u64) {
        if self.bins.is_empty() {
            self.bins = vec![0; (OCTAVES * BINS_OF_OCTAVE) as usize];
        }
        let bin = &mut self.bins[bin(value_ns)];
        *bin = bin.saturating_add(1);
        self.count += 1;
        self.sum_ns += u128::from(value_ns);
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The value that this share of all values does not exceed.
    pub(crate) fn quantile_ns(&self, share: f64) -> u64 {
        let rank = (share * self.count as f64).ceil() as u64;
        let mut sum = 0;
        let quantile_bin = self.bins.iter().position(|&count| {
            sum += u64::from(count);
            count > 0 && sum >= rank
        });
        quantile_bin.map_or(0, middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_found_by_its_middle_and_the_middle_is_close() {
        for value in (0..40).map(|shift| 1u64 << shift).flat_map(|power| [power, power + power / 3, 2 * power - 1]) {
            let middle = middle(bin(value));
            assert_eq!(bin(middle), bin(value), "{value}");
            assert!(middle.abs_diff(value) <= value / 16, "{value} in the bin of {middle}");
        }
    }

    #[test]
    fn a_quantile_is_the_value_that_its_share_does_not_exceed() {
        let mut histogram = Histogram::default();
        (1..=20).for_each(|value| histogram.add(value));
        assert_eq!([0.5, 0.99, 0.01].map(|share| histogram.quantile_ns(share)), [10, 20, 1]);
        assert_eq!((histogram.mean_ns(), histogram.count()), (10.5, 20));
        assert_eq!(Histogram::default().quantile_ns(0.5), 0);
    }
}
