//! The search for the best setting: successive halving with paired seeds.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/experiment/src/tune/effects.rs`, `crates/experiment/src/tune/sample.rs`, `crates/experiment/tests/tune.rs`.
//!
//! A [`Search`] defines the search space and the objective. All settings, or as many as the budget allows, run briefly with
//! few seeds; the better ones run longer with more seeds, and so on. All settings of a round share their seeds, so they are
//! compared under the same load. Every round has new seeds, so no setting keeps a lead by chance.
//!
//! Modules: `prepared` (the search with the settings that it is compared with), `space` (all settings to try), `ladder` (default candidate
//! values), `sample` (chooses settings), `rounds` (spends the budget), [`Evaluate`] (measures a setting), `ledger` (keeps figures),
//! `ranking` (compares settings), `front` (the Pareto front), `race` (the search itself), `effects` (which tunables mattered) and [`SearchState`]
//! (the result of an ended search).
//! Another search algorithm can use an [`Evaluator`], or [`Trials`] of settings from the same space.

mod effects;
mod evaluate;
mod front;
mod ladder;
mod ledger;
mod observe;
mod prepared;
mod race;
mod ranking;
mod rounds;
mod sample;
mod space;
mod state;
mod trials;

use hoistway_answer::Objective;
use hoistway_answer::tuning::Budget;
use serde::{Deserialize, Serialize};

use crate::comparison::{Comparison, Vary};

pub use evaluate::{Evaluate, Evaluator, Figures};
pub use observe::{Cancel, SearchObserver, TuneError};
pub use race::{tune, tune_by};
pub use state::SearchState;
pub use trials::Trials;

/// A search: its space, objective and budget.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The load, one setup, the schedulers and the fixed settings. Its tunables are not searched; it must not vary or repeat
    /// anything itself.
    pub comparison: Comparison,
    /// What to search: tunables and files of `queue/`; one without values gets suitable ones. Of a scheduler of which nothing is named, all
    /// tunables are searched. Of `io.cost` the name `qos` without values is all its parameters.
    #[serde(default, alias = "knobs")]
    pub vary: Vec<Vary>,
    /// The objective.
    pub objective: Objective,
    /// The limit on runs or virtual time.
    pub budget: Budget,
}

/// Default budget of a search, in runs.
pub const BUDGET_RUNS: u64 = 200;
