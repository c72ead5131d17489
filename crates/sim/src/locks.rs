//! Costs of scheduler locks: waiting, hand-over between CPUs, and the time of each section.
//!
//! Used by: `simulation`, `disk`, `driver`, `scenario`; crate `experiment`.
//! Tests: `crates/sim/src/locks/section_cost.rs`, `crates/sim/src/locks/tests.rs`, `crates/sim/tests/locks.rs`.
//!
//! Simulated calls are sequential, so no lock is actually held when a call begins. The meter records until when each lock would be held: a
//! caller that comes earlier spins until then, and each section advances the caller's own time. A call that takes a lock three times holds
//! it for three short sections, and other CPUs get it in between: a caller that had to wait for the first section takes each further one
//! over from another CPU.
//!
//! ```text
//! the caller's time | spins while it is held | hand-over, if another CPU | the section | the caller's time
//!                                              had it last                  itself, and beside it
//!                                              handover_ns + waiter_ns      sections_ns, beside_ns
//!                                              for each CPU that waits
//! ```
//!
//! A CPU with another cache hands over in `far_handover_ns`. While CPUs wait, any of the others may have had the lock, so a hand-over then
//! takes the mean over all of them.
//!
//! The CPUs that wait spin on the line of the lock, so that each hand-over becomes dearer with their number, which follows from the time that
//! the caller has waited: every CPU before it goes through the sections of a whole call. All sections of a call that has waited cost the same
//! hand-over, since the others wait behind it.
//!
//! A section that handles several requests costs its time for each of them. If only one CPU at a time dispatches, a CPU that comes
//! meanwhile leaves its work to that one, which checks again when it is done (`simulation/turns`).
//!
//! While a call waits for the lock, other CPUs may come to it, too. So if a call has waited, it does not run the hardware queue itself: the
//! run becomes a new event at the time when the wait is over. If the run has to wait again for a request, the rest of it becomes another
//! such event. Between these events other CPUs may take the requests, or dispatch them. The last request stays visible until the section
//! that takes it is over; a CPU that sees it before then waits for the lock and gets nothing.
//!
//! Requests can be left in lists that have their own locks (delegation). The CPU that takes them over holds the scheduler's lock one
//! section longer for each. If they come from pending lists of other CPUs, it also waits for two cache lines of each (the request's and its
//! bio's). If that CPU was inserting and its call is already over, it is charged afterwards; the CPU that already holds the lock after it
//! is not delayed, only later ones.
//!
//! The wait queues for kyber's tokens are the only thing that its hardware queues share: their lock costs what that of a list costs.
//!
//! Costs come from the host profile; without any, the meter changes nothing.

use std::cell::{Cell, RefCell};

use hoistway_blk::ground::{CpuId, HctxId, Held, Instant, Meter, Nanos, Site};
use hoistway_blk::schedulers::Registry;

use self::delegation::{DelegationHold, lock_address};
use self::usage::{Used, add};
use crate::host::Host;

pub(crate) use self::delegation::DelegatedWork;
pub(crate) use self::section_cost::SectionCost;
pub use self::usage::LockUse;

mod delegation;
mod section_cost;
mod usage;

/// Fields of `special`, about the current hold of a lock. Lowest bits: requests beyond the first.
const EXTRA_REQUEST: u64 = 1;
/// Next bits: requests that other CPUs had left.
const DELEGATED_REQUEST: u64 = 1 << 30;
const EXTRA_REQUEST_MASK: u64 = DELEGATED_REQUEST - 1;
/// Cache lines that a request from another CPU's pending list comes with: its own and its bio's.
const LINES_OF_REQUEST: u64 = 2;
/// Flag: delegated requests are accepted until the end of the hold.
const ACCEPTS_DELEGATED: u64 = 1 << 60;
/// Flag: another CPU does the work.
const RUN_BY_OTHER_CPU: u64 = 1 << 61;

/// How the last call of a CPU ended.
#[derive(Clone, Copy, Default)]
struct CallEnd {
    /// When it ended; the next one begins afterwards.
    until: Instant,
    is_contended: bool,
    waiters: u32,
}

