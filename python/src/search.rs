//! Searches for the best setting: as a whole, or one setting at a time for a caller that chooses the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hoistway_answer::tuning::{Budget, Setting, TuneRun};
use hoistway_experiment::sweep::{Inputs, VERSION};
use hoistway_experiment::tune::{
    Evaluate, Evaluator, Search as Searched, SearchObserver, SearchState, Trials, TuneError, tune_by,
};
use hoistway_experiment::{self as lab, Comparison, Vary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::beside::beside;
use crate::evaluate::{Local, Remote};
use crate::seeker::{Seeker, refused};
use crate::stop::Stop;
use crate::tuned::Tuned;
use crate::{errors, state_file, table};

/// A checked search.
#[pyclass(module = "hoistway._hoistway", frozen)]
pub(crate) struct Search {
    search: Searched,
    schedulers: Vec<String>,
    /// The knobs as JSON.
    knobs: String,
    /// The comparison, with every scheduler that has to run.
    comparison: Comparison,
    /// The runs made so far, in any order; none is repeated.
    known: Mutex<BTreeMap<(Setting, u64), TuneRun>>,
}

/// The search as serialized by Python.
#[derive(Deserialize)]
struct Asked {
    comparison: Comparison,
    knobs: Vec<Vary>,
    objective: String,
    budget: Budget,
}

/// The information that a worker needs.
#[derive(Serialize, Deserialize)]
struct Portable {
    version: String,
    comparison: Comparison,
    inputs: Inputs,
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(table::failed)
}

fn from_json<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

#[pymethods]
impl Search {
    /// Checks a search given as JSON.
    #[new]
    fn new(py: Python<'_>, asked: &str) -> PyResult<Search> {
        let Asked { comparison, knobs, objective, budget } = from_json("search", asked)?;
        let objective = objective.parse().map_err(|error: hoistway_answer::ObjectiveError| {
            errors::argument(py, "objective", &format!("objective: {error}"))
        })?;
        let search = Searched { comparison, knobs, objective, budget };
        let seeker = Seeker::default();
        let trials = py.detach(|| Trials::of(&search, &seeker)).map_err(|error| refused(py, &error))?;
        let (schedulers, knobs) = (trials.schedulers().to_vec(), json(&trials.knobs())?);
        let comparison = trials.comparison().clone();
        Ok(Search { search, schedulers, knobs, comparison, known: Mutex::default() })
    }

    /// The schedulers in the search.
    #[getter]
    fn schedulers(&self) -> Vec<String> {
        self.schedulers.clone()
    }

    /// The knobs as JSON: `knobs` in `docs/tune.md`.
    #[getter]
    fn knobs(&self) -> String {
        self.knobs.clone()
    }

    /// Whether the objective is maximized.
    #[getter]
    fn is_maximum(&self) -> bool {
        self.search.objective.goal == hoistway_answer::Goal::Max
    }

    /// The objective's figure, and its conditions.
    #[getter]
    fn objective(&self) -> (String, Vec<String>) {
        let objective = &self.search.objective;
        (objective.figure.to_string(), objective.conditions.iter().map(ToString::to_string).collect())
    }

    /// Number of runs made so far.
    #[getter]
    fn runs(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The information that a worker needs about it.
    fn portable(&self, py: Python<'_>) -> PyResult<String> {
        let inputs = py.detach(|| Inputs::of(&self.comparison, &Seeker::default()));
        let inputs = inputs.map_err(|error| refused(py, &error))?;
        json(&Portable { version: VERSION.to_owned(), comparison: self.comparison.clone(), inputs })
    }

    /// Searches. `threads` defaults to the number of cores. If `ask` is given, it makes each run: it is called on that number of
    /// threads, with a setting as JSON, a seed and a runtime in ns. `tell` is called at intervals with the number of finished
    /// runs and the minimum number in total.
    #[pyo3(signature = (threads, ask, state, tell))]
    fn tune(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        ask: Option<Py<PyAny>>,
        state: Option<PathBuf>,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Tuned> {
        let (seeker, stop) = (Seeker::default(), Stop::default());
        let evaluator = self.evaluator(py, &seeker)?;
        let fresh = py.detach(|| SearchState::of(&self.search, &seeker)).map_err(|error| refused(py, &error))?;
        let (kept, known) = match state {
            Some(file) => state_file::StateFile::open(py, file, fresh)?,
            None => (None, Vec::new()),
        };
        let observer =
            Observer { stop: &stop, kept: kept.map(Mutex::new), ended: AtomicU64::new(0), planned: AtomicU64::new(0) };
        let local = Local { evaluator: &evaluator, stop: &stop };
        let remote = ask.map(|ask| Remote { ask, stop: &stop });
        let evaluate: &dyn Evaluate = remote.as_ref().map_or(&local, |remote| remote);
        let pool = pool(threads)?;
        let found = beside(
            py,
            |py| observer.tell(py, tell.as_ref()),
            |py, error| {
                stop.because(error);
                evaluator.cancel();
                if let Some(remote) = &remote {
                    remote.stop(py);
                }
            },
            || pool.install(|| tune_by(&self.search, &seeker, evaluate, known, &observer)),
        )?;
        ended(py, &stop, found).map(Tuned::of)
    }

    /// The results of a setting in full-length runs with the first `seeds` seeds of the search. Setting and results are JSON.
    #[pyo3(signature = (setting, seeds, threads))]
    fn standing(&self, py: Python<'_>, setting: &str, seeds: u32, threads: Option<usize>) -> PyResult<String> {
        let setting: Setting = from_json("setting", setting)?;
        let (seeker, stop) = (Seeker::default(), Stop::default());
        let trials = Trials::of(&self.search, &seeker).map_err(|error| refused(py, &error))?;
        let evaluator = trials.evaluator().map_err(|error| refused(py, &error))?;
        let local = Local { evaluator: &evaluator, stop: &stop };
        let collector = Collector { stop: &stop, known: &self.known };
        let known: Vec<TuneRun> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let is_of_use = |run: &&TuneRun| run.setting == setting || run.setting.is_kernel_default();
            known.values().filter(is_of_use).cloned().collect()
        };
        let pool = pool(threads)?;
        let standing = beside(
            py,
            |_| Ok(()),
            |_, error| {
                stop.because(error);
                evaluator.cancel();
            },
            || pool.install(|| trials.standing(&local, &setting, seeds, known, &collector)),
        )?;
        json(&ended(py, &stop, standing)?)
    }
}

impl Search {
    fn evaluator<'a>(&'a self, py: Python<'_>, seeker: &'a Seeker) -> PyResult<Evaluator<'a>> {
        py.detach(|| Evaluator::new(&self.comparison, seeker)).map_err(|error| refused(py, &error))
    }
}

