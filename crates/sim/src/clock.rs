//! Virtual time in nanoseconds and in ticks.

use hoistway_blk::{Hz, Instant, Now};

/// The present moment on both clocks: most events fall into the tick of the one before, which saves a division.
pub(crate) struct TickClock {
    pub(crate) now: Now,
    hz: Hz,
    /// When the next tick begins.
    tick_end: Instant,
}

impl TickClock {
    pub(crate) fn new(hz: Hz) -> Self {
        TickClock { now: hz.now(Instant::ZERO), hz, tick_end: Instant(hz.tick_ns()) }
    }

    #[inline]
    pub(crate) fn advance(&mut self, at: Instant) {
        self.now.at = at;
        if at >= self.tick_end {
            self.now = self.hz.now(at);
            self.tick_end = Instant((self.now.tick.0 + 1) * self.hz.tick_ns());
        }
    }
}
