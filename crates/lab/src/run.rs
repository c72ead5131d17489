//! The runs of a comparison, side by side on all cores.

use std::sync::atomic::Ordering;

use hoistway_blk::{NoProbe, Probe};
use hoistway_load::Load;
use hoistway_results::ProcessResult;
use hoistway_results::document::{Front, JobSummary, ResultsDocument, Run, cpu_us_per_io};
use hoistway_sim::{Control, RunError, RunResult, Statistics, run_probed};
use rayon::prelude::*;
use serde_json::{Map, Value};

use crate::comparison::Comparison;
use crate::document;
use crate::error::{Error, Field};
use crate::outcome::Outcome;
use crate::plan::{Plan, Planned};
use crate::surroundings::Surroundings;
use crate::watch::{Controls, Ended, Unwatched, Watch, fio_document};

impl Comparison {
    /// Runs it, as many runs at once as there are cores; the results do not depend on how many that are. For progress, for
    /// cancelling, and to see more of each run than the document holds, make a [`Plan`] of it first.
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn run(&self, surroundings: &dyn Surroundings) -> Result<ResultsDocument, Error> {
        let plan = Plan::of(self, surroundings)?;
        plan.run(&plan.controls(), &Unwatched)
    }
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
            jobs: jobs(&processes, scenario.workload),
            fio: fio_document(&scenario.workload.options, &processes, &disks, false),
            disks,
            page_cache,
        };
        let label = planned.variant.label.as_str();
        let global_options = &scenario.workload.options;
        watch.ended(&Ended { label, repeat: planned.repeat, processes: &processes, global_options, disks: &run.disks });
        let is_log_cut = processes.iter().any(|process| process.log.as_ref().is_some_and(|log| log.is_cut()));
        let refused = refused.iter().map(|refused| format!("{label}: {refused}.")).collect();
        Ok((Outcome { run, is_partial: partial, is_log_cut, refused }, probe))
    }
}

/// The summaries of all jobs. What was measured does not say where the I/Os lay.
fn jobs(processes: &[ProcessResult], workload: &Load) -> Vec<JobSummary> {
    let mut jobs = JobSummary::from_processes(processes);
    for summary in &mut jobs {
        let mut clones = workload.processes.iter().filter(|process| process.schedule.job == summary.job);
        summary.random = Some(clones.any(|process| process.plan.is_random()));
    }
    jobs
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
