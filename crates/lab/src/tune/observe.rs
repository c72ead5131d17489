//! Whoever watches a search, and how it may end without having found anything.

use hoistway_results::tuning::TuneRun;

use crate::error::Error;
use crate::watch::Unwatched;

/// Whoever watches a search.
pub trait Observe: Sync {
    /// Whether it is to go on: asked before every run. What was ended can be taken up again with the runs that were told.
    fn goes_on(&self) -> bool {
        true
    }

    /// Is told, after every batch, all runs until now, and how many there will be at least.
    fn ran(&self, runs: &[TuneRun], planned: u64) {
        let _ = (runs, planned);
    }
}

impl Observe for Unwatched {}

/// Why a search found nothing.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// It cannot be.
    #[error(transparent)]
    Cannot(#[from] Error),
    /// Whoever watches ended it.
    #[error("the search was ended before it found anything")]
    Ended,
}
