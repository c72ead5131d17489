//! Think time: how long it takes from the completion of a request to the arrival of the next one, as a decaying mean.
//!
//! A record belongs to anything that a scheduler may idle for: a process, a queue, a group, a set of queues. Times are
//! `i64` in the scheduler's unit.
//!
//! Rules: BFQ-4, BFQ-5, BFQ-7, BFQ-65, CFQ-20, CFQ-21.

/// Fixed-point one of the sample count and the total.
const ONE: u64 = 256;

/// The mean is used above this many weighted samples, which the third one reaches.
const TRUSTED_ABOVE: u64 = 80;

/// A decaying mean of think times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThinkTime {
    /// When the last request ended; at first, when the record was made.
    last_end: i64,
    /// Weighted number of samples, [`ONE`] each before decay.
    samples: u64,
    /// Weighted sum of the samples, times [`ONE`].
    total: u64,
    /// The mean, in units of time.
    mean: u64,
}

impl ThinkTime {
    /// A record that begins now.
    pub fn new(now: i64) -> Self {
        ThinkTime { last_end: now, ..ThinkTime::default() }
    }

    /// A request has ended.
    #[inline]
    pub fn ended(&mut self, now: i64) {
        self.last_end = now;
    }

    /// When the last request ended.
    #[inline]
    pub fn last_end(&self) -> i64 {
        self.last_end
    }

    /// The time since the last request ended. If that lies in the future, because the clock stood still, it counts as
    /// infinitely long ago.
    #[inline]
    pub fn elapsed(&self, now: i64) -> u64 {
        now.wrapping_sub(self.last_end) as u64
    }

    /// A request has arrived. A think time of more than twice `clamp` counts as twice `clamp`.
    #[inline]
    pub fn arrived(&mut self, now: i64, clamp: i64) {
        let elapsed = self.elapsed(now).min(2 * clamp as u64);
        self.samples = (7 * self.samples + ONE) / 8;
        self.total = (7 * self.total + ONE * elapsed) / 8;
        self.mean = (self.total + ONE / 2) / self.samples;
    }

    /// The mean, once there are enough samples.
    #[inline]
    pub fn trusted_mean(&self) -> Option<i64> {
        (self.samples > TRUSTED_ABOVE).then_some(self.mean as i64)
    }

    /// Whether the mean is known to exceed `limit`.
    #[inline]
    pub fn exceeds(&self, limit: i64) -> bool {
        self.trusted_mean().is_some_and(|mean| mean > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_record_is_trusted_from_its_third_sample_on() {
        let mut record = ThinkTime::new(0);
        let mut counts = Vec::new();
        for sample in 1..=100 {
            record.arrived(0, 8 * MS);
            assert_eq!(record.trusted_mean().is_some(), sample >= 3);
            counts.push(record.samples);
        }
        assert_eq!(counts[..7], [32, 60, 84, 105, 123, 139, 153]);
        assert_eq!(counts[99], 249);
    }

    #[test]
    fn a_slow_thinker_loses_trust_at_the_fifth_sample_and_regains_it_at_the_ninth() {
        let mut record = ThinkTime::new(0);
        let mut now = 0;
        let mut means = Vec::new();
        for gap in [1, 1, 1, 20, 20, 20, 20, 1, 1, 1, 1] {
            now += gap * MS;
            record.arrived(now, 8 * MS);
            record.ended(now);
            means.push(record.mean as f64 / MS as f64);
        }
        let expected = [1.0, 1.0, 1.006, 5.58, 8.33, 10.13, 11.40, 9.45, 7.93, 6.74, 5.82];
        for (mean, expected) in means.iter().zip(expected) {
            assert!((mean - expected).abs() < 0.01, "{mean} is not {expected}");
        }
    }

    #[test]
    fn a_burst_without_completions_makes_an_old_record_slow_at_once() {
        let mut record = ThinkTime::new(0);
        for _ in 0..3 {
            record.arrived(1_000 * MS, 8 * MS);
        }
        assert!(record.exceeds(8 * MS));
    }

    #[test]
    fn after_three_zero_samples_a_6_ms_think_time_exceeds_4_at_the_seventh() {
        let mut record = ThinkTime::new(0);
        let (mut now, mut means) = (0, Vec::new());
        for gap in [0, 0, 0, 6, 6, 6, 6] {
            now += gap * MS;
            record.arrived(now, 8 * MS);
            record.ended(now);
            means.push(record.mean);
        }
        assert_eq!(means, [4, 2, 1, 1_828_572, 2_926_830, 3_647_482, 4_154_412]);
        let mut record = ThinkTime::new(0);
        (0..3).for_each(|_| record.arrived(5 * MS, 8 * MS));
        assert_eq!(record.trusted_mean(), Some(5_029_763));
    }

    #[test]
    fn an_end_that_lies_ahead_was_infinitely_long_ago() {
        let mut record = ThinkTime::new(101);
        record.arrived(100, 8 * MS);
        assert_eq!(record.mean / MS as u64, 16, "the clamp");
    }

    #[test]
    fn with_a_clamp_of_zero_every_sample_is_zero() {
        let mut record = ThinkTime::new(0);
        for now in [5, 50, 500, 5_000] {
            record.arrived(now * MS, 0);
        }
        assert_eq!(record.total, 0);
    }
}
