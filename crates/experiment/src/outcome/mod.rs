//! The outcome of a run.
//!
//! Used by: `run`.
//! Tests: `crates/experiment/tests/verdicts.rs`, `crates/experiment/tests/comparison.rs`.

pub(crate) mod document;

use std::fmt;

use hoistway_answer::document::Run;
use hoistway_sim::Fate;

/// The results of a run, except those that only its observer gets.
#[derive(Clone)]
pub struct RunOutcome {
    pub(crate) run: Run,
    /// Whether it was cancelled before its end.
    pub(crate) is_partial: bool,
    /// Whether a process did more I/Os than its log holds.
    pub(crate) is_log_cut: bool,
    /// Writes to `queue/` that were refused.
    pub(crate) refused: Vec<String>,
    /// The result of each write to `queue/`, in order.
    pub(crate) fates: Vec<Fate>,
}

impl RunOutcome {
    /// The run as stored in the document.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }
}

impl fmt::Debug for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOutcome").field("label", &self.run.variant.label).finish_non_exhaustive()
    }
}
