//! The clock of an engine.

use std::time;

use hoistway_blk::ground::Instant;

/// A clock that does not run backwards, on any thread.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Instant;
}

/// The machine's monotonic clock, from when this was made on.
#[derive(Debug)]
pub struct MonotonicClock(time::Instant);

impl MonotonicClock {
    /// It is time 0.
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
