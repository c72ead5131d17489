//! Whoever watches a search, and how it may end without having found anything.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hoistway_answer::tuning::TuneRun;
use hoistway_sim::Control;

use crate::error::Error;
use crate::watch::Unwatched;

/// Whoever watches a search.
pub trait Observe: Sync {
    /// Is told, once, how to end the runs under way, for whoever ends the search: [`goes_on`](Observe::goes_on) has to say no by then.
    fn begins(&self, cancel: Cancel) {
        let _ = cancel;
    }

    /// Whether it is to go on: asked before and after every run. What was ended can be taken up again with the runs that were told.
    fn goes_on(&self) -> bool {
        true
    }

    /// Is told, after every batch, all runs until now, and how many there will be at least.
    fn ran(&self, runs: &[TuneRun], planned: u64) {
        let _ = (runs, planned);
    }
}

impl Observe for Unwatched {}

/// Ends the runs of a search that are under way.
#[derive(Clone, Debug)]
pub struct Cancel(pub(super) Arc<Control>);

impl Cancel {
    /// Ends them, and those that begin, early: their figures are worth nothing then.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Why a search found nothing.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// It cannot be.
    #[error(transparent)]
    Cannot(#[from] Error),
    /// Whoever watches ended it.
    #[error("the search ended before it found a setting")]
    Ended,
}
