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
//! Requests can be left in lists with locks of their own. Whoever takes them in holds the scheduler's lock a section longer for each; if
//! that is somebody who was inserting and whose call is over, its CPU pays all the same, and whoever has the lock after it is not
//! later but those behind the last.
//!
//! The costs are of the host profile; without any, nothing is different.

use std::cell::{Cell, RefCell};

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
    list: Nanos,
    list_handover: Nanos,
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

/// What all sections of a run took together, those of every disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockUse {
    /// Under the one lock of each elevator, hand-overs included: nobody else could be there meanwhile.
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

/// Work that was left to others.
#[derive(Clone, Copy, Default)]
pub(crate) struct Left {
    /// To whoever asked for requests, and when that one looks for more.
    pub(crate) asker: Option<(CpuId, Instant)>,
    /// To whoever inserted, and what that takes.
    pub(crate) inserter: Option<(CpuId, Nanos)>,
}

/// A hold of a lock by somebody who takes in what others leave meanwhile.
struct TakingIn {
    /// Which lock: where it lies.
    lock: usize,
    cpu: CpuId,
    from: Instant,
    until: Instant,
}

/// What is special about the hold of a lock that is open: how many requests beyond the first (the lowest bits), ...
const MORE: u64 = 1;
/// ... how many that others had left, ...
const TAKEN: u64 = 1 << 30;
const COUNTS: u64 = TAKEN - 1;
/// ... that more of them are taken in, ...
const TAKES_IN: u64 = 1 << 60;
/// ... and that somebody else carries it out.
const JOINED: u64 = 1 << 61;

/// A [`LockUse`] that grows.
#[derive(Default)]
struct Used {
    elevators: Cell<Nanos>,
    held: Cell<Nanos>,
    waited: Cell<Nanos>,
    taken: Cell<u64>,
    lists_taken: Cell<u64>,
}

#[inline]
fn add(time: &Cell<Nanos>, more: Nanos) {
    time.set(time.get() + more);
}

/// The meter of one caller after the other.
pub(crate) struct LockMeter {
    cost: Cell<SectionCost>,
    /// Who calls: its CPU.
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
    left: Cell<Option<Left>>,
    /// Who takes in what others leave, now and later.
    taking_in: RefCell<Vec<TakingIn>>,
    /// Whose hold this is about, and the caller's own time meanwhile.
    joined: Cell<(u32, Instant)>,
    used: Used,
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
        self.by.set(cpu.0);
        self.now.set(now);
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

    /// Whether the call has had to wait for a lock.
    pub(crate) fn has_waited(&self) -> bool {
        self.is_contended.get()
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
        let Used { elevators, held, waited, taken, lists_taken } = &self.used;
        LockUse {
            elevators: elevators.get(),
            held: held.get(),
            waited: waited.get(),
            taken: taken.get(),
            lists_taken: lists_taken.get(),
        }
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
        let held = until.since(granted);
        add(&self.used.held, held);
        self.granted.set(granted);
        add(&self.used.waited, granted.since(at));
        self.used.taken.set(self.used.taken.get() + 1);
        if !matches!(site, Site::SoftwareQueue | Site::HardwareQueue) {
            add(&self.used.elevators, held);
        }
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

    /// Something was special about the hold of a lock.
    #[cold]
    fn was_special(&self, lock: &Held, site: Site, special: u64) {
        self.special.set(0);
        let cost = self.cost.get();
        let (more, taken) = (special & COUNTS, special / TAKEN & COUNTS);
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
        if special & JOINED != 0 {
            return self.end_joined(lock, longer);
        }
        self.hold(lock, site, until, Nanos(cost.beside.0 * more));
        if special & TAKES_IN != 0 {
            let mut taking_in = self.taking_in.borrow_mut();
            taking_in.retain(|other| other.until > self.now.get());
            let (lock, cpu) = (place_of(lock), CpuId(self.by.get()));
            taking_in.push(TakingIn { lock, cpu, from: self.granted.get(), until });
        }
    }

    /// Somebody leaves requests in a list, or takes them from there. As what is done beside locks, leaving comes at the end of a call;
    /// and whoever waits for a list's lock waits as if it had come at the beginning: those who wait for the scheduler's before do
    /// not keep others from it.
    #[cold]
    fn pass_list(&self, lock: &Held, site: Site, cost: SectionCost) {
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

    /// Whoever inserted has carried out what was left to it.
    fn end_joined(&self, lock: &Held, longer: Nanos) {
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
        self.left.set(Some(Left { inserter: Some((CpuId(inserter), before + longer)), ..left }));
    }
}

impl TakingIn {
    /// Whether it is about this lock and that moment.
    fn is_open(&self, lock: &Held, at: Instant) -> bool {
        self.lock == place_of(lock) && self.from <= at && at < self.until
    }
}

fn place_of(lock: &Held) -> usize {
    std::ptr::from_ref(lock).addr()
}

impl Meter for LockMeter {
    #[inline]
    fn enter(&self, lock: &Held, site: Site) {
        let cost = self.cost.get();
        if cost.section == Nanos::ZERO {
            return;
        }
        if Self::is_of_scheduler(site) {
            self.pass(lock, site, cost);
        } else if matches!(site, Site::Leave | Site::Take) {
            self.pass_list(lock, site, cost);
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
        // A list's lock can be taken under another one, whose affair this is then.
        if site == Site::Take {
            return;
        }
        let special = self.special.get();
        if special > 0 {
            self.was_special(lock, site, special);
        }
    }

    #[inline]
    fn another(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.special.set(self.special.get() + MORE);
        }
    }

    fn may_ask(&self, lock: &Held) -> bool {
        let (by, until) = lock.asked.get();
        let may = self.cost.get().section == Nanos::ZERO || until <= self.at.get();
        if !may {
            self.left.set(Some(Left { asker: Some((CpuId(by), until)), ..self.left.get().unwrap_or_default() }));
        }
        may
    }

    fn takes_in(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.special.set(self.special.get() | TAKES_IN);
        }
    }

    fn taken_in(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.special.set(self.special.get() + TAKEN);
        }
    }

