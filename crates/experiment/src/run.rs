//! The runs of a comparison, side by side on all cores.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hoistway_answer::document::{Front, JobSummary, ResultsDocument, Run, cpu_us_per_io};
use hoistway_load::Process;
use hoistway_measure::ProcessResult;
use hoistway_observed::{Observer, run_observed};
use hoistway_sim::{Control, QueueSettings, RunError, RunResult, run_with_statistics};
use serde_json::{Map, Value};

use crate::comparison::Comparison;
use crate::demand::demand;
use crate::document;
use crate::environment::CallerEnvironment;
use crate::error::{Error, Field};
use crate::locks;
use crate::observer::{Controls, Ended, RunObserver, Unobserved, fio_document};
use crate::outcome::Outcome;
use crate::plan::{Plan, Planned};
use crate::recorder::Recorder;
use crate::setup::Setup;
use crate::variants::number_or_text;

impl Comparison {
    /// Runs it, as many runs at once as there are cores; the results do not depend on how many that are. For progress, for
    /// cancelling, and to see more of each run than the document holds, make a [`Plan`] of it first.
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn run(&self, environment: &dyn CallerEnvironment) -> Result<ResultsDocument, Error> {
        let plan = Plan::of(self, environment)?;
        plan.run(&plan.controls(), &Unobserved)
    }
}

