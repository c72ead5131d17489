//! What locks of schedulers cost: the meter at their doors.
//!
//! Calls follow each other in virtual time, so no lock is ever held when somebody comes. The meter knows until when each would
//! be: whoever comes earlier spins until then, and the caller's own time moves on with every section that it goes through. So
//! a call that takes a lock three times holds it three times for a short while, and others come between: whoever had to wait
//! for the first of them gets the lock from another CPU each time.
//!
//! ```text
//! the caller's time | spins while it is held | hand-over, if another CPU | the section | the caller's time
//!                     (waiter_ns more for      had it last                  itself, and beside it
//!                     each who waits)          handover_ns                  sections_ns, beside_ns
//! ```
//!
//! A section that deals with several requests takes that much for each. Where one CPU at a time asks for requests, whoever comes
//! while another one does leaves its work to that one, which looks again when it is done (`simulation/turns`).
//!
//! The costs are of the host profile; without any, nothing is different.

use std::cell::Cell;

use hoistway_blk::{CpuId, Held, Instant, Meter, NONE, Nanos, Site};

use crate::host::Host;

/// The key of a profile for schedulers that it does not name.
const OTHERS: &str = "others";

/// What a section of a scheduler takes on a host.
#[derive(Clone, Copy, Default)]
pub(crate) struct SectionCost {
    section: Nanos,
    beside: Nanos,
    handover: Nanos,
    waiter: Nanos,
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
        }
    }
}

/// What all sections of a run took together, those of every disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockUse {
    /// Under the one lock of each elevator, hand-overs included: nobody else could be there meanwhile.
    pub elevators: Nanos,
    /// Under any lock of a scheduler.
    pub held: Nanos,
    /// Spun away before.
    pub waited: Nanos,
}

/// Work that was left to whoever asked for requests at that time.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    pub(crate) cpu: CpuId,
    /// When that one looks for more.
    pub(crate) at: Instant,
}

/// The meter of one caller after the other.
pub(crate) struct LockMeter {
    cost: Cell<SectionCost>,
    /// Who calls: its CPU.
    by: Cell<u32>,
    began: Cell<Instant>,
    /// The caller's own time.
    at: Cell<Instant>,
    /// What the call does beside locks. It comes at its end, so that others may have the lock between its sections.
    beside: Cell<Nanos>,
    /// The call, or one of the same CPU right before it, has had to wait: others spin as well, and one of them has the lock between two of its sections.
    is_contended: Cell<bool>,
    /// Requests beyond the first under the hold of a lock that is open.
    more: Cell<u32>,
    /// The caller has left its work to whoever asks for requests.
    left: Cell<Option<Left>>,
    used: Cell<LockUse>,
    /// Until when the last call of each CPU has been under locks: its next one comes after that, and does not wait for it.
    /// And whether that was contended.
    ends: Box<[Cell<(Instant, bool)>]>,
}

impl LockMeter {
    /// For so many CPUs.
    pub(crate) fn new(cpus: u16) -> LockMeter {
        LockMeter {
            cost: Cell::default(),
            by: Cell::new(0),
            began: Cell::default(),
            at: Cell::default(),
            beside: Cell::default(),
            is_contended: Cell::new(false),
            more: Cell::new(0),
            left: Cell::new(None),
            used: Cell::default(),
            ends: vec![Cell::default(); usize::from(cpus)].into(),
        }
    }

    /// A call begins.
    #[inline]
    pub(crate) fn begin(&self, now: Instant, cpu: CpuId, cost: SectionCost) {
        self.cost.set(cost);
        self.by.set(cpu.0);
        let (end, was_contended) = self.ends.get(cpu.index()).map_or((now, false), Cell::get);
        let began = now.max(end);
        self.is_contended.set(was_contended && end > now);
        self.began.set(began);
        self.at.set(began);
        self.beside.set(Nanos::ZERO);
    }

    /// Nobody calls: a device does something by itself.
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

    /// What the call has left to another CPU.
    #[inline]
    pub(crate) fn take_left(&self) -> Option<Left> {
        self.left.take()
    }

