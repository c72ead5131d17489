//! The runs of a comparison, side by side on all cores.

use std::fmt;
use std::sync::atomic::Ordering;

use hoistway_blk::{NoProbe, Probe};
use hoistway_results::ProcessResult;
use hoistway_results::document::{DiskSummary, Front, JobSummary, ResultsDocument, Run, cpu_us_per_io};
use hoistway_results::fio::{Output, OutputParameters};
use hoistway_sim::{Control, RunError, RunResult, Statistics, run_probed};
use rayon::prelude::*;
use serde_json::{Map, Value};

use crate::document;
use crate::error::{Error, Field};
use crate::fio_options;
use crate::plan::{Plan, Planned};

/// Whoever watches runs.
pub trait Watch: Sync {
    /// Seconds of wall-clock time since any moment: durations in the document come from it. By default it stands still.
    fn seconds(&self) -> f64 {
        0.0
    }

    /// Is shown a run as soon as it has ended: in any order, on any thread.
    fn ended(&self, ended: &Ended<'_>) {
        let _ = ended;
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// What the run is of; with its repeat it is unique.
    pub label: &'a str,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// What each process measured, with its logs.
    pub processes: &'a [ProcessResult],
    run: &'a Run,
    plan: &'a Plan<'a>,
}

impl Ended<'_> {
    /// fio's document of it with all latency bins (fio's json+).
    #[must_use]
    pub fn fio_json_plus(&self) -> Output {
        fio_document(&self.plan.setups[0].workload.options, self.processes, &self.run.disks, true)
    }
}

/// What may be done with runs, and seen of them, while they are under way.
#[derive(Debug, Default)]
pub struct Controls(Vec<Control>);

impl Controls {
    pub(crate) fn new(runs: usize) -> Self {
        Controls((0..runs).map(|_| Control::default()).collect())
    }

    /// Ends all runs early. What they have measured until then counts.
    pub fn cancel(&self) {
        self.0.iter().for_each(|run| run.cancelled.store(true, Ordering::Relaxed));
    }

    /// Virtual time that has passed, in all runs together.
    #[must_use]
    pub fn reached_ns(&self) -> u64 {
        self.0.iter().fold(0, |sum, run| sum.saturating_add(run.reached_ns.load(Ordering::Relaxed)))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Control> {
        self.0.iter()
    }
}

/// What a run leaves.
pub(crate) struct Outcome {
    pub(crate) run: Run,
    /// Whether it was cancelled before its end.
    pub(crate) is_partial: bool,
    /// Whether a process did more than its log holds.
    pub(crate) is_log_cut: bool,
    /// Writes to `queue/` that were refused.
    pub(crate) refused: Vec<String>,
}

impl Plan<'_> {
    /// Carries all runs out, as many at once as there are cores. A run that was cancelled before it began is left out.
    /// `controls` are this plan's.
    ///
    /// # Errors
    /// The first run that cannot begin.
    pub fn run(&self, controls: &Controls, watch: &dyn Watch) -> Result<ResultsDocument, Error> {
        let begin = watch.seconds();
        let outcomes: Vec<Option<Outcome>> = self
            .runs
            .par_iter()
            .zip(&controls.0)
            .map(|(planned, control)| {
                if control.cancelled.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let (outcome, NoProbe) = self.one(planned, control, watch, NoProbe)?;
                Ok(Some(outcome))
            })
            .collect::<Result<_, Error>>()?;
        document::of(self, outcomes, watch.seconds() - begin)
    }

    /// One run, watched by a probe, which is given back.
    pub(crate) fn one<P: Probe>(
        &self,
        planned: &Planned,
        control: &Control,
        watch: &dyn Watch,
        probe: P,
    ) -> Result<(Outcome, P), Error> {
        let (scenario, spec) = (self.scenario(planned), &planned.spec);
        let begin = watch.seconds();
        let both = (Statistics::new(&scenario, spec), probe);
        let (result, (statistics, probe)) = run_probed(&scenario, spec, control, both).map_err(cannot_begin)?;
        let disks = statistics.summaries(&scenario, result.simulated);
        let wall_seconds = watch.seconds() - begin;
        let RunResult { processes, simulated, ios, refused, page_cache, partial } = result;
        let number = |text: &str| text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
        let tunables: Map<String, Value> =
            spec.tunables.iter().map(|(name, text)| (name.clone(), number(text))).collect();
        let run = Run {
            scheduler: spec.label(),
            front: if scenario.queue.schedulers.is_legacy(&spec.scheduler) { Front::Legacy } else { Front::Mq },
            tunables,
            variant: planned.variant.clone(),
            setup: planned.setup as u32,
            repeat: planned.repeat,
            seed: spec.seed,
            simulated_seconds: simulated.as_secs_f64(),
            simulated_ios: ios,
            wall_seconds,
            cpu_us_per_io: cpu_us_per_io(&processes),
            jobs: JobSummary::from_processes(&processes),
            fio: fio_document(&scenario.workload.options, &processes, &disks, false),
            disks,
            page_cache,
        };
        let label = planned.variant.label.as_str();
        watch.ended(&Ended { label, repeat: planned.repeat, processes: &processes, run: &run, plan: self });
        let is_log_cut = processes.iter().any(|process| process.log.as_ref().is_some_and(|log| log.is_cut()));
        let refused = refused.iter().map(|refused| format!("{label}: {refused}.")).collect();
        Ok((Outcome { run, is_partial: partial, is_log_cut, refused }, probe))
    }
}

fn fio_document(
    global_options: &[(String, String)],
    processes: &[ProcessResult],
    disks: &[DiskSummary],
    bins: bool,
) -> Output {
    let disk_util = disks.iter().map(DiskSummary::as_fio).collect();
    let parameters = OutputParameters { bins, disk_util, ..OutputParameters::default() };
    let mut output = Output::from_processes(global_options, processes, &parameters);
    fio_options::complete(&mut output);
    output
}

/// The field to look at if a run cannot begin.
fn cannot_begin(error: RunError) -> Error {
    let field = match error {
        RunError::Config(_) => Field::Devices,
        RunError::Guests => Field::GuestSchedulers,
        RunError::Load(_) => Field::Load,
        RunError::Attribute { .. } => Field::QueueFiles,
        RunError::Tunable { .. } => Field::Tunables,
    };
    Error::new(field, error)
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome").field("label", &self.run.variant.label).finish_non_exhaustive()
    }
}
