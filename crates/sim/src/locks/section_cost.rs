//! Cost of a section under a scheduler's lock on a host.

use hoistway_blk::ground::Nanos;
use hoistway_blk::schedulers::{NONE, Registry};

use crate::host::Host;

/// The profile's key for schedulers that it does not list.
const OTHERS: &str = "others";

/// The cost of a section of a scheduler on a host.
#[derive(Clone, Copy, Default)]
pub(crate) struct SectionCost {
    pub(super) section: Nanos,
    pub(super) beside: Nanos,
    pub(super) handover: Nanos,
    /// The hand-over from a CPU with another cache.
    pub(super) far_handover: Nanos,
    /// The mean hand-over if any of the other CPUs may have the lock.
    pub(super) contended_handover: Nanos,
    /// Neighbouring CPUs that share a cache.
    pub(super) cache_cpus: u32,
    pub(super) waiter: Nanos,
    pub(super) list: Nanos,
    pub(super) list_handover: Nanos,
}

impl SectionCost {
    /// The cost for this scheduler on this many CPUs. A scheduler that the profile does not list costs the figure for `others`, scaled by its
    /// [`section_percent`](hoistway_blk::schedulers::Row::section_percent); `none` has no sections.
    pub(crate) fn for_scheduler(host: &Host, cpus: u16, schedulers: &Registry, scheduler: &str) -> SectionCost {
        let others = || {
            let others = host.sections_ns.get(OTHERS).filter(|_| scheduler != NONE.name)?;
            let percent = schedulers.find(scheduler).map_or(100, |row| row.section_percent);
            Some(others * u64::from(percent) / 100)
        };
        let Some(section) = host.sections_ns.get(scheduler).copied().or_else(others) else {
            return SectionCost::default();
        };
        let (near, far) = (host.handover_ns, host.far_handover_ns());
        let cache_cpus = host.cache_cpus.unwrap_or(cpus).min(cpus);
        let (others, outside) = (u64::from(cpus.max(2)) - 1, u64::from(cpus - cache_cpus));
        SectionCost {
            section: Nanos(section),
            beside: Nanos(host.beside_ns),
            handover: Nanos(near),
            far_handover: Nanos(far),
            contended_handover: Nanos((near * (others - outside) + far * outside) / others),
            cache_cpus: u32::from(cache_cpus),
            waiter: Nanos(host.waiter_ns),
            list: Nanos(host.list_ns()),
            list_handover: Nanos(host.list_handover_ns()),
        }
    }

    /// The hand-over of a lock that nobody waits for.
    #[inline]
    pub(super) fn handover_between(self, from: u32, to: u32) -> Nanos {
        if self.far_handover == self.handover || from / self.cache_cpus == to / self.cache_cpus {
            self.handover
        } else {
            self.far_handover
        }
    }

    /// Number of waiters `n` that corresponds to a wait of this time if each goes through this many sections: a section takes a hand-over
    /// and `waiter` for each waiter, so the wait is `n sections (section + handover + waiter n)`.
    pub(super) fn waiters_during(self, wait: Nanos, sections: u64) -> u64 {
        let each = (self.section + self.contended_handover).0.max(1) * sections;
        match self.waiter.0 * sections {
            0 => wait.0 / each,
            more => ((each * each + 4 * more * wait.0).isqrt() - each) / (2 * more),
        }
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::schedulers::{MQ_DEADLINE, Row};

    use super::*;

    #[test]
    fn a_scheduler_row_gives_the_section_cost_that_the_profile_lacks() {
        let light = Row { name: "light", section_percent: 40, ..MQ_DEADLINE };
        let known = Registry::multi_queue().with(&[light, Row { name: "unsaid", ..MQ_DEADLINE }]);
        let mut host = Host::builtin("server").expect("it is built in");
        let section = |host: &Host, name| SectionCost::for_scheduler(host, 8, &known, name).section.0;
        let others = host.sections_ns[OTHERS];
        assert_eq!((section(&host, "unsaid"), section(&host, "unknown")), (others, others));
        assert_eq!((section(&host, "light"), section(&host, "none")), (others * 40 / 100, 0));
        host.sections_ns.insert("light".to_owned(), 7);
        assert_eq!(section(&host, "light"), 7, "a profile that names it wins");
    }

    #[test]
    fn a_lock_from_another_cache_costs_more_and_one_that_all_wait_for_the_mean() {
        let mut host = Host::builtin("server").expect("it is built in");
        (host.handover_ns, host.far_handover_ns, host.cache_cpus) = (100, Some(700), Some(2));
        let cost = |host: &Host, cpus| SectionCost::for_scheduler(host, cpus, &Registry::multi_queue(), "bfq");
        let eight = cost(&host, 8);
        let between = [(0, 1), (1, 2), (7, 6), (7, 0)].map(|(from, to)| eight.handover_between(from, to).0);
        assert_eq!(between, [100, 700, 100, 700]);
        // Of the seven others one is near.
        assert_eq!(eight.contended_handover.0, (100 + 6 * 700) / 7);
        let [one, two] = [1, 2].map(|cpus| cost(&host, cpus));
        assert_eq!([one.contended_handover.0, two.contended_handover.0], [100, 100]);
        host.far_handover_ns = None;
        assert_eq!(cost(&host, 8).contended_handover.0, 100);
    }
}
