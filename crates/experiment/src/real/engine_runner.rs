//! Carries out runs in real time, each with its own engine over the target.
//!
//! Used by: `real`.
//! Tests: `crates/hoistway/tests/cli/run.rs`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as WallClock;

use hoistway_blk::ground::Nanos;
use hoistway_engine::job::{JobError, JobSettings, LoadRun};
use hoistway_engine::{Config, Engine, StartError};
use hoistway_measure::{ProcessResult, Setting};

use super::{EngineOptions, QueueFacts, RealLayer, RealPlan, cpus, error};
use crate::load::job_facts::JobFacts;
use crate::outcome::RunOutcome;
use crate::run::runner::{RunMeasurements, Runner};
use crate::{Error, Field, PlannedRun, RunObserver};

/// Carries out the rows of a real experiment.
pub(crate) struct EngineRunner<'a> {
    plan: &'a RealPlan<'a>,
    job_facts: JobFacts,
    /// The state of the load of each row.
    load_runs: &'a [Arc<LoadRun>],
    observer: &'a dyn RunObserver,
    on_begin: &'a (dyn Fn(&PlannedRun, &Arc<LoadRun>) + Sync),
    facts: Mutex<QueueFacts>,
}

impl<'a> EngineRunner<'a> {
    pub(crate) fn new(
        plan: &'a RealPlan<'a>,
        load_runs: &'a [Arc<LoadRun>],
        observer: &'a dyn RunObserver,
        on_begin: &'a (dyn Fn(&PlannedRun, &Arc<LoadRun>) + Sync),
    ) -> Self {
        let (job_facts, facts) = (JobFacts::of(&plan.file.load), Mutex::default());
        EngineRunner { plan, job_facts, load_runs, observer, on_begin, facts }
    }

    pub(super) fn facts(self) -> QueueFacts {
        self.facts.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries the settings of each variant on the target, before any run begins.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut tried: Vec<&str> = Vec::new();
        for row in &self.plan.rows {
            if !tried.contains(&&*row.variant.label) {
                tried.push(&row.variant.label);
                self.engine(row, &row.setting)?;
            }
        }
        Ok(())
    }

    /// An engine over the target for a row, with this setting.
    fn engine(&self, row: &PlannedRun, setting: &Setting) -> Result<Engine, Error> {
        let load = &self.plan.file.load;
        let options = match &self.plan.experiment.layer {
            RealLayer::Engine(options) => options,
            RealLayer::Kernel(_) => &EngineOptions::default(),
        };
        let name = |field| self.plan.environment.name(field);
        let processes = &load.processes;
        let workers = options.workers.unwrap_or(usize::from(cpus()).min(processes.len()).max(1));
        let opened = self.plan.target.open(load, row.seed, workers, options.fixed_buffers);
        let (backend, notes) = opened.map_err(|problem| self.plan.target_error(&problem))?;
        let config = Config {
            workers,
            scheduler: setting.scheduler.clone(),
            queue_depth: options.queue_depth,
            contention_options: options.contention_options,
            // Enough requests that no process ever waits for one.
            requests_per_worker: processes.iter().map(|process| process.issue.depth).sum::<u32>().max(64),
            keeps_statistics: true,
            ..Config::default()
        };
        let cannot_start =
            |why: StartError| error(Field::Schedulers, format!("{} {}: {why}", name(Field::Schedulers), row.scheduler));
        let engine = Engine::start(&config, backend).map_err(cannot_start)?;
        for (file, text) in &setting.writes {
            engine.set_attribute(file, text).map_err(|why| {
                let key = Setting::plain_name(file);
                let (field, owner) = match (row.variant.settings.contains_key(key), Setting::is_tunable(file)) {
                    (true, true) => (Field::Vary, format!("{}.", row.scheduler)),
                    (true, false) => (Field::Vary, "queue.".to_owned()),
                    (false, true) => (Field::Tunables, format!("{}.", row.scheduler)),
                    (false, false) => (Field::QueueFiles, String::new()),
                };
                error(field, format!("{} {owner}{key}={text} under {}: {why}", name(field), row.scheduler))
            })?;
        }
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if facts.hw_queues == 0 {
            let nr_requests = engine.attribute("nr_requests").ok().and_then(|text| text.trim().parse().ok());
            let (hw_queues, nr_requests) = (u32::from(engine.hw_queues()), nr_requests.unwrap_or(0));
            *facts = QueueFacts { hw_queues, nr_requests, notes };
        }
        Ok(engine)
    }
}

impl EngineRunner<'_> {
    /// Carries out the load of a row with this setting of the engine. `None` if it was cancelled before it began.
    pub(super) fn measure(&self, number: usize, setting: &Setting) -> Result<Option<RunMeasurements>, Error> {
        let (row, load_run) = (&self.plan.rows[number], &self.load_runs[number]);
        if load_run.is_cancelled() {
            return Ok(None);
        }
        let load = &self.plan.file.load;
        let engine = self.engine(row, setting)?;
        (self.on_begin)(row, load_run);
        let begin = WallClock::now();
        let settings = JobSettings { seed: row.seed, runtime: self.plan.runtime() };
        let cpu_ns = cpu_time_ns();
        let ended = hoistway_engine::job::run(&engine, load, &settings, load_run);
        let mut processes = ended.map_err(|why: JobError| error(Field::Load, why.to_string()))?;
        share_cpu_time(&mut processes, cpu_time_ns() - cpu_ns);
        let elapsed = begin.elapsed();
        let disk = engine.disk_summary(&self.plan.target.disk(load), Nanos(elapsed.as_nanos() as u64));
        let seconds = elapsed.as_secs_f64();
        Ok(Some(RunMeasurements {
            processes,
            disks: disk.into_iter().collect(),
            seconds,
            ios: load_run.ios(),
            wall_seconds: seconds,
            is_partial: load_run.is_cancelled(),
            ..RunMeasurements::default()
        }))
    }

    /// The outcome of a row with these measurements.
    pub(super) fn outcome(&self, number: usize, measured: RunMeasurements) -> RunOutcome {
        self.plan.rows[number].clone().outcome(&self.plan.file.load, &self.job_facts, measured, self.observer)
    }
}

impl Runner for EngineRunner<'_> {
    type Error = Error;

    fn run(&self, number: usize) -> Result<Option<RunOutcome>, Error> {
        let measured = self.measure(number, &self.plan.rows[number].setting)?;
        Ok(measured.map(|measured| self.outcome(number, measured)))
    }
}

/// CPU time of this process so far.
fn cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processes share workers: each is charged CPU time in proportion to its I/Os, in addition to the time that it busy-polled.
fn share_cpu_time(processes: &mut [ProcessResult], cpu_ns: u64) {
    let spun_ns: u64 = processes.iter().map(|process| process.cpu.user_ns).sum();
    let cpu_ns = cpu_ns.saturating_sub(spun_ns);
    let total_ios: u64 = processes.iter().map(ProcessResult::total_ios).sum();
    for process in processes {
        process.cpu.system_ns =
            (u128::from(cpu_ns) * u128::from(process.total_ios()) / u128::from(total_ios.max(1))) as u64;
    }
}
