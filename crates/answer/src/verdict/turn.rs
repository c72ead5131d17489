//! One turn of a process's loop: its I/Os and syncs until it can continue.

use crate::document::{JobSummary, OperationSummary, powers_of_wait, wait_of_powers};
use hoistway_measure::Operation;

/// Minimum I/Os of a run whose 99th percentile is compared together with those of other runs: one lies beyond it.
pub(super) const IOS_PER_RUN_MIN: u64 = 101;
/// A wait below this share of its loop is negligible.
pub(super) const NOTICED_SHARE: f64 = 0.01;

/// The turns of a job's processes in one run.
pub(super) struct Turn {
    /// Number of measured turns.
    pub(super) count: u64,
    /// Turns a second, of all processes together.
    pub(super) per_second: f64,
    /// The wait that a turn is judged by, ns: long ones count more than in proportion to their number.
    pub(super) waited_ns: f64,
}

/// The transfers that a job is judged by: discards, which device models know least about, only if it does nothing else.
pub(super) fn judged_transfers(job: &JobSummary) -> impl Iterator<Item = &OperationSummary> {
    let only_discards = job.transfers().all(|transfers| transfers.operation == Operation::Trim);
    job.transfers().filter(move |transfers| only_discards || transfers.operation != Operation::Trim)
}

/// One kind of I/O within a loop.
struct Part {
    count: u64,
    mean_ns: f64,
    waited_ns: f64,
}

impl Part {
    fn of(summary: &OperationSummary) -> Self {
        Self { count: summary.ios, mean_ns: summary.lat_ns.mean, waited_ns: summary.waited_ns() }
    }
}

impl Turn {
    /// The turns of a job in a run; `None` if nothing completed.
    ///
    /// A commit is its writes and their sync: the means add up, and what is longer than the mean is that of the part with the longest.
    /// Without syncs each I/O is a turn, whatever its direction.
    pub(super) fn of(job: &JobSummary) -> Option<Self> {
        let ios = judged_transfers(job).filter(|transfers| transfers.ios > 0);
        let parts: Vec<Part> = ios.map(Part::of).collect();
        let per_second = || judged_transfers(job).map(|transfers| transfers.iops).sum::<f64>();
        match job.syncs() {
            Some(syncs) => Some(Self::of_commits(&parts, &Part::of(syncs), syncs.iops)),
            None if parts.is_empty() => None,
            None => Some(Self::of_ios(&parts, per_second())),
        }
    }

    fn of_commits(parts: &[Part], sync: &Part, per_second: f64) -> Self {
        let all_parts = || parts.iter().chain([sync]);
        let mean_ns: f64 = all_parts().map(|part| part.count as f64 / sync.count as f64 * part.mean_ns).sum();
        let longer_ns = all_parts().map(|part| part.waited_ns - part.mean_ns).fold(0.0, f64::max);
        Self { count: sync.count, per_second, waited_ns: mean_ns + longer_ns }
    }

    fn of_ios(parts: &[Part], per_second: f64) -> Self {
        let count = parts.iter().map(|part| part.count).sum();
        let mean =
            |of: fn(&Part) -> f64| parts.iter().map(|part| part.count as f64 * of(part)).sum::<f64>() / count as f64;
        let mean_ns = mean(|part| part.mean_ns);
        let waited_ns = wait_of_powers(mean(|part| powers_of_wait(part.waited_ns, part.mean_ns)), mean_ns);
        Self { count, per_second, waited_ns: if mean_ns > 0.0 { waited_ns } else { 0.0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_its_write_and_its_sync() {
        let write = Part { count: 100, mean_ns: 2e3, waited_ns: 3e3 };
        let sync = Part { count: 100, mean_ns: 1e9, waited_ns: 2e9 };
        let turn = Turn::of_commits(&[write], &sync, 1.0);
        assert_eq!((turn.count, turn.waited_ns), (100, 2e9 + 2e3));
    }

    #[test]
    fn the_wait_of_reads_and_writes_is_that_of_those_on_which_most_time_is_spent() {
        let part = |mean_ns, waited_ns| Part { count: 500, mean_ns, waited_ns };
        let waited_ns = Turn::of_ios(&[part(1e5, 4e5), part(1e6, 4e6)], 1.0).waited_ns;
        assert!((2e6..4e6).contains(&waited_ns), "{waited_ns}");
        let same = Turn::of_ios(&[part(1e6, 4e6), part(1e6, 4e6)], 1.0).waited_ns;
        assert!((same / 4e6 - 1.0).abs() < 1e-6, "{same}");
    }
}
