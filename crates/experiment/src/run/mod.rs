//! Carries out the runs of a comparison in virtual time, in parallel on all cores.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/experiment/src/run/` (in its files), `crates/experiment/tests/comparison.rs`, `crates/experiment/tests/metamorphic/`.

pub(crate) mod contexts;
pub(crate) mod locks;
mod measured_state;
pub(crate) mod reactions;
pub(crate) mod readings;
pub(crate) mod recorder;
pub(crate) mod rounds;
pub(crate) mod run_queue;
pub(crate) mod runner;
pub(crate) mod steady;
pub(crate) mod trace;

use std::sync::atomic::Ordering;

use hoistway_answer::document::{Front, ResultsDocument, Verdict};
use hoistway_blk::schedulers::{BFQ, KYBER};
use hoistway_legacy::CFQ;
use hoistway_observed::{Observer, run_observed};
use hoistway_sim::{Control, RunError, RunResult, Scenario, run_with_statistics};

use crate::comparison::Comparison;
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::observer::{Controls, RunObserver, Unobserved};
use crate::outcome::RunOutcome;
use crate::outcome::document;
use crate::plan::repeats;
use crate::plan::{Plan, PlanRun};
use crate::run::recorder::Recorder;
use crate::run::rounds::run_in_rounds;
use crate::run::runner::{PlannedRun, RunMeasurements, RunOrder, Runner};

impl Comparison {
    /// Runs the comparison, with one run per core at a time; the results do not depend on the number of cores. To show
    /// progress, to cancel, or to see more of each run than the document holds, make a [`Plan`] of it first.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn run(&self, environment: &dyn CallerEnvironment) -> Result<ResultsDocument, Error> {
        self.run_observed(environment, &Unobserved)
    }

    /// Like [`run`](Self::run), and notifies the observer of each run.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn run_observed(
        &self,
        environment: &dyn CallerEnvironment,
        observer: &dyn RunObserver,
    ) -> Result<ResultsDocument, Error> {
        let plan = Plan::of(self, environment)?;
        plan.run(&plan.controls(), observer)
    }
}

/// Runs of a plan in virtual time.
struct Simulator<'a> {
    plan: &'a Plan<'a>,
    controls: &'a Controls,
    observer: &'a dyn RunObserver,
}

impl Runner for Simulator<'_> {
    type Error = Error;

    fn run(&self, number: usize) -> Result<Option<RunOutcome>, Error> {
        let Some(control) = self.controls.0.get(number) else { return Ok(None) };
        if control.cancelled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.plan.run_with_recorder(&self.plan.runs[number], control, self.observer, None).map(Some)
    }

    fn expected_length(&self, number: usize) -> u32 {
        let spec = &self.plan.runs[number].spec;
        let rank = |name: &str| LONGEST_FIRST.iter().rev().position(|known| *known == name).map_or(0, |rank| rank + 1);
        rank(&spec.setting.scheduler) as u32
    }
}

/// The schedulers whose runs take longest: they do the most work per I/O.
const LONGEST_FIRST: [&str; 3] = [BFQ.name, CFQ.name, KYBER.name];

