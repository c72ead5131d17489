//! Runs of hardware queues that are broken off until their CPU gets the lock of the scheduler.
//!
//! ```text
//! inserts, which had to wait | goes on when that is over | finds the lock taken: waits for its turn | asks: there is something, or not
//! ```
//!
//! Each of these is a moment of its own, so that others ask between them. Whoever comes when the lock is free asks at once, as often as
//! there is something. A turn is paid for when it is granted, by whoever waits for it, also if nothing is left when it comes.

use hoistway_blk::{CpuId, HctxId, Held, Instant, Nanos, Site};

use super::left::{Later, Left};
use super::{GRANTED, LockMeter, SectionCost};

impl LockMeter {
    /// Whoever is about to ask, and has had to wait in this call or has to now, breaks off if the lock is another one's before.
    #[cold]
    #[inline(never)]
    pub(super) fn breaks_off(&self, lock: &Held, hctx: HctxId, alone: bool) -> bool {
        let (at, by) = (self.at.get(), self.by.get());
        let left = self.left.get().unwrap_or_default();
        if self.special.get() & GRANTED != 0 || left.later.is_some() {
            return false;
        }
        let (_, asked_until) = lock.asked.get();
        let (at, granted) = if at > self.now.get() && self.is_contended.get() {
            // Its earlier sections come first, and others between.
            (self.ends.get(by as usize).map_or(at, |end| end.get().0.max(at)), Nanos::ZERO)
        } else if lock.until.get() <= at || (alone && asked_until > at) {
            return false;
        } else {
            self.pass(lock, Site::Dispatch, self.cost.get());
            (self.granted.get(), self.at.get().since(self.granted.get()))
        };
        self.broken_off.set((by, self.now.get()));
        self.left.set(Some(Left { later: Some(Later { at, cpu: CpuId(by), hctx, granted }), ..left }));
        true
    }

    /// A call begins that has been granted the lock for so long from now on, to ask for requests.
    pub(crate) fn begin_granted(&self, now: Instant, cpu: CpuId, cost: SectionCost, granted: Nanos) {
        self.begin(now, cpu, cost);
        let until = now + granted;
        self.began.set(until);
        self.at.set(until);
        self.granted.set(until);
        self.is_contended.set(true);
        self.special.set(GRANTED);
    }

    /// A call is over: what it was granted and did not use is gone.
    pub(crate) fn end_granted(&self) {
        self.special.set(0);
    }

    /// Whether the run of this CPU was broken off in the call that it makes at this moment.
    pub(crate) fn has_broken_off(&self, now: Instant, cpu: CpuId) -> bool {
        self.is_contended.get() && self.broken_off.get() == (cpu.0, now)
    }
}
