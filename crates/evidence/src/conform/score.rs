//! The numbers of a replay: which shares of a kernel's decisions were met, and what the first misses looked like.

use serde::Serialize;

/// Counts of questions and agreements. Shares are computed from pooled counts, never averaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Score {
    /// Questions put to the scheduler.
    pub questions: u64,
    /// Questions that the kernel answered with a request.
    pub dispatches: u64,
    /// Of these, the same request was chosen.
    pub all: u64,
    /// Decisions with several candidates where neither a FIFO nor a one-way elevator is right.
    pub hard: (u64, u64),
    /// Decisions where the kernel or we change the submitting process: how many, and in how many the process is the
    /// same.
    pub switch: (u64, u64),
    /// Questions that the kernel or we decline: how many, and how many both decline.
    pub null: (u64, u64),
}

/// A fraction, or nothing if there was nothing to count.
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

    /// Share of identical processes where one changes.
    #[must_use]
    pub fn switch_share(&self) -> Option<f64> {
        share(self.switch.1, self.switch.0)
    }

    /// Share of common refusals.
    #[must_use]
    pub fn null_share(&self) -> Option<f64> {
        share(self.null.1, self.null.0)
    }

    /// Whether every decision was the same.
    #[must_use]
    pub fn is_perfect(&self) -> bool {
        self.all == self.dispatches && self.null.0 == self.null.1
    }

    /// Adds another recording's counts.
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
    /// When, ns since the first event.
    pub t_ns: u64,
    /// What was inside: the oldest requests first.
    pub inside: Vec<String>,
    /// How many more were inside.
    pub more: usize,
    /// What the kernel chose.
    pub kernel: String,
    /// What we chose.
    pub ours: String,
    /// Why.
    pub reason: &'static str,
}

/// The result of one replay.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// The counts.
    pub score: Score,
    /// The first decisions that differ.
    pub mismatches: Vec<Mismatch>,
    /// Events of unknown kinds, which were skipped.
    pub unknown_events: u64,
    /// cfq: slice lengths that the kernel set, as (equal ones, all of them).
    pub slices: Option<(u64, u64)>,
    /// bfq: lines about the inner state that are equal in order and value, and how many were recorded.
    pub state_lines: Option<(u64, u64)>,
    /// kyber: bios that the kernel merged into a staged request, and how many of them merged here.
    pub merges: (u64, u64),
    /// kyber: tokens that requests took, and how many of them were free here.
    pub tokens: (u64, u64),
    /// kyber: the replay with its own controller, not the recorded one, in charge of the depths.
    pub own_controller: Option<OwnController>,
}

/// What a replay with our own controller came to. Pairs are (identical, all of them).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnController {
    /// The counts of the decisions.
    pub score: Score,
    /// Percentiles that were read: domain, kind, bucket, samples.
    pub latencies: (u64, u64),
    /// Changes of a depth.
    pub depth_changes: (u64, u64),
}

/// How many mismatches are kept.
pub const MISMATCHES_KEPT: usize = 5;

impl Outcome {
    /// Keeps a mismatch if it is among the first.
    pub fn note(&mut self, mismatch: impl FnOnce() -> Mismatch) {
        if self.mismatches.len() < MISMATCHES_KEPT {
            self.mismatches.push(mismatch());
        }
    }
}
