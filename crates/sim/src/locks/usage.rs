//! Lock statistics: time in sections, and how often locks were taken.

use std::cell::Cell;

use hoistway_blk::ground::Nanos;

/// Lock use of a run, over all disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockUse {
    /// Time under each scheduler's single lock, including hand-overs: serialized across CPUs.
    pub elevators: Nanos,
    /// Time under any scheduler lock.
    pub held: Nanos,
    /// Time spent spinning for locks.
    pub waited: Nanos,
    /// Acquisitions of scheduler locks.
    pub taken: u64,
    /// Acquisitions of the locks of delegation lists.
    pub lists_taken: u64,
}

/// A [`LockUse`] that grows.
#[derive(Default)]
pub(super) struct Used {
    pub(super) elevators: Cell<Nanos>,
    pub(super) held: Cell<Nanos>,
    pub(super) waited: Cell<Nanos>,
    pub(super) taken: Cell<u64>,
    pub(super) lists_taken: Cell<u64>,
}

#[inline]
pub(super) fn add(time: &Cell<Nanos>, more: Nanos) {
    time.set(time.get() + more);
}

impl Used {
    /// The current values.
    pub(super) fn current_use(&self) -> LockUse {
        let Used { elevators, held, waited, taken, lists_taken } = self;
        LockUse {
            elevators: elevators.get(),
            held: held.get(),
            waited: waited.get(),
            taken: taken.get(),
            lists_taken: lists_taken.get(),
        }
    }
}
