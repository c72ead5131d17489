//! Lock contention of schedulers in a run.

use serde::{Deserialize, Serialize};

/// Cost of the schedulers' locks in a run by the host profile's prices, from the start of the run including ramps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockSummary {
    /// CPU time with a lock held, percent of the time of all CPUs.
    pub held_percent: f64,
    /// CPU time spent spinning on a lock, percent of the time of all CPUs.
    pub waited_percent: f64,
    /// Acquisitions of a scheduler's lock per I/O; 0 in documents from before this was counted.
    #[serde(default)]
    pub taken_per_io: f64,
    /// Acquisitions per I/O of the lock of a pending list, in which requests are left for the holder of the scheduler's lock. Null
    /// without such lists.
    #[serde(default)]
    pub lists_taken_per_io: Option<f64>,
    /// Share of the time that the scheduler's one lock was held, percent. Null with several devices, and for schedulers that
    /// have more than one (kyber).
    pub busy_percent: Option<f64>,
    /// The I/Os a second at which the lock would be held all the time: the scheduler's maximum on this host, with the measured critical
    /// sections and hand-overs. Null where `busy_percent` is.
    pub ceiling_iops: Option<f64>,
}

/// A lock that is held at least this share of the time limits the result, percent.
const BOUND_PERCENT: f64 = 95.0;

impl LockSummary {
    /// The ceiling, I/Os a second, if the lock limited the run.
    #[must_use]
    pub fn bound_iops(&self) -> Option<f64> {
        self.ceiling_iops.filter(|_| self.busy_percent.is_some_and(|percent| percent >= BOUND_PERCENT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_for_nineteen_twentieths_of_the_time_bounds_a_run() {
        let bound = |busy_percent| {
            let (held_percent, waited_percent, ceiling_iops) = (1.0, 0.0, Some(1e6));
            let (taken_per_io, lists_taken_per_io) = (3.0, None);
            LockSummary { held_percent, waited_percent, taken_per_io, lists_taken_per_io, busy_percent, ceiling_iops }
                .bound_iops()
        };
        assert_eq!([bound(Some(95.0)), bound(Some(94.9)), bound(None)], [Some(1e6), None, None]);
    }
}