    fn is_taking_in(&self, lock: &Held) -> bool {
        let at = self.at.get();
        self.cost.get().section > Nanos::ZERO && self.taking_in.borrow().iter().any(|hold| hold.is_open(lock, at))
    }

    fn join(&self, lock: &Held) {
        let at = self.at.get();
        let taking_in = self.taking_in.borrow();
        let Some(hold) = taking_in.iter().find(|hold| hold.is_open(lock, at)) else { return };
        self.joined.set((self.by.replace(hold.cpu.0), at));
        self.special.set(JOINED);
        self.at.set(lock.until.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: SectionCost = SectionCost {
        section: Nanos(100),
        beside: Nanos::ZERO,
        handover: Nanos(40),
        waiter: Nanos(10),
        list: Nanos(7),
        list_handover: Nanos(3),
    };

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
        assert_eq!(meter.used(), LockUse { elevators: held, held, waited, taken: 7, lists_taken: 0 });
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
        assert!(meter.take_left().is_some_and(|left| left.asker == Some((CpuId(2), Instant(1300)))));
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
    fn what_is_left_to_whoever_inserts_makes_its_hold_longer_and_its_cpu_pays() {
        let (meter, lock, bucket) = (LockMeter::new(3), Held::default(), Held::default());
        meter.begin(Instant(1000), CpuId(0), COST);
        assert!(!meter.is_taking_in(&lock));
        assert!(meter.try_enter(&lock, Site::Insert));
        meter.takes_in();
        meter.another();
        meter.leave(&lock, Site::Insert);
        assert_eq!(meter.spent(), Nanos(200), "two requests");
        meter.begin(Instant(1150), CpuId(1), COST);
        assert!(!meter.try_enter(&lock, Site::Insert) && meter.is_taking_in(&lock));
        meter.enter(&bucket, Site::Leave);
        meter.another();
        meter.leave(&bucket, Site::Leave);
        meter.join(&lock);
        meter.enter(&bucket, Site::Take);
        meter.leave(&bucket, Site::Take);
        meter.taken_in();
        meter.taken_in();
        meter.leave(&lock, Site::Insert);
        assert_eq!(meter.spent(), Nanos(2 * 7), "whoever leaves two requests waits for nobody");
        // Until the bucket is free again, which is handed over then.
        let took = Nanos(14 + 7 + 3 + 200);
        let left = meter.take_left().unwrap();
        assert_eq!((left.inserter, left.asker.is_none()), (Some((CpuId(0), took)), true));
        assert_eq!(lock.until.get(), Instant(1200) + took);
        meter.begin(Instant(1201), CpuId(2), COST);
        assert!(meter.is_taking_in(&lock), "it still inserts");
        meter.begin(Instant(1200) + took, CpuId(2), COST);
        assert!(!meter.is_taking_in(&lock));
        assert_eq!(meter.used().lists_taken, 2);
    }

    #[test]
    fn whoever_asks_holds_its_lock_for_what_it_takes_from_lists_and_who_leaves_it_there_does_not_wait() {
        let (meter, lock, list) = (LockMeter::new(3), Held::default(), Held::default());
        meter.begin(Instant(1000), CpuId(0), COST);
        meter.enter(&lock, Site::Dispatch);
        meter.leave(&lock, Site::Dispatch);
        meter.begin(Instant(1050), CpuId(1), COST);
        meter.enter(&list, Site::Leave);
        meter.leave(&list, Site::Leave);
        assert_eq!(meter.spent(), Nanos(7), "the lock is another one");
        meter.begin(Instant(2000), CpuId(0), COST);
        meter.enter(&lock, Site::Dispatch);
        meter.enter(&list, Site::Take);
        meter.leave(&list, Site::Take);
        meter.taken_in();
        meter.leave(&lock, Site::Dispatch);
        assert_eq!(meter.spent(), Nanos(100 + 7 + 3 + 100), "it asks, takes the list over, and inserts what was there");
        assert_eq!(lock.until.get(), Instant(2210));
        let used = meter.used();
        assert_eq!((used.taken, used.lists_taken, used.held, used.elevators), (2, 2, Nanos(317), Nanos(310)));
    }
}
