//! The runs of a search; each is carried out only once.

use std::collections::BTreeMap;

use hoistway_answer::FigureName;
use hoistway_answer::tuning::{Setting, TuneRun};

use super::evaluate::{Evaluate, Figures};
use super::observe::{SearchObserver, TuneError};

/// Runs per thread between two calls of the observer.
const BATCH_PER_THREAD: usize = 4;

/// Identifies a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) setting: Setting,
    pub(super) seed: u64,
    pub(super) runtime_ns: Option<u64>,
}

impl Key {
    fn of(run: &TuneRun) -> Key {
        Key { setting: run.setting.clone(), seed: run.seed, runtime_ns: run.runtime_ns }
    }
}

/// The runs so far, and the runs of an earlier search.
pub(super) struct Ledger<'a> {
    evaluate: &'a dyn Evaluate,
    observer: &'a dyn SearchObserver,
    /// The names of the figures that are kept.
    figures: Vec<FigureName>,
    /// Runs of an earlier search that were not needed yet.
    known: BTreeMap<Key, Figures>,
    run_indexes: BTreeMap<Key, usize>,
    pub(super) runs: Vec<TuneRun>,
    /// All figures of runs, not only those of the objective; empty unless `keeps_all_figures`.
    all_figures: BTreeMap<Key, Figures>,
    /// Whether all figures are kept.
    pub(super) keeps_all_figures: bool,
    /// The minimum number of runs in total.
    pub(super) planned: u64,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(
        evaluate: &'a dyn Evaluate,
        observer: &'a dyn SearchObserver,
        figures: Vec<FigureName>,
        known: Vec<TuneRun>,
    ) -> Self {
        let known = known.into_iter().map(|run| (Key::of(&run), run.figures)).collect();
        Self {
            evaluate,
            observer,
            figures,
            known,
            run_indexes: BTreeMap::new(),
            runs: Vec::new(),
            all_figures: BTreeMap::new(),
            keeps_all_figures: false,
            planned: 0,
        }
    }

    /// Carries out these runs unless the ledger has them.
    pub(super) fn ensure(&mut self, keys: Vec<Key>) -> Result<(), TuneError> {
        let batch = BATCH_PER_THREAD * rayon_core::current_num_threads();
        let missing: Vec<Key> = keys.into_iter().filter(|key| !self.run_indexes.contains_key(key)).collect();
        for keys in missing.chunks(batch) {
            // The observer decides before each run.
            let results: Vec<Result<Figures, TuneError>> = hoistway_parallel::map(keys, |key| self.figures_of(key));
            let first = results.iter().position(Result::is_err).unwrap_or(results.len());
            let mut results = results.into_iter();
            for (key, figures) in keys.iter().zip(results.by_ref().take(first)) {
                let mut figures = figures?;
                if self.known.remove(key).is_none() && self.keeps_all_figures {
                    self.all_figures.insert(key.clone(), figures.clone());
                }
                figures.retain(|name, _| self.figures.contains(name));
                self.run_indexes.insert(key.clone(), self.runs.len());
                let Key { setting, seed, runtime_ns } = key.clone();
                self.runs.push(TuneRun { setting, seed, runtime_ns, figures });
            }
            let rest = self.known.iter().map(|(key, figures)| {
                let Key { setting, seed, runtime_ns } = key.clone();
                TuneRun { setting, seed, runtime_ns, figures: figures.clone() }
            });
            let all: Vec<TuneRun> = self.runs.iter().cloned().chain(rest).collect();
            self.observer.ran(&all, self.planned.max(self.runs.len() as u64));
            if let Some(Err(error)) = results.next() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The figures of a run: those known from an earlier search, or else all figures of a new run.
    fn figures_of(&self, key: &Key) -> Result<Figures, TuneError> {
        if let Some(known) = self.known.get(key) {
            return Ok(known.clone());
        }
        if !self.observer.goes_on() {
            return Err(TuneError::Ended);
        }
        self.evaluate_run(key)
    }

    /// The figures of a run, unless the run was cancelled.
    fn evaluate_run(&self, key: &Key) -> Result<Figures, TuneError> {
        let figures = self.evaluate.figures(&key.setting, key.seed, key.runtime_ns)?;
        if self.observer.goes_on() { Ok(figures) } else { Err(TuneError::Ended) }
    }

    /// All figures of some runs; a run whose figures were not kept is repeated.
    pub(super) fn all_figures(&self, keys: &[Key]) -> Result<Vec<Figures>, TuneError> {
        let load_figures = |key: &Key| match self.all_figures.get(key) {
            Some(figures) => Ok(figures.clone()),
            None if !self.observer.goes_on() => Err(TuneError::Ended),
            None => self.evaluate_run(key),
        };
        hoistway_parallel::map(keys, load_figures).into_iter().collect()
    }

    /// A figure of a run; `None` if the run has no such I/O, or does not exist.
    pub(super) fn figure(&self, key: &Key, name: &FigureName) -> Option<f64> {
        self.runs[*self.run_indexes.get(key)?].figures.get(name).copied()
    }
}
