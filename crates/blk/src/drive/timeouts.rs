//! Timeouts of requests at the device (BL-96, BL-97; the same in legacy queues).
//!
//! One timer serves all workers. The worker on which it expires scans [all in-flight requests](Flights) and notifies the
//! worker that issued an overdue request, which asks its own driver. By then the request may have completed.

use std::sync::atomic::Ordering::Relaxed;

use crate::drive::driver::{Driver, Expired};
use crate::drive::effects::{Effect, Effects};
use crate::drive::flights::Flights;
use crate::ground::ids::{CpuId, RqId};
use crate::ground::sharing::{Sharing, Word};
use crate::ground::time::{Instant, Nanos};
use crate::request::Request;

/// Default of `queue/io_timeout`.
const DEFAULT: Nanos = Nanos::from_secs(30);
/// Maximum time by which the timer is set ahead.
const TIMER_AHEAD_MAX: Nanos = Nanos::from_secs(5);
/// The timer expires at whole seconds.
const ROUND_NS: u64 = Nanos::from_secs(1).0;
/// A pending timer is moved only if this makes it earlier by at least this much.
const TIMER_MOVE_MIN: Nanos = Nanos::from_millis(500);

/// The timer of a queue.
pub struct Timeouts<Sh: Sharing> {
    /// Timeout of a request at the device, ns.
    timeout_ns: Sh::Word,
    /// When the next scan is due, ns; [`Instant::NEVER`] if none is.
    due_ns: Sh::Word,
}

impl<Sh: Sharing> Default for Timeouts<Sh> {
    /// The kernel's default.
    fn default() -> Self {
        Timeouts { timeout_ns: Sh::Word::new(DEFAULT.0), due_ns: Sh::Word::new(Instant::NEVER.0) }
    }
}

impl<Sh: Sharing> Timeouts<Sh> {
    /// Timeout of a request at the device.
    #[must_use]
    pub fn timeout(&self) -> Nanos {
        Nanos(self.timeout_ns.load(Relaxed))
    }

    /// Sets the timeout of requests that are started from now on.
    pub fn set_timeout(&self, timeout: Nanos) {
        self.timeout_ns.store(timeout.0, Relaxed);
    }

    /// A request is about to be issued to the driver of this CPU.
    #[inline]
    pub fn start(
        &self,
        (now, cpu): (Instant, CpuId),
        rq: &mut Request,
        flights: &Flights<impl Sharing>,
        effects: &mut Effects,
    ) {
        rq.issued = now;
        let deadline = now + self.timeout();
        flights.begin(cpu, rq, deadline);
        if deadline.0 + TIMER_MOVE_MIN.0 < self.due_ns.load(Relaxed) {
            self.set_timer(now, deadline, effects);
        }
    }

    /// Sets the timer for a deadline, unless it is pending for about that time.
    #[cold]
    fn set_timer(&self, now: Instant, deadline: Instant, effects: &mut Effects) {
        let rounded = Instant(deadline.0.div_ceil(ROUND_NS) * ROUND_NS);
        let due = rounded.min(now + TIMER_AHEAD_MAX);
        let pending = Instant(self.due_ns.load(Relaxed));
        if pending == Instant::NEVER || due + TIMER_MOVE_MIN <= pending {
            self.due_ns.store(due.0, Relaxed);
            effects.push(Effect::SetTimeout(due));
        }
    }

    /// Handles the timer: notifies the issuers of overdue requests. Returns whether anything is in flight; only then is the
    /// timer set again.
    pub fn scan(&self, now: Instant, flights: &Flights<impl Sharing>, effects: &mut Effects) -> bool {
        self.due_ns.store(Instant::NEVER.0, Relaxed);
        let result = flights.scan(now, now + self.timeout(), |cpu, id| effects.push(Effect::TimedOut { cpu, id }));
        if result.any {
            self.set_timer(now, result.next.min(now + TIMER_AHEAD_MAX), effects);
        }
        result.any
    }

    /// Asks the driver about its own overdue request. Returns the next deadline.
    pub fn ask<D: Driver>(&self, now: Instant, id: RqId, driver: &mut D) -> Instant {
        match driver.timed_out(now, id) {
            Expired::RestartTimeout => now + self.timeout(),
            Expired::Handled => Instant::NEVER,
        }
    }
}
