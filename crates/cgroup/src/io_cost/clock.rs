//! Device time: the time that all groups together may spend, which passes faster or slower than real time.

use hoistway_blk::ground::{Instant, Nanos};

use super::qos::Percent;

/// A point or a span of device time, in units of 0.0001 ns: a nanosecond at 100 % is 10,000, so that no rate loses a fraction.
pub(super) type DeviceTime = u128;

/// Device time of a nanosecond at 100 %.
pub(super) const NANOSECOND: DeviceTime = Percent::WHOLE.0 as DeviceTime;

/// The clock of device time.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceClock {
    /// How fast it runs (the kernel's vrate).
    rate: Percent,
    /// When the rate was set.
    since: Instant,
    /// Device time at `since`.
    time: DeviceTime,
}

impl DeviceClock {
    pub fn new(rate: Percent) -> DeviceClock {
        DeviceClock { rate, since: Instant::ZERO, time: 0 }
    }

    pub fn rate(&self) -> Percent {
        self.rate
    }

    #[inline]
    pub fn at(&self, now: Instant) -> DeviceTime {
        self.time + DeviceTime::from(now.since(self.since).0) * DeviceTime::from(self.rate.0)
    }

    pub fn set_rate(&mut self, now: Instant, rate: Percent) {
        self.time = self.at(now);
        self.since = now;
        self.rate = rate;
    }

    /// The first nanosecond at which the clock has reached `time`.
    pub fn when(&self, time: DeviceTime) -> Instant {
        let left = time.saturating_sub(self.time).div_ceil(DeviceTime::from(self.rate.0.max(1)));
        self.since + Nanos(u64::try_from(left).unwrap_or(u64::MAX / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_is_reached_when_it_is_due_and_not_a_nanosecond_before(
            changes in prop::collection::vec((1..1_000_000_u64, 100..1_000_000_u32), 1..20),
            ahead in 1..10_000_000_000_000_u64,
        ) {
            let mut clock = DeviceClock::new(Percent::WHOLE);
            let mut now = Instant::ZERO;
            for (after, rate) in changes {
                now += Nanos(after);
                let before = clock.at(now);
                clock.set_rate(now, Percent(rate));
                prop_assert_eq!(clock.at(now), before, "a new rate moves nothing");
            }
            let time = clock.at(now) + DeviceTime::from(ahead);
            let due = clock.when(time);
            prop_assert!(clock.at(due) >= time);
            prop_assert!(clock.at(Instant(due.0 - 1)) < time);
        }
    }
}
