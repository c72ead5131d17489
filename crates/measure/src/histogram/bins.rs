//! The bins of a histogram: those of fio, in groups that are allocated when they are first used.

/// Bins of one group: the values that share their highest set bit.
const GROUP_BINS: usize = 64;
/// log2 of [`GROUP_BINS`].
const GROUP_BITS: u32 = 6;
/// Groups of bins; the first two both have bins of 1 ns.
const GROUPS: usize = 38;

/// Number of bins of a [`LatencyHistogram`](super::LatencyHistogram).
const BIN_COUNT: usize = GROUPS * GROUP_BINS;

/// Number of fio's bins, the last of which contains everything from 17.2 s on; also the number of columns in its
/// histogram logs.
pub const FIO_BIN_COUNT: usize = 29 * GROUP_BINS;

/// Values from here on (2.4 hours) share the last bin; minimum, maximum and mean stay exact.
pub const BINNED_NS_END: u64 = 1 << (GROUPS as u32 - 1 + GROUP_BITS);

/// Counts of the bins in all non-empty groups.
#[derive(Clone)]
pub(super) struct Bins {
    /// The groups in the order of their allocation.
    counts: Vec<[u64; GROUP_BINS]>,
    /// For each group its position in `counts`, from 1; 0 if it is empty.
    positions: [u8; GROUPS],
}

impl Default for Bins {
    fn default() -> Self {
        Self::new()
    }
}

impl Bins {
    pub(super) const fn new() -> Self {
        Self { counts: Vec::new(), positions: [0; GROUPS] }
    }

    #[inline]
    pub(super) fn add(&mut self, bin: usize, times: u64) {
        let group = bin / GROUP_BINS;
        let position = usize::from(self.positions[group]).wrapping_sub(1);
        let counts = match self.counts.get_mut(position) {
            Some(counts) => counts,
            None => self.allocate_group(group),
        };
        counts[bin % GROUP_BINS] += times;
    }

    #[cold]
    fn allocate_group(&mut self, group: usize) -> &mut [u64; GROUP_BINS] {
        // Allocated one at a time: most histograms have one or two.
        self.counts.reserve_exact(1);
        self.counts.push([0; GROUP_BINS]);
        self.positions[group] = self.counts.len() as u8;
        self.counts.last_mut().expect("it was just pushed")
    }

    pub(super) fn merge(&mut self, other: &Self) {
        other.used().for_each(|(bin, count)| self.add(bin, count));
    }

    /// Forgets all counts and keeps their memory.
    pub(super) fn reset(&mut self) {
        self.counts.fill([0; GROUP_BINS]);
    }

    /// The non-empty bins in ascending order: number and count.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let groups = self.positions.iter().enumerate().filter(|&(_, &position)| position > 0);
        let bins = groups.flat_map(move |(group, &position)| {
            (group * GROUP_BINS..).zip(self.counts[usize::from(position) - 1].iter().copied())
        });
        bins.filter(|&(_, count)| count > 0)
    }
}

/// The bin of a value: the seven highest bits select it.
#[inline]
pub(super) fn bin_of(ns: u64) -> usize {
    // Setting bit 6 makes the first two groups (1 ns bins) fall out of the same formula, without a branch.
    let highest_bit = 63 - (ns | GROUP_BINS as u64).leading_zeros();
    let shift = highest_bit - GROUP_BITS;
    let bin = ((shift as usize) << GROUP_BITS) + (ns >> shift) as usize;
    bin.min(BIN_COUNT - 1)
}

/// The value that represents a bin, ns.
pub(super) fn midpoint_of(bin: usize) -> u64 {
    if bin < 2 * GROUP_BINS {
        return bin as u64;
    }
    let shift = bin / GROUP_BINS - 1;
    let start = ((GROUP_BINS + bin % GROUP_BINS) as u64) << shift;
    start + (1 << shift) / 2
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
    fn there_are_bins_of_groups_that_hold_something_only() {
        let mut bins = Bins::new();
        for (bin, groups) in [(200, 1), (255, 1), (256, 2), (191, 3), (700, 4)] {
            bins.add(bin, 2);
            assert_eq!((bins.counts.len(), bins.counts.capacity()), (groups, groups), "{bin}");
        }
        assert_eq!(bins.used().collect::<Vec<_>>(), [(191, 2), (200, 2), (255, 2), (256, 2), (700, 2)]);
    }

    #[test]
    fn merging_is_counting_both_wherever_they_lie() {
        let bins_with = |numbers: &[usize]| {
            let mut bins = Bins::new();
            numbers.iter().for_each(|&number| bins.add(number, 1));
            bins
        };
        let groups: [&[usize]; 5] = [&[], &[5], &[130, 200], &[64, 1855], &[700]];
        for first in groups {
            for second in groups {
                let mut merged = bins_with(first);
                merged.merge(&bins_with(second));
                assert!(merged.used().eq(bins_with(&[first, second].concat()).used()), "{first:?} and {second:?}");
            }
        }
    }
}
