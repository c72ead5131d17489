//! Extra runs for a recording: one for each alternative that it leaves open (RP23), and one under its own scheduler
//! (RP25).

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{
    AlternativeFigures, AlternativeProgram, JobSummary, OperationSummary, RecordingSummary, Run,
};
use hoistway_answer::verdict::recommended;
use hoistway_blk::ground::Nanos;
use hoistway_program::Change;

use crate::comparison::{Comparison, Tunable};
use crate::environment::Options;
use crate::error::Error;
use crate::fields::Field;
use crate::observer::{Controls, Unobserved};
use crate::plan::Plan;
use crate::recording::{self, Recorded};
use crate::schedulers::queue_under;
use crate::tunables;

/// Maximum repeats of an alternative: it only has to show whether the recommendation stays the same.
const REPEATS_MAX: u32 = 3;

impl Plan<'_> {
    /// Summarizes the recording that was the load. `document` is the document of its runs.
    pub(crate) fn recording_summary(
        &self,
        recorded: &Recorded,
        document: &ResultsDocument,
        controls: &Controls,
    ) -> Result<RecordingSummary, Error> {
        let mut summary = recorded.summary();
        let (own, is_guess) = match &recorded.recorded_under {
            Some(name) => (Some(name.clone()), false),
            None => (document.default_scheduler.clone(), true),
        };
        if let Some(own) = &own {
            // If the settings of its queue are known, the recording gets a run with these.
            let has_run = recorded.host.is_none() && document.runs.iter().any(|run| run.variant.label == *own);
            summary.self_check = if has_run {
                recorded.self_check(document, own)
            } else {
                recorded.self_check(&self.under(own, recorded)?, own)
            };
        }
        (summary.recorded_under, summary.is_guess) = (own, is_guess);
        for alternative in recorded.alternatives() {
            if controls.is_cancelled() {
                break;
            }
            let repeats = document.seeds.len().clamp(1, REPEATS_MAX as usize) as u32;
            let comparison = Comparison { repeats, ..self.options.comparison.clone() };
            let replayed = self.again(comparison, &alternative.changes)?;
            summary.alternatives.push(AlternativeProgram {
                condition: alternative
                    .changes
                    .iter()
                    .map(|change| recorded.condition(*change))
                    .collect::<Vec<_>>()
                    .join(" and "),
                settled_by: recorded.settled_by(&alternative.changes, &self.options),
                recommended: recommended(&replayed).map(str::to_owned),
                figures: figures(&replayed),
            });
        }
        Ok(summary)
    }

    /// A run under the recording's own scheduler and settings, without the settings requested for the other runs.
    fn under(&self, scheduler: &str, recorded: &Recorded) -> Result<ResultsDocument, Error> {
        let mut comparison = Comparison {
            schedulers: vec![scheduler.to_owned()],
            repeats: 1,
            baseline: None,
            vary: Vec::new(),
            writes: Vec::new(),
            ..self.options.comparison.clone()
        };
        comparison.tunables.retain(|tunable| tunable.scheduler == scheduler);
        // Settings recorded under another scheduler do not apply.
        let host = recorded.host.as_ref().filter(|host| host.scheduler.as_deref() == Some(scheduler));
        let Some(host) = host else { return self.again(comparison, &[]) };
        let mut as_recorded = comparison.clone();
        as_recorded.queue_files = recording::queue_files(host, &comparison.queue_files);
        let is_possible = |tunable: &Tunable| self.is_possible(tunable);
        as_recorded.tunables.extend(recording::tunables(host, scheduler, &comparison.tunables, is_possible));
        // The device model may have fewer tags than the recorded device.
        self.again(as_recorded, &[]).or_else(|_| self.again(comparison, &[]))
    }

    /// Whether the scheduler of this kernel has the tunable and accepts its value.
    fn is_possible(&self, tunable: &Tunable) -> bool {
        let config = self.setups.first().map(|setup| &setup.config);
        let queue = config.and_then(|config| queue_under(&tunable.scheduler, config).ok());
        queue.is_some_and(|queue| tunables::set(&self.options, Field::Tunables, &queue, tunable).is_ok())
    }

    /// Runs another comparison of the program, with changes.
    fn again(&self, comparison: Comparison, changes: &[Change]) -> Result<ResultsDocument, Error> {
        let comparison = Comparison { excerpts: false, logs: false, until_sure: false, ..comparison };
        let mut load = self.load.clone();
        load.changes = changes.to_vec();
        let options = Options { comparison: &comparison, environment: self.options.environment };
        let plan = Plan::of_load(options, load, comparison.runtime_ns.map(Nanos))?;
        plan.run_only(&plan.controls(), &Unobserved)
    }
}

impl Recorded {
    fn condition(&self, change: Change) -> String {
        let name = |stream: usize| &self.program.streams[stream].name;
        match change {
            Change::Open { stream } => format!("the I/Os of {} come from outside, whatever completes", name(stream)),
            Change::Closed { stream } => format!("{} waits for its own I/Os", name(stream)),
            Change::Deeper { stream, seen } => format!("{} wants more than {seen} I/Os outstanding", name(stream)),
            Change::Waits { stream, on } => format!("{} waits for {}", name(stream), name(on)),
        }
    }

    fn settled_by(&self, changes: &[Change], options: &Options<'_>) -> String {
        let name = |change: &Change| &self.program.streams[change.stream()].name;
        let hidden = changes.iter().find(|change| matches!(change, Change::Deeper { .. }));
        match hidden {
            Some(change) => {
                let given = options.given(Field::Depths, format_args!("{}=N", name(change)));
                format!("its depth ({given}), or a recording with a larger nr_requests")
            }
            None => "a longer recording, or one under another scheduler".to_owned(),
        }
    }
}

fn figures(document: &ResultsDocument) -> Vec<AlternativeFigures> {
    let first = document.runs.iter().filter(|run| run.repeat == 0);
    let of_run = |run: &Run| {
        let label = run.variant.label.clone();
        let of_job = |job: &JobSummary| {
            let of = |summary: &OperationSummary| AlternativeFigures {
                label: label.clone(),
                job: job.name.clone(),
                operation: summary.operation,
                iops: summary.iops,
                mean_ns: summary.lat_ns.mean,
                p99_ns: summary.lat_ns.p99 as f64,
            };
            job.operations.iter().map(of).collect::<Vec<_>>()
        };
        run.jobs.iter().flat_map(of_job).collect::<Vec<_>>()
    };
    first.flat_map(of_run).collect()
}
