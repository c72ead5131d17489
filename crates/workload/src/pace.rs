//! When the next I/O of a process with a limited rate is due.

use std::sync::Arc;

use hoistway_blk::{Nanos, Op};

use crate::generator::{Purpose, Stream, lane_of};
use crate::replay::{Pause, Replay};
use crate::workload::{Rate, RateLimits, RateProcess};

/// Tells when the next I/O of a process with `rate` or `rate_iops` is due. Times count from the start of the
/// job. As in fio, a job that is late catches up, and each direction of a mix has a rate of its own. A job that
/// is early first waits for all its outstanding I/O, then for the time.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Reads, writes, trims.
    lanes: [Lane; 3],
    process: RateProcess,
    stream: Stream,
    /// The pauses of a log instead.
    replay: Option<Replayed>,
}

/// Where a replay is.
#[derive(Clone, Debug)]
struct Replayed {
    replay: Arc<Replay>,
    next: usize,
    /// When the last I/O was issued.
    last: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Units (bytes or I/Os) per second; 0 for no limit.
    per_second: u64,
    /// Units in an I/O: 0 if its bytes count.
    fixed: u64,
    /// Mean gap of a Poisson process.
    gap_ns: f64,
    issued: u64,
    due: Nanos,
}

impl Pacer {
    pub(crate) fn new(rate: Rate, block_bytes: u32, seed: u64, process: u32) -> Pacer {
        let (limits, fixed) = match rate.limits {
            RateLimits::Bytes(limits) => (limits, 0),
            RateLimits::Ios(limits) => (limits, 1),
        };
        let units = if fixed == 0 { f64::from(block_bytes) } else { 1.0 };
        let lane = |per_second: u64| Lane {
            per_second,
            fixed,
            gap_ns: units * 1e9 / per_second.max(1) as f64,
            issued: 0,
            due: Nanos::ZERO,
        };
        Pacer {
            lanes: limits.map(lane),
            process: rate.process,
            stream: Stream::new(seed, u64::from(process), Purpose::Pace),
            replay: None,
        }
    }

    /// Of a replay that keeps the pauses of its log. As in fio, time that an I/O took beyond its pause is not made up
    /// for.
    pub(crate) fn of_replay(replay: &Arc<Replay>) -> Pacer {
        let rate = Rate { limits: RateLimits::Ios([0; 3]), process: RateProcess::Linear };
        let replayed = Replayed { replay: Arc::clone(replay), next: 0, last: Nanos::ZERO };
        Pacer { replay: Some(replayed), ..Pacer::new(rate, 0, 0, 0) }
    }

    /// When the next I/O of this kind may be issued, from the start of the job. A flush is never held back.
    #[must_use]
    pub fn due(&self, op: Op) -> Nanos {
        if let Some(replayed) = &self.replay {
            return match replayed.replay.records.get(replayed.next).map(|record| record.pause) {
                Some(Pause::After(gap)) => Nanos(replayed.last.0.saturating_add(gap.0)),
                Some(Pause::Until(at)) => at,
                None => Nanos::ZERO,
            };
        }
        lane_of(op).map_or(Nanos::ZERO, |lane| self.lanes[lane].due)
    }

    /// Which direction of a mix goes next, when the draw was `wanted`, and when: if that one is not yet due,
    /// the one that is due first.
    #[must_use]
    pub fn choose(&self, wanted: Op, now: Nanos) -> (Op, Nanos) {
        let other = match wanted {
            Op::Read => Op::Write,
            Op::Write => Op::Read,
            other => other,
        };
        let (due, other_due) = (self.due(wanted), self.due(other));
        if due <= now || due <= other_due { (wanted, due.max(now)) } else { (other, other_due.max(now)) }
    }

    /// An I/O of `bytes` was issued `now`.
    pub fn issued(&mut self, op: Op, bytes: u32, now: Nanos) {
        if let Some(replayed) = &mut self.replay {
            replayed.next += 1;
            replayed.last = now;
            return;
        }
        let Some(lane) = lane_of(op).map(|lane| &mut self.lanes[lane]).filter(|lane| lane.per_second > 0) else {
            return;
        };
        lane.issued += if lane.fixed > 0 { lane.fixed } else { u64::from(bytes) };
        lane.due = match self.process {
            RateProcess::Linear => {
                let ns = u128::from(lane.issued) * 1_000_000_000 / u128::from(lane.per_second);
                Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
            }
            RateProcess::Poisson => {
                // 1 - u is never 0, so that the gap is finite.
                let gap_ns = -libm::log(1.0 - self.stream.fraction()) * lane.gap_ns;
                lane.due + Nanos(gap_ns as u64)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(limits: RateLimits, process: RateProcess) -> Pacer {
        Pacer::new(Rate { limits, process }, 4096, 7, 0)
    }

    #[test]
    fn a_linear_rate_is_evenly_spaced_and_catches_up() {
        let mut pacer = rate(RateLimits::Ios([200, 0, 0]), RateProcess::Linear);
        assert_eq!(pacer.due(Op::Read), Nanos::ZERO);
        for i in 1..=10 {
            pacer.issued(Op::Read, 4096, Nanos::ZERO);
            assert_eq!(pacer.due(Op::Read), Nanos::from_millis(5 * i));
        }
        pacer.issued(Op::Write, 4096, Nanos::ZERO);
        assert_eq!(pacer.due(Op::Write), Nanos::ZERO);
    }

    #[test]
    fn a_rate_in_bytes_counts_bytes() {
        let mut pacer = rate(RateLimits::Bytes([0, 1_000_000, 0]), RateProcess::Linear);
        pacer.issued(Op::Write, 500_000, Nanos::ZERO);
        assert_eq!(pacer.due(Op::Write), Nanos::from_millis(500));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_the_rate() {
        let mut pacer = rate(RateLimits::Ios([200, 0, 0]), RateProcess::Poisson);
        let mut gaps = Vec::new();
        for _ in 0..20_000 {
            let before = pacer.due(Op::Read);
            pacer.issued(Op::Read, 4096, Nanos::ZERO);
            gaps.push((pacer.due(Op::Read).0 - before.0) as f64 / 1e6);
        }
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 5.0).abs() < 0.15 && (variance.sqrt() - 5.0).abs() < 0.25, "{mean} {variance}");
    }

    #[test]
    fn a_mix_switches_to_the_direction_that_is_due() {
        let mut pacer = rate(RateLimits::Ios([100, 100, 0]), RateProcess::Linear);
        assert_eq!(pacer.choose(Op::Read, Nanos::ZERO), (Op::Read, Nanos::ZERO));
        pacer.issued(Op::Read, 4096, Nanos::ZERO);
        assert_eq!(pacer.choose(Op::Read, Nanos::ZERO), (Op::Write, Nanos::ZERO));
        pacer.issued(Op::Write, 4096, Nanos::ZERO);
        assert_eq!(pacer.choose(Op::Read, Nanos::ZERO), (Op::Read, Nanos::from_millis(10)));
    }
}
