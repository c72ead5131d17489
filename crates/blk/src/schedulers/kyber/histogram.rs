//! Latency histograms of the current generation, in quarters of the target. Rules: KY-14, KY-15, KY-18, KY-19.

use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::CpuId;
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::ground::time::Nanos;

/// Buckets of a histogram: each is a quarter of the target wide; the last one takes all slower requests.
pub(super) const BUCKETS: usize = 8;

/// The first bucket above the target.
pub(super) const FIRST_BAD: u8 = 4;

/// Domains that are measured: reads, writes and discards.
pub(super) const MEASURED: usize = 3;

/// The two latencies of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// From its issue to its completion: the device.
    Io = 0,
    /// From its allocation to its completion.
    Total = 1,
}

const KINDS: usize = 2;

/// The bucket of a latency for a target in ns: bucket b covers latencies of more than b and at most b + 1 quarters of
/// the target.
#[inline]
pub(super) fn bucket_of(latency: Nanos, target_ns: u64) -> usize {
    let quarter = (target_ns / 4).max(1);
    (latency.0.saturating_sub(1) / quarter).min(BUCKETS as u64 - 1) as usize
}

/// Samples by bucket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Histogram {
    pub(super) counts: [u32; BUCKETS],
}

impl Histogram {
    /// Number of samples.
    pub(super) fn samples(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// The bucket that holds the sample of this percentile.
    pub(super) fn percentile(&self, percent: u32) -> u8 {
        let mut rank = (self.samples() * percent).div_ceil(100);
        for (bucket, &count) in self.counts[..BUCKETS - 1].iter().enumerate() {
            if count >= rank {
                return bucket as u8;
            }
            rank -= count;
        }
        BUCKETS as u8 - 1
    }
}

/// Histograms for each domain and kind.
pub(super) type Sums = [[Histogram; KINDS]; MEASURED];

/// Histograms that each CPU fills separately, without a lock, and that the timer empties.
pub(super) struct CpuHistograms<Sh: Sharing> {
    /// For each CPU a count for each domain, kind and bucket.
    counts: Vec<Padded<[Sh::Word; MEASURED * KINDS * BUCKETS]>>,
}

impl<Sh: Sharing> CpuHistograms<Sh> {
    /// Empty histograms for `cpus` CPUs.
    pub(super) fn new(cpus: usize) -> Self {
        let words = |_| Padded(std::array::from_fn(|_| Sh::Word::new(0)));
        CpuHistograms { counts: (0..cpus.max(1)).map(words).collect() }
    }

    /// Counts a sample on a CPU.
    #[inline]
    pub(super) fn add(&self, cpu: CpuId, domain: usize, kind: Kind, bucket: usize) {
        let counts = &self.counts[cpu.index() % self.counts.len()];
        counts[(domain * KINDS + kind as usize) * BUCKETS + bucket].fetch_add(1, Relaxed);
    }

    /// Moves all samples to `sums`.
    pub(super) fn collect(&self, sums: &mut Sums) {
        for counts in &self.counts {
            let all = sums.iter_mut().flatten().flat_map(|histogram| &mut histogram.counts);
            for (sum, count) in all.zip(counts.iter()) {
                if count.load(Relaxed) != 0 {
                    *sum += count.swap(0, Relaxed) as u32;
                }
            }
        }
    }
}
