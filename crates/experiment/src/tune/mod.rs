//! The search for the best setting: successive halving with paired seeds.
//!
//! A [`Search`] says what is searched and for what. All settings, or as many as the budget allows, run shortly with few seeds;
//! the better ones run longer with more, and so on. Seeds are the same for all settings of a round, so that they are compared
//! under the same load, and new in every round, so that no setting keeps a lead by chance.
//!
//! `prepared` is the search with all that it is compared with, `space` what there is to try, with `ladder` where no values are given; `sample` chooses from it, `rounds` spends the budget, [`Evaluate`] tells
//! figures of a setting, `ledger` keeps them, `ranking` compares them, `front` is the Pareto front, `race` is the search itself, `effects` says what mattered, and
//! [`State`] is what an ended search leaves.
//! Another search algorithm can drive an [`Evaluator`], or [`Trials`] of settings from the same space.

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
pub use state::State;
pub use trials::Trials;

/// What is searched, and for what.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The load, one place, the schedulers and what is set in all runs. Its tunables are not searched, and it varies and repeats
    /// nothing itself.
    pub comparison: Comparison,
    /// The knobs that are searched of their schedulers, and files of `queue/`; without values those that fit. Of a scheduler of
    /// which none is named all are.
    #[serde(default)]
    pub knobs: Vec<Vary>,
    /// What is wanted.
    pub objective: Objective,
    /// What may be spent.
    pub budget: Budget,
}

/// Default budget of a search, in runs.
pub const BUDGET_RUNS: u64 = 200;
