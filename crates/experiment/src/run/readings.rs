//! Extra runs for a recording: one for each alternative program that is consistent with it (RP23), and one under its own
//! scheduler (RP25).

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{
    AlternativeFigures, AlternativeProgram, JobSummary, OperationSummary, RecordingSummary, Run,
};
use hoistway_answer::verdict::recommended;
use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{Instant, Nanos};
use hoistway_program::{Alternative, Change, Stream};

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::observer::{Controls, Unobserved};
use crate::comparison::{Comparison, Tunable};
use crate::load::recording::{self, Recorded};
use crate::plan::Plan;
use crate::plan::schedulers::queue_under;

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
        summary.device_off_factor = recorded.off_by(&self.setups[0].devices[0]);
        summary.is_device_seen = recorded.is_device_seen(&self.setups[0].devices[0]);
        let (own_scheduler, is_guess) = match &recorded.recorded_under {
            Some(name) => (Some(name.clone()), false),
            // A queue without a scheduler inserts few requests.
            None if recorded.program.was_scheduled && document.default_scheduler.as_deref() == Some("none") => {
                (Some("mq-deadline".to_owned()), true)
            }
            None => (document.default_scheduler.clone(), true),
        };
        let own_scheduler =
            own_scheduler.map(|guess| if is_guess { recorded.nearest_scheduler(document, guess) } else { guess });
        if let Some(own_scheduler) = &own_scheduler {
            // If the settings of its queue are known, the recording gets a run with these.
            let has_run =
                recorded.host.is_none() && document.runs.iter().any(|run| run.variant.label == *own_scheduler);
            summary.self_check = if has_run {
                recorded.self_check(document, own_scheduler)
            } else {
                recorded.self_check(&self.run_under(own_scheduler, recorded)?, own_scheduler)
            };
        }
        (summary.recorded_under, summary.is_guess) = (own_scheduler, is_guess);
        let constant_depth = recorded.constant_depth_alternative(document, summary.recorded_under.as_deref());
        for alternative in recorded.alternatives().iter().chain(&constant_depth) {
            if controls.is_cancelled() {
                break;
            }
            let repeats = document.seeds.len().clamp(1, REPEATS_MAX as usize) as u32;
            let comparison = Comparison { repeats, ..self.options.comparison.clone() };
            let mut replayed = self.rerun(comparison, &alternative.changes)?;
            replayed.recording = Some(Box::new(recorded.summary()));
            let replayed = replayed.judged();
            summary.alternatives.push(AlternativeProgram {
                condition: alternative
                    .changes
                    .iter()
                    .map(|change| recorded.condition(*change))
                    .collect::<Vec<_>>()
                    .join(" and "),
                settled_by: recorded.settled_by(&alternative.changes, &self.options),
                recommended: recommended(&replayed.verdicts).map(str::to_owned),
                figures: figures(&replayed),
            });
        }
        Ok(summary)
    }

    /// A run under the recording's own scheduler and settings, without the settings requested for the other runs.
    fn run_under(&self, scheduler: &str, recorded: &Recorded) -> Result<ResultsDocument, Error> {
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
        let Some(host) = host else { return self.rerun(comparison, &[]) };
        let mut as_recorded = comparison.clone();
        as_recorded.queue_files = recording::queue_files(host, &comparison.queue_files);
        let is_possible = |tunable: &Tunable| self.is_possible(tunable);
        as_recorded.tunables.extend(recording::tunables(host, scheduler, &comparison.tunables, is_possible));
        // The device model may have fewer tags than the recorded device.
        self.rerun(as_recorded, &[]).or_else(|_| self.rerun(comparison, &[]))
    }

    /// Whether the scheduler of this kernel has the tunable and accepts its value.
    fn is_possible(&self, tunable: &Tunable) -> bool {
        let config = self.setups.first().map(|setup| &setup.config);
        let queue = config.and_then(|config| queue_under(&tunable.scheduler, config).ok());
        queue.is_some_and(|queue| {
            let now = queue.generation().hz.now(Instant::ZERO);
            queue.set_tunable(now, &tunable.name, &tunable.text, &mut Effects::new()).is_ok()
        })
    }

    /// Runs another comparison of the program, with changes.
    fn rerun(&self, comparison: Comparison, changes: &[Change]) -> Result<ResultsDocument, Error> {
        let comparison = Comparison { excerpts: false, logs: false, until_sure: false, ..comparison };
        let mut load = self.load.clone();
        load.changes = changes.to_vec();
        let options = Options { comparison: &comparison, environment: self.options.environment };
        let plan = Plan::from_load(options, load, comparison.runtime_ns.map(Nanos))?;
        plan.run_only(&plan.controls(), &Unobserved)
    }
}

