//! The first controller: depths by the mean device latency within windows. Rules: KY-20 to KY-24.
//!
//! It is inactive until a read or a sync write misses its target. Then it measures for a short window, and for longer
//! ones as long as a target is missed. Reads and sync writes are compared with each other: the domain that meets its
//! target gives up tokens for the one that misses it.

use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::CpuId;
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::ground::time::Nanos;

use super::domain::{DOMAINS, Domain};

/// Length of the window that a missed target opens.
pub(super) const FIRST_WINDOW: Nanos = Nanos::from_millis(10);
/// Length of the windows that follow.
pub(super) const NEXT_WINDOW: Nanos = Nanos::from_millis(100);

/// For each domain the sum (ns) and the number of samples.
type Sums<W> = [(W, W); DOMAINS];

/// Latency samples of one window, summed up separately by each CPU.
pub(super) struct CpuMeans<Sh: Sharing> {
    /// Of each CPU.
    sums: Vec<Padded<Sums<Sh::Word>>>,
}

impl<Sh: Sharing> CpuMeans<Sh> {
    /// No samples, for `cpus` CPUs.
    pub(super) fn new(cpus: usize) -> Self {
        let sums = |_| Padded(std::array::from_fn(|_| (Sh::Word::new(0), Sh::Word::new(0))));
        CpuMeans { sums: (0..cpus.max(1)).map(sums).collect() }
    }

    /// Counts a sample on a CPU.
    #[inline]
    pub(super) fn add(&self, cpu: CpuId, domain: Domain, latency: Nanos) {
        let (sum, count) = &self.sums[cpu.index() % self.sums.len()][domain.index()];
        sum.fetch_add(latency.0, Relaxed);
        count.fetch_add(1, Relaxed);
    }

    /// The mean of each domain since the last call.
    pub(super) fn take(&self) -> [Option<Nanos>; DOMAINS] {
        let mut totals = [(0u64, 0u64); DOMAINS];
        for cpu in &self.sums {
            for (total, (sum, count)) in totals.iter_mut().zip(cpu.iter()) {
                total.0 = total.0.saturating_add(sum.swap(0, Relaxed));
                total.1 += count.swap(0, Relaxed);
            }
        }
        totals.map(|(sum, count)| (count > 0).then(|| Nanos(sum / count)))
    }
}

/// How a mean compares with the target, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Status {
    /// At most half of the target.
    Great,
    /// At most the target.
    Good,
    /// More than the target, but less than twice as much.
    Bad,
    /// At least twice the target.
    Awful,
}

impl Status {
    fn of(mean: Nanos, target_ns: u64) -> Status {
        match mean.0 {
            mean if mean >= target_ns.saturating_mul(2) => Status::Awful,
            mean if mean > target_ns => Status::Bad,
            mean if mean > target_ns / 2 => Status::Good,
            _ => Status::Great,
        }
    }

    fn meets_latency_target(self) -> bool {
        self <= Status::Good
    }
}

/// The depth of reads or sync writes after a window, by their own status and that of the other.
fn depth_after_window(depth: u32, this: Option<Status>, that: Option<Status>) -> u32 {
    let Some(this) = this else { return depth };
    if that.is_some_and(|that| this.meets_latency_target() == that.meets_latency_target()) {
        return depth;
    }
    match (this, that) {
        (Status::Awful, Some(Status::Great)) => depth + 2,
        (Status::Great, Some(Status::Awful)) => depth / 2,
        (Status::Great, Some(Status::Bad)) | (Status::Good, Some(Status::Awful)) => depth - (depth / 4).max(1),
        (Status::Good, Some(Status::Bad)) => depth - (depth / 8).max(1),
        _ => depth + 1,
    }
}

/// The depth of all other requests after a window.
fn other_depth_after_window(depth: u32, sampled: bool, read: Option<Status>, write: Option<Status>) -> u32 {
    let better = match (read, write) {
        (None, None) => return depth + 2,
        (Some(read), Some(write)) => read.min(write),
        (Some(one), None) | (None, Some(one)) => one,
    };
    if !sampled {
        return depth;
    }
    match better {
        Status::Great => depth + 2,
        Status::Good => depth + 1,
        Status::Bad => depth - (depth / 4).max(1),
        Status::Awful => depth / 2,
    }
}

/// The result of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WindowEnd {
    /// The new depths by [`Domain`]. The depth of discards does not change, since they are no domain of their own here.
    pub(super) depths: [u32; DOMAINS],
    /// Whether the next window opens at once.
    pub(super) goes_on: bool,
}

/// Evaluates a window by the mean device latencies in it. `depths`: the present and the largest depth of each domain.
pub(super) fn end_of_window(
    means: [Option<Nanos>; DOMAINS],
    targets_ns: [u64; 2],
    depths: [(u32, u32); DOMAINS],
) -> WindowEnd {
    let status = |domain: Domain| means[domain.index()].map(|mean| Status::of(mean, targets_ns[domain.index()]));
    let (read, write) = (status(Domain::Read), status(Domain::Write));
    let mut new = depths.map(|(depth, _)| depth);
    let mut set = |domain: Domain, depth: u32| new[domain.index()] = depth.clamp(1, depths[domain.index()].1);
    let present = |domain: Domain| depths[domain.index()].0;
    set(Domain::Read, depth_after_window(present(Domain::Read), read, write));
    set(Domain::Write, depth_after_window(present(Domain::Write), write, read));
    let sampled = means[Domain::Other.index()].is_some();
    set(Domain::Other, other_depth_after_window(present(Domain::Other), sampled, read, write));
    let missed = |status: Option<Status>| status.is_some_and(|status| !status.meets_latency_target());
    let throttled = new[Domain::Other.index()] < depths[Domain::Other.index()].1;
    WindowEnd { depths: new, goes_on: missed(read) || missed(write) || throttled }
}