impl Plan<'_> {
    /// Carries out all runs, one per core at a time. A run that was cancelled before it began is left out. `controls`
    /// must come from this plan.
    ///
    /// # Errors
    /// The first run that cannot begin.
    pub fn run(&self, controls: &Controls, observer: &dyn RunObserver) -> Result<ResultsDocument, Error> {
        let window = self.choose_window(controls)?;
        let mut document = self.run_only(controls, observer)?;
        document.window = window;
        self.check_reactions(&mut document, controls)?;
        self.check_measured_state(&mut document)?;
        self.complete(document, controls)
    }

    /// Adds the last facts, and then the judgement: of a recording its self-check and its alternative readings, of a load that was
    /// synthesised from a monitoring tool's output a check of the device model.
    pub(crate) fn complete(
        &self,
        mut document: ResultsDocument,
        controls: &Controls,
    ) -> Result<ResultsDocument, Error> {
        if !document.partial {
            self.load.check_device(&mut document);
        }
        if let Some(recorded) = &self.load.recorded {
            if !document.partial {
                document.recording = Some(Box::new(self.recording_summary(recorded, &document, controls)?));
            } else if recorded.is_too_lossy() {
                document.recording = Some(Box::new(recorded.summary()));
            }
        }
        Ok(document.judged())
    }

    /// Carries out the runs without the extra runs of a recording.
    pub(crate) fn run_only(&self, controls: &Controls, observer: &dyn RunObserver) -> Result<ResultsDocument, Error> {
        let begin = observer.seconds();
        let repeats: Vec<u32> = self.runs.iter().map(|run| run.repeat).collect();
        let simulator = Simulator { plan: self, controls, observer };
        let order = RunOrder { repeats: &repeats, is_parallel: true };
        let outcomes = run_in_rounds(&simulator, &order, observer, |outcomes| self.wanted_run_count(outcomes))?;
        document::for_plan(self, outcomes, observer.seconds() - begin)
    }

    /// The total number of runs wanted after these outcomes; `None` if there are enough.
    fn wanted_run_count(&self, outcomes: &[Option<RunOutcome>]) -> Option<usize> {
        let (repeats_max, runs_per_repeat) = (self.seeds.len() as u32, self.runs_per_repeat());
        if !self.options.comparison.until_sure {
            return outcomes.is_empty().then_some(self.runs.len());
        }
        let ended: Vec<&RunOutcome> = outcomes.iter().flatten().filter(|outcome| !outcome.is_partial).collect();
        if ended.len() < outcomes.len() {
            return None;
        }
        let ios = ended.iter().map(|outcome| outcome.run.simulated_ios).sum();
        let is_sure = || {
            document::for_plan(self, outcomes.to_vec(), 0.0)
                .is_ok_and(|document| document.judged().verdicts.iter().all(Verdict::is_sure))
        };
        let repeats = repeats::until_sure(
            (ended.len() / runs_per_repeat.max(1)) as u32,
            ios,
            runs_per_repeat,
            repeats_max,
            is_sure,
        );
        repeats.map(|repeats| repeats as usize * runs_per_repeat)
    }

    /// Carries out a run with its recorder and `tracer`, if any.
    pub(crate) fn run_with_recorder(
        &self,
        planned: &PlanRun,
        control: &Control,
        observer: &dyn RunObserver,
        tracer: Option<&mut dyn Observer>,
    ) -> Result<RunOutcome, Error> {
        let mut recorder = (self.options.comparison.excerpts && planned.repeat == 0).then(Recorder::new);
        let mut observers: Vec<&mut dyn Observer> = recorder
            .as_mut()
            .map(|recorder| recorder as _)
            .into_iter()
            .chain(tracer.map(|tracer| tracer as _))
            .collect();
        let mut outcome = self.run_single(planned, control, observer, &mut observers)?;
        let reached_ns = control.reached_ns.load(Ordering::Relaxed);
        let excerpt_of = |recorder: Recorder| {
            let processes = self.processes(planned.setup).into_iter().map(|process| process.job);
            recorder.excerpt(reached_ns, self.devices(planned.setup), processes.collect())
        };
        outcome.run.excerpt = recorder.map(excerpt_of);
        Ok(outcome)
    }

    /// Carries out a run with its observers, if any.
    pub(crate) fn run_single(
        &self,
        planned: &PlanRun,
        control: &Control,
        observer: &dyn RunObserver,
        observers: &mut [&mut dyn Observer],
    ) -> Result<RunOutcome, Error> {
        self.run_scenario(&self.scenario(planned), planned, control, observer, observers)
    }

    /// Like [`run_single`](Self::run_single), for a modified scenario.
    pub(crate) fn run_scenario(
        &self,
        scenario: &Scenario<'_>,
        planned: &PlanRun,
        control: &Control,
        observer: &dyn RunObserver,
        observers: &mut [&mut dyn Observer],
    ) -> Result<RunOutcome, Error> {
        let spec = &planned.spec;
        let begin = observer.seconds();
        let ended = if observers.is_empty() {
            run_with_statistics(scenario, spec, control)
        } else {
            run_observed(scenario, spec, control, observers)
        };
        let (result, statistics) = ended.map_err(cannot_begin)?;
        let disks = statistics.summaries(scenario, result.simulated);
        let wall_seconds = observer.seconds() - begin;
        let RunResult { processes, simulated, ios, locks, refused, fates, page_cache, io_cost, io_latency, partial } =
            result;
        let setup = &self.setups[planned.setup];
        let scheduler = spec.setting.scheduler.as_str();
        let row = PlannedRun {
            scheduler: spec.label(),
            front: if scenario.queue.schedulers.is_legacy(scheduler) { Front::Legacy } else { Front::Mq },
            ran_as: setup.substitute_kernel(scheduler),
            research: setup.research(spec),
            setting: spec.setting.clone(),
            variant: planned.variant.clone(),
            setup: planned.setup as u32,
            repeat: planned.repeat,
            seed: spec.seed,
        };
        let measured = RunMeasurements {
            processes,
            seconds: simulated.as_secs_f64(),
            ios,
            wall_seconds,
            locks: locks::summary(locks, simulated, ios, scenario.queue.cpus, disks.len()),
            disks,
            page_cache,
            io_cost,
            io_latency,
            is_partial: partial,
            refused: refused.iter().map(ToString::to_string).collect(),
            fates,
        };
        Ok(row.outcome(&setup.workload, &setup.job_facts, measured, observer))
    }
}

/// The field that is probably at fault if a run cannot begin.
fn cannot_begin(error: RunError) -> Error {
    let field = match error {
        RunError::Config(_) => Field::Devices,
        RunError::Guests => Field::GuestSchedulers,
        RunError::Stacks => Field::Stacks,
        RunError::Load(_) => Field::Load,
        RunError::Attribute { .. } => Field::QueueFiles,
        RunError::Tunable { .. } => Field::Tunables,
    };
    Error::new(field, error)
}
