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
    pub(super) waiter: Nanos,
    pub(super) list: Nanos,
    pub(super) list_handover: Nanos,
}

impl SectionCost {
    /// The cost for this scheduler. A scheduler that the profile does not list costs the figure for `others`, scaled by its
    /// [`section_percent`](hoistway_blk::schedulers::Row::section_percent); `none` has no sections.
    pub(crate) fn for_scheduler(host: &Host, schedulers: &Registry, scheduler: &str) -> SectionCost {
        let others = || {
            let others = host.sections_ns.get(OTHERS).filter(|_| scheduler != NONE.name)?;
            let percent = schedulers.find(scheduler).map_or(100, |row| row.section_percent);
            Some(others * u64::from(percent) / 100)
        };
        let Some(section) = host.sections_ns.get(scheduler).copied().or_else(others) else {
            return SectionCost::default();
        };
        SectionCost {
            section: Nanos(section),
            beside: Nanos(host.beside_ns),
            handover: Nanos(host.handover_ns),
            waiter: Nanos(host.waiter_ns),
            list: Nanos(host.list_ns()),
            list_handover: Nanos(host.list_handover_ns()),
        }
    }

    /// Number of waiters `n` that corresponds to a wait of this time if each goes through this many sections: a section takes a hand-over
    /// and `waiter` for each waiter, so the wait is `n sections (section + handover + waiter n)`.
    pub(super) fn waiters_during(self, wait: Nanos, sections: u64) -> u64 {
        let each = (self.section + self.handover).0.max(1) * sections;
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
        let section = |host: &Host, name| SectionCost::for_scheduler(host, &known, name).section.0;
        let others = host.sections_ns[OTHERS];
        assert_eq!((section(&host, "unsaid"), section(&host, "unknown")), (others, others));
        assert_eq!((section(&host, "light"), section(&host, "none")), (others * 40 / 100, 0));
        host.sections_ns.insert("light".to_owned(), 7);
        assert_eq!(section(&host, "light"), 7, "a profile that names it wins");
    }
}
