//! Pauses in which the buffer is not drained: one or several in a train, after so much time in which there was something to
//! program.

use hoistway_blk::{Instant, Nanos};

use super::parameters::DrainPauseParameters;
use crate::random::{Random, UniformTime, from_ms};

/// The most that counts at a time: while there is something to program, dies become free more often than that.
const LONGEST_STEP: Nanos = Nanos::from_millis(1);

#[derive(Clone, Debug)]
pub(super) struct Pause {
    /// Time with something to program before the next pause, or train of pauses.
    after: UniformTime,
    /// Pauses that follow each other, and time between them.
    train: u32,
    between: Nanos,
    /// How many of a train are still to come.
    train_left: u32,
    /// Time until the next pause.
    left: Nanos,
    /// When there was last something to program.
    seen: Instant,
    lasts: UniformTime,
    until: Instant,
}

impl Pause {
    pub(super) fn new(parameters: &DrainPauseParameters, random: &mut Random) -> Pause {
        let after = UniformTime::around(from_ms(parameters.after_ms), parameters.after_jitter_percent);
        let train = parameters.train.as_ref();
        let (train, between) = train.map_or((1, Nanos::ZERO), |train| (train.pauses, from_ms(train.between_ms)));
        Pause {
            after,
            train,
            between,
            train_left: train,
            left: after.draw(random),
            seen: Instant::ZERO,
            lasts: UniformTime::around(from_ms(parameters.lasts_ms), parameters.jitter_percent),
            until: Instant::ZERO,
        }
    }

    /// When the last pause ends or has ended.
    #[inline]
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Whether the buffer is not drained at `at`, when there is something to program.
    #[inline]
    pub(super) fn is_on(&mut self, at: Instant, random: &mut Random) -> bool {
        if self.until > at {
            return true;
        }
        let step = at.since(self.seen.max(self.until)).min(LONGEST_STEP);
        self.left = Nanos(self.left.0.saturating_sub(step.0));
        self.seen = self.seen.max(at);
        if self.left == Nanos::ZERO {
            self.begin(at, random);
        }
        self.until > at
    }

    fn begin(&mut self, at: Instant, random: &mut Random) {
        self.train_left -= 1;
        self.left = self.between;
        if self.train_left == 0 {
            self.train_left = self.train;
            self.left = self.after.draw(random);
        }
        self.until = at + self.lasts.draw(random);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::parameters::PauseTrainParameters;

    /// Three pauses of 1 ms with 2 ms between them, then none for 100 ms.
    fn pause(random: &mut Random) -> Pause {
        let parameters = DrainPauseParameters {
            after_ms: 100.0,
            after_jitter_percent: 0.0,
            lasts_ms: 1.0,
            jitter_percent: 0.0,
            train: Some(PauseTrainParameters { pauses: 3, between_ms: 2.0 }),
        };
        Pause::new(&parameters, random)
    }

    #[test]
    fn pauses_of_a_train_follow_each_other_and_then_none_comes_for_long() {
        let mut random = Random::from_seed(1);
        let mut pause = pause(&mut random);
        let begins: Vec<u64> = (1..330).filter(|&ms| pause.is_on(Instant(ms * 1_000_000), &mut random)).collect();
        assert_eq!(begins, [100, 103, 106, 207, 210, 213, 314, 317, 320]);
    }

    #[test]
    fn time_without_anything_to_program_does_not_count() {
        let mut random = Random::from_seed(1);
        let mut pause = pause(&mut random);
        // Something to program at one moment of each second: this counts for a millisecond each time.
        let begins: Vec<u64> = (1..110).filter(|&s| pause.is_on(Instant(s * 1_000_000_000), &mut random)).collect();
        assert_eq!(begins, [100, 102, 104]);
    }
}
