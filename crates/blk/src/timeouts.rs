//! Requests that the device keeps for too long (`block-layer.md` 19.2; legacy queues do the same).
//!
//! Nothing is kept for each request but its deadline: what is in flight is at the driver, so the scan asks the driver.

use crate::driver::{Driver, Expired};
use crate::effects::{Effect, Effects};
use crate::ids::RqId;
use crate::request::Request;
use crate::sharing::{Sharing, Word};
use crate::time::{Instant, Nanos};

/// `queue/io_timeout` of a device whose driver says nothing else.
const DEFAULT: Nanos = Nanos::from_secs(30);
/// The timer is set no further ahead.
const AHEAD_MAX: Nanos = Nanos::from_secs(5);
/// The timer's moments are whole seconds.
const ROUND: u64 = Nanos::from_secs(1).0;
/// A timer that is set is moved only if this much is gained.
const GAIN_MIN: Nanos = Nanos::from_millis(500);

/// The timer of a queue.
pub struct Timeouts<Sh: Sharing> {
    /// How long a request may be at the device, ns.
    timeout_ns: Sh::Word,
    /// When the next scan is due, ns; the end of time if none is.
    due_ns: Sh::Word,
}

impl<Sh: Sharing> Timeouts<Sh> {
    /// With the kernel's default for a queue of requests.
    #[must_use]
    pub fn new() -> Self {
        Timeouts { timeout_ns: Sh::Word::new(DEFAULT.0), due_ns: Sh::Word::new(Instant::NEVER.0) }
    }

    /// How long a request may be at the device.
    #[must_use]
    pub fn timeout(&self) -> Nanos {
        Nanos(self.timeout_ns.load())
    }

    /// For requests that are started from now on.
    pub fn set_timeout(&self, timeout: Nanos) {
        self.timeout_ns.store(timeout.0);
    }

    /// A request is about to be handed to the driver.
    #[inline]
    pub fn start(&self, now: Instant, rq: &mut Request, effects: &mut Effects) {
        rq.issued = now;
        rq.deadline = now + self.timeout();
        if rq.deadline.0 + GAIN_MIN.0 < self.due_ns.load() {
            self.set_timer(now, rq.deadline, effects);
        }
    }

    /// Sets the timer for a deadline, if that is worth it.
    #[cold]
    fn set_timer(&self, now: Instant, deadline: Instant, effects: &mut Effects) {
        let rounded = Instant(deadline.0.div_ceil(ROUND) * ROUND);
        let due = rounded.min(now + AHEAD_MAX);
        let set = Instant(self.due_ns.load());
        if set == Instant::NEVER || due + GAIN_MIN <= set {
            self.due_ns.store(due.0);
            effects.push(Effect::SetTimeout(due));
        }
    }

    /// The timer has come: the driver is told of each request whose time is over, once. Answers whether anything is in
    /// flight; only then the timer is set again.
    pub fn scan<D: Driver>(&self, now: Instant, driver: &mut D, effects: &mut Effects) -> bool {
        self.due_ns.store(Instant::NEVER.0);
        let mut expired: Vec<RqId> = Vec::new();
        driver.each_in_flight(&mut |rq| {
            if rq.deadline <= now {
                // It has none until the driver wants another.
                rq.deadline = Instant::NEVER;
                expired.push(rq.id());
            }
        });
        expired.retain(|&id| driver.timed_out(now, id) == Expired::GoesOn);
        let again = now + self.timeout();
        let (mut in_flight, mut next) = (0u32, Instant::NEVER);
        driver.each_in_flight(&mut |rq| {
            if expired.contains(&rq.id()) {
                rq.deadline = again;
            }
            in_flight += 1;
            next = next.min(rq.deadline);
        });
        if in_flight > 0 {
            self.set_timer(now, next.min(now + AHEAD_MAX), effects);
        }
        in_flight > 0
    }
}
