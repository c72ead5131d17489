//! What locks of schedulers cost: the meter at their doors.
//!
//! Calls follow each other in virtual time, so no lock is ever held when a call comes. The meter knows until when each would
//! be: a caller that comes earlier spins until then, and the caller's own time moves on with every section that it goes through. So
//! a call that takes a lock three times holds it three times for a short while, and others come between: a caller that had to wait
//! for the first of them gets the lock from another CPU each time.
//!
//! ```text
//! the caller's time | spins while it is held | hand-over, if another CPU | the section | the caller's time
//!                     (waiter_ns more for      had it last                  itself, and beside it
//!                     each who waits)          handover_ns                  sections_ns, beside_ns
//! ```
//!
//! A section that deals with several requests takes that much for each. Where one CPU at a time asks for requests, one that comes
//! while another one does leaves its work to that one, which looks again when it is done (`simulation/turns`).
//!
//! Requests can be left in lists with locks of their own. The CPU that takes them in holds the scheduler's lock a section longer for each; if
//! that one was inserting and its call is over, it pays nevertheless, and the CPU that has the lock after it is not
//! later but those behind the last.
//!
//! The costs are of the host profile; without any, nothing is different.

use std::cell::{Cell, RefCell};

use hoistway_blk::ground::{CpuId, Held, Instant, Meter, Nanos, Site};

use self::left::{DelegationHold, place_of};
use self::usage::{Used, add};

pub(crate) use self::left::DelegatedWork;
pub(crate) use self::price::SectionCost;
pub use self::usage::LockUse;

mod left;
mod price;
mod usage;

/// What is special about the hold of a lock that is open: how many requests beyond the first (the lowest bits), ...
const EXTRA_REQUEST: u64 = 1;
/// ... how many that others had left, ...
const DELEGATED_REQUEST: u64 = 1 << 30;
const EXTRA_REQUEST_MASK: u64 = DELEGATED_REQUEST - 1;
/// ... that more of them are taken in, ...
const ACCEPTS_DELEGATED: u64 = 1 << 60;
/// ... and that another CPU carries it out.
const RUN_BY_OTHER_CPU: u64 = 1 << 61;

/// The meter of one caller after the other.
pub(crate) struct LockMeter {
    cost: Cell<SectionCost>,
    /// The CPU that calls.
    by: Cell<u32>,
    now: Cell<Instant>,
    began: Cell<Instant>,
    /// The caller's own time.
    at: Cell<Instant>,
    /// Since when it has had the lock that it took last.
    granted: Cell<Instant>,
    /// What the call does beside locks. It comes at its end, so that others may have the lock between its sections.
    beside: Cell<Nanos>,
    /// The call, or one of the same CPU right before it, has had to wait: others spin as well, and one of them has the lock between two of its sections.
    is_contended: Cell<bool>,
    /// What is special about the hold of a lock that is open, if anything is.
    special: Cell<u64>,
    /// The caller has left its work to others.
    left: Cell<Option<DelegatedWork>>,
    /// What takes in what others leave, now and later.
    taking_in: RefCell<Vec<DelegationHold>>,
    /// Whose hold this is about, and the caller's own time meanwhile.
    joined: Cell<(u32, Instant)>,
    used: Used,
    /// Until when the last call of each CPU has been under locks: its next one comes after that, and does not wait for it.
    /// And whether that was contended.
    ends: Box<[Cell<(Instant, bool)>]>,
}

impl LockMeter {
    /// For this many CPUs.
    pub(crate) fn new(cpus: u16) -> LockMeter {
        LockMeter {
            cost: Cell::default(),
            by: Cell::new(0),
            now: Cell::default(),
            began: Cell::default(),
            at: Cell::default(),
            granted: Cell::default(),
            beside: Cell::default(),
            is_contended: Cell::new(false),
            special: Cell::new(0),
            left: Cell::new(None),
            taking_in: RefCell::default(),
            joined: Cell::default(),
            used: Used::default(),
            ends: vec![Cell::default(); usize::from(cpus)].into(),
        }
    }

