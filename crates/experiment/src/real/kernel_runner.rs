//! Carries out runs in real time under the schedulers of this machine's kernel: a job file in fio, a recording in the engine.
//!
//! Used by: `real`.
//! Tests: `crates/hoistway/tests/machine/verify.rs`.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as WallClock;

use hoistway_engine::job::LoadRun;
use hoistway_linux::apply::{QueuesError, TemporaryQueues};
use hoistway_measure::fio::Output;
use hoistway_measure::{ProcessResult, Setting};

use super::engine_runner::EngineRunner;
use super::fio_process::{self, FioError};
use super::{QueueFacts, RealPlan, error};
use crate::outcome::RunOutcome;
use crate::run::runner::{RunMeasurements, Runner};
use crate::{Error, Field, PlannedRun, RunObserver};

/// Carries out the rows of an experiment, each after its setting is made on the disks below the target.
pub(super) struct KernelRunner<'a> {
    plan: &'a RealPlan<'a>,
    load_runs: &'a [Arc<LoadRun>],
    on_begin: &'a (dyn Fn(&PlannedRun, &Arc<LoadRun>) + Sync),
    queues: Mutex<Queues<'a>>,
    /// Runs recordings, without a scheduler of its own.
    engine: EngineRunner<'a>,
    /// The job file for fio; `None` for a recording.
    job_file: Option<tempfile::NamedTempFile>,
}

/// The queues of the disks, and the number of requests that the first run found.
struct Queues<'a> {
    disks: TemporaryQueues<'a>,
    nr_requests: Option<u32>,
}

impl<'a> KernelRunner<'a> {
    pub(super) fn new(
        plan: &'a RealPlan<'a>,
        disks: TemporaryQueues<'a>,
        load_runs: &'a [Arc<LoadRun>],
        observer: &'a dyn RunObserver,
        on_begin: &'a (dyn Fn(&PlannedRun, &Arc<LoadRun>) + Sync),
    ) -> Result<Self, Error> {
        let written = || {
            let mut file = tempfile::Builder::new().suffix(".fio").tempfile()?;
            file.write_all(plan.text.text().as_bytes()).map(|()| file)
        };
        let job_file = plan.runs_fio().then(written).transpose();
        let job_file = job_file.map_err(|why| error(Field::Load, format!("a job file for fio: {why}")))?;
        let engine = EngineRunner::new(plan, load_runs, observer, on_begin);
        let queues = Mutex::new(Queues { disks, nr_requests: None });
        Ok(KernelRunner { plan, load_runs, on_begin, queues, engine, job_file })
    }

    /// Restores the disks, and returns the facts about their queues.
    pub(super) fn restored(self) -> Result<QueueFacts, Error> {
        let QueueFacts { notes, .. } = self.engine.facts();
        let Queues { disks, nr_requests } = self.queues.into_inner().unwrap_or_else(PoisonError::into_inner);
        let hw_queues = disks.hw_queues().unwrap_or(0);
        disks.restore().map_err(queues_error)?;
        Ok(QueueFacts { hw_queues: u32::from(hw_queues), nr_requests: nr_requests.unwrap_or(0), notes })
    }

    /// The row of a run. Each round begins with another one, since its first run may see other conditions.
    fn row_of(&self, number: usize) -> usize {
        let rows = self.plan.runs_per_round();
        let (round, index) = (number / rows, number % rows);
        round * rows + (index + round) % rows
    }

    /// Carries out the load of a row. `None` if it was cancelled.
    fn measure(&self, number: usize) -> Result<Option<RunMeasurements>, Error> {
        match &self.job_file {
            Some(file) => self.run_fio(number, file),
            None => self.engine.measure(number, &Setting::untouched("none")),
        }
    }

    fn run_fio(&self, number: usize, job_file: &tempfile::NamedTempFile) -> Result<Option<RunMeasurements>, Error> {
        let load_run = &self.load_runs[number];
        (self.on_begin)(&self.plan.rows[number], load_run);
        let modifies = self.plan.file.load.processes.iter().any(|process| process.plan.modifies());
        let mut arguments = vec!["--lat_percentiles=1".to_owned(), "--clat_percentiles=0".to_owned()];
        arguments.extend((!modifies).then(|| "--readonly".to_owned()));
        arguments.push(job_file.path().to_string_lossy().into_owned());
        let begin = WallClock::now();
        let document = match fio_process::run(&arguments, &|| !load_run.is_cancelled()) {
            Err(FioError::Interrupted) => return Ok(None),
            document => document.map_err(|why| error(Field::Load, why.to_string()))?,
        };
        let seconds = begin.elapsed().as_secs_f64();
        let processes = self.processes(document)?;
        let ios = processes.iter().map(ProcessResult::total_ios).sum();
        Ok(Some(RunMeasurements { processes, seconds, ios, wall_seconds: seconds, ..RunMeasurements::default() }))
    }

    /// The measurements in fio's document, as those of the load's processes.
    fn processes(&self, document: serde_json::Value) -> Result<Vec<ProcessResult>, Error> {
        let failed = |why: String| error(Field::Load, format!("{}: {why}", self.plan.text.name()));
        let output: Output =
            serde_json::from_value(document).map_err(|why| failed(format!("fio's document: {why}")))?;
        let mut measured = output.processes();
        let processes = &self.plan.file.load.processes;
        if measured.len() != processes.len() {
            let (ran, expected) = (measured.len(), processes.len());
            return Err(failed(format!(
                "fio ran {ran} processes (expected {expected}, as hoistway reads the job file)"
            )));
        }
        for (result, process) in measured.iter_mut().zip(processes) {
            result.job = process.schedule.job as u32;
            result.name.clone_from(&process.name);
            if result.directions.iter().any(|direction| direction.ios > 0 && direction.lat.is_empty()) {
                return Err(failed("fio printed no bins of latencies (expected fio 3.0 or later)".to_owned()));
            }
        }
        Ok(measured)
    }
}

impl Runner for KernelRunner<'_> {
    type Error = Error;

    fn run(&self, number: usize) -> Result<Option<RunOutcome>, Error> {
        let number = self.row_of(number);
        if self.load_runs[number].is_cancelled() {
            return Ok(None);
        }
        let Setting { scheduler, writes } = &self.plan.rows[number].setting;
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.disks.set(scheduler, writes).map_err(queues_error)?;
        queues.nr_requests = queues.nr_requests.or_else(|| queues.disks.number("nr_requests"));
        let Some(measured) = self.measure(number)? else { return Ok(None) };
        queues.disks.check(scheduler).map_err(queues_error)?;
        Ok(Some(self.engine.outcome(number, measured)))
    }
}

fn queues_error(why: QueuesError) -> Error {
    error(Field::Target, why.to_string())
}