impl Recorded {
    /// The scheduler that the recording was made under, of which it says nothing: the likely one, if its replay is about what was recorded;
    /// otherwise the one with the nearest replay.
    fn nearest_scheduler(&self, document: &ResultsDocument, likely: String) -> String {
        /// A replay is about what was recorded if its figures differ by less than this factor.
        const ABOUT: f64 = 1.2;
        let distance = |label: &str| {
            let checks = self.self_check(document, label);
            let ios: u64 = checks.iter().map(|check| check.ios).sum();
            let sum: f64 = checks.iter().map(|check| check.factor().ln() * check.ios as f64).sum();
            if ios > 0 { sum / ios as f64 } else { f64::INFINITY }
        };
        // A queue without a scheduler inserts few requests.
        let is_possible = |name: &str| name != "none" || !self.program.was_scheduled;
        let mut nearest = (likely.clone(), distance(&likely));
        // Without a run of it nothing can be said against it.
        if nearest.1 < ABOUT.ln() || nearest.1.is_infinite() {
            return likely;
        }
        // Variants with settings of their own are not what an unknown machine has.
        let with_defaults = document.runs.iter().filter(|run| run.repeat == 0 && run.variant.label == run.scheduler);
        for run in with_defaults.filter(|run| is_possible(&run.scheduler)) {
            let distance = distance(&run.scheduler);
            if distance < nearest.1 {
                nearest = (run.scheduler.clone(), distance);
            }
        }
        nearest.0
    }

    /// For a recording without completions, the alternative that streams keep a constant queue depth, from the latencies of the runs
    /// under `label` (RP31).
    fn constant_depth_alternative(&self, document: &ResultsDocument, label: Option<&str>) -> Option<Alternative> {
        if self.program.has_completions {
            return None;
        }
        let first = document.runs.first()?;
        let is_own = |run: &&Run| label.is_some_and(|label| run.variant.label == label);
        let run = document.runs.iter().find(is_own).unwrap_or(first);
        let constant_depth_change = |(stream, recorded_stream): (usize, &Stream)| {
            let job = run.jobs.iter().find(|job| job.name == recorded_stream.name)?;
            let sum_ns: f64 = job.operations.iter().map(|summary| summary.lat_ns.mean * summary.ios as f64).sum();
            let ios: u64 = job.operations.iter().map(|summary| summary.ios).sum();
            (ios > 0).then(|| Change::Kept { stream, latency_ns: (sum_ns / ios as f64) as u64 })
        };
        let changes: Vec<Change> = self.program.streams.iter().enumerate().filter_map(constant_depth_change).collect();
        let ios = changes.iter().map(|change| self.program.streams[change.stream()].ios).sum();
        (!changes.is_empty()).then_some(Alternative { changes, ios })
    }

    fn condition(&self, change: Change) -> String {
        let name = |stream: usize| &self.program.streams[stream].name;
        match change {
            Change::Open { stream } => format!("the I/Os of {} arrive independently of completions", name(stream)),
            Change::Closed { stream } => format!("{} waits for its own I/Os", name(stream)),
            Change::Deeper { stream, seen, .. } => format!("{} wants more than {seen} I/Os outstanding", name(stream)),
            Change::Kept { stream, latency_ns } => format!(
                "{} waits for its own I/Os and keeps the queue depth that its rate implies at {:.0} us per I/O",
                name(stream),
                latency_ns as f64 / 1e3
            ),
            Change::Waits { stream, on } => format!("{} waits for {}", name(stream), name(on)),
        }
    }

    fn settled_by(&self, changes: &[Change], options: &Options<'_>) -> String {
        let name = |change: &Change| &self.program.streams[change.stream()].name;
        if changes.iter().any(|change| matches!(change, Change::Kept { .. })) {
            return "a recording with completions".to_owned();
        }
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
    let run_figures = |run: &Run| {
        let label = run.variant.label.clone();
        let job_figures = |job: &JobSummary| {
            let operation_figures = |summary: &OperationSummary| AlternativeFigures {
                label: label.clone(),
                job: job.name.clone(),
                operation: summary.operation,
                iops: summary.iops,
                mean_ns: summary.lat_ns.mean,
                p99_ns: summary.lat_ns.p99 as f64,
            };
            job.operations.iter().map(operation_figures).collect::<Vec<_>>()
        };
        run.jobs.iter().flat_map(job_figures).collect::<Vec<_>>()
    };
    first.flat_map(run_figures).collect()
}
