//! The pace of a process: think times, rate limits, balance; and when its next I/O is due.
//!
//! Used by: `process`, `description`; crates `fio`, `experiment`.
//! Tests: below, `crates/load/tests/process.rs`, `crates/load/tests/replays.rs`.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::Nanos;
use serde::{Deserialize, Serialize};

use crate::io::lane_of;
use crate::replay::Pause;
use crate::stream::{Purpose, Stream};

/// The pace of a process, if not only its depth limits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// Pauses between I/Os.
    pub think: Option<Think>,
    /// Rate limits.
    pub rate: Option<Rate>,
    /// Its part in a balance between processes.
    pub flow: Option<Flow>,
}

/// Think times of a process. Before a pause it waits for its outstanding I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Think {
    /// Length of a pause, without `spin`.
    pub sleep: Nanos,
    /// How long the process keeps its CPU busy before it sleeps.
    pub spin: Nanos,
    /// I/Os between two pauses; 0 for pauses by time only.
    pub blocks: u32,
    /// Time between two pauses; zero for pauses by I/Os only. With both, whichever comes first.
    pub io_time: Nanos,
    /// Whether a rate limit ignores the time of pauses, instead of making up for it.
    pub is_lost_to_rate: bool,
    /// Which I/Os count.
    pub counting: ThinkBlocks,
}

impl Default for Think {
    /// No pause, after each I/O.
    fn default() -> Self {
        let (sleep, spin, io_time) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        Think { sleep, spin, blocks: 1, io_time, is_lost_to_rate: false, counting: ThinkBlocks::Completed }
    }
}

/// Which I/Os count towards a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkBlocks {
    /// Completed I/Os.
    #[default]
    Completed,
    /// Issued I/Os.
    Issued,
}

/// The share of a process in a balance: the I/Os of all processes with the same `id` are in proportion to their
/// weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The number of the balance.
    pub id: u32,
    /// At least 1.
    pub weight: u32,
    /// How long a process that is ahead sleeps before it tries again; zero to sleep until it may continue.
    pub sleep: Nanos,
}

/// Rate limits of a process for reads, writes and trims; 0 is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The limits per second.
    pub limits: RateLimits,
    /// The distribution of the gaps between I/Os.
    pub process: RateProcess,
}

/// The unit of a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateLimits {
    /// Bytes per second.
    Bytes([u64; 3]),
    /// I/Os per second.
    Ios([u64; 3]),
}

/// The distribution of the gaps between I/Os of a limited rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateProcess {
    /// Equal gaps.
    #[default]
    Linear,
    /// Exponentially: a Poisson process.
    Poisson,
}

/// Computes when the next I/O of a process with a rate limit, or of a replay with pauses, is due. Times count from the start
/// of the process. As in fio, a process that is late catches up, and each direction of a mix has its own rate. A process that
/// is early first waits for all its outstanding I/O, then for the time.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Reads, writes, trims.
    lanes: [RateState; 3],
    process: RateProcess,
    stream: Stream,
    /// When the last I/O was issued.
    last: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct RateState {
    /// Units (bytes or I/Os) per second; 0 for no limit.
    per_second: u64,
    /// Units per I/O: 0 if its bytes count.
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
        let lane = |per_second: u64| RateState {
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
            last: Nanos::ZERO,
        }
    }

    /// For a replay, whose I/Os have their own pauses.
    pub(crate) fn for_replay() -> Pacer {
        Pacer::new(Rate { limits: RateLimits::Ios([0; 3]), process: RateProcess::Linear }, 0, 0, 0)
    }

    /// When the next I/O, of this kind and with this pause ([`Generator::pause`](crate::Generator::pause)), may be issued, from the
    /// start of the process. A rate never holds back a flush. As in fio, a replay does not make up for the time that an I/O took
    /// beyond its pause.
    #[must_use]
    pub fn due(&self, op: Op, pause: Option<Pause>) -> Nanos {
        match pause {
            Some(Pause::After(gap)) => Nanos(self.last.0.saturating_add(gap.0)),
            Some(Pause::Until(at)) => at,
            Some(Pause::Program(_)) | None => lane_of(op).map_or(Nanos::ZERO, |lane| self.lanes[lane].due),
        }
    }

    /// An I/O of `bytes` was issued `now`.
    pub fn issued(&mut self, op: Op, bytes: u32, now: Nanos) {
        self.last = now;
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
        assert_eq!(pacer.due(Op::Read, None), Nanos::ZERO);
        for i in 1..=10 {
            pacer.issued(Op::Read, 4096, Nanos::ZERO);
            assert_eq!(pacer.due(Op::Read, None), Nanos::from_millis(5 * i));
        }
        pacer.issued(Op::Write, 4096, Nanos::ZERO);
        assert_eq!(pacer.due(Op::Write, None), Nanos::ZERO);
    }

    #[test]
    fn a_rate_in_bytes_counts_bytes() {
        let mut pacer = rate(RateLimits::Bytes([0, 1_000_000, 0]), RateProcess::Linear);
        pacer.issued(Op::Write, 500_000, Nanos::ZERO);
        assert_eq!(pacer.due(Op::Write, None), Nanos::from_millis(500));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_the_rate() {
        let mut pacer = rate(RateLimits::Ios([200, 0, 0]), RateProcess::Poisson);
        let mut gaps = Vec::new();
        for _ in 0..20_000 {
            let before = pacer.due(Op::Read, None);
            pacer.issued(Op::Read, 4096, Nanos::ZERO);
            gaps.push((pacer.due(Op::Read, None).0 - before.0) as f64 / 1e6);
        }
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 5.0).abs() < 0.15 && (variance.sqrt() - 5.0).abs() < 0.25, "{mean} {variance}");
    }
}
