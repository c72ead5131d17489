//! What carries out the runs of an experiment, in virtual or in real time, and what each of them leaves.

use hoistway_answer::document::{Front, JobSummary, LockSummary, Run, RunVariant, cpu_us_per_io};
use hoistway_load::Load;
use hoistway_measure::{DiskSummary, PageCacheSummary, ProcessResult};
use hoistway_sim::Fate;
use serde_json::{Map, Value};

use crate::job_facts::JobFacts;
use crate::observer::{Ended, RunObserver};
use crate::outcome::RunOutcome;
use crate::variants::number_or_text;

/// Carries out runs, by their numbers: all rows of the first repeat, then those of the second, and so on.
pub trait Runner: Sync {
    /// Why a run cannot begin.
    type Error: Send + Sync;

    /// Carries out a run. None if it was cancelled before it began.
    ///
    /// # Errors
    /// If it cannot begin.
    fn run(&self, number: usize) -> Result<Option<RunOutcome>, Self::Error>;

    /// How long a run of the first repeat takes beside the others, in any unit. Later ones are known by the first.
    fn expected_length(&self, number: usize) -> u32 {
        let _ = number;
        0
    }
}

/// When runs are carried out.
#[derive(Clone, Copy, Debug)]
pub struct RunOrder<'a> {
    /// The number of the repeat of each run, in the order of [`Runner`].
    pub repeats: &'a [u32],
    /// Whether runs may go side by side: in virtual time they do not disturb each other.
    pub is_parallel: bool,
}

/// What a run came to.
pub(crate) type RunEnd<E> = Result<Option<RunOutcome>, E>;

/// What a run is of: a row of the tables, and its repeat.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// The scheduler's name, as in sysfs; with guests `GUEST-over-HOST`.
    pub scheduler: String,
    /// The block layer that it runs on.
    pub front: Front,
    /// The kernel whose block layer it runs on, if that of the place lacks this scheduler.
    pub ran_as: Option<String>,
    /// Where the scheduler was published, if no kernel has it.
    pub research: Option<String>,
    /// The tunables that are set, by name.
    pub tunables: Vec<(String, String)>,
    /// The files of `queue/` that are written before, by name.
    pub queue_files: Vec<(String, String)>,
    /// What tells it from other rows of the same scheduler.
    pub variant: RunVariant,
    /// Where it takes place: index into the places of the experiment.
    pub setup: u32,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// The seed of the run.
    pub seed: u64,
}

/// What a run has measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// What each process did, in the order of the load.
    pub processes: Vec<ProcessResult>,
    /// The statistics of its devices, if they were kept.
    pub disks: Vec<DiskSummary>,
    /// Time that passed for the load, virtual or real, s.
    pub seconds: f64,
    /// I/Os that ended, measured or not.
    pub ios: u64,
    /// Wall-clock time that it took, s.
    pub wall_seconds: f64,
    /// What locks of schedulers cost, if they have a price.
    pub locks: Option<LockSummary>,
    /// What the page cache did, if a job used it.
    pub page_cache: Option<PageCacheSummary>,
    /// Whether it was cancelled before its end.
    pub is_partial: bool,
    /// Writes to `queue/` that were refused.
    pub refused: Vec<String>,
    /// What became of each write to `queue/` while it ran, in their order.
    pub fates: Vec<Fate>,
}

impl RunRow {
    /// What the document has of this run. The observer is notified of its end.
    pub fn outcome(self, load: &Load, facts: &JobFacts, measured: Measured, observer: &dyn RunObserver) -> RunOutcome {
        let Measured { processes, disks, seconds, ios, wall_seconds, locks, page_cache, is_partial, refused, fates } =
            measured;
        let mut jobs = JobSummary::from_processes(&processes);
        jobs.iter_mut().for_each(|summary| facts.complete(summary));
        let run = Run {
            scheduler: self.scheduler,
            front: self.front,
            ran_as: self.ran_as,
            research: self.research,
            tunables: values(&self.tunables),
            queue_files: values(&self.queue_files),
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

fn values(texts: &[(String, String)]) -> Map<String, Value> {
    texts.iter().map(|(name, text)| (name.clone(), number_or_text(text))).collect()
}
