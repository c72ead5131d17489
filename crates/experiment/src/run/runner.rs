//! The trait for carrying out runs of an experiment in virtual or in real time, and the outcome of a run.

use hoistway_answer::document::{Front, JobSummary, LockSummary, Run, RunLabel, cpu_us_per_io};
use hoistway_load::Load;
use hoistway_measure::{DiskSummary, IoCostSummary, IoLatencySummary, PageCacheSummary, ProcessResult, Setting};
use hoistway_sim::Fate;
use serde_json::{Map, Value};

use crate::comparison::observer::{Ended, RunObserver};
use crate::load::job_facts::JobFacts;
use crate::outcome::RunOutcome;
use crate::plan::variants::number_or_text;

/// Carries out runs, by their numbers: all rows of the first repeat, then those of the second, and so on.
pub trait Runner: Sync {
    /// Why a run cannot begin.
    type Error: Send + Sync;

    /// Carries out a run. `None` if it was cancelled before it began.
    ///
    /// # Errors
    /// If it cannot begin.
    fn run(&self, number: usize) -> Result<Option<RunOutcome>, Self::Error>;

    /// How long a run of the first repeat takes relative to the others, in any unit. Later repeats use measured
    /// durations.
    fn expected_length(&self, number: usize) -> u32 {
        let _ = number;
        0
    }
}

/// The order of the runs.
#[derive(Clone, Copy, Debug)]
pub struct RunOrder<'a> {
    /// The number of the repeat of each run, in the order of [`Runner`].
    pub repeats: &'a [u32],
    /// Whether runs may be parallel: in virtual time they do not disturb each other.
    pub is_parallel: bool,
}

/// The result of a run.
pub(crate) type RunEnd<E> = Result<Option<RunOutcome>, E>;

/// The row of the tables that a run belongs to, and its repeat.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The scheduler's name, as in sysfs; with guests `GUEST-over-HOST`.
    pub scheduler: String,
    /// The block layer that it runs on.
    pub front: Front,
    /// The kernel whose block layer it runs on, if the setup's kernel lacks this scheduler.
    pub ran_as: Option<String>,
    /// Where the scheduler was published, if no kernel has it.
    pub research: Option<String>,
    /// The setting of the devices.
    pub setting: Setting,
    /// What distinguishes it from other rows of the same scheduler.
    pub variant: RunLabel,
    /// Index of its setup.
    pub setup: u32,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// The seed of the run.
    pub seed: u64,
}

/// The measurements of a run.
#[derive(Clone, Debug, Default)]
pub struct RunMeasurements {
    /// The results of each process, in the order of the load.
    pub processes: Vec<ProcessResult>,
    /// The statistics of its devices, if they were collected.
    pub disks: Vec<DiskSummary>,
    /// Duration of the load in virtual or real time, s.
    pub seconds: f64,
    /// Completed I/Os, measured or not.
    pub ios: u64,
    /// Wall-clock duration, s.
    pub wall_seconds: f64,
    /// The cost of scheduler locks, if the host has one.
    pub locks: Option<LockSummary>,
    /// The use of the page cache, if a job used it.
    pub page_cache: Option<PageCacheSummary>,
    /// What `io.cost` did on each device that has it.
    pub io_cost: Vec<IoCostSummary>,
    /// What `io.latency` did on each device that has it.
    pub io_latency: Vec<IoLatencySummary>,
    /// Whether it was cancelled before its end.
    pub is_partial: bool,
    /// Writes to `queue/` that were refused.
    pub refused: Vec<String>,
    /// The result of each write to `queue/` during the run, in order.
    pub fates: Vec<Fate>,
}

impl PlannedRun {
    /// Makes the outcome of this run for the document, and notifies the observer.
    pub fn outcome(
        self,
        load: &Load,
        facts: &JobFacts,
        measured: RunMeasurements,
        observer: &dyn RunObserver,
    ) -> RunOutcome {
        let RunMeasurements {
            processes,
            disks,
            seconds,
            ios,
            wall_seconds,
            locks,
            page_cache,
            io_cost,
            io_latency,
            is_partial,
            refused,
            fates,
        } = measured;
        let mut jobs = JobSummary::from_processes(&processes);
        jobs.iter_mut().for_each(|summary| facts.complete(summary));
        let run = Run {
            scheduler: self.scheduler,
            front: self.front,
            ran_as: self.ran_as,
            research: self.research,
            tunables: values(self.setting.tunables()),
            queue_files: values(self.setting.queue_files()),
            variant: self.variant,
            setup: self.setup,
            repeat: self.repeat,
            seed: self.seed,
            simulated_seconds: seconds,
            simulated_ios: ios,
            wall_seconds,
            cpu_us_per_io: cpu_us_per_io(&processes),
            jobs,
            locks,
            disks,
            page_cache,
            io_cost,
            io_latency,
            excerpt: None,
        };
        let label = run.variant.label.as_str();
        let global_options = &load.options;
        observer.ended(&Ended { label, repeat: run.repeat, processes: &processes, global_options, run: &run });
        let is_log_cut = processes.iter().any(|process| process.log.as_ref().is_some_and(|log| log.is_cut()));
        let refused = refused.iter().map(|refused| format!("{label}: {refused}.")).collect();
        RunOutcome { is_partial, is_log_cut, refused, fates, run }
    }
}

fn values<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    texts.map(|(name, text)| (name.to_owned(), number_or_text(text))).collect()
}
