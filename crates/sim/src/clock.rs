//! Virtual time in nanoseconds and in ticks.
//!
//! Used by: `simulation`.
//! Tests: below.

use hoistway_blk::ground::{Hz, Instant, Now};

/// The current time in ns and in ticks. Most events fall into the same tick as the previous one, which saves a
/// division.
pub(crate) struct TickClock {
    pub(crate) now: Now,
    hz: Hz,
    /// Start of the next tick.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_clock_matches_division_within_ticks_at_edges_and_after_leaps() {
        for hz in [Hz(100), Hz(250), Hz(1000)] {
            let (mut clock, tick) = (TickClock::new(hz), hz.tick_ns());
            for at in [0, 1, tick - 1, tick, tick, tick + 1, 2 * tick - 1, 5 * tick, 6 * tick - 1, 6 * tick] {
                clock.advance(Instant(at));
                assert_eq!((clock.now.at, clock.now.tick), (Instant(at), hz.now(Instant(at)).tick), "{at} at {hz:?}");
            }
        }
    }
}
