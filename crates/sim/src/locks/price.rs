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
}
