//! What sections under locks cost on a host.

use hoistway_blk::{NONE, Nanos};

use crate::host::Host;

/// The key of a profile for schedulers that it does not name.
const OTHERS: &str = "others";

/// What a section of a scheduler takes on a host.
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
    /// Of this scheduler. One that the profile does not know costs what it says of others; without a scheduler there is no
    /// section.
    pub(crate) fn of(host: &Host, scheduler: &str) -> SectionCost {
        let others = || host.sections_ns.get(OTHERS).filter(|_| scheduler != NONE.name);
        let Some(&section) = host.sections_ns.get(scheduler).or_else(others) else { return SectionCost::default() };
        SectionCost {
            section: Nanos(section),
            beside: Nanos(host.beside_ns),
            handover: Nanos(host.handover_ns),
            waiter: Nanos(host.waiter_ns),
            list: Nanos(host.list_ns()),
            list_handover: Nanos(host.list_handover_ns()),
        }
    }

    /// How many wait where somebody waits for so long: `n`, if each takes a section, a hand-over and `waiter` for each of them,
    /// which is `n (section + handover + waiter n)`.
    pub(super) fn waiters_in(self, wait: Nanos) -> u64 {
        let each = (self.section + self.handover).0.max(1);
        match self.waiter.0 {
            0 => wait.0 / each,
            more => ((each * each + 4 * more * wait.0).isqrt() - each) / (2 * more),
        }
    }
}
