//! Pauses in which the buffer is not drained: after so much was written, one or several in a train.

use hoistway_blk::{Instant, Nanos};

use super::parameters::DrainPauseParameters;
use crate::random::{Random, UniformTime, from_ms};

#[derive(Clone, Debug)]
pub(super) struct Pause {
    /// Bytes before the next pause, or train of pauses; drawn as times are.
    after: UniformTime,
    /// Each write counts for so many more.
    command_bytes: u64,
    /// Pauses that follow each other, and bytes between them.
    train: u64,
    between: u64,
    /// How many of a train are still to come.
    train_left: u64,
    /// Bytes until the next pause.
    left: u64,
    lasts: UniformTime,
    until: Instant,
}

impl Pause {
    pub(super) fn new(parameters: &DrainPauseParameters, random: &mut Random) -> Pause {
        let after = UniformTime::around(Nanos(bytes_of_mb(parameters.after_mb)), parameters.after_jitter_percent);
        let (train, between) =
            parameters.train.as_ref().map_or((1, 0), |train| (u64::from(train.pauses), bytes_of_mb(train.between_mb)));
        Pause {
            after,
            command_bytes: (parameters.command_kib * 1024.0) as u64,
            train,
            between,
            train_left: train,
            left: after.draw(random).0,
            lasts: UniformTime::around(from_ms(parameters.lasts_ms), parameters.jitter_percent),
            until: Instant::ZERO,
        }
    }

    /// A write has come.
    #[inline]
    pub(super) fn count(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes + self.command_bytes);
    }

    /// When the last pause ends or has ended.
    #[inline]
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Whether the buffer is not drained at `at`.
    #[inline]
    pub(super) fn is_on(&mut self, at: Instant, random: &mut Random) -> bool {
        if self.until <= at && self.left == 0 {
            self.begin(at, random);
        }
        self.until > at
    }

    fn begin(&mut self, at: Instant, random: &mut Random) {
        self.train_left -= 1;
        self.left = self.between;
        if self.train_left == 0 {
            self.train_left = self.train;
            self.left = self.after.draw(random).0;
        }
        self.until = at + self.lasts.draw(random);
    }
}

/// Bytes are drawn as times are.
fn bytes_of_mb(mb: f64) -> u64 {
    (mb * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::parameters::PauseTrainParameters;

    #[test]
    fn pauses_of_a_train_follow_each_other_and_then_none_comes_for_long() {
        let parameters = DrainPauseParameters {
            after_mb: 100.0,
            after_jitter_percent: 0.0,
            command_kib: 0.0,
            lasts_ms: 1.0,
            jitter_percent: 0.0,
            train: Some(PauseTrainParameters { pauses: 3, between_mb: 2.0 }),
        };
        let mut random = Random::from_seed(1);
        let mut pause = Pause::new(&parameters, &mut random);
        let mut megabytes = Vec::new();
        // A megabyte in each of these milliseconds that are no pause.
        let mut written = 0;
        for ms in 0..400 {
            if pause.is_on(Instant(ms * 1_000_000), &mut random) {
                megabytes.push(written);
            } else {
                written += 1;
                pause.count(1_000_000);
            }
        }
        assert_eq!(megabytes, [100, 102, 104, 204, 206, 208, 308, 310, 312]);
    }
}