    /// A call begins.
    #[inline]
    pub(crate) fn begin(&self, now: Instant, cpu: CpuId, cost: SectionCost) {
        self.cost.set(cost);
        if cost.section == Nanos::ZERO && self.used.taken.get() == 0 {
            // No lock of the run has cost anything, so that no call ends later than it began.
            return self.rest(now);
        }
        self.by.set(cpu.0);
        self.now.set(now);
        let (end, was_contended) = self.ends.get(cpu.index()).map_or((now, false), Cell::get);
        let began = now.max(end);
        self.is_contended.set(was_contended && end > now);
        self.began.set(began);
        self.at.set(began);
        self.beside.set(Nanos::ZERO);
    }

    /// Nothing calls: a device does something by itself.
    #[inline]
    pub(crate) fn rest(&self, now: Instant) {
        self.began.set(now);
        self.at.set(now);
        self.beside.set(Nanos::ZERO);
    }

    /// How much later than it was called the caller is by now.
    #[inline]
    pub(crate) fn late(&self, now: Instant) -> Nanos {
        self.at.get().since(now)
    }

    /// Whether the call has had to wait for a lock.
    pub(crate) fn has_waited_for_lock(&self) -> bool {
        self.is_contended.get()
    }

    /// What the call has left to another CPU.
    #[inline]
    pub(crate) fn take_delegated_work(&self) -> Option<DelegatedWork> {
        // Looked at first: nearly always there is nothing, and nothing need be written then.
        self.left.get().and_then(|_| self.left.take())
    }

    /// What the sections of the call have taken so far.
    #[inline]
    pub(crate) fn spent(&self) -> Nanos {
        self.at.get().since(self.began.get()) + self.beside.get()
    }

    /// What sections have taken so far, all calls together.
    pub(crate) fn used(&self) -> LockUse {
        self.used.current_use()
    }

    /// Whether what is done at this site is under a lock of a scheduler in Linux, too: there allocation asks for limits and tells of
    /// requests without one.
    fn is_of_scheduler(site: Site) -> bool {
        use Site::{Dispatch, Finish, HardwareQueue, Insert, Merge, SoftwareQueue};
        matches!(site, Merge | Insert | Dispatch | Finish | SoftwareQueue | HardwareQueue)
    }

    /// The caller goes through a section, and nearly always finds the lock free.
    #[inline(never)]
    fn pass(&self, lock: &Held, site: Site) {
        let at = self.at.get();
        if lock.until.get() > at {
            return self.wait_for_lock(lock, site);
        }
        self.have(lock, site, at, Nanos::ZERO);
    }

    /// Another CPU has the lock.
    #[cold]
    fn wait_for_lock(&self, lock: &Held, site: Site) {
        let (cost, at, granted) = (self.cost.get(), self.at.get(), lock.until.get());
        self.is_contended.set(true);
        add(&self.used.waited, granted.since(at));
        let waiters = cost.waiters_during(granted.since(at)).min(self.ends.len() as u64);
        self.have(lock, site, granted, Nanos(cost.waiter.0 * waiters));
    }

    /// The caller has the lock, and longer by this for those that wait.
    #[inline(always)]
    fn have(&self, lock: &Held, site: Site, granted: Instant, longer: Nanos) {
        let cost = self.cost.get();
        let is_others = lock.by.get() != self.by.get() && lock.by.get() != u32::MAX;
        let is_handed_over = is_others || self.is_contended.get();
        let handover = if is_handed_over { cost.handover } else { Nanos::ZERO };
        let held = handover + longer + cost.section;
        add(&self.used.held, held);
        self.granted.set(granted);
        self.used.taken.set(self.used.taken.get() + 1);
        if !matches!(site, Site::SoftwareQueue | Site::HardwareQueue) {
            add(&self.used.elevators, held);
        }
        lock.by.set(self.by.get());
        self.hold(lock, site, granted + held, cost.beside);
    }

