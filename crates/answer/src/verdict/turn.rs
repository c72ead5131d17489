//! One turn of a process's loop: its I/Os and syncs until it can continue.

use crate::document::{JobSummary, LatencySummary, OperationSummary};
use crate::figure::Figure;

/// Minimum I/Os for a meaningful 99th percentile: ten lie beyond it.
pub(super) const IOS_MIN: u64 = 1000;
/// Minimum I/Os of a run whose 99th percentile is compared together with those of other runs: one lies beyond it.
pub(super) const IOS_PER_RUN_MIN: u64 = 101;
/// A wait below this share of its loop is negligible.
pub(super) const NOTICED_SHARE: f64 = 0.01;
/// Bisection steps of the search for a percentile.
const STEPS: u32 = 60;

/// The turns of a job's processes in one run.
pub(super) struct Turn {
    /// Number of measured turns.
    pub(super) count: u64,
    /// Turns a second, of all processes together.
    pub(super) per_second: f64,
    /// Mean wait, ns.
    pub(super) mean_ns: f64,
    /// 99th percentile, ns.
    pub(super) p99_ns: f64,
    /// Whether `p99_ns` is exact. It is a lower bound if most of the slowest I/Os were in flight at the end or beyond the histogram.
    pub(super) is_p99_known: bool,
}

/// One kind of I/O within a loop.
struct Part {
    count: u64,
    lat_ns: LatencySummary,
    /// Whether its 99th percentile is exact rather than a lower bound.
    is_p99_known: bool,
}

impl Part {
    fn of(summary: &OperationSummary) -> Self {
        Self { count: summary.ios, lat_ns: summary.lat_ns, is_p99_known: !summary.is_at_least(Figure::P99) }
    }
}

impl Turn {
    /// The turns of a job in a run; `None` if nothing completed.
    ///
    /// A commit is its writes and their sync: the means add up, and the tail is the longest tail of these parts. Without syncs
    /// each I/O is a turn, whatever its direction.
    pub(super) fn of(job: &JobSummary) -> Option<Self> {
        let ios = job.transfers().filter(|transfers| transfers.ios > 0);
        let parts: Vec<Part> = ios.map(Part::of).collect();
        let per_second = || job.transfers().map(|transfers| transfers.iops).sum::<f64>();
        match job.syncs() {
            Some(syncs) => {
                let sync_part = Part::of(syncs);
                Some(Self::of_commits(&parts, &sync_part, syncs.iops))
            }
            None if parts.is_empty() => None,
            None => Some(Self::of_ios(&parts, per_second())),
        }
    }

    fn of_commits(parts: &[Part], sync: &Part, per_second: f64) -> Self {
        let all_parts = || parts.iter().chain([sync]);
        let mean = |part: &Part| part.count as f64 / sync.count as f64 * part.lat_ns.mean;
        let mean_ns = all_parts().map(mean).sum::<f64>();
        let tail = all_parts().map(|part| (part.lat_ns.p99 as f64 - part.lat_ns.mean).max(0.0)).fold(0.0, f64::max);
        let is_p99_known = all_parts().all(|part| part.is_p99_known);
        Self { count: sync.count, per_second, mean_ns, p99_ns: mean_ns + tail, is_p99_known }
    }

    fn of_ios(parts: &[Part], per_second: f64) -> Self {
        let count: u64 = parts.iter().map(|part| part.count).sum();
        let mean = |part: &Part| part.count as f64 / count as f64 * part.lat_ns.mean;
        let p99_ns = match parts {
            [one] => one.lat_ns.p99 as f64,
            several => p99_of_all(several, count),
        };
        let is_p99_known = parts.iter().all(|part| part.is_p99_known);
        Self { count, per_second, mean_ns: parts.iter().map(mean).sum(), p99_ns, is_p99_known }
    }
}

/// The latency that one in a hundred of all these I/Os exceeds.
fn p99_of_all(parts: &[Part], count: u64) -> f64 {
    let slower = |ns: f64| -> f64 {
        let part_share = |part: &Part| part.count as f64 / count as f64 * share_slower(&part.lat_ns, ns);
        parts.iter().map(part_share).sum()
    };
    let largest = parts.iter().map(|part| part.lat_ns.max.max(part.lat_ns.p99_9)).max().unwrap_or(0);
    let (mut low, mut high) = (0.0, (largest as f64 + 1.0).ln());
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if slower(middle.exp()) > 0.01 { low = middle } else { high = middle }
    }
    high.exp()
}

/// The share of I/Os that take longer than `ns`, interpolated between the known percentiles (linear in the logarithms).
fn share_slower(lat_ns: &LatencySummary, ns: f64) -> f64 {
    let LatencySummary { min, p50, p99, p99_9, max, .. } = *lat_ns;
    let points = [(min, 1.0), (p50, 0.5), (p99, 0.01), (p99_9, 0.001), (max, 1e-9)];
    let mut previous = (0.0_f64, 0.0_f64);
    for (latency_ns, share) in points {
        let point = ((latency_ns as f64).max(1.0).ln(), f64::ln(share));
        if ns.ln() < point.0 {
            let width = point.0 - previous.0;
            let fraction = if width > 0.0 { (ns.ln() - previous.0) / width } else { 1.0 };
            return (previous.1 + fraction * (point.1 - previous.1)).exp();
        }
        previous = point;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(mean: f64, p99: u64) -> LatencySummary {
        LatencySummary { min: 1000, mean, p50: mean as u64, p95: None, p99, p99_9: p99 * 2, max: p99 * 3, stddev: 0.0 }
    }

    #[test]
    fn a_commit_is_its_write_and_its_sync() {
        let write = Part { count: 100, lat_ns: latency(2e3, 3000), is_p99_known: true };
        let sync = Part { count: 100, lat_ns: latency(1e9, 3_000_000_000), is_p99_known: true };
        let turn = Turn::of_commits(&[write], &sync, 1.0);
        assert_eq!((turn.count, turn.mean_ns), (100, 1e9 + 2e3));
        assert_eq!(turn.p99_ns, 3e9 + 2e3);
    }

    #[test]
    fn the_p99_of_reads_and_writes_lies_between_theirs_and_near_that_of_the_slower_half() {
        let part = |mean: f64, p99| Part { count: 500, lat_ns: latency(mean, p99), is_p99_known: true };
        let turn = Turn::of_ios(&[part(1e5, 400_000), part(1e6, 4_000_000)], 1.0);
        let p99 = turn.p99_ns;
        assert!((3e6..4e6).contains(&p99), "{p99}");
        let same = Turn::of_ios(&[part(1e6, 4_000_000), part(1e6, 4_000_000)], 1.0).p99_ns;
        assert!((same / 4e6 - 1.0).abs() < 1e-6, "{same}");
    }

    #[test]
    fn a_percentile_is_a_bound_if_that_of_a_part_is() {
        let part = |is_p99_known| Part { count: 5000, lat_ns: latency(1e10, 16_900_000_000), is_p99_known };
        assert!(!Turn::of_ios(&[part(true), part(false)], 1.0).is_p99_known);
        assert!(Turn::of_ios(&[part(true)], 1.0).is_p99_known);
    }
}
