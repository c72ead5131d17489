//! The throttle of an export: `io.max` for all of its connections together.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{CgroupId, Instant};
use hoistway_cgroup::{IoMax, THROTTLE_SLICE, Throttle};
use rustc_hash::FxHashMap;

use crate::event_loop::ConnectionId;

/// The limited group; the root group cannot be limited.
const GROUP: CgroupId = CgroupId(1);

/// A throttled request: its connection, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Throttled {
    connection: ConnectionId,
    number: u16,
}

/// The throttle of an export.
pub struct ExportThrottle {
    state: Mutex<State>,
    /// Whether there is a limit, or was one under which requests still wait.
    is_limited: AtomicBool,
}

struct State {
    throttle: Throttle<Throttled>,
    /// For each connection with throttled requests, the numbers of those that are allowed now but not yet fetched.
    allowed: FxHashMap<ConnectionId, Vec<u16>>,
}

/// The result of [`ExportThrottle::release`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Released {
    /// Numbers of the connection's own requests that are now allowed.
    pub own: Vec<u16>,
    /// Other connections that have allowed requests.
    pub others: Vec<ConnectionId>,
    /// When the next request will be allowed.
    pub next: Instant,
}

impl ExportThrottle {
    /// Without limits.
    #[must_use]
    pub fn new() -> ExportThrottle {
        let mut throttle = Throttle::new(THROTTLE_SLICE);
        throttle.add_group(GROUP, CgroupId::ROOT);
        ExportThrottle {
            state: Mutex::new(State { throttle, allowed: FxHashMap::default() }),
            is_limited: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> IoMax {
        self.lock().throttle.limits(GROUP)
    }

    /// Changes the limits. Connections with throttled requests have to be notified: their requests may be allowed
    /// earlier now.
    pub fn set_limits(&self, now: Instant, limits: IoMax) {
        let throttle = &mut self.lock().throttle;
        if throttle.limits(GROUP) == limits {
            // Setting the same limits again would start a new slice, part of which may be used at once.
            return;
        }
        throttle.set_limits(now, GROUP, limits);
        let is_limited = limits != IoMax::default() || !throttle.is_empty();
        self.is_limited.store(is_limited, Relaxed);
    }

    /// Whether any request may have to wait.
    #[inline]
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.is_limited.load(Relaxed)
    }

    /// Whether a request is allowed now. If not, [`release`](Self::release) returns its number later.
    #[must_use]
    pub fn allows(&self, now: Instant, op: Op, bytes: u64, connection: ConnectionId, number: u16) -> bool {
        let state = &mut *self.lock();
        let request = Throttled { connection, number };
        if state.throttle.submit_request(now, GROUP, op, bytes, request).is_some() {
            return true;
        }
        state.allowed.entry(connection).or_default();
        false
    }

    /// Takes the requests of a connection that are allowed now, and names the other connections that have such
    /// requests.
    #[must_use]
    pub fn release(&self, now: Instant, own: ConnectionId) -> Released {
        let (state, mut released) = (&mut *self.lock(), Vec::new());
        while state.throttle.due().is_some_and(|due| due <= now) {
            state.throttle.release(now, &mut released);
        }
        let mut others = Vec::new();
        for Throttled { connection, number } in released {
            // The connection may have ended.
            let Some(allowed) = state.allowed.get_mut(&connection) else { continue };
            allowed.push(number);
            if connection != own && !others.contains(&connection) {
                others.push(connection);
            }
        }
        let own = state.allowed.get_mut(&own).map(std::mem::take).unwrap_or_default();
        Released { own, others, next: state.throttle.due().unwrap_or(Instant::NEVER) }
    }

    /// Forgets a connection that has ended.
    pub fn forget(&self, connection: ConnectionId) {
        self.lock().allowed.remove(&connection);
    }
}

impl Default for ExportThrottle {
    fn default() -> Self {
        ExportThrottle::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::ground::Nanos;

    const ONE: ConnectionId = ConnectionId { worker: 3, number: 0x12_3456_789a };
    const OTHER: ConnectionId = ConnectionId { worker: 0, number: 1 };

    fn later() -> Instant {
        Instant::ZERO + Nanos::from_secs(1)
    }

    fn allows(throttle: &ExportThrottle, connection: ConnectionId, number: u16) -> bool {
        throttle.allows(Instant::ZERO, Op::Read, 4096, connection, number)
    }

    #[test]
    fn a_limited_export_has_to_wait_and_another_one_has_not() {
        let (throttle, unlimited) = (ExportThrottle::new(), ExportThrottle::new());
        throttle.set_limits(Instant::ZERO, IoMax { riops: Some(10), ..IoMax::default() });
        assert!(throttle.is_limited() && !unlimited.is_limited());
        assert!(allows(&throttle, ONE, 0) && !allows(&throttle, ONE, 1) && !allows(&throttle, ONE, 65535));
        assert!((0..100).all(|number| allows(&unlimited, ONE, number)));

        let released = throttle.release(Instant::ZERO, ONE);
        assert!(released.own.is_empty() && released.next > Instant::ZERO && released.next < Instant::NEVER);
        let released = throttle.release(later(), ONE);
        assert_eq!(released, Released { own: vec![1, 65535], others: vec![], next: Instant::NEVER });
    }

    #[test]
    fn a_release_names_other_waiting_connections_except_ended_ones() {
        let throttle = ExportThrottle::new();
        throttle.set_limits(Instant::ZERO, IoMax { riops: Some(10), ..IoMax::default() });
        let ended = ConnectionId { worker: 1, number: 2 };
        assert!(allows(&throttle, ONE, 0));
        assert!(!allows(&throttle, ONE, 1) && !allows(&throttle, OTHER, 2) && !allows(&throttle, ended, 3));
        throttle.forget(ended);
        let released = throttle.release(later(), ONE);
        assert_eq!((released.own, released.others), (vec![1], vec![OTHER]));
        assert_eq!(throttle.release(later(), OTHER).own, [2]);
        assert!(!throttle.lock().allowed.contains_key(&ended));
    }

    #[test]
    fn setting_the_same_limit_again_grants_no_extra_credit() {
        let (throttle, limits) = (ExportThrottle::new(), IoMax { riops: Some(10), ..IoMax::default() });
        for number in 0..100 {
            throttle.set_limits(Instant::ZERO, limits);
            assert_eq!(allows(&throttle, ONE, number), number == 0);
        }
    }

    #[test]
    fn removing_the_limit_releases_waiting_requests() {
        let throttle = ExportThrottle::new();
        throttle.set_limits(Instant::ZERO, IoMax { rbps: Some(4096), ..IoMax::default() });
        assert!(!throttle.allows(Instant::ZERO, Op::Read, 1 << 20, ONE, 0));
        throttle.set_limits(Instant::ZERO, IoMax::default());
        assert!(throttle.is_limited(), "a request waits");
        assert_eq!(throttle.release(Instant::ZERO, ONE).own, [0]);
    }
}