/// Meters the lock costs of one call at a time.
pub(crate) struct LockMeter {
    cost: Cell<SectionCost>,
    /// The calling CPU.
    by: Cell<u32>,
    now: Cell<Instant>,
    began: Cell<Instant>,
    /// The caller's own time, advanced by its sections.
    caller_time: Cell<Instant>,
    /// When the caller was granted the lock that it took last.
    granted: Cell<Instant>,
    /// Time that the call spends outside locks. Charged at its end, so that other CPUs can get the lock between its sections.
    beside: Cell<Nanos>,
    /// Whether the call, or the previous one of the same CPU, had to wait: then others spin as well, and one of them gets the lock between
    /// two sections of the call.
    is_contended: Cell<bool>,
    /// CPUs that spin for the lock while a contended call has it.
    waiters: Cell<u32>,
    /// Waits, and the sections of calls that have waited: each CPU that waits goes through their ratio before the next one.
    contended: Cell<[u64; 2]>,
    /// Extra requests and flags of the current hold; 0 if there are none.
    hold_flags: Cell<u64>,
    /// Whether the next dispatch of the call will find nothing, because another call is taking the last request.
    asks_in_vain: Cell<bool>,
    /// Requests of the current hold that another CPU had left.
    fetched: Cell<u64>,
    /// Work that the call has left to other CPUs.
    delegated: Cell<Option<DelegatedWork>>,
    /// Current and future holds that accept delegated requests.
    delegation_holds: RefCell<Vec<DelegationHold>>,
    /// The real caller, and its own time, while a section is charged to the hold of another CPU.
    real_caller: Cell<(u32, Instant)>,
    used: Used,
    /// The last call of each CPU.
    ends: Box<[Cell<CallEnd>]>,
}

impl LockMeter {
    /// A meter for this many CPUs.
    pub(crate) fn new(cpus: u16) -> LockMeter {
        LockMeter {
            cost: Cell::default(),
            by: Cell::new(0),
            now: Cell::default(),
            began: Cell::default(),
            caller_time: Cell::default(),
            granted: Cell::default(),
            beside: Cell::default(),
            is_contended: Cell::new(false),
            waiters: Cell::new(0),
            contended: Cell::default(),
            hold_flags: Cell::new(0),
            asks_in_vain: Cell::new(false),
            fetched: Cell::new(0),
            delegated: Cell::new(None),
            delegation_holds: RefCell::default(),
            real_caller: Cell::default(),
            used: Used::default(),
            ends: vec![Cell::default(); usize::from(cpus)].into(),
        }
    }

    /// The cost of a section of this scheduler on the host's CPUs.
    pub(crate) fn section_cost(&self, host: &Host, schedulers: &Registry, scheduler: &str) -> SectionCost {
        SectionCost::for_scheduler(host, self.ends.len() as u16, schedulers, scheduler)
    }

    /// Begins a call.
    #[inline]
    pub(crate) fn begin(&self, now: Instant, cpu: CpuId, cost: SectionCost) {
        self.cost.set(cost);
        if cost.section == Nanos::ZERO && self.used.taken.get() == 0 {
            // No lock has cost anything so far, so no earlier call can delay this one.
            return self.reset(now);
        }
        self.by.set(cpu.0);
        self.now.set(now);
        let last = self.ends.get(cpu.index()).map_or_else(CallEnd::default, Cell::get);
        let began = now.max(last.until);
        let continues = last.is_contended && last.until > now;
        self.is_contended.set(continues);
        self.waiters.set(if continues { last.waiters } else { 0 });
        self.asks_in_vain.set(false);
        self.began.set(began);
        self.caller_time.set(began);
        self.beside.set(Nanos::ZERO);
    }

    /// Resets the meter for an event without a calling CPU, such as an alarm of a device.
    #[inline]
    pub(crate) fn reset(&self, now: Instant) {
        self.began.set(now);
        self.caller_time.set(now);
        self.beside.set(Nanos::ZERO);
    }

    /// Delay of the caller's own time behind `now`.
    #[inline]
    pub(crate) fn delay(&self, now: Instant) -> Nanos {
        self.caller_time.get().since(now)
    }

    /// Whether the call has had to wait for a lock.
    pub(crate) fn has_waited_for_lock(&self) -> bool {
        self.is_contended.get()
    }

    /// Takes the work that the call has left to another CPU.
    #[inline]
    pub(crate) fn take_delegated_work(&self) -> Option<DelegatedWork> {
        // Read first: there is nearly always nothing, which saves the write.
        self.delegated.get().and_then(|_| self.delegated.take())
    }

    /// Time that the call has spent on locks and sections so far.
    #[inline]
    pub(crate) fn spent(&self) -> Nanos {
        self.caller_time.get().since(self.began.get()) + self.beside.get()
    }