impl Plan<'_> {
    /// Carries all runs out, as many at once as there are cores. A run that was cancelled before it began is left out.
    /// `controls` are this plan's.
    ///
    /// # Errors
    /// The first run that cannot begin.
    pub fn run(&self, controls: &Controls, observer: &dyn RunObserver) -> Result<ResultsDocument, Error> {
        let mut document = self.run_only(controls, observer)?;
        if let Some(recorded) = &self.load.recorded {
            if recorded.is_too_lossy() {
                document.verdicts.clear();
            }
            if !document.partial {
                document.recording = Some(Box::new(self.recording_summary(recorded, &document, controls)?));
            }
        }
        Ok(document)
    }

    /// The same without what a recording leaves open.
    pub(crate) fn run_only(&self, controls: &Controls, observer: &dyn RunObserver) -> Result<ResultsDocument, Error> {
        let begin = observer.seconds();
        let next = AtomicUsize::new(0);
        let wanted: Vec<OnceLock<bool>> = self.seeds.iter().map(|_| OnceLock::new()).collect();
        let outcomes: Vec<OnceLock<Result<Option<Outcome>, Error>>> =
            self.runs.iter().map(|_| OnceLock::new()).collect();
        // One after the other, so that all schedulers have had their first run before any has its second.
        rayon::broadcast(|_| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((planned, control)) = self.runs.get(number).zip(controls.0.get(number)) else { break };
                let is_wanted = || planned.repeat == 0 || observer.goes_on(planned.repeat);
                if !wanted[planned.repeat as usize].get_or_init(is_wanted) {
                    next.store(self.runs.len(), Ordering::Relaxed);
                    break;
                }
                let is_cancelled = control.cancelled.load(Ordering::Relaxed);
                let outcome =
                    if is_cancelled { Ok(None) } else { self.seen(planned, control, observer, None).map(Some) };
                if outcome.is_err() {
                    next.store(self.runs.len(), Ordering::Relaxed);
                }
                outcomes[number].get_or_init(|| outcome);
            }
        });
        let repeats = wanted.iter().take_while(|wanted| wanted.get() == Some(&true)).count();
        // Those that never began are missing only if an earlier run failed, which is reported.
        let begun = outcomes.into_iter().take(repeats * self.runs_of_repeat());
        let outcomes = begun.map(|outcome| outcome.into_inner().unwrap_or(Ok(None))).collect::<Result<_, Error>>()?;
        document::of(self, outcomes, observer.seconds() - begin)
    }

    /// One run, with its recorder and `tracer`, if any.
    pub(crate) fn seen(
        &self,
        planned: &Planned,
        control: &Control,
        observer: &dyn RunObserver,
        tracer: Option<&mut dyn Observer>,
    ) -> Result<Outcome, Error> {
        let mut recorder = (self.options.comparison.excerpts && planned.repeat == 0).then(Recorder::new);
        let mut observers: Vec<&mut dyn Observer> =
            recorder.as_mut().map(|recorder| recorder as _).into_iter().chain(tracer.map(|one| one as _)).collect();
        let mut outcome = self.one(planned, control, observer, &mut observers)?;
        let reached_ns = control.reached_ns.load(Ordering::Relaxed);
        let of = |recorder: Recorder| {
            let processes = self.processes(planned.setup).into_iter().map(|process| process.job);
            recorder.excerpt(reached_ns, self.devices(planned.setup), processes.collect())
        };
        outcome.run.excerpt = recorder.map(of);
        Ok(outcome)
    }

    /// One run with its observers, if any.
    pub(crate) fn one(
        &self,
        planned: &Planned,
        control: &Control,
        observer: &dyn RunObserver,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome, Error> {
        let (scenario, spec) = (self.scenario(planned), &planned.spec);
        let begin = observer.seconds();
        let ended = if observers.is_empty() {
            run_with_statistics(&scenario, spec, control)
        } else {
            run_observed(&scenario, spec, control, observers)
        };
        let (result, statistics) = ended.map_err(cannot_begin)?;
        let disks = statistics.summaries(&scenario, result.simulated);
        let wall_seconds = observer.seconds() - begin;
        let RunResult { processes, simulated, ios, locks, refused, fates, page_cache, partial } = result;
        let tunables = spec.tunables.iter().map(|(name, text)| (name.clone(), number_or_text(text))).collect();
        let run = Run {
            scheduler: spec.label(),
            front: if scenario.queue.schedulers.is_legacy(&spec.scheduler) { Front::Legacy } else { Front::Mq },
            ran_as: self.setups[planned.setup].stands_in(&spec.scheduler),
            tunables,
            queue_files: queue_files(&planned.queue),
            variant: planned.variant.clone(),
            setup: planned.setup as u32,
            repeat: planned.repeat,
            seed: spec.seed,
            simulated_seconds: simulated.as_secs_f64(),
            simulated_ios: ios,
            wall_seconds,
            cpu_us_per_io: cpu_us_per_io(&processes),
            jobs: jobs(&processes, &self.setups[planned.setup]),
            fio: fio_document(&scenario.workload.options, &processes, &disks, false),
            locks: locks::summary(locks, simulated, ios, scenario.queue.cpus, disks.len()),
            disks,
            page_cache,
            excerpt: None,
        };
        let label = planned.variant.label.as_str();
        let global_options = &scenario.workload.options;
        observer.ended(&Ended { label, repeat: planned.repeat, processes: &processes, global_options, run: &run });
        let is_log_cut = processes.iter().any(|process| process.log.as_ref().is_some_and(|log| log.is_cut()));
        let refused = refused.iter().map(|refused| format!("{label}: {refused}.")).collect();
        Ok(Outcome { run, is_partial: partial, is_log_cut, refused, fates })
    }
}

/// The summaries of all jobs, with what measurements do not say.
fn jobs(processes: &[ProcessResult], setup: &Setup) -> Vec<JobSummary> {
    let mut jobs = JobSummary::from_processes(processes);
    for summary in &mut jobs {
        summary.alike = setup.equivalent.get(summary.job as usize).copied().flatten();
        let of_job = |process: &&Process| process.schedule.job == summary.job as usize;
        summary.demand = match &setup.recorded {
            Some(recorded) => recorded.demand(&summary.name),
            None => demand(setup.workload.processes.iter().filter(of_job)),
        };
        let mut clones = setup.workload.processes.iter().filter(of_job);
        summary.random = Some(clones.any(|process| process.plan.is_random()));
    }
    jobs
}

/// What was written to every queue.
fn queue_files(queue: &QueueSettings) -> Map<String, Value> {
    let requests = queue.nr_requests.map(|requests| ("nr_requests".to_owned(), Value::from(requests)));
    let others = queue.attributes.iter().map(|(file, text)| (file.clone(), number_or_text(text)));
    requests.into_iter().chain(others).collect()
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
