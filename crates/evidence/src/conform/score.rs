//! The score of a replay: shares of identical decisions, and the first differences.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// How many of the compared items are the same as in the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Matches {
    /// All compared items.
    pub total: u64,
    /// Those that are identical.
    pub identical: u64,
}

impl Matches {
    /// Counts an item.
    pub fn count(&mut self, is_identical: bool) {
        self.total += 1;
        self.identical += u64::from(is_identical);
    }

    /// Adds the counts of another recording.
    pub fn add(&mut self, other: Matches) {
        self.total += other.total;
        self.identical += other.identical;
    }

    /// The share of identical items; `None` if nothing was compared.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        share(self.identical, self.total)
    }
}

impl fmt::Display for Matches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.identical, self.total)
    }
}

/// Counts of dispatches and identical decisions. Shares are computed from summed counts, never averaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Score {
    /// Number of dispatch calls.
    pub questions: u64,
    /// Number of dispatch calls in which the kernel dispatched a request.
    pub dispatches: u64,
    /// Number of these in which we chose the same request.
    pub all: u64,
    /// Decisions with several candidates where neither a FIFO nor a one-way elevator makes the kernel's choice.
    pub hard: Matches,
    /// Decisions in which the kernel or we change the submitting process; identical if the process is the same.
    pub switch: Matches,
    /// Decisions in which the kernel or we dispatch nothing; identical if neither does.
    pub null: Matches,
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
        self.hard.share()
    }

    /// Share of identical processes in decisions that change the process.
    #[must_use]
    pub fn switch_share(&self) -> Option<f64> {
        self.switch.share()
    }

    /// Share of decisions in which both dispatch nothing.
    #[must_use]
    pub fn null_share(&self) -> Option<f64> {
        self.null.share()
    }

    /// Whether every decision was identical.
    #[must_use]
    pub fn is_perfect(&self) -> bool {
        self.all == self.dispatches && self.null.identical == self.null.total
    }

    /// Adds the counts of another recording.
    pub fn add(&mut self, other: &Score) {
        self.questions += other.questions;
        self.dispatches += other.dispatches;
        self.all += other.all;
        self.hard.add(other.hard);
        self.switch.add(other.switch);
        self.null.add(other.null);
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
    /// The rule of `docs/rules` by which we chose.
    pub rule: &'static str,
    /// The reason for our choice.
    pub reason: &'static str,
}

/// What made a choice of ours: a rule of `docs/rules`, and the reason in its words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct AppliedRule {
    /// Its number.
    pub rule: &'static str,
    /// The part of it that applied.
    pub reason: &'static str,
}

/// The result of one replay.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReplayOutcome {
    /// The counts.
    pub score: Score,
    /// The first decisions that differ.
    pub mismatches: Vec<Mismatch>,
    /// All decisions by the rule of our choice.
    pub rules: BTreeMap<AppliedRule, Matches>,
    /// Events of unknown kinds, which were skipped.
    pub unknown_events: u64,
    /// cfq: slice lengths set by the kernel.
    pub slices: Option<Matches>,
    /// bfq: recorded state lines, identical in order and value.
    pub state_lines: Option<Matches>,
    /// kyber: bios that the kernel merged into a staged request; identical if merged here, too.
    pub merges: Matches,
    /// kyber: tokens of requests.
    pub tokens: Matches,
    /// kyber: the replay with its own controller instead of recorded depths.
    pub own_controller: Option<OwnController>,
}

/// The result of a replay with our own controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnController {
    /// The counts of the decisions.
    pub score: Score,
    /// Percentiles: domain, kind, bucket, samples.
    pub latencies: Matches,
    /// Changes of a depth.
    pub depth_changes: Matches,
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
