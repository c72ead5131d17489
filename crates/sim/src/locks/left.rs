//! Requests that are left to the holder of a lock: in lists with locks of their own.

use hoistway_blk::ground::{CpuId, Held, Instant, Nanos, Site};

use super::usage::add;
use super::{LockMeter, RUN_BY_OTHER_CPU};

/// Work that was left to others.
#[derive(Clone, Copy, Default)]
pub(crate) struct DelegatedWork {
    /// To the CPU that asked for requests, and when that one looks for more.
    pub(crate) asker: Option<(CpuId, Instant)>,
    /// To the CPU that inserted, and what that takes.
    pub(crate) inserter: Option<(CpuId, Nanos)>,
}

/// A hold of a lock by a CPU that takes in what others leave meanwhile.
pub(super) struct DelegationHold {
    /// Which lock: where it lies.
    pub(super) lock: usize,
    pub(super) cpu: CpuId,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

impl LockMeter {
    /// A CPU leaves requests in a list, or takes them from there. As what is done beside locks, leaving comes at the end of a call;
    /// and a CPU that waits for a list's lock waits as if it had come at the beginning: those that wait for the scheduler's before do
    /// not keep others from it.
    #[cold]
    pub(super) fn charge_list_lock(&self, lock: &Held, site: Site) {
        let cost = self.cost.get();
        let (now, by) = (self.now.get(), self.by.get());
        let granted = now.max(lock.until.get());
        let is_others = lock.by.get() != by && lock.by.get() != u32::MAX;
        let section = cost.list + if is_others { cost.list_handover } else { Nanos::ZERO };
        let waited = granted.since(now);
        lock.until.set(granted + section);
        lock.by.set(by);
        add(&self.used.waited, waited);
        self.used.lists_taken.set(self.used.lists_taken.get() + 1);
        if site == Site::Take {
            // Under the scheduler's lock, which so is held for longer.
            self.at.set(self.at.get() + waited + section);
        } else {
            add(&self.used.held, section);
            self.beside.set(self.beside.get() + waited + section + cost.beside);
        }
    }

    /// Whether a CPU has this lock now that takes in what others leave.
    pub(super) fn is_accepting_delegated(&self, lock: &Held) -> bool {
        let at = self.at.get();
        self.cost.get().section > Nanos::ZERO && self.taking_in.borrow().iter().any(|hold| hold.is_open(lock, at))
    }

    /// What follows is done by that one.
    pub(super) fn begin_delegated_section(&self, lock: &Held) {
        let at = self.at.get();
        let taking_in = self.taking_in.borrow();
        let Some(hold) = taking_in.iter().find(|hold| hold.is_open(lock, at)) else { return };
        self.joined.set((self.by.replace(hold.cpu.0), at));
        self.special.set(RUN_BY_OTHER_CPU);
        self.at.set(lock.until.get());
    }

    /// The CPU that inserted has carried out what was left to it.
    pub(super) fn end_delegated_section(&self, lock: &Held, longer: Nanos) {
        let (by, at) = self.joined.get();
        let inserter = self.by.replace(by);
        self.at.set(at);
        lock.until.set(lock.until.get() + longer);
        if let Some(end) = self.ends.get(inserter as usize) {
            let (until, is_contended) = end.get();
            end.set((until + longer, is_contended));
        }
        if let Some(hold) = self.taking_in.borrow_mut().iter_mut().find(|hold| hold.is_open(lock, at)) {
            hold.until += longer;
        }
        let left = self.left.get().unwrap_or_default();
        let before = left.inserter.map_or(Nanos::ZERO, |(_, took)| took);
        self.left.set(Some(DelegatedWork { inserter: Some((CpuId(inserter), before + longer)), ..left }));
    }
}

impl DelegationHold {
    /// Whether it is about this lock and that moment.
    pub(super) fn is_open(&self, lock: &Held, at: Instant) -> bool {
        self.lock == place_of(lock) && self.from <= at && at < self.until
    }
}

pub(super) fn place_of(lock: &Held) -> usize {
    std::ptr::from_ref(lock).addr()
}
