//! Trials of single settings, ranked as in a round of a search, for other search algorithms.

use hoistway_answer::Limit;
use hoistway_answer::tuning::{Candidates, Setting, SettingResult, TuneRun};

use super::Search;
use super::evaluate::{Evaluate, Evaluator};
use super::ledger::{Key, Ledger};
use super::observe::{SearchObserver, TuneError};
use super::prepared::Prepared;
use super::ranking::Ranking;
use super::space::Space;
use crate::comparison::Comparison;
use crate::comparison::environment::{CallerEnvironment, Options};
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::plan::repeats::{self, REPEATS_MAX};

/// The settings to try and how they are ranked.
pub struct Trials<'a> {
    search: &'a Search,
    environment: &'a dyn CallerEnvironment,
    prepared: Prepared,
    tunables: Vec<Candidates>,
}

impl<'a> Trials<'a> {
    /// Checks the search. Its budget is ignored.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn of(search: &'a Search, environment: &'a dyn CallerEnvironment) -> Result<Self, Error> {
        let prepared = Prepared::of(search, environment)?;
        let evaluator = Evaluator::new(&prepared.comparison, environment)?;
        let space = Space::of(search, &prepared, &evaluator, environment)?;
        let tunables = space.branches.into_iter().flat_map(|branch| branch.tunables).collect();
        Ok(Trials { search, environment, prepared, tunables })
    }

    /// The schedulers in the search.
    #[must_use]
    pub fn schedulers(&self) -> &[String] {
        &self.prepared.searched_schedulers
    }

    /// The tunables of each scheduler, with their values except the default.
    #[must_use]
    pub fn tunables(&self) -> &[Candidates] {
        &self.tunables
    }

    /// The search's comparison, with every scheduler that has to run.
    #[must_use]
    pub fn comparison(&self) -> &Comparison {
        &self.prepared.comparison
    }

    /// The evaluator of its runs, to be passed to [`standing`](Trials::standing).
    ///
    /// # Errors
    /// If a file that was read has changed since.
    pub fn evaluator(&self) -> Result<Evaluator<'_>, Error> {
        Evaluator::new(&self.prepared.comparison, self.environment)
    }

    /// The results of a setting in full-length runs with the first `seeds` seeds of the search. The observer is notified of all
    /// these runs, including those in `known`.
    ///
    /// # Errors
    /// If the setting is invalid, if the I/O named by the objective does not exist, or if it was ended.
    pub fn standing(
        &self,
        evaluate: &dyn Evaluate,
        setting: &Setting,
        seeds: u32,
        known: Vec<TuneRun>,
        observer: &dyn SearchObserver,
    ) -> Result<SettingResult, TuneError> {
        let objective = &self.search.objective;
        let options = Options { comparison: &self.prepared.comparison, environment: self.environment };
        if !(1..=REPEATS_MAX).contains(&seeds) {
            return Err(options.refuse(Field::Repeats, seeds, format!("expected 1 to {REPEATS_MAX}")).into());
        }
        let figures = objective.figures().into_iter().cloned().collect();
        let mut ledger = Ledger::new(evaluate, observer, figures, known);
        let seeds = repeats::seeds(self.search.comparison.seed, seeds);
        let default = &*self.prepared.default;
        let mut settings = vec![setting.clone()];
        for condition in &objective.conditions {
            let Limit::Under { scheduler, .. } = &condition.limit else { continue };
            let reference = Setting::untouched(if scheduler == "default" { default } else { scheduler });
            if !settings.contains(&reference) {
                settings.push(reference);
            }
        }
        let key = |seed: u64, setting: &Setting| Key { setting: setting.clone(), seed, runtime_ns: None };
        let keys = seeds.iter().flat_map(|seed| settings.iter().map(move |setting| key(*seed, setting)));
        ledger.ensure(keys.collect())?;
        let ranking = Ranking { objective, ledger: &ledger, seeds: &seeds, runtime_ns: None, default };
        let result = ranking.rank(std::slice::from_ref(setting)).swap_remove(0).result;
        match objective.figures().into_iter().find(|figure| !result.figures.contains_key(figure)) {
            Some(figure) => {
                let problem = format!("{figure}: no such I/O happened under {setting}");
                Err(options.refuse(Field::Objective, objective, problem).into())
            }
            None => Ok(result),
        }
    }
}
