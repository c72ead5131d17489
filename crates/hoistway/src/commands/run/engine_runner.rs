//! Runs in real time: each on an engine of its own over the target.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as WallClock;

use anyhow::{Context as _, Error, Result};
use hoistway_blk::Nanos;
use hoistway_engine::job::{JobSettings, LoadRun};
use hoistway_engine::{Config, Engine};
use hoistway_experiment::{JobFacts, Measured, RunObserver, RunOutcome, RunRow, Runner};
use hoistway_load::Load;
use hoistway_measure::ProcessResult;

use super::arguments::Arguments;
use super::progress::Progress;
use super::target::Target;

/// Carries out the rows of a real experiment.
pub(super) struct EngineRunner<'a> {
    arguments: &'a Arguments,
    target: &'a Target,
    load: &'a Load,
    job_facts: JobFacts,
    rows: &'a [RunRow],
    /// One for each row.
    load_runs: &'a [Arc<LoadRun>],
    observer: &'a dyn RunObserver,
    found: Mutex<Found>,
}

/// What the first run has found.
#[derive(Clone, Default)]
pub(super) struct Found {
    pub(super) hw_queues: u32,
    pub(super) nr_requests: u32,
    /// Remarks about the target.
    pub(super) notes: Vec<String>,
}

impl<'a> EngineRunner<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        target: &'a Target,
        load: &'a Load,
        rows: &'a [RunRow],
        load_runs: &'a [Arc<LoadRun>],
        observer: &'a dyn RunObserver,
    ) -> Self {
        let (job_facts, found) = (JobFacts::of(load), Mutex::default());
        EngineRunner { arguments, target, load, job_facts, rows, load_runs, observer, found }
    }

    pub(super) fn found(self) -> Found {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// An engine over the target, with all settings of a row.
    fn engine(&self, row: &RunRow) -> Result<Engine> {
        let processes = &self.load.processes;
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = self.arguments.workers.map_or(cpus.min(processes.len()).max(1), usize::from);
        let (backend, notes) = self.target.open(self.load, row.seed, workers, self.arguments.fixed_buffers)?;
        let config = Config {
            workers,
            scheduler: row.scheduler.clone(),
            queue_depth: self.arguments.queue_depth,
            techniques: self.arguments.techniques,
            // A resident on a worker of its own never waits for a slot.
            requests_per_worker: processes.iter().map(|process| process.issue.depth).sum::<u32>().max(64),
            keeps_statistics: true,
            ..Config::default()
        };
        let engine = Engine::start(&config, backend).with_context(|| format!("--scheduler {}", row.scheduler))?;
        let queue = row.queue_files.iter().map(|(file, text)| ("--queue", file.clone(), file, text));
        let tunables = row.tunables.iter().map(|(name, text)| ("--set", format!("iosched/{name}"), name, text));
        for (option, file, name, text) in queue.chain(tunables) {
            let given = || format!("{option} {name}={text} under {}", row.scheduler);
            engine.set_attribute(&file, text).with_context(given)?;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.hw_queues == 0 {
            let nr_requests = engine.attribute("nr_requests").ok().and_then(|text| text.trim().parse().ok());
            let (hw_queues, nr_requests) = (u32::from(engine.hw_queues()), nr_requests.unwrap_or(0));
            *found = Found { hw_queues, nr_requests, notes };
        }
        Ok(engine)
    }
}

impl Runner for EngineRunner<'_> {
    type Error = Error;

    fn run(&self, number: usize) -> Result<Option<RunOutcome>> {
        let (row, load_run) = (&self.rows[number], &self.load_runs[number]);
        if load_run.is_cancelled() {
            return Ok(None);
        }
        let _progress = Progress::show(load_run, &row.scheduler);
        let engine = self.engine(row)?;
        let begin = WallClock::now();
        let settings = JobSettings { seed: row.seed, runtime: self.arguments.run.runtime };
        let cpu_ns = cpu_time_ns();
        let mut processes = hoistway_engine::job::run(&engine, self.load, &settings, load_run)?;
        share_cpu_time(&mut processes, cpu_time_ns() - cpu_ns);
        let passed = begin.elapsed();
        let disk = engine.disk_summary(&self.target.disk(self.load), Nanos(passed.as_nanos() as u64));
        let seconds = passed.as_secs_f64();
        let measured = Measured {
            processes,
            disks: disk.into_iter().collect(),
            seconds,
            ios: load_run.ios(),
            wall_seconds: seconds,
            is_partial: load_run.is_cancelled(),
            ..Measured::default()
        };
        Ok(Some(row.clone().outcome(self.load, &self.job_facts, measured, self.observer)))
    }
}

/// CPU time of this program so far.
fn cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processes share workers: each is charged for its share of the I/Os, beside the time for which it kept its CPU busy itself.
fn share_cpu_time(processes: &mut [ProcessResult], cpu_ns: u64) {
    let spun_ns: u64 = processes.iter().map(|process| process.cpu.user_ns).sum();
    let cpu_ns = cpu_ns.saturating_sub(spun_ns);
    let all: u64 = processes.iter().map(ProcessResult::total_ios).sum();
    for process in processes {
        process.cpu.system_ns = (u128::from(cpu_ns) * u128::from(process.total_ios()) / u128::from(all.max(1))) as u64;
    }
}