    /// What the sections of the call have taken so far.
    #[inline]
    pub(crate) fn spent(&self) -> Nanos {
        self.at.get().since(self.began.get()) + self.beside.get()
    }

    /// What sections have taken so far, all calls together.
    pub(crate) fn used(&self) -> LockUse {
        self.used.get()
    }

    /// Whether what is done at this site is under a lock of a scheduler in Linux, too: there allocation asks for limits and tells of
    /// requests without one.
    fn is_of_scheduler(site: Site) -> bool {
        use Site::{Dispatch, Finish, HardwareQueue, Insert, Merge, SoftwareQueue};
        matches!(site, Merge | Insert | Dispatch | Finish | SoftwareQueue | HardwareQueue)
    }

    #[inline(never)]
    fn pass(&self, lock: &Held, site: Site, cost: SectionCost) {
        let at = self.at.get();
        let granted = at.max(lock.until.get());
        let mut waiters = 0;
        if granted > at {
            self.is_contended.set(true);
            // Each who waits before this one is a section and a hand-over long.
            waiters = granted.since(at).0 / (cost.section.0 + cost.handover.0).max(1);
        }
        let is_others = lock.by.get() != self.by.get() && lock.by.get() != u32::MAX;
        let is_handed_over = is_others || self.is_contended.get();
        let handover = if is_handed_over { cost.handover } else { Nanos::ZERO };
        let until = granted + handover + Nanos(cost.waiter.0 * waiters) + cost.section;
        let mut used = self.used.get();
        let held = until.since(granted);
        used.held += held;
        used.waited += granted.since(at);
        if !matches!(site, Site::SoftwareQueue | Site::HardwareQueue) {
            used.elevators += held;
        }
        self.used.set(used);
        lock.by.set(self.by.get());
        self.hold(lock, site, until, cost.beside);
    }

    /// The caller has a lock until then, and goes on beside it.
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

    /// The hold of a lock was longer than a section, for the requests beyond the first.
    #[cold]
    fn prolong(&self, lock: &Held, site: Site, more: u32) {
        self.more.set(0);
        let cost = self.cost.get();
        let longer = Nanos(cost.section.0 * u64::from(more));
        let beside = Nanos(cost.beside.0 * u64::from(more));
        let mut used = self.used.get();
        used.held += longer;
        used.elevators += longer;
        self.used.set(used);
        self.hold(lock, site, lock.until.get() + longer, beside);
    }
}

impl Meter for LockMeter {
    #[inline]
    fn enter(&self, lock: &Held, site: Site) {
        let cost = self.cost.get();
        if cost.section > Nanos::ZERO && Self::is_of_scheduler(site) {
            self.pass(lock, site, cost);
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
        let more = self.more.get();
        if more > 0 {
            self.prolong(lock, site, more);
        }
    }

    #[inline]
    fn another(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.more.set(self.more.get() + 1);
        }
    }

