//! Whether a document is what it says: files are cut, and edited.

use std::collections::BTreeSet;

use crate::analysis::Analysis;
use crate::diff::first_difference;
use crate::document::{REVISION, ResultsDocument, Statistics};

/// Where a document contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result document contradicts itself: {field} {problem}; it was edited, or put together from others")]
pub struct Contradiction {
    /// The key, with its place.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl ResultsDocument {
    /// Whether its parts fit each other, if it comes from elsewhere: seeds and repeats of runs, and, if this version wrote it, its statistics.
    ///
    /// # Errors
    /// The first part that does not.
    pub fn check(&self) -> Result<(), Contradiction> {
        let wrong = |field: String, problem: String| Err(Contradiction { field, problem });
        let mut seen = BTreeSet::new();
        for (place, run) in self.runs.iter().enumerate() {
            let key = |key: &str| format!("runs[{place}].{key}");
            if !self.seeds.is_empty() && self.seeds.get(run.repeat as usize) != Some(&run.seed) {
                return wrong(key("seed"), format!("is not that of repeat {} in `seeds`", run.repeat));
            }
            let of_run = (
                &run.scheduler,
                run.front,
                run.variant.label.as_str(),
                serde_json::to_string(&run.tunables).unwrap_or_default(),
                run.setup,
            );
            if !seen.insert((of_run, run.repeat)) {
                return wrong(key("repeat"), format!("is {} twice under {}", run.repeat, run.scheduler));
            }
        }
        if self.revision != REVISION || self.version != env!("CARGO_PKG_VERSION") {
            return Ok(());
        }
        let Some(statistics) = &self.statistics else { return Ok(()) };
        let stored = serde_json::to_value(statistics).unwrap_or_default();
        let computed = serde_json::to_value(Statistics::of(&Analysis::of(self))).unwrap_or_default();
        match first_difference("statistics", &stored, &computed) {
            Some((field, stored, computed)) => wrong(field, format!("is {stored}, but its runs say {computed}")),
            None => Ok(()),
        }
    }
}
