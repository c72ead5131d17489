//! Searches for the best setting: as a whole, or one setting at a time for a caller that chooses the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use hoistway_answer::tuning::{Budget, Setting, TuneRun};
use hoistway_experiment::sweep::{Inputs, VERSION};
use hoistway_experiment::tune::{
    Evaluate, Evaluator, Search as ExperimentSearch, SearchObserver, SearchState, Trials, TuneError, tune_by,
};
use hoistway_experiment::{self as lab, Comparison, MeasuredTime, Vary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::evaluate::{Local, Remote};
use crate::interruptible::run_interruptibly;
use crate::search_environment::{SearchEnvironment, search_error};
use crate::stop::Stop;
use crate::tuned::Tuned;
use crate::{errors, state_file, table};

/// A checked search.
#[pyclass(module = "hoistway._hoistway", frozen)]
pub(crate) struct Search {
    search: ExperimentSearch,
    schedulers: Vec<String>,
    /// The tunables as JSON.
    tunables: String,
    /// The comparison, with every scheduler that has to run.
    comparison: Comparison,
    /// What all runs measure, once it is found.
    measured: OnceLock<MeasuredTime>,
    /// The runs made so far, in any order; none is repeated.
    known_runs: Mutex<BTreeMap<(Setting, u64), TuneRun>>,
}

/// The search as serialized by Python.
#[derive(Deserialize)]
struct SearchRequest {
    comparison: Comparison,
    vary: Vec<Vary>,
    objective: String,
    budget: Budget,
}

/// The information that a worker needs.
#[derive(Serialize, Deserialize)]
struct WorkerInput {
    version: String,
    comparison: Comparison,
    inputs: Inputs,
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(table::internal_error)
}

fn from_json<'a, T: Deserialize<'a>>(name: &str, text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

#[pymethods]
impl Search {
    /// Checks a search given as JSON.
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Search> {
        let SearchRequest { comparison, vary, objective, budget } = from_json("search", request)?;
        let objective = objective.parse().map_err(|error: hoistway_answer::ObjectiveError| {
            errors::argument(py, "objective", &format!("objective: {error}"))
        })?;
        let search = ExperimentSearch { comparison, vary, objective, budget };
        let environment = SearchEnvironment::default();
        let trials = py.detach(|| Trials::of(&search, &environment)).map_err(|error| search_error(py, &error))?;
        let (schedulers, tunables) = (trials.schedulers().to_vec(), json(&trials.tunables())?);
        let comparison = trials.comparison().clone();
        Ok(Search { search, schedulers, tunables, comparison, measured: OnceLock::new(), known_runs: Mutex::default() })
    }

    /// The schedulers in the search.
    #[getter]
    fn schedulers(&self) -> Vec<String> {
        self.schedulers.clone()
    }

    /// The tunables as JSON: `knobs` in `docs/tune.md`.
    #[getter]
    fn tunables(&self) -> String {
        self.tunables.clone()
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
        self.known_runs.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The information that a worker needs about it, with the window that all runs measure.
    fn portable(&self, py: Python<'_>) -> PyResult<String> {
        let comparison = Comparison { measured: self.measured(py)?, ..self.comparison.clone() };
        let inputs = py.detach(|| Inputs::of(&comparison, &SearchEnvironment::default()));
        let inputs = inputs.map_err(|error| search_error(py, &error))?;
        json(&WorkerInput { version: VERSION.to_owned(), comparison, inputs })
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
        let (environment, stop) = (SearchEnvironment::default(), Stop::default());
        let evaluator = self.evaluator(py, &environment)?;
        let new_state =
            py.detach(|| SearchState::of(&self.search, &environment)).map_err(|error| search_error(py, &error))?;
        let (state_file, known_runs) = match state {
            Some(file) => state_file::StateFile::open(py, file, new_state)?,
            None => (None, Vec::new()),
        };
        let observer = Observer {
            stop: &stop,
            state_file: state_file.map(Mutex::new),
            ended: AtomicU64::new(0),
            planned: AtomicU64::new(0),
        };
        let local = Local { evaluator: &evaluator, stop: &stop };
        let remote = ask.map(|ask| Remote { call: ask, stop: &stop });
        let evaluate: &dyn Evaluate = remote.as_ref().map_or(&local, |remote| remote);
        let pool = pool(threads)?;
        let outcome = run_interruptibly(
            py,
            |py| observer.report_progress(py, tell.as_ref()),
            |py, error| {
                stop.end_runs(error);
                evaluator.cancel();
                if let Some(remote) = &remote {
                    remote.stop(py);
                }
            },
            || pool.install(|| tune_by(&self.search, &environment, evaluate, known_runs, &observer)),
        )?;
        finish(py, &stop, outcome).map(Tuned::of)
    }

    /// The results of a setting in full-length runs with the first `seeds` seeds of the search. Setting and results are JSON.
    #[pyo3(signature = (setting, seeds, threads))]
    fn standing(&self, py: Python<'_>, setting: &str, seeds: u32, threads: Option<usize>) -> PyResult<String> {
        let setting: Setting = from_json("setting", setting)?;
        let (environment, stop) = (SearchEnvironment::default(), Stop::default());
        let comparison = Comparison { measured: self.measured(py)?, ..self.search.comparison.clone() };
        let search = ExperimentSearch { comparison, ..self.search.clone() };
        let trials = Trials::of(&search, &environment).map_err(|error| search_error(py, &error))?;
        let evaluator = trials.evaluator().map_err(|error| search_error(py, &error))?;
        let local = Local { evaluator: &evaluator, stop: &stop };
        let collector = Collector { stop: &stop, known_runs: &self.known_runs };
        let known_runs: Vec<TuneRun> = {
            let known_runs = self.known_runs.lock().unwrap_or_else(PoisonError::into_inner);
            let is_usable = |run: &&TuneRun| run.setting == setting || run.setting.is_kernel_default();
            known_runs.values().filter(is_usable).cloned().collect()
        };
        let pool = pool(threads)?;
        let standing = run_interruptibly(
            py,
            |_| Ok(()),
            |_, error| {
                stop.end_runs(error);
                evaluator.cancel();
            },
            || pool.install(|| trials.standing(&local, &setting, seeds, known_runs, &collector)),
        )?;
        json(&finish(py, &stop, standing)?)
    }
}

impl Search {
    /// What all runs measure: found in longer runs at the first call.
    fn measured(&self, py: Python<'_>) -> PyResult<MeasuredTime> {
        if let Some(known) = self.measured.get() {
            return Ok(*known);
        }
        let found = py.detach(|| Evaluator::new(&self.comparison, &SearchEnvironment::default())?.measured());
        let found = found.map_err(|error| search_error(py, &error))?;
        Ok(*self.measured.get_or_init(|| found))
    }

    fn evaluator<'a>(&'a self, py: Python<'_>, environment: &'a SearchEnvironment) -> PyResult<Evaluator<'a>> {
        py.detach(|| Evaluator::new(&self.comparison, environment)).map_err(|error| search_error(py, &error))
    }
}

/// A separate pool instead of the global one, which would not work in a process forked after the pool was started.
fn pool(threads: Option<usize>) -> PyResult<rayon_core::ThreadPool> {
    rayon_core::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build().map_err(table::internal_error)
}

/// The outcome of work, or the exception that prevented it.
fn finish<T>(py: Python<'_>, stop: &Stop, outcome: Result<T, TuneError>) -> PyResult<T> {
    if let Some(reason) = stop.take_reason() {
        return Err(reason);
    }
    outcome.map_err(|error| match error {
        TuneError::Cannot(error) => search_error(py, &error),
        error @ TuneError::Ended => table::internal_error(error),
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
    let WorkerInput { comparison, inputs, .. } = from_json("search", search)?;
    let setting: Setting = from_json("setting", setting)?;
    let figures = py.detach(|| Evaluator::new(&comparison, &inputs)?.figures(&setting, seed, runtime_ns));
    json(&figures.map_err(|error: lab::Error| search_error(py, &error))?)
}

/// Stores the runs of a search, and reports their number.
struct Observer<'a> {
    stop: &'a Stop,
    state_file: Option<Mutex<state_file::StateFile>>,
    ended: AtomicU64,
    planned: AtomicU64,
}

impl Observer<'_> {
    fn report_progress(&self, py: Python<'_>, tell: Option<&Py<PyAny>>) -> PyResult<()> {
        let planned = self.planned.load(Ordering::Relaxed);
        let Some(tell) = tell.filter(|_| planned > 0 && !self.stop.is_requested()) else { return Ok(()) };
        tell.call1(py, (self.ended.load(Ordering::Relaxed), planned)).map(drop)
    }
}

impl SearchObserver for Observer<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.is_requested()
    }

    fn ran(&self, runs: &[TuneRun], planned: u64) {
        self.ended.store(runs.len() as u64, Ordering::Relaxed);
        self.planned.store(planned, Ordering::Relaxed);
        let Some(state_file) = &self.state_file else { return };
        let written = state_file.lock().unwrap_or_else(PoisonError::into_inner).write(runs);
        if let Err(error) = written {
            self.stop.end_runs(error);
        }
    }
}

/// Stores the runs of single settings.
struct Collector<'a> {
    stop: &'a Stop,
    known_runs: &'a Mutex<BTreeMap<(Setting, u64), TuneRun>>,
}

impl SearchObserver for Collector<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.is_requested()
    }

    fn ran(&self, runs: &[TuneRun], _: u64) {
        let mut known_runs = self.known_runs.lock().unwrap_or_else(PoisonError::into_inner);
        known_runs.extend(runs.iter().map(|run| ((run.setting.clone(), run.seed), run.clone())));
    }
}
