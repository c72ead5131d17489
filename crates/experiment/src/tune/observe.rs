//! Observing and cancelling a search.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hoistway_answer::tuning::TuneRun;
use hoistway_sim::Control;

use crate::comparison::error::Error;
use crate::comparison::observer::Unobserved;

/// Receives notifications of a search.
pub trait SearchObserver: Sync {
    /// Called once, with a handle that ends the current runs early. Before it is used, [`goes_on`](SearchObserver::goes_on) must
    /// return false.
    fn begins(&self, cancel: Cancel) {
        let _ = cancel;
    }

    /// Called before and after every run; returning false ends the search. It can be resumed with the runs that were reported.
    fn goes_on(&self) -> bool {
        true
    }

    /// Called after every batch with all runs so far and the minimum number of runs in total.
    fn ran(&self, runs: &[TuneRun], planned: u64) {
        let _ = (runs, planned);
    }
}

impl SearchObserver for Unobserved {}

/// Ends the current runs of a search.
#[derive(Clone, Debug)]
pub struct Cancel(pub(super) Arc<Control>);

impl Cancel {
    /// Ends the current runs, and those that begin later, early: their figures are then invalid.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The search is invalid.
    #[error(transparent)]
    Cannot(#[from] Error),
    /// The observer ended it.
    #[error("the search ended before it found a setting")]
    Ended,
}
