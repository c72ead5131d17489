//! The two clocks of the block layer. Nothing in this crate reads a clock: every call gets the time.
//!
//! Linux counts some things in nanoseconds and some in *ticks* of 1/HZ second (mq-deadline's expiries, parts
//! of bfq), so a moment is a pair: [`Now`].

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A moment on the monotonic clock: nanoseconds since an arbitrary start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Nanos(pub u64);

/// A moment counted in timer ticks ("jiffies") since an arbitrary start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Tick(pub u64);

/// The moment of a call, on both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// The nanosecond clock.
    pub at: Instant,
    /// The tick clock.
    pub tick: Tick,
}

/// Ticks per second: 250 on the distribution kernels of the sources; 100, 300 and 1000 exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hz(pub u32);

impl Instant {
    /// The start of time.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The time since `earlier`, zero if `earlier` is in fact later.
    #[must_use]
    pub fn since(self, earlier: Instant) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);

    /// `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// `s` seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    /// The span in seconds, for rates and for people.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Hz {
    /// The default of the kernels behind the sources and the recordings.
    pub const DEFAULT: Hz = Hz(250);

    /// Length of one tick in nanoseconds.
    #[must_use]
    pub const fn tick_ns(self) -> u64 {
        1_000_000_000 / self.0 as u64
    }

    /// The moment `at` on both clocks, with tick 0 beginning at time 0.
    #[must_use]
    pub fn now(self, at: Instant) -> Now {
        Now { at, tick: Tick(at.0 / self.tick_ns()) }
    }

    /// When a tick begins, with tick 0 beginning at time 0.
    #[must_use]
    pub fn start_of(self, tick: Tick) -> Instant {
        Instant(tick.0.saturating_mul(self.tick_ns()))
    }

    /// Milliseconds as ticks, rounded **up**, as Linux converts a stored tunable.
    #[must_use]
    pub fn ticks_from_millis(self, ms: u64) -> u64 {
        let hz = u64::from(self.0);
        (ms.saturating_mul(hz)).div_ceil(1000)
    }

    /// Ticks as milliseconds, rounded up, as Linux shows a stored tunable.
    #[must_use]
    pub fn millis_from_ticks(self, ticks: u64) -> u64 {
        let hz = u64::from(self.0);
        (ticks.saturating_mul(1000)).div_ceil(hz)
    }
}

impl Add<Nanos> for Instant {
    type Output = Instant;
    fn add(self, span: Nanos) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Nanos> for Instant {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Sub<Nanos> for Instant {
    type Output = Instant;
    fn sub(self, span: Nanos) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", Nanos(self.0))
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns @ 0..1_000 => write!(f, "{ns} ns"),
            ns @ 1_000..1_000_000 => write!(f, "{} us", ns as f64 / 1e3),
            ns @ 1_000_000..1_000_000_000 => write!(f, "{} ms", ns as f64 / 1e6),
            ns => write!(f, "{} s", ns as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_become_ticks_rounded_up_and_read_back_as_multiples_of_a_tick() {
        let hz = Hz(250);
        assert_eq!([0, 1, 4, 5, 500].map(|ms| hz.ticks_from_millis(ms)), [0, 1, 1, 2, 125]);
        assert_eq!(hz.millis_from_ticks(hz.ticks_from_millis(7)), 8);
        assert_eq!(Hz(300).millis_from_ticks(Hz(300).ticks_from_millis(10)), 10);
    }

    #[test]
    fn a_tick_begins_every_four_milliseconds_at_250_hz() {
        let at = |ns| Hz(250).now(Instant(ns)).tick;
        assert_eq!((at(3_999_999), at(4_000_000)), (Tick(0), Tick(1)));
    }

    #[test]
    fn a_duration_is_also_available_in_seconds() {
        assert_eq!([0, 1_500_000_000, 250_000_000].map(|ns| Nanos(ns).as_secs_f64()), [0.0, 1.5, 0.25]);
    }
}