    /// Lock use of all calls so far.
    pub(crate) fn used(&self) -> LockUse {
        self.used.current_use()
    }

    /// Whether this site is under a scheduler's lock in Linux, too. There, depth limits and request-preparation hooks are called without
    /// it. The one lock of a legacy queue is its scheduler's.
    fn is_scheduler_lock(site: Site) -> bool {
        use Site::{Dispatch, Finish, HardwareQueue, Insert, Legacy, Merge, SoftwareQueue};
        matches!(site, Merge | Insert | Dispatch | Finish | SoftwareQueue | HardwareQueue | Legacy)
    }

    /// Passes through a section, nearly always with a free lock.
    #[inline(never)]
    fn pass(&self, lock: &Held, site: Site) {
        let at = self.caller_time.get();
        if lock.until.get() > at {
            return self.wait_for_lock(lock, site);
        }
        self.grant(lock, site, at);
    }

    /// Waits for a lock that another CPU holds.
    #[cold]
    fn wait_for_lock(&self, lock: &Held, site: Site) {
        let (at, granted) = (self.caller_time.get(), lock.until.get());
        self.is_contended.set(true);
        add(&self.used.waited, granted.since(at));
        let [waits, sections] = self.contended.get();
        let each = (sections + waits / 2).checked_div(waits).unwrap_or(1);
        self.contended.set([waits + 1, sections]);
        let waiters = self.cost.get().waiters_during(granted.since(at), each);
        self.waiters.set(waiters.min(self.ends.len() as u64 - 1) as u32);
        self.grant(lock, site, granted);
    }

    /// Grants the lock to the caller.
    #[inline(always)]
    fn grant(&self, lock: &Held, site: Site, granted: Instant) {
        let cost = self.cost.get();
        let was_held_by_other = lock.by.get() != self.by.get() && lock.by.get() != u32::MAX;
        let mut held = cost.section;
        if self.is_contended.get() {
            let [calls, sections] = self.contended.get();
            self.contended.set([calls, sections + 1]);
            held += cost.contended_handover + Nanos(cost.waiter.0 * u64::from(self.waiters.get()));
        } else if was_held_by_other {
            held += cost.handover_between(lock.by.get(), self.by.get());
        }
        add(&self.used.held, held);
        self.granted.set(granted);
        self.used.taken.set(self.used.taken.get() + 1);
        if !matches!(site, Site::SoftwareQueue | Site::HardwareQueue) {
            add(&self.used.elevators, held);
        }
        lock.by.set(self.by.get());
        self.hold(lock, site, granted + held, cost.beside);
    }

    /// Passes through the wait queues for kyber's tokens, which all CPUs share. As with the lock of a list, a hand-over moves little.
    #[cold]
    fn charge_wait_queue(&self, lock: &Held) {
        let (cost, at, by) = (self.cost.get(), self.caller_time.get(), self.by.get());
        let granted = at.max(lock.until.get());
        let was_held_by_other = lock.by.get() != by && lock.by.get() != u32::MAX;
        let section = cost.list + if was_held_by_other { cost.list_handover } else { Nanos::ZERO };
        add(&self.used.waited, granted.since(at));
        add(&self.used.held, section);
        self.used.taken.set(self.used.taken.get() + 1);
        lock.by.set(by);
        self.hold(lock, Site::TokenWaiters, granted + section, Nanos::ZERO);
    }

    /// Sets the end of a hold; the caller continues outside the lock.
    #[inline]
    fn hold(&self, lock: &Held, site: Site, until: Instant, beside: Nanos) {
        lock.until.set(until);
        self.caller_time.set(until);
        self.beside.set(self.beside.get() + beside);
        if let Some(end) = self.ends.get(self.by.get() as usize) {
            end.set(CallEnd {
                until: until + self.beside.get(),
                is_contended: self.is_contended.get(),
                waiters: self.waiters.get(),
            });
        }
        if site == Site::Dispatch {
            lock.asked.set((self.by.get(), until));
            if !self.asks_in_vain.replace(false) {
                lock.work_until.set(until);
            }
        }
    }

