//! cfq's clock: nanoseconds since Linux 4.8, timer ticks before. All times inside the scheduler are `i64` in the unit
//! of this clock, so that one set of formulae serves both: they differ only in rounding, which is also the difference
//! between the kernels.
//!
//! Rules: CFQ-1, CFQ-2, CFQ-5.

use hoistway_blk::ground::{CfqGeneration, Hz, Instant, Now};

/// Longer spans are not distinguished, so that sums of a few do not overflow.
const LONGEST: u64 = i64::MAX as u64 / 4;

/// A clock: its unit is that of the generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) generation: CfqGeneration,
    pub(super) hz: Hz,
}

impl Clock {
    /// The time of a call.
    #[inline]
    pub(super) fn read(self, now: Now) -> i64 {
        match self.generation {
            CfqGeneration::Nanoseconds => now.at.0 as i64,
            CfqGeneration::Ticks => now.tick.0 as i64,
        }
    }

    /// Converts the time `at` for timers.
    pub(super) fn instant(self, at: i64) -> Instant {
        match self.generation {
            CfqGeneration::Nanoseconds => Instant(at.max(0) as u64),
            CfqGeneration::Ticks => Instant(at.max(0) as u64 * self.hz.tick_ns()),
        }
    }

    /// A tick.
    #[inline]
    pub(super) fn jiffy(self) -> i64 {
        match self.generation {
            CfqGeneration::Nanoseconds => self.hz.tick_ns() as i64,
            CfqGeneration::Ticks => 1,
        }
    }

    /// A second.
    pub(super) fn second(self) -> i64 {
        match self.generation {
            CfqGeneration::Nanoseconds => 1_000_000_000,
            CfqGeneration::Ticks => i64::from(self.hz.0),
        }
    }

    /// The fraction `1 / divisor` of a second, in the form of the kernel's constants.
    pub(super) fn second_over(self, divisor: i64) -> i64 {
        self.second() / divisor
    }

    /// Converts a tunable's milliseconds. Ticks are rounded up.
    pub(super) fn span_from_millis(self, ms: u64) -> i64 {
        let span = match self.generation {
            CfqGeneration::Nanoseconds => ms.saturating_mul(1_000_000),
            CfqGeneration::Ticks => self.hz.ticks_from_millis(ms),
        };
        span.min(LONGEST) as i64
    }

    /// Converts a tunable's microseconds, which only the nanosecond clock has.
    pub(super) fn span_from_micros(self, us: u64) -> i64 {
        us.saturating_mul(1_000).min(LONGEST) as i64
    }

    /// A span as shown by a tunable in milliseconds.
    pub(super) fn millis(self, span: i64) -> i64 {
        match self.generation {
            CfqGeneration::Nanoseconds => span / 1_000_000,
            CfqGeneration::Ticks => self.hz.millis_from_ticks(span as u64) as i64,
        }
    }

    /// A span as shown by a tunable in microseconds.
    pub(super) fn micros(self, span: i64) -> i64 {
        span / 1_000
    }
}