    fn may_ask(&self, lock: &Held) -> bool {
        let (by, until) = lock.asked.get();
        let may = self.cost.get().section == Nanos::ZERO || until <= self.at.get();
        if !may {
            self.left.set(Some(Left { cpu: CpuId(by), at: until }));
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: SectionCost =
        SectionCost { section: Nanos(100), beside: Nanos::ZERO, handover: Nanos(40), waiter: Nanos(10) };

    #[test]
    fn whoever_comes_while_a_lock_is_held_spins_and_pays_for_the_hand_over() {
        let (meter, lock) = (LockMeter::new(3), Held::default());
        let pass = |at, cpu| {
            meter.begin(Instant(at), CpuId(cpu), COST);
            meter.enter(&lock, Site::Insert);
            meter.leave(&lock, Site::Insert);
            meter.spent().0
        };
        assert_eq!(pass(1000, 0), 100, "it was nobody's");
        assert_eq!(pass(1050, 0), 100, "the same CPU comes after itself, and needs no hand-over");
        assert_eq!(pass(1150, 1), 50 + 40 + 100);
        assert_eq!(pass(1150, 2), 190 + 40 + 10 + 100, "one waits before it");
        assert_eq!(pass(9000, 2), 100);
        meter.begin(Instant(9050), CpuId(0), COST);
        meter.enter(&lock, Site::Merge);
        meter.enter(&lock, Site::Insert);
        assert_eq!(meter.spent().0, 50 + 140 + 140, "whoever else spins has it between two sections");
        let (held, waited) = (Nanos(100 + 100 + 140 + 150 + 100 + 280), Nanos(50 + 190 + 50));
        assert_eq!(meter.used(), LockUse { elevators: held, held, waited });
    }

    #[test]
    fn what_is_done_beside_a_lock_costs_the_caller_alone() {
        let cost = SectionCost { beside: Nanos(30), ..COST };
        let (meter, lock) = (LockMeter::new(3), Held::default());
        meter.begin(Instant(1000), CpuId(0), cost);
        meter.enter(&lock, Site::Insert);
        meter.another();
        meter.leave(&lock, Site::Insert);
        assert_eq!(meter.spent(), Nanos(2 * 130), "two requests");
        meter.begin(Instant(1100), CpuId(1), cost);
        meter.enter(&lock, Site::Insert);
        assert_eq!(meter.spent(), Nanos(100 + 40 + 130), "it waits for 1200");
        meter.begin(Instant(1150), CpuId(0), cost);
        meter.enter(&lock, Site::Dispatch);
        assert_eq!(
            meter.spent(),
            Nanos(80 + 40 + 130),
            "its own time goes on at 1260, and the other one leaves at 1340"
        );
    }

    #[test]
    fn a_hold_is_as_long_as_what_is_dealt_with_and_who_asks_meanwhile_leaves_it_to_the_holder() {
        let (meter, lock) = (LockMeter::new(3), Held::default());
        meter.begin(Instant(1000), CpuId(2), COST);
        assert!(meter.may_ask(&lock));
        meter.enter(&lock, Site::Dispatch);
        meter.another();
        meter.another();
        meter.leave(&lock, Site::Dispatch);
        assert_eq!(meter.spent(), Nanos(300), "three requests under one hold");
        meter.begin(Instant(1100), CpuId(1), COST);
        meter.enter(&lock, Site::Insert);
        assert!(meter.may_ask(&lock), "it has waited until the other one was done");
        meter.begin(Instant(1299), CpuId(0), COST);
        assert!(!meter.may_ask(&lock));
        assert!(meter.take_left().is_some_and(|left| (left.cpu, left.at) == (CpuId(2), Instant(1300))));
        assert!(meter.take_left().is_none());
        meter.begin(Instant(1299), CpuId(0), SectionCost::default());
        assert!(meter.may_ask(&lock), "nobody asks for long where nothing costs");
    }

    #[test]
    fn sections_of_a_call_follow_each_other_and_other_locks_cost_nothing() {
        let (meter, lock) = (LockMeter::new(3), Held::default());
        meter.begin(Instant(1000), CpuId(0), COST);
        for site in [Site::Merge, Site::TagWaiters, Site::Dispatch] {
            meter.enter(&lock, site);
        }
        assert_eq!(meter.spent(), Nanos(200));
        meter.begin(Instant(1100), CpuId(1), COST);
        assert!(!meter.try_enter(&lock, Site::Merge), "it is held until 1200");
        meter.begin(Instant(1100), CpuId(1), SectionCost::default());
        assert!(meter.try_enter(&lock, Site::Merge), "nothing is held where nothing costs");
        assert_eq!(meter.spent(), Nanos::ZERO);
    }

    #[test]
    fn where_nobody_calls_nothing_is_spent_and_nobody_is_late() {
        let (meter, lock) = (LockMeter::new(3), Held::default());
        let cost = SectionCost { beside: Nanos(30), ..COST };
        meter.begin(Instant(1000), CpuId(0), cost);
        meter.enter(&lock, Site::Insert);
        assert_eq!((meter.spent(), meter.late(Instant(1000))), (Nanos(130), Nanos(100)));
        meter.rest(Instant(5000));
        assert_eq!((meter.spent(), meter.late(Instant(5000))), (Nanos::ZERO, Nanos::ZERO));
    }
}
