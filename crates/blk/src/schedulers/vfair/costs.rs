//! What I/Os cost a device: the device's time is split equally among the requests that are in it.

use crate::ground::time::Instant;

/// Device time is counted in these parts of a nanosecond.
pub(super) const PARTS_PER_NS: u64 = 16;

/// A mean moves by the difference over this with each I/O.
const MEAN_DIVISOR: i64 = 8;

/// A clock that runs at the n-th part of the usual speed while n requests are at the device: what passes while a request is there is what it
/// costs. The costs of all requests add up to the time in which the device was busy.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct DeviceTime {
    passed: u64,
    seen: Instant,
}

impl DeviceTime {
    /// It is `now`, and so many requests were at the device until now.
    #[inline]
    pub(super) fn follow(&mut self, now: Instant, inflight: u32) {
        let parts = now.since(self.seen).0.saturating_mul(PARTS_PER_NS);
        self.seen = self.seen.max(now);
        self.passed += parts.checked_div(u64::from(inflight)).unwrap_or(0);
    }

    /// What has passed, in parts of a nanosecond.
    #[inline]
    pub(super) fn passed(self) -> u64 {
        self.passed
    }
}

/// Mean costs of reads, and of all else.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MeanCosts([u64; 2]);

impl MeanCosts {
    /// What an I/O is expected to cost.
    pub(super) fn expect(&self, kind: u8) -> u64 {
        self.0[usize::from(kind)]
    }

    /// An I/O has cost this.
    pub(super) fn learn(&mut self, kind: u8, cost: u64) {
        let mean = &mut self.0[usize::from(kind)];
        *mean = mean.saturating_add_signed((cost as i64 - *mean as i64) / MEAN_DIVISOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_to_the_time_in_which_the_device_was_busy() {
        let mut time = DeviceTime::default();
        time.follow(Instant(100), 0);
        assert_eq!(time.passed(), 0, "an idle device costs nobody");
        time.follow(Instant(200), 1);
        time.follow(Instant(300), 4);
        // One request was there from 100 to 300, three from 200 to 300.
        assert_eq!(time.passed(), (100 + 25) * PARTS_PER_NS);
        time.follow(Instant(250), 4);
        assert_eq!(time.passed(), 125 * PARTS_PER_NS, "a clock that stands still costs nothing");
    }

    #[test]
    fn means_of_reads_and_writes_are_apart() {
        let mut means = MeanCosts::default();
        means.learn(0, 800);
        means.learn(0, 900);
        assert_eq!((means.expect(0), means.expect(1)), (200, 0));
        means.learn(0, 0);
        assert_eq!(means.expect(0), 175);
    }
}
