//! The score of a replay: shares of identical decisions, and the first differences.

use serde::Serialize;

/// Counts of dispatches and identical decisions. Shares are computed from summed counts, never averaged. Pairs are
/// (all, identical).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Score {
    /// Number of dispatch calls.
    pub questions: u64,
    /// Number of dispatch calls in which the kernel dispatched a request.
    pub dispatches: u64,
    /// Number of these in which we chose the same request.
    pub all: u64,
    /// Decisions with several candidates where neither a FIFO nor a one-way elevator makes the kernel's choice.
    pub hard: (u64, u64),
    /// Decisions in which the kernel or we change the submitting process; identical if the process is the same.
    pub switch: (u64, u64),
    /// Decisions in which the kernel or we dispatch nothing; identical if neither does.
    pub null: (u64, u64),
}

/// A fraction; `None` if `whole` is zero.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Score {
    /// Share of identical requests.
    #[must_use]
    pub fn all_share(&self) -> Option<f64> {
        share(self.all, self.dispatches)
    }

    /// Share of identical requests among the hard decisions.
    #[must_use]
    pub fn hard_share(&self) -> Option<f64> {
        share(self.hard.1, self.hard.0)
    }

    /// Share of identical processes in decisions that change the process.
    #[must_use]
    pub fn switch_share(&self) -> Option<f64> {
        share(self.switch.1, self.switch.0)
    }

    /// Share of decisions in which both dispatch nothing.
    #[must_use]
    pub fn null_share(&self) -> Option<f64> {
        share(self.null.1, self.null.0)
    }

    /// Whether every decision was identical.
    #[must_use]
    pub fn is_perfect(&self) -> bool {
        self.all == self.dispatches && self.null.0 == self.null.1
    }

    /// Adds the counts of another recording.
    pub fn add(&mut self, other: &Score) {
        let pair = |one: &mut (u64, u64), other: (u64, u64)| *one = (one.0 + other.0, one.1 + other.1);
        self.questions += other.questions;
        self.dispatches += other.dispatches;
        self.all += other.all;
        pair(&mut self.hard, other.hard);
        pair(&mut self.switch, other.switch);
        pair(&mut self.null, other.null);
    }
}

/// A decision that differs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Mismatch {
    /// Line of the recording.
    pub line: u64,
    /// Time of the decision, ns since the first event.
    pub t_ns: u64,
    /// Requests in the scheduler, oldest first.
    pub inside: Vec<String>,
    /// Number of further requests in the scheduler.
    pub more: usize,
    /// The kernel's choice.
    pub kernel: String,
    /// Our choice.
    pub ours: String,
    /// The reason for our choice.
    pub reason: &'static str,
}

/// The result of one replay.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReplayOutcome {
    /// The counts.
    pub score: Score,
    /// The first decisions that differ.
    pub mismatches: Vec<Mismatch>,
    /// Events of unknown kinds, which were skipped.
    pub unknown_events: u64,
    /// cfq: slice lengths set by the kernel, as (identical, total).
    pub slices: Option<(u64, u64)>,
    /// bfq: state lines, as (identical in order and value, recorded).
    pub state_lines: Option<(u64, u64)>,
    /// kyber: bios merged into a staged request, as (merged here, merged by the kernel).
    pub merges: (u64, u64),
    /// kyber: tokens of requests, as (identical, total).
    pub tokens: (u64, u64),
    /// kyber: the replay with its own controller instead of recorded depths.
    pub own_controller: Option<OwnController>,
}

/// The result of a replay with our own controller. Pairs are (identical, total).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnController {
    /// The counts of the decisions.
    pub score: Score,
    /// Percentiles: domain, kind, bucket, samples.
    pub latencies: (u64, u64),
    /// Changes of a depth.
    pub depth_changes: (u64, u64),
}

/// Maximum number of mismatches that are kept.
pub const MISMATCHES_KEPT: usize = 5;

impl ReplayOutcome {
    /// Keeps a mismatch if fewer than [`MISMATCHES_KEPT`] are kept.
    pub fn note(&mut self, mismatch: impl FnOnce() -> Mismatch) {
        if self.mismatches.len() < MISMATCHES_KEPT {
            self.mismatches.push(mismatch());
        }
    }
}
