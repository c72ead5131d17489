//! Consistency check of a result document against its own runs: detects files that were truncated or edited.
//!
//! Used by: `tuning`.
//! Tests: `crates/answer/tests/integrity.rs`.

use std::collections::BTreeSet;

use crate::analysis::Analysis;
use crate::diff::first_difference;
use crate::document::{REVISION, ResultsDocument, Statistics};

/// A contradiction within a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result document contradicts itself: {field} {problem}; it was edited or assembled from other documents")]
pub struct Contradiction {
    /// The path of the key, such as `runs[2].seed`.
    pub field: String,
    /// What is wrong with the key, as the rest of a sentence.
    pub problem: String,
}

impl ResultsDocument {
    /// Checks that the parts of a document from elsewhere agree: seeds and repeats of runs, and its statistics if this version wrote it.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), Contradiction> {
        let contradiction = |field: String, problem: String| Err(Contradiction { field, problem });
        let mut seen = BTreeSet::new();
        for (index, run) in self.runs.iter().enumerate() {
            let key = |key: &str| format!("runs[{index}].{key}");
            if !self.seeds.is_empty() && self.seeds.get(run.repeat as usize) != Some(&run.seed) {
                return contradiction(key("seed"), format!("is not the seed of repeat {} in `seeds`", run.repeat));
            }
            let run_identity = (
                &run.scheduler,
                run.front,
                run.variant.label.as_str(),
                serde_json::to_string(&run.tunables).unwrap_or_default(),
                run.setup,
            );
            if !seen.insert((run_identity, run.repeat)) {
                return contradiction(key("repeat"), format!("is {} twice under {}", run.repeat, run.scheduler));
            }
        }
        if self.revision != REVISION || self.version != env!("CARGO_PKG_VERSION") {
            return Ok(());
        }
        let Some(statistics) = &self.statistics else { return Ok(()) };
        let stored = serde_json::to_value(statistics).unwrap_or_default();
        let computed = serde_json::to_value(Statistics::of(&Analysis::of(self))).unwrap_or_default();
        match first_difference("statistics", &stored, &computed) {
            Some((field, stored, computed)) => {
                contradiction(field, format!("is {stored}, but its runs say {computed}"))
            }
            None => Ok(()),
        }
    }
}
