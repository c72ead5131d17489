//! A search that can be resumed: its runs, and everything that they depend on.

use hoistway_answer::tuning::TuneRun;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Search;
use super::evaluate::Evaluator;
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::sweep::VERSION;

/// The value of [`SearchState::format`].
const FORMAT: &str = "hoistway-tune-state/1";

/// The runs of a search, with everything that their figures depend on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchState {
    format: String,
    version: String,
    search: Search,
    job_text: String,
    device: Value,
    host: Value,
    /// The runs so far.
    pub runs: Vec<TuneRun>,
}

impl SearchState {
    /// The state of a search before its first run.
    ///
    /// # Errors
    /// If the search's comparison is invalid.
    pub fn of(search: &Search, environment: &dyn CallerEnvironment) -> Result<SearchState, Error> {
        let evaluator = Evaluator::new(&search.comparison, environment)?;
        let setup = evaluator.plan.setups[0].summary()?;
        let state = SearchState {
            format: FORMAT.to_owned(),
            version: VERSION.to_owned(),
            search: search.clone(),
            job_text: evaluator.plan.load.text.clone(),
            device: setup.device,
            host: setup.host,
            runs: Vec::new(),
        };
        // A round trip through JSON, so that comparisons with a saved state are exact.
        serde_json::to_string(&state).and_then(|text| serde_json::from_str(&text)).about(Field::Load)
    }

    /// Takes over the runs of a saved state if it belongs to this search. Only the budget may differ.
    ///
    /// # Errors
    /// If the text is not such a state; the error names the field that is invalid or differs.
    pub fn resume_from(&mut self, text: &str) -> Result<(), String> {
        let expected = "expected the state of an earlier run of the same search";
        let saved: SearchState = serde_json::from_str(text).map_err(|error| format!("{error} ({expected})"))?;
        let saved_search = &saved.search;
        let same_budget = Search { budget: self.search.budget, ..saved_search.clone() };
        let fields = [
            ("format", saved.format == self.format),
            ("version", saved.version == self.version),
            ("search.objective", saved_search.objective == self.search.objective),
            ("search.vary", saved_search.vary == self.search.vary),
            ("search.comparison", saved_search.comparison == self.search.comparison),
            ("search", same_budget == self.search),
            ("job_text", saved.job_text == self.job_text),
            ("device", saved.device == self.device),
            ("host", saved.host == self.host),
        ];
        if let Some((field, _)) = fields.into_iter().find(|(_, is_same)| !is_same) {
            return Err(format!("`{field}` differs from this search ({expected}, or another file)"));
        }
        let figures = self.search.objective.figures();
        for (index, run) in saved.runs.iter().enumerate() {
            if let Some(name) = run.figures.keys().find(|name| !figures.contains(name)) {
                return Err(format!(
                    "`runs[{index}].figures` has {name}, which the objective does not name ({expected})"
                ));
            }
            if run.figures.values().any(|value| !value.is_finite() || *value < 0.0) {
                return Err(format!(
                    "`runs[{index}].figures` has a value that is not a finite number of at least 0 ({expected})"
                ));
            }
        }
        self.runs = saved.runs;
        Ok(())
    }
}
