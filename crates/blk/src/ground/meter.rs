//! Lock sites and meters: each lock is taken at a named site, and a meter may charge for it.
//!
//! In real time the meter is [`NoMeter`], which compiles to nothing. In virtual time calls are executed one after the other,
//! so a lock is never held when a call comes. A meter knows until when it *would be* held, and charges a call that comes
//! earlier for the wait. So the same code shows contention.

use std::cell::Cell;

use crate::ground::ids::{CpuId, HctxId};
use crate::ground::time::Instant;

/// Which lock is taken; for the elevator's, also for which operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Site {
    /// The elevator's, to merge a bio.
    Merge,
    /// The elevator's, to insert requests.
    Insert,
    /// The elevator's, to ask for a request.
    Dispatch,
    /// The elevator's, to notify it of a request that has ended.
    Finish,
    /// The elevator's, for anything else.
    Elevator,
    /// A software queue's.
    SoftwareQueue,
    /// A hardware queue's, of an elevator that has one for each.
    HardwareQueue,
    /// A dispatch list's.
    DispatchList,
    /// The list of requeued requests.
    RequeueList,
    /// A flush sequence's.
    FlushQueue,
    /// That of write-back throttling.
    Writeback,
    /// That of the wait queues for tags.
    TagWaiters,
    /// That of the wait queues for kyber's tokens.
    TokenWaiters,
    /// The lock around the submissions that wait for the end of a freeze.
    Freeze,
    /// The one lock of a legacy queue.
    Legacy,
    /// That of a list in which requests are left to the holder of the elevator's lock: to leave some.
    Leave,
    /// The same, to take them out, under the elevator's lock.
    Take,
}

impl Site {
    /// Every site, in the order of their numbers.
    pub const ALL: [Site; 17] = [
        Site::Merge,
        Site::Insert,
        Site::Dispatch,
        Site::Finish,
        Site::Elevator,
        Site::SoftwareQueue,
        Site::HardwareQueue,
        Site::DispatchList,
        Site::RequeueList,
        Site::FlushQueue,
        Site::Writeback,
        Site::TagWaiters,
        Site::TokenWaiters,
        Site::Freeze,
        Site::Legacy,
        Site::Leave,
        Site::Take,
    ];
}

/// The state that a meter keeps with each lock.
#[derive(Debug)]
pub struct Held {
    /// Until when it is held.
    pub until: Cell<Instant>,
    /// Who took it last, as numbered by the meter.
    pub by: Cell<u32>,
    /// Who asked for requests last, and until when.
    pub asked: Cell<(u32, Instant)>,
    /// Until when the last request is being taken.
    pub work_until: Cell<Instant>,
}

impl Default for Held {
    /// It has never been held.
    fn default() -> Self {
        Held {
            until: Cell::new(Instant::ZERO),
            by: Cell::new(u32::MAX),
            asked: Cell::new((u32::MAX, Instant::ZERO)),
            work_until: Cell::default(),
        }
    }
}

/// Something that charges for locks.
pub trait Meter {
    /// A lock is taken. [`leave`](Self::leave) follows.
    fn enter(&self, lock: &Held, site: Site);

    /// A lock is taken if it is free. Returns whether it was; [`leave`](Self::leave) follows only then.
    fn try_enter(&self, lock: &Held, site: Site) -> bool;

    /// The lock is released.
    fn leave(&self, lock: &Held, site: Site);

    /// A further request is processed under the lock that was taken last.
    #[inline(always)]
    fn another(&self) {}

    /// Whether no other call asks for requests under this lock now. If one does, it also processes the requests that were
    /// added meanwhile.
    #[inline(always)]
    fn may_become_dispatcher(&self, _lock: &Held) -> bool {
        true
    }

    /// Whether another call is still taking the last request under this lock in virtual time, so that this one sees work and asks in vain.
    #[inline(always)]
    fn sees_work_being_taken(&self, _lock: &Held) -> bool {
        false
    }

