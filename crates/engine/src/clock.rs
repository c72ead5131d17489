//! The clock of an engine.
//!
//! Used by: `worker`, `engine`; crate `serve`.
//! Tests: `crates/engine/tests/model.rs`.

use std::sync::Arc;
use std::time;

use hoistway_blk::ground::Instant;

/// A monotonic clock that any thread may read.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Instant;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

/// The machine's monotonic clock, counted from its creation.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(time::Instant);

impl MonotonicClock {
    /// A clock that starts at time 0 now.
    #[must_use]
    pub fn start() -> Self {
        MonotonicClock(time::Instant::now())
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Instant {
        Instant(self.0.elapsed().as_nanos() as u64)
    }
}
