//! Reads the document of a search, and checks it against its own runs: detects files that were truncated or edited.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{FORMAT, Round, Setting, SettingResult, TuneRun, Tuning};
use crate::check::Contradiction;
use crate::document::ReadError;
use crate::figure::Figure;
use hoistway_measure::stats;

impl Tuning {
    /// Whether a text claims to be the document of a search, of this version or another.
    pub fn is_search_document(text: &str) -> bool {
        #[derive(Deserialize)]
        struct Header {
            format: Option<Value>,
        }
        let series = FORMAT.split_once('/').map_or(FORMAT, |(series, _)| series);
        let is_of_series = |format: &str| format.split('/').next() == Some(series);
        match serde_json::from_str::<Header>(text) {
            Ok(header) => header.format.as_ref().and_then(Value::as_str).is_some_and(is_of_series),
            // A truncated document still begins with its format.
            Err(_) => text.chars().take(HEAD_CHARACTERS).collect::<String>().contains(&format!("\"{series}/")),
        }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// If a field is missing or wrong, or the format is not supported.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let document: Self = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
            .map_err(|error| ReadError::Field { field: error.path().to_string(), error: error.into_inner() })?;
        if document.format != FORMAT {
            return Err(ReadError::UnknownSearch { found: document.format, known: FORMAT });
        }
        Ok(document)
    }

    /// Checks that the parts of the document agree: the figures of settings follow from their runs.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), Contradiction> {
        let contradiction = |field: String, problem: &str| Err(Contradiction { field, problem: problem.to_owned() });
        let mut seeds: Vec<u64> = Vec::new();
        for run in &self.runs {
            if !seeds.contains(&run.seed) {
                seeds.push(run.seed);
            }
        }
        let mut values: BTreeMap<(&Setting, u64, Option<u64>), &TuneRun> = BTreeMap::new();
        for run in &self.runs {
            values.insert((&run.setting, run.seed, run.runtime_ns), run);
        }
        // Rounds use new seeds, in the order in which the seeds first occur in `runs`.
        let mut used_seeds = 0;
        for (index, round) in self.rounds.iter().enumerate() {
            let count = round.settings.iter().map(|result| result.seeds as usize).max().unwrap_or(0);
            let Some(round_seeds) = seeds.get(used_seeds..used_seeds + count) else {
                return contradiction(format!("rounds[{index}]"), "needs more seeds than `runs` have");
            };
            used_seeds += count;
            for (number, result) in round.settings.iter().enumerate() {
                if !matches_run(result, round, round_seeds, &values) {
                    return contradiction(
                        format!("rounds[{index}].settings[{number}].figures"),
                        "is not what `runs` say",
                    );
                }
            }
        }
        let [first, last] = [self.rounds.first(), self.rounds.last()].map(|round| round.map_or(&[][..], settings));
        if let Some(index) = self.front.iter().position(|result| !first.contains(result)) {
            return contradiction(format!("front[{index}]"), "is not a setting of the first round");
        }
        match &self.found {
            Some(found) if last.first() != Some(&found.best) => {
                contradiction("found.best".to_owned(), "is not the first of the last round")
            }
            Some(found) if found.holds != found.best.holds => {
                contradiction("found.holds".to_owned(), "differs from `found.best.holds`")
            }
            _ => Ok(()),
        }
    }
}

/// Length of the start of a text that is searched for the format.
const HEAD_CHARACTERS: usize = 200;

fn settings(round: &Round) -> &[SettingResult] {
    &round.settings
}

fn matches_run(
    result: &SettingResult,
    round: &Round,
    seeds: &[u64],
    runs: &BTreeMap<(&Setting, u64, Option<u64>), &TuneRun>,
) -> bool {
    result.figures.iter().all(|(name, spread)| {
        let value = |seed: &u64| runs.get(&(&result.setting, *seed, round.runtime_ns))?.figures.get(name).copied();
        let values: Vec<f64> = seeds.iter().filter_map(value).collect();
        let computed = match name.figure {
            Figure::Max => values.into_iter().reduce(f64::max),
            _ => stats::mean(&values),
        };
        // Numbers are stored with all their digits, so the comparison is exact.
        computed.is_some_and(|mean| mean == spread.mean)
    })
}