    /// Whether the rest of a run of this hardware queue has to be a later call on the same CPU, which the meter's owner makes: this one has
    /// waited for a lock in virtual time, and other CPUs may have come to it since.
    #[inline(always)]
    fn postpones_run(&self, _hctx: HctxId) -> bool {
        false
    }

    /// The last taker of a lock processes what others delegate to it, for as long as it has the lock.
    #[inline(always)]
    fn accepts_delegated_work(&self) {}

    /// A request that a call on this CPU has delegated is processed under the lock that was taken last.
    #[inline(always)]
    fn count_delegated_request(&self, _from: CpuId) {}

    /// Whether a call that accepts delegated work has this lock now in virtual time, although its code has already returned.
    #[inline(always)]
    fn is_accepting_delegated_work(&self, _lock: &Held) -> bool {
        false
    }

    /// The following work is charged to that call, until the lock is [left](Self::leave), and as at least one request.
    #[inline(always)]
    fn join(&self, _lock: &Held) {}
}

/// For schedulers that are called through a trait object.
impl<M: Meter + ?Sized> Meter for &M {
    #[inline]
    fn enter(&self, lock: &Held, site: Site) {
        (**self).enter(lock, site);
    }

    #[inline]
    fn try_enter(&self, lock: &Held, site: Site) -> bool {
        (**self).try_enter(lock, site)
    }

    #[inline]
    fn leave(&self, lock: &Held, site: Site) {
        (**self).leave(lock, site);
    }

    #[inline]
    fn another(&self) {
        (**self).another();
    }

    #[inline]
    fn may_become_dispatcher(&self, lock: &Held) -> bool {
        (**self).may_become_dispatcher(lock)
    }

    #[inline]
    fn sees_work_being_taken(&self, lock: &Held) -> bool {
        (**self).sees_work_being_taken(lock)
    }

    #[inline]
    fn postpones_run(&self, hctx: HctxId) -> bool {
        (**self).postpones_run(hctx)
    }

    #[inline]
    fn accepts_delegated_work(&self) {
        (**self).accepts_delegated_work();
    }

    #[inline]
    fn count_delegated_request(&self, from: CpuId) {
        (**self).count_delegated_request(from);
    }

    #[inline]
    fn is_accepting_delegated_work(&self, lock: &Held) -> bool {
        (**self).is_accepting_delegated_work(lock)
    }

    #[inline]
    fn join(&self, lock: &Held) {
        (**self).join(lock);
    }
}

/// Locks cost what they cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    #[inline(always)]
    fn enter(&self, _: &Held, _: Site) {}

    #[inline(always)]
    fn try_enter(&self, _: &Held, _: Site) -> bool {
        true
    }

    #[inline(always)]
    fn leave(&self, _: &Held, _: Site) {}
}

/// Returns a function to be called for each request processed under one hold of a lock. It reports those after the first to
/// a meter.
#[inline]
pub(crate) fn extra_request_counter(meter: &impl Meter) -> impl FnMut() {
    let mut is_first = true;
    move || {
        if !std::mem::take(&mut is_first) {
            meter.another();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the requests after the first.
    #[derive(Default)]
    struct Beyond(Cell<u32>);

    impl Meter for Beyond {
        fn enter(&self, _: &Held, _: Site) {}

        fn try_enter(&self, _: &Held, _: Site) -> bool {
            true
        }

        fn leave(&self, _: &Held, _: Site) {}

        fn another(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn the_first_request_under_a_hold_is_paid_for_with_the_lock_and_each_other_by_itself() {
        let meter = Beyond::default();
        let mut tell = extra_request_counter(&meter);
        let told = [(); 4].map(|()| {
            tell();
            meter.0.get()
        });
        assert_eq!(told, [0, 1, 2, 3]);
    }

    #[test]
    fn without_a_meter_locks_are_free_and_any_caller_may_ask() {
        let held = Held::default();
        assert!(NoMeter.try_enter(&held, Site::Merge) && NoMeter.may_become_dispatcher(&held));
        assert!(!NoMeter.is_accepting_delegated_work(&held));
    }
}
