//! Runs a comparison on separate threads, while the calling thread handles Python's signals.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_experiment::{self as lab, Comparison, Ended, Field, Plan, RunObserver, TraceError};
use hoistway_legacy::all_schedulers;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::environment::Caller;
use crate::errors;
use crate::interruptible::run_interruptibly;
use crate::python_scheduler::{self, Class};
use crate::results::Results;
use crate::stop::Stop;
use crate::table::{Table, internal_error};
use crate::tables::{Events, RunLog};

/// The value of `Progress::expected_ns` while it is unknown.
const UNKNOWN: u64 = u64::MAX;

/// The results: the document, and the events if they were traced.
type Outcome = (ResultsDocument, Option<Events>);

/// Runs a comparison given as JSON.
///
/// `classes` are schedulers written in Python. `threads` defaults to the number of cores. `tell` is called at intervals with the
/// virtual time in ns that has passed, and with the time expected in total. If `traced`, the result contains a table of events,
/// and there is one run at a time.
#[pyfunction]
#[pyo3(signature = (experiment, classes, threads, tell, traced))]
pub(crate) fn run(
    py: Python<'_>,
    experiment: &str,
    classes: Vec<Class>,
    threads: Option<usize>,
    tell: Option<Py<PyAny>>,
    traced: bool,
) -> PyResult<(Results, Option<Table>)> {
    let comparison: Comparison =
        serde_json::from_str(experiment).map_err(|error| PyValueError::new_err(format!("experiment: {error}")))?;
    let python_schedulers: Vec<String> = classes.iter().map(|class| class.name().to_owned()).collect();
    let stop = Arc::new(Stop::default());
    let caller = Caller { schedulers: python_scheduler::with_python_schedulers(all_schedulers(), classes, &stop) };
    let progress = Progress {
        begin: Instant::now(),
        logs: comparison.logs.then(Mutex::default),
        expected_ns: AtomicU64::new(UNKNOWN),
    };
    let threads = Threads { requested: threads, call_python: !python_schedulers.is_empty() };
    let outcome = run_interruptibly(
        py,
        |py| report_progress(py, &stop, &progress, tell.as_ref()),
        |py, error| {
            stop.end_runs(error);
            // An error is ignored: callers that cannot be interrupted end by themselves.
            stop.interrupt_callers(py).unwrap_or_default();
        },
        || threads.enter(|| carry_out(&comparison, &caller, &stop, &threads, &progress, traced)),
    )?;
    if let Some(reason) = stop.take_reason() {
        return Err(reason);
    }
    let (document, events) = outcome.map_err(|error| errors::trace(py, &error))?;
    let document = with_conclusion(document, &python_schedulers).map_err(|error| errors::comparison(py, &error))?;
    let logs = progress.logs.map(|logs| logs.into_inner().unwrap_or_else(PoisonError::into_inner));
    let table = events.map(Events::table).transpose().map_err(internal_error)?;
    Ok((Results::new(document, logs), table))
}

/// Reports the progress of the runs.
fn report_progress(py: Python<'_>, stop: &Stop, progress: &Progress, tell: Option<&Py<PyAny>>) -> PyResult<()> {
    let Some((tell, controls)) = tell.zip(stop.controls()) else { return Ok(()) };
    let expected = Some(progress.expected_ns.load(Ordering::SeqCst)).filter(|&ns| ns != UNKNOWN);
    tell.call1(py, (controls.reached_ns(), expected)).map(drop)
}

fn carry_out(
    comparison: &Comparison,
    caller: &Caller,
    stop: &Stop,
    threads: &Threads,
    progress: &Progress,
    traced: bool,
) -> Result<Outcome, TraceError> {
    let plan = Plan::of(comparison, caller)?;
    // `expected_ns` is set before any progress is shown.
    progress.expected_ns.store(plan.expected_ns().unwrap_or(UNKNOWN), Ordering::SeqCst);
    let controls = stop.register(plan.controls());
    if traced {
        let (document, events) = plan.traced(Events::default(), controls, progress)?;
        return Ok((document, Some(events)));
    }
    // A separate pool instead of the global one, which would not work in a process forked after the pool was started.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let count = threads.requested.unwrap_or(cores).clamp(1, plan.run_count().max(1));
    let document = rayon_core::ThreadPoolBuilder::new()
        .num_threads(count)
        .build_scoped(|thread| threads.enter(|| thread.run()), |pool| pool.install(|| plan.run(controls, progress)))
        .map_err(|error| TraceError::Write(std::io::Error::other(error)))??;
    Ok((document, None))
}

/// The threads of the runs.
struct Threads {
    requested: Option<usize>,
    /// Whether they call schedulers written in Python.
    call_python: bool,
}

impl Threads {
    /// Runs the body of a thread. Attaching to Python once is faster than in each call.
    fn enter<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        if self.call_python { Python::attach(|py| py.detach(body)) } else { body() }
    }
}

/// The document with its conclusion, and with a notice about the schedulers in `python_schedulers`, which are written in Python.
pub(crate) fn with_conclusion(
    mut document: ResultsDocument,
    python_schedulers: &[String],
) -> Result<ResultsDocument, lab::Error> {
    let analysis = Analysis::of(&document);
    for focus in &document.focuses {
        if let Err(error) = analysis.find(&focus.figure) {
            let message = format!("{} {}: {error}", Field::Focus.keyword(), focus.figure);
            return Err(lab::Error { field: Field::Focus, message, place: None });
        }
    }
    let conclusion = hoistway_render::text::conclusion(&analysis);
    document.conclusion = conclusion;
    if !python_schedulers.is_empty() {
        document.notices.push(format!(
            "{}: written in Python, which makes the simulation slow. In virtual time a decision takes as long as the host profile \
             states for schedulers that it does not name.",
            python_schedulers.join(", ")
        ));
    }
    Ok(document)
}

/// Watches the runs.
struct Progress {
    begin: Instant,
    logs: Option<Mutex<Vec<RunLog>>>,
    expected_ns: AtomicU64,
}

impl RunObserver for Progress {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, ended: &Ended<'_>) {
        if let Some(logs) = &self.logs {
            logs.lock().unwrap_or_else(PoisonError::into_inner).push(RunLog::of(ended));
        }
    }
}
