//! Carries out an experiment in real time.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use hoistway_experiment::real::{EngineOptions, RealExperiment, RealLayer, RealPlan};
use hoistway_experiment::{Comparison, Ended, Field, MeasuredTime, RunObserver};
use hoistway_legacy::all_schedulers;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::environment::Caller;
use crate::errors;
use crate::interruptible::run_interruptibly;
use crate::results::Results;
use crate::run::with_conclusion;
use crate::tables::RunLog;

/// Memory in bytes that each worker registers with its io_uring ring, as by default on the command line.
const FIXED_BUFFERS: usize = 4 << 20;

/// Runs an experiment in real time. `experiment` is a comparison as JSON, of which only the load, schedulers, settings, times,
/// repeats, seed, logs and ranking figures are used.
#[pyfunction]
#[pyo3(signature = (experiment, target, workers, queue_depth, force))]
pub(crate) fn run_real(
    py: Python<'_>,
    experiment: &str,
    target: String,
    workers: Option<usize>,
    queue_depth: Option<u32>,
    force: bool,
) -> PyResult<Results> {
    let comparison: Comparison =
        serde_json::from_str(experiment).map_err(|error| PyValueError::new_err(format!("experiment: {error}")))?;
    let contention_options = comparison.techniques.as_deref().unwrap_or("none").parse();
    let contention_options = contention_options.map_err(|problem| {
        let name = Field::ContentionOptions.keyword();
        errors::argument(py, name, &format!("{name}: {problem}"))
    })?;
    let experiment = RealExperiment {
        load: comparison.load,
        replay: comparison.replay,
        target,
        schedulers: comparison.schedulers,
        tunables: comparison.tunables,
        queue_files: comparison.queue_files,
        vary: comparison.vary,
        repeats: comparison.repeats,
        baseline: comparison.baseline,
        focus: comparison.focus,
        smallest_effect: comparison.smallest_effect,
        runtime_ns: comparison.runtime_ns,
        ramp_ns: comparison.ramp_ns,
        from_start: comparison.measured == MeasuredTime::AsFio,
        seed: comparison.seed,
        logs: comparison.logs,
        force,
        layer: RealLayer::Engine(EngineOptions {
            workers,
            queue_depth,
            contention_options,
            fixed_buffers: FIXED_BUFFERS,
        }),
    };
    let caller = Caller { schedulers: all_schedulers() };
    let plan = RealPlan::of(&experiment, &caller).map_err(|error| errors::comparison(py, &error))?;
    let controls = plan.controls();
    let collector = LogCollector { begin: Instant::now(), logs: experiment.logs.then(Mutex::default) };
    let mut interrupted = None;
    let outcome = run_interruptibly(
        py,
        |_| Ok(()),
        |_, error| {
            controls.cancel();
            interrupted.get_or_insert(error);
        },
        || match plan.prepare(&controls) {
            Ok(true) => plan.run(&controls, &collector, &|_, _| ()).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        },
    )?;
    if let Some(reason) = interrupted {
        return Err(reason);
    }
    let document = outcome.map_err(|error| errors::comparison(py, &error))?;
    let document = document.ok_or_else(|| PyValueError::new_err("the target was not created"))?;
    let document = with_conclusion(document, &[]).map_err(|error| errors::comparison(py, &error))?;
    let logs = collector.logs.map(|logs| logs.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(Results::new(document, logs))
}

/// Keeps the logs of runs.
struct LogCollector {
    begin: Instant,
    logs: Option<Mutex<Vec<RunLog>>>,
}

impl RunObserver for LogCollector {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, ended: &Ended<'_>) {
        if let Some(logs) = &self.logs {
            logs.lock().unwrap_or_else(PoisonError::into_inner).push(RunLog::of(ended));
        }
    }
}
