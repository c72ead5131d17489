//! Delegation: requests left to the holder of a scheduler's lock, in lists that have their own locks.

use hoistway_blk::ground::{CpuId, HctxId, Held, Instant, Nanos, Site};

use super::usage::add;
use super::{CallEnd, LockMeter, RUN_BY_OTHER_CPU};

/// Work left to other CPUs.
#[derive(Clone, Copy, Default)]
pub(crate) struct DelegatedWork {
    /// Left to the dispatching CPU, and when that CPU checks again.
    pub(crate) dispatcher: Option<(CpuId, Instant)>,
    /// Left to the inserting CPU, and the time that it costs there.
    pub(crate) inserter: Option<(CpuId, Nanos)>,
    /// The rest of a run, left to a later call on the same CPU.
    pub(crate) postponed: Option<(CpuId, HctxId, Instant)>,
}

/// A hold of a lock by a CPU that accepts requests from others meanwhile.
pub(super) struct DelegationHold {
    /// Address of the lock.
    pub(super) lock: usize,
    pub(super) cpu: CpuId,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

impl LockMeter {
    /// Charges a CPU that leaves requests in a list or takes them from it. Leaving is charged at the end of the call, like all work
    /// outside the scheduler's lock. The wait for a list's lock is counted from the start of the call, so CPUs that wait for the
    /// scheduler's lock do not block others from the list.
    #[cold]
    pub(super) fn charge_list_lock(&self, lock: &Held, site: Site) {
        let cost = self.cost.get();
        let (now, by) = (self.now.get(), self.by.get());
        let granted = now.max(lock.until.get());
        let was_held_by_other = lock.by.get() != by && lock.by.get() != u32::MAX;
        let section = cost.list + if was_held_by_other { cost.list_handover } else { Nanos::ZERO };
        let waited = granted.since(now);
        lock.until.set(granted + section);
        lock.by.set(by);
        add(&self.used.waited, waited);
        self.used.lists_taken.set(self.used.lists_taken.get() + 1);
        if site == Site::Take {
            // This happens under the scheduler's lock, which is held for longer.
            self.caller_time.set(self.caller_time.get() + waited + section);
        } else {
            add(&self.used.held, section);
            self.beside.set(self.beside.get() + waited + section + cost.beside);
        }
    }

    /// Whether the current holder of this lock accepts delegated requests.
    pub(super) fn is_accepting_delegated(&self, lock: &Held) -> bool {
        let at = self.caller_time.get();
        self.cost.get().section > Nanos::ZERO
            && self.delegation_holds.borrow().iter().any(|hold| hold.is_open(lock, at))
    }

    /// Charges what follows to that holder.
    pub(super) fn begin_delegated_section(&self, lock: &Held) {
        let at = self.caller_time.get();
        let delegation_holds = self.delegation_holds.borrow();
        let Some(hold) = delegation_holds.iter().find(|hold| hold.is_open(lock, at)) else { return };
        self.real_caller.set((self.by.replace(hold.cpu.0), at));
        self.hold_flags.set(RUN_BY_OTHER_CPU);
        self.caller_time.set(lock.until.get());
    }

    /// Ends a section that was charged to the inserting CPU, and extends its hold.
    pub(super) fn end_delegated_section(&self, lock: &Held, extension: Nanos) {
        let (by, at) = self.real_caller.get();
        let inserter = self.by.replace(by);
        self.caller_time.set(at);
        lock.until.set(lock.until.get() + extension);
        if let Some(end) = self.ends.get(inserter as usize) {
            let last = end.get();
            end.set(CallEnd { until: last.until + extension, ..last });
        }
        if let Some(hold) = self.delegation_holds.borrow_mut().iter_mut().find(|hold| hold.is_open(lock, at)) {
            hold.until += extension;
        }
        let delegated = self.delegated.get().unwrap_or_default();
        let before = delegated.inserter.map_or(Nanos::ZERO, |(_, took)| took);
        self.delegated.set(Some(DelegatedWork { inserter: Some((CpuId(inserter), before + extension)), ..delegated }));
    }
}

impl DelegationHold {
    /// Whether the hold is of this lock and includes this time.
    pub(super) fn is_open(&self, lock: &Held, at: Instant) -> bool {
        self.lock == lock_address(lock) && self.from <= at && at < self.until
    }
}

pub(super) fn lock_address(lock: &Held) -> usize {
    std::ptr::from_ref(lock).addr()
}