/// A separate pool instead of the global one, which would not work in a process forked after the pool was started.
fn pool(threads: Option<usize>) -> PyResult<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build().map_err(table::failed)
}

/// The outcome of work, or the exception that prevented it.
fn ended<T>(py: Python<'_>, stop: &Stop, outcome: Result<T, TuneError>) -> PyResult<T> {
    if let Some(reason) = stop.take_reason() {
        return Err(reason);
    }
    outcome.map_err(|error| match error {
        TuneError::Cannot(error) => refused(py, &error),
        error @ TuneError::Ended => table::failed(error),
    })
}

/// Makes a run on a worker: returns its figures by name, as JSON.
#[pyfunction]
#[pyo3(signature = (search, setting, seed, runtime_ns))]
pub(crate) fn figures(
    py: Python<'_>,
    search: &str,
    setting: &str,
    seed: u64,
    runtime_ns: Option<u64>,
) -> PyResult<String> {
    let Portable { comparison, inputs, .. } = from_json("search", search)?;
    let setting: Setting = from_json("setting", setting)?;
    let figures = py.detach(|| Evaluator::new(&comparison, &inputs)?.figures(&setting, seed, runtime_ns));
    json(&figures.map_err(|error: lab::Error| refused(py, &error))?)
}

/// Stores the runs of a search, and reports their number.
struct Observer<'a> {
    stop: &'a Stop,
    kept: Option<Mutex<state_file::StateFile>>,
    ended: AtomicU64,
    planned: AtomicU64,
}

impl Observer<'_> {
    fn tell(&self, py: Python<'_>, tell: Option<&Py<PyAny>>) -> PyResult<()> {
        let planned = self.planned.load(Ordering::Relaxed);
        let Some(tell) = tell.filter(|_| planned > 0 && !self.stop.is_asked()) else { return Ok(()) };
        tell.call1(py, (self.ended.load(Ordering::Relaxed), planned)).map(drop)
    }
}

impl SearchObserver for Observer<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.is_asked()
    }

    fn ran(&self, runs: &[TuneRun], planned: u64) {
        self.ended.store(runs.len() as u64, Ordering::Relaxed);
        self.planned.store(planned, Ordering::Relaxed);
        let Some(kept) = &self.kept else { return };
        let written = kept.lock().unwrap_or_else(PoisonError::into_inner).write(runs);
        if let Err(error) = written {
            self.stop.because(error);
        }
    }
}

/// Stores the runs of single settings.
struct Collector<'a> {
    stop: &'a Stop,
    known: &'a Mutex<BTreeMap<(Setting, u64), TuneRun>>,
}

impl SearchObserver for Collector<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.is_asked()
    }

    fn ran(&self, runs: &[TuneRun], _: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(runs.iter().map(|run| ((run.setting.clone(), run.seed), run.clone())));
    }
}
