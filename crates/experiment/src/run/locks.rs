//! Lock contention of schedulers in a run, and the IOPS that their locks allow.

use hoistway_answer::document::LockSummary;
use hoistway_blk::ground::Nanos;
use hoistway_sim::LockUse;

/// The summary of a run with `ios` I/Os in this time on a host with `cpus` CPUs; `None` if no lock had a cost.
pub(crate) fn summary(used: LockUse, simulated: Nanos, ios: u64, cpus: u16, disks: usize) -> Option<LockSummary> {
    let percent = |time: Nanos, total: f64| 100.0 * time.0 as f64 / total;
    let per_io = |count: u64| count as f64 / ios.max(1) as f64;
    let seconds_ns = simulated.0.max(1) as f64;
    let all_cpus = seconds_ns * f64::from(cpus);
    // Several devices have one lock each, and their shares of the load are not known here. Waiting for other locks is
    // negligible.
    let has_one_lock = used.elevators > Nanos::ZERO && used.elevators.0 * 10 > used.held.0 * 9 && disks == 1;
    (used.held > Nanos::ZERO).then(|| LockSummary {
        held_percent: percent(used.held, all_cpus),
        waited_percent: percent(used.waited, all_cpus),
        busy_percent: has_one_lock.then(|| percent(used.elevators, seconds_ns)),
        taken_per_io: per_io(used.taken),
        lists_taken_per_io: (used.lists_taken > 0).then(|| per_io(used.lists_taken)),
        ceiling_iops: has_one_lock.then(|| ios as f64 / used.elevators.as_secs_f64()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    #[test]
    fn a_lock_that_is_held_half_of_the_time_allows_twice_as_much() {
        let half = Nanos(500_000_000);
        let used = LockUse { elevators: half, held: half, waited: Nanos(100_000_000), taken: 450_000, lists_taken: 0 };
        let summary = summary(used, SECOND, 200_000, 4, 1).unwrap();
        assert_eq!([summary.held_percent, summary.waited_percent], [12.5, 2.5]);
        assert_eq!([summary.busy_percent, summary.ceiling_iops], [Some(50.0), Some(400_000.0)]);
        assert_eq!(summary.bound_iops(), None);
        assert_eq!((summary.taken_per_io, summary.lists_taken_per_io), (2.25, None));
    }

    #[test]
    fn without_lock_costs_there_is_no_summary_and_with_several_locks_no_bound() {
        assert_eq!(summary(LockUse::default(), SECOND, 1, 4, 1), None);
        let one = LockUse { elevators: SECOND, held: SECOND, ..LockUse::default() };
        assert_eq!(summary(one, SECOND, 1000, 4, 1).and_then(|summary| summary.bound_iops()), Some(1000.0));
        let kyber = LockUse { elevators: Nanos::ZERO, ..one };
        for several in [summary(one, SECOND, 1000, 4, 2), summary(kyber, SECOND, 1000, 4, 1)] {
            assert_eq!(several.and_then(|summary| summary.ceiling_iops), None);
        }
    }
}