    /// Accounts for the extra requests and flags of a hold.
    #[cold]
    fn record_hold_flags(&self, lock: &Held, site: Site, hold_flags: u64) {
        self.hold_flags.set(0);
        let cost = self.cost.get();
        let (more, taken) = (hold_flags & EXTRA_REQUEST_MASK, (hold_flags / DELEGATED_REQUEST) & EXTRA_REQUEST_MASK);
        if site == Site::Leave {
            let extension = Nanos(cost.list.0 * more);
            add(&self.used.held, extension);
            lock.until.set(lock.until.get() + extension);
            self.beside.set(self.beside.get() + extension + Nanos(cost.beside.0 * more));
            return;
        }
        let before = lock.until.get();
        // Lists taken over meanwhile have advanced the caller's time.
        let fetched = self.fetched.take();
        // With buckets the caller only queues the request; what is taken from a pending list it also issues.
        let lines = if site == Site::Insert { 0 } else { LINES_OF_REQUEST * fetched };
        let until =
            before.max(self.caller_time.get()) + Nanos(cost.section.0 * (more + taken) + cost.list_handover.0 * lines);
        let extension = until.since(before);
        add(&self.used.held, extension);
        add(&self.used.elevators, extension);
        if hold_flags & RUN_BY_OTHER_CPU != 0 {
            return self.end_delegated_section(lock, extension);
        }
        self.hold(lock, site, until, Nanos(cost.beside.0 * more));
        if hold_flags & ACCEPTS_DELEGATED != 0 {
            let mut delegation_holds = self.delegation_holds.borrow_mut();
            delegation_holds.retain(|other| other.until > self.now.get());
            let (lock, cpu) = (lock_address(lock), CpuId(self.by.get()));
            delegation_holds.push(DelegationHold { lock, cpu, from: self.granted.get(), until });
        }
    }
}

impl Meter for LockMeter {
    #[inline]
    fn enter(&self, lock: &Held, site: Site) {
        if self.cost.get().section == Nanos::ZERO {
            return;
        }
        if Self::is_scheduler_lock(site) {
            self.pass(lock, site);
        } else if matches!(site, Site::Leave | Site::Take) {
            self.charge_list_lock(lock, site);
        } else if site == Site::TokenWaiters {
            self.charge_wait_queue(lock);
        }
    }

    #[inline]
    fn try_enter(&self, lock: &Held, site: Site) -> bool {
        if self.cost.get().section > Nanos::ZERO
            && Self::is_scheduler_lock(site)
            && lock.until.get() > self.caller_time.get()
        {
            return false;
        }
        self.enter(lock, site);
        true
    }

    #[inline]
    fn leave(&self, lock: &Held, site: Site) {
        let hold_flags = self.hold_flags.get();
        // A list's lock can be taken under the scheduler's, to which the extra requests belong.
        if hold_flags > 0 && site != Site::Take {
            self.record_hold_flags(lock, site, hold_flags);
        }
    }

    #[inline]
    fn another(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.hold_flags.set(self.hold_flags.get() + EXTRA_REQUEST);
        }
    }

    fn may_become_dispatcher(&self, lock: &Held) -> bool {
        let (by, until) = lock.asked.get();
        let may = self.cost.get().section == Nanos::ZERO || until <= self.caller_time.get();
        if !may {
            self.delegated.set(Some(DelegatedWork {
                dispatcher: Some((CpuId(by), until)),
                ..self.delegated.get().unwrap_or_default()
            }));
        }
        may
    }

    fn sees_work_being_taken(&self, lock: &Held) -> bool {
        let sees = lock.work_until.get() > self.caller_time.get();
        self.asks_in_vain.set(sees);
        sees
    }

    fn postpones_run(&self, hctx: HctxId) -> bool {
        let at = self.caller_time.get();
        let postpones = self.is_contended.get() && at > self.now.get();
        if postpones {
            let delegated = self.delegated.get().unwrap_or_default();
            let postponed = Some((CpuId(self.by.get()), hctx, at));
            self.delegated.set(Some(DelegatedWork { postponed, ..delegated }));
        }
        postpones
    }

    fn accepts_delegated_work(&self) {
        if self.cost.get().section > Nanos::ZERO {
            self.hold_flags.set(self.hold_flags.get() | ACCEPTS_DELEGATED);
        }
    }

    fn count_delegated_request(&self, from: CpuId) {
        if self.cost.get().section > Nanos::ZERO {
            self.hold_flags.set(self.hold_flags.get() + DELEGATED_REQUEST);
            if from.0 != self.by.get() {
                self.fetched.set(self.fetched.get() + 1);
            }
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
