//! Latencies of requests: histograms that all threads add to, and readings of them.
//!
//! A bin is an eighth of a power of two wide, so a percentile is at most 12.5 % too high; bounds at powers of two are exact.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hoistway_blk::ground::Nanos;
use serde::{Deserialize, Serialize};

/// Bins of each power of two, as a power of two.
const FINE_BITS: u32 = 3;
/// The first bin ends at 2^10 ns; the last one contains everything above 2^36 ns, 69 s.
const FIRST_BITS: u32 = 10;
const LAST_BITS: u32 = 36;
const BINS: usize = 2 + (((LAST_BITS - FIRST_BITS) as usize) << FINE_BITS);

/// A histogram of latencies.
pub struct Latency {
    bins: [AtomicU64; BINS],
    sum_ns: AtomicU64,
}

impl Default for Latency {
    fn default() -> Self {
        Latency { bins: [const { AtomicU64::new(0) }; BINS], sum_ns: AtomicU64::new(0) }
    }
}

impl std::fmt::Debug for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.read().fmt(f)
    }
}

impl Latency {
    /// Counts a latency.
    pub fn count(&self, latency: Nanos) {
        self.bins[bin(latency.0)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(latency.0, Relaxed);
    }

    /// The counts so far.
    #[must_use]
    pub fn read(&self) -> Latencies {
        let bins = self.bins.iter().enumerate().map(|(at, count)| (bound_ns(at), count.load(Relaxed)));
        Latencies { bins: bins.filter(|&(_, count)| count > 0).collect(), sum_ns: self.sum_ns.load(Relaxed) }
    }
}

/// The bin of a latency. A bound belongs to the bin below it.
fn bin(ns: u64) -> usize {
    let below = ns.saturating_sub(1);
    if below >> FIRST_BITS == 0 {
        return 0;
    }
    let octave = below.ilog2();
    if octave >= LAST_BITS {
        return BINS - 1;
    }
    let fine = (below >> (octave - FINE_BITS)) as usize & ((1 << FINE_BITS) - 1);
    1 + (((octave - FIRST_BITS) as usize) << FINE_BITS) + fine
}

/// The upper bound of a bin, in ns.
fn bound_ns(bin: usize) -> u64 {
    match bin {
        0 => 1 << FIRST_BITS,
        _ if bin == BINS - 1 => u64::MAX,
        _ => {
            let octave = FIRST_BITS + ((bin - 1) >> FINE_BITS) as u32;
            let fine = ((bin - 1) & ((1 << FINE_BITS) - 1)) as u64;
            (1 << octave) + ((fine + 1) << (octave - FINE_BITS))
        }
    }
}

/// A reading of the histogram.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Latencies {
    /// The bins that are not empty, in order: the upper bound in ns, and the count. Latencies above all bounds have the
    /// bound 2^64 - 1.
    pub bins: Vec<(u64, u64)>,
    /// Sum of all latencies, in ns.
    pub sum_ns: u64,
}

impl Latencies {
    /// The powers of two at which [`below`](Self::below) is exact, in ns, from 1 us to 69 s.
    pub fn bounds() -> impl Iterator<Item = u64> {
        (FIRST_BITS..=LAST_BITS).map(|bits| 1 << bits)
    }

    /// The number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|&(_, count)| count).sum()
    }

    /// The number of latencies of at most this length.
    #[must_use]
    pub fn below(&self, ns: u64) -> u64 {
        self.bins.iter().take_while(|&&(bound, _)| bound <= ns).map(|&(_, count)| count).sum()
    }

    /// A percentile in ns; `None` without samples.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((self.count() as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        self.bins.iter().find_map(|&(bound, count)| {
            seen += count;
            (seen >= rank).then_some(bound)
        })
    }

    /// The difference to an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Latencies) -> Latencies {
        let had = |bound| before.bins.iter().find(|&&(other, _)| other == bound).map_or(0, |&(_, count)| count);
        let new = |&(bound, count): &(u64, u64)| (bound, count.saturating_sub(had(bound)));
        Latencies {
            bins: self.bins.iter().map(new).filter(|&(_, count)| count > 0).collect(),
            sum_ns: self.sum_ns.saturating_sub(before.sum_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_bin_ends_at_most_an_eighth_above_its_values() {
        for ns in (0..40).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1, (1 << bits) * 7 / 5]) {
            let at = bin(ns);
            assert!(ns <= bound_ns(at) && (at == 0 || ns > bound_ns(at - 1)), "{ns} in {at}");
            let is_inside = (1 << FIRST_BITS..=1 << LAST_BITS).contains(&ns);
            assert!(!is_inside || bound_ns(at) <= ns + ns / 8 + 1, "{ns} in {at}");
        }
        assert!((1..BINS).all(|at| bound_ns(at) > bound_ns(at - 1)));
    }

    #[test]
    fn counted_latencies_read_back_and_are_exact_at_powers_of_two() {
        let latency = Latency::default();
        (1..=100).for_each(|us| latency.count(Nanos(us * 1024)));
        let read = latency.read();
        assert_eq!((read.count(), read.sum_ns), (100, 1024 * 5050));
        assert_eq!((read.below(1 << 10), read.below(1 << 14), read.below(1 << 20)), (1, 16, 100));
        assert_eq!(read.percentile(50.0), Some(52 << 10));
        assert_eq!(read.percentile(100.0), Some(104 << 10));
        latency.count(Nanos(1 << 40));
        let new = latency.read().since(&read);
        assert_eq!((new.bins.as_slice(), new.sum_ns), (&[(u64::MAX, 1)][..], 1 << 40));
        assert_eq!(Latencies::default().percentile(99.0), None);
        assert_eq!((Latencies::bounds().next(), Latencies::bounds().last()), (Some(1 << 10), Some(1 << 36)));
    }
}
