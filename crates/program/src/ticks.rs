//! Coarse clocks: arrival times within a tick are unknown, so a replay draws them at random (RP32).
//!
//! Used by: `replay`, `infer`, `gather`.
//! Tests: below.

use std::collections::VecDeque;
use std::io;

use hoistway_blk::ground::Nanos;
use hoistway_load::{Purpose, Stream, When};

use crate::steps::{Step, Steps};

/// Maximum length of a tick that does not count as coarse, in nanoseconds.
const FINE_NS: u64 = 100_000;
/// A tick matters only if at least one of this many I/Os has the same time as the previous one.
const IOS_PER_SHARED: u64 = 10;

/// Estimates the tick of a clock from the gaps between times.
#[derive(Debug, Default)]
pub(crate) struct TickEstimate {
    last_ns: Option<u64>,
    /// Greatest common divisor of all gaps; 0 before the first one.
    tick_ns: u64,
    gaps: u64,
    /// Number of gaps of zero.
    shared: u64,
}

impl TickEstimate {
    #[inline]
    pub(crate) fn add_time(&mut self, time_ns: u64) {
        let Some(last_ns) = self.last_ns.replace(time_ns) else { return };
        let gap_ns = time_ns.abs_diff(last_ns);
        self.gaps += 1;
        self.shared += u64::from(gap_ns == 0);
        if self.tick_ns == 0 || self.tick_ns > FINE_NS {
            self.tick_ns = common_divisor(self.tick_ns, gap_ns);
        }
    }

    /// The clock, if it is coarse and that matters; else `None`.
    pub(crate) fn coarse(&self) -> Option<CoarseClock> {
        let is_coarse = self.tick_ns > FINE_NS && self.shared * IOS_PER_SHARED > self.gaps;
        is_coarse.then(|| CoarseClock { length_ns: self.tick_ns, shared: self.shared as f64 / self.gaps as f64 })
    }
}

fn common_divisor(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// A coarse clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoarseClock {
    /// Length of a tick, in nanoseconds.
    pub length_ns: u64,
    /// The share of I/Os in the same tick as the previous one.
    pub shared: f64,
}

/// Moves steps with fixed times to uniformly random times within their tick. Their order is kept.
pub(crate) struct TimeSpread {
    steps: Steps,
    /// Reads each tick before its steps are returned.
    lookahead: std::iter::Peekable<Steps>,
    draws: VecDeque<u64>,
    tick_ns: u64,
    random: Stream,
}

impl TimeSpread {
    pub(crate) fn new(steps: Steps, tick_ns: u64, seed: u64) -> TimeSpread {
        let (lookahead, random) = (steps.clone().peekable(), Stream::new(seed, 0, Purpose::Records));
        TimeSpread { steps, lookahead, draws: VecDeque::new(), tick_ns, random }
    }

    /// Draws a time for each step of the next tick.
    fn draw(&mut self) {
        let Some(first) = self.lookahead.next() else { return };
        let time = |step: &io::Result<Step>| match step {
            Ok(Step { when: When::At(at), .. }) => Some(*at),
            _ => None,
        };
        let mut count = 1;
        if let Some(at) = time(&first) {
            while self.lookahead.next_if(|next| time(next) == Some(at)).is_some() {
                count += 1;
            }
        }
        let mut draws: Vec<u64> = (0..count).map(|_| self.random.below(self.tick_ns)).collect();
        draws.sort_unstable();
        self.draws = draws.into();
    }
}

impl Iterator for TimeSpread {
    type Item = io::Result<Step>;

    fn next(&mut self) -> Option<io::Result<Step>> {
        let mut step = self.steps.next()?;
        if self.draws.is_empty() {
            self.draw();
        }
        let draw = self.draws.pop_front().unwrap_or(0);
        if let Ok(Step { when: When::At(at), .. }) = &mut step {
            *at = Nanos(at.0.saturating_add(draw));
        }
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_coarse_if_its_ticks_are_long_and_shared() {
        let of = |times: &[u64]| {
            let mut clock = TickEstimate::default();
            times.iter().for_each(|time_ns| clock.add_time(*time_ns));
            clock.coarse()
        };
        let second = 1_000_000_000;
        let coarse = of(&[5 * second, 5 * second, 7 * second, 9 * second, 8 * second]);
        assert_eq!(coarse, Some(CoarseClock { length_ns: second, shared: 0.25 }));
        assert_eq!(of(&[0, second, 2 * second]), None, "nothing is shared");
        assert_eq!(of(&[0, 0, 100_000, 200_000]), None, "it is fine");
        assert_eq!(of(&[0, 0, second, second + 1]), None);
        assert_eq!(of(&[]), None);
    }
}
