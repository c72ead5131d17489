//! What sections have taken, and how often locks were.

use std::cell::Cell;

use hoistway_blk::ground::Nanos;

/// What all sections of a run took together, those of every disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockUse {
    /// Under the one lock of each elevator, hand-overs included: no other CPU could be there meanwhile.
    pub elevators: Nanos,
    /// Under any lock of a scheduler.
    pub held: Nanos,
    /// Spun away before.
    pub waited: Nanos,
    /// How often one of these locks was taken.
    pub taken: u64,
    /// How often that of a list was, in which requests are left.
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
    /// What it has grown to.
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
