//! Carries a comparison out: on threads of its own, while the one that calls sees to Python's signals.

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

use crate::beside::beside;
use crate::environment::Caller;
use crate::errors;
use crate::results::Results;
use crate::stop::Stop;
use crate::table::{Table, failed};
use crate::tables::{Events, RunLog};
use crate::written::{self, Class};

/// What `Progress::expected_ns` is while nobody knows.
const UNKNOWN: u64 = u64::MAX;

/// What becomes of runs: the document, and their events if they were traced.
type Done = (ResultsDocument, Option<Events>);

/// Runs a comparison that is written down as JSON.
///
/// `classes` are schedulers written in Python; `threads` as many as there are cores, if nobody says; `tell` is called now and then with
/// the virtual time that has passed and that is expected, ns; with `traced` there is also a table of events, and runs go one by
/// one.
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
    let own: Vec<String> = classes.iter().map(|class| class.name().to_owned()).collect();
    let stop = Arc::new(Stop::default());
    let caller = Caller { schedulers: written::added(all_schedulers(), classes, &stop) };
    let observing = Observing {
        begin: Instant::now(),
        logs: comparison.logs.then(Mutex::default),
        expected_ns: AtomicU64::new(UNKNOWN),
    };
    let threads = Threads { wanted: threads, call_python: !own.is_empty() };
    let done = beside(
        py,
        |py| look(py, &stop, &observing, tell.as_ref()),
        |py, error| {
            stop.because(error);
            // What cannot be interrupted ends by itself.
            stop.interrupt_callers(py).unwrap_or_default();
        },
        || threads.enter(|| carry_out(&comparison, &caller, &stop, &threads, &observing, traced)),
    )?;
    if let Some(reason) = stop.take_reason() {
        return Err(reason);
    }
    let (document, events) = done.map_err(|error| errors::trace(py, &error))?;
    let document = finished(document, &own).map_err(|error| errors::comparison(py, &error))?;
    let logs = observing.logs.map(|logs| logs.into_inner().unwrap_or_else(PoisonError::into_inner));
    let table = events.map(Events::table).transpose().map_err(failed)?;
    Ok((Results::new(document, logs), table))
}

/// Tells how far the runs are.
fn look(py: Python<'_>, stop: &Stop, observing: &Observing, tell: Option<&Py<PyAny>>) -> PyResult<()> {
    let Some((tell, controls)) = tell.zip(stop.controls()) else { return Ok(()) };
    let expected = Some(observing.expected_ns.load(Ordering::SeqCst)).filter(|&ns| ns != UNKNOWN);
    tell.call1(py, (controls.reached_ns(), expected)).map(drop)
}

fn carry_out(
    comparison: &Comparison,
    caller: &Caller,
    stop: &Stop,
    threads: &Threads,
    observing: &Observing,
    traced: bool,
) -> Result<Done, TraceError> {
    let plan = Plan::of(comparison, caller)?;
    // Before any progress is shown.
    observing.expected_ns.store(plan.expected_ns().unwrap_or(UNKNOWN), Ordering::SeqCst);
    let controls = stop.hold(plan.controls());
    if traced {
        let (document, events) = plan.traced(Events::default(), controls, observing)?;
        return Ok((document, Some(events)));
    }
    // Of its own, and not the global one: that would be dead in a process that forked off after it had come to life.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let count = threads.wanted.unwrap_or(cores).clamp(1, plan.run_count().max(1));
    let document = rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .build_scoped(|thread| threads.enter(|| thread.run()), |pool| pool.install(|| plan.run(controls, observing)))
        .map_err(|error| TraceError::Write(std::io::Error::other(error)))??;
    Ok((document, None))
}

/// The threads that runs take.
struct Threads {
    wanted: Option<usize>,
    /// Whether they call schedulers written in Python.
    call_python: bool,
}

impl Threads {
    /// What a thread does. Python would make itself known to it anew in each call, which takes longer than the call.
    fn enter<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        if self.call_python { Python::attach(|py| py.detach(body)) } else { body() }
    }
}

/// The document with what is said of it.
pub(crate) fn finished(mut document: ResultsDocument, own: &[String]) -> Result<ResultsDocument, lab::Error> {
    let analysis = Analysis::of(&document);
    for focus in &document.focuses {
        if let Err(error) = analysis.find(&focus.figure) {
            let message = format!("{} {}: {error}", Field::Focus.keyword(), focus.figure);
            return Err(lab::Error { field: Field::Focus, message, place: None });
        }
    }
    let conclusion = hoistway_render::text::conclusion(&analysis);
    document.conclusion = conclusion;
    if !own.is_empty() {
        document.notices.push(format!(
            "{}: written in Python, so that simulating it is slow. In virtual time a decision costs what the host profile says of \
             schedulers that it does not name.",
            own.join(", ")
        ));
    }
    Ok(document)
}

/// Watches the runs.
struct Observing {
    begin: Instant,
    logs: Option<Mutex<Vec<RunLog>>>,
    expected_ns: AtomicU64,
}

impl RunObserver for Observing {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, ended: &Ended<'_>) {
        if let Some(logs) = &self.logs {
            logs.lock().unwrap_or_else(PoisonError::into_inner).push(RunLog::of(ended));
        }
    }
}