    /// The caller has a lock until then, and continues beside it.
    #[inline]
    fn hold(&self, lock: &Held, site: Site, until: Instant, beside: Nanos) {
        lock.until.set(until);
        self.at.set(until);
        self.beside.set(self.beside.get() + beside);
        if let Some(end) = self.ends.get(self.by.get() as usize) {
            end.set((until + self.beside.get(), self.is_contended.get()));
        }
        if site == Site::Dispatch {
            lock.asked.set((self.by.get(), until));
        }
    }

    /// Something was special about the hold of a lock.
    #[cold]
    fn record_hold_flags(&self, lock: &Held, site: Site, special: u64) {
        self.special.set(0);
        let cost = self.cost.get();
        let (more, taken) = (special & EXTRA_REQUEST_MASK, (special / DELEGATED_REQUEST) & EXTRA_REQUEST_MASK);
        if site == Site::Leave {
            let longer = Nanos(cost.list.0 * more);
            add(&self.used.held, longer);
            lock.until.set(lock.until.get() + longer);
            self.beside.set(self.beside.get() + longer + Nanos(cost.beside.0 * more));
            return;
        }
        let before = lock.until.get();
        // Lists that were taken meanwhile have moved the caller's time on.
        let until = before.max(self.at.get()) + Nanos(cost.section.0 * (more + taken));
        let longer = until.since(before);
        add(&self.used.held, longer);
        add(&self.used.elevators, longer);
        if special & RUN_BY_OTHER_CPU != 0 {
            return self.end_delegated_section(lock, longer);
        }
        self.hold(lock, site, until, Nanos(cost.beside.0 * more));
        if special & ACCEPTS_DELEGATED != 0 {
            let mut taking_in = self.taking_in.borrow_mut();
            taking_in.retain(|other| other.until > self.now.get());
            let (lock, cpu) = (place_of(lock), CpuId(self.by.get()));
            taking_in.push(DelegationHold { lock, cpu, from: self.granted.get(), until });
        }
    }
}

impl Meter for LockMeter {
    #[inline]
    fn enter(&self, lock: &Held, site: Site) {
        if self.cost.get().section == Nanos::ZERO {
            return;
        }
        if Self::is_of_scheduler(site) {
            self.pass(lock, site);
        } else if matches!(site, Site::Leave | Site::Take) {
            self.charge_list_lock(lock, site);
        }
    }

    #[inline]
    fn try_enter(&self, lock: &Held, site: Site) -> bool {
        if self.cost.get().section > Nanos::ZERO && Self::is_of_scheduler(site) && lock.until.get() > self.at.get() {
            return false;
        }
        self.enter(lock, site);
        true
    }

    #[inline]
    fn leave(&self, lock: &Held, site: Site) {
        let special = self.special.get();
        // A list's lock can be taken under another one, whose affair this is then.
        if special > 0 && site != Site::Take {
            self.record_hold_flags(lock, site, special);
        }
    }

    #[inline]
    fn another(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.special.set(self.special.get() + EXTRA_REQUEST);
        }
    }

    fn may_become_dispatcher(&self, lock: &Held) -> bool {
        let (by, until) = lock.asked.get();
        let may = self.cost.get().section == Nanos::ZERO || until <= self.at.get();
        if !may {
            self.left
                .set(Some(DelegatedWork { asker: Some((CpuId(by), until)), ..self.left.get().unwrap_or_default() }));
        }
        may
    }

    fn accepts_delegated_work(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.special.set(self.special.get() | ACCEPTS_DELEGATED);
        }
    }

    fn count_delegated_request(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.special.set(self.special.get() + DELEGATED_REQUEST);
        }
    }

    fn is_accepting_delegated_work(&self, lock: &Held) -> bool {
        self.is_accepting_delegated(lock)
    }

    fn join(&self, lock: &Held) {
        self.begin_delegated_section(lock);
    }
}

#[cfg(test)]
mod tests;
