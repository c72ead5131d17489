//! Observing and cancelling a search.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hoistway_answer::tuning::TuneRun;
use hoistway_sim::Control;

use crate::error::Error;
use crate::observer::Unobserved;

/// Is notified of a search.
pub trait SearchObserver: Sync {
    /// Called once, with a handle that ends the current runs early. [`goes_on`](SearchObserver::goes_on) must return false by then.
    fn begins(&self, cancel: Cancel) {
        let _ = cancel;
    }

    /// Called before and after every run; returning false ends the search. It can be resumed with the runs that were reported.
    fn goes_on(&self) -> bool {
        true
    }

    /// Called after every batch with all runs so far, and the least number of runs in all.
    fn ran(&self, runs: &[TuneRun], planned: u64) {
        let _ = (runs, planned);
    }
}

impl SearchObserver for Unobserved {}

/// Ends the current runs of a search.
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
    /// The observer ended it.
    #[error("the search ended before it found a setting")]
    Ended,
}
