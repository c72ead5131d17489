//! Experiments in real time: a load under several schedulers of the engine, on a file, a disk, memory or a simulated device, or under
//! those of this machine's kernel.
//!
//! Used by: crates `hoistway`, `calibrate`.
//! Tests: `crates/hoistway/tests/cli/run.rs`, `crates/hoistway/tests/machine/verify.rs`.
//!
//! A [`RealExperiment`] describes the load, the schedulers and the target. A [`RealPlan`] is a checked experiment; its
//! [`run`](RealPlan::run) returns the same kind of result document as a comparison in virtual time, and so does its
//! [`run_on_kernel`](RealPlan::run_on_kernel). Errors name the field at fault.
//!
//! Modules: `target` is the target of a load, [`made`] creates target files, `variants` are the settings of each scheduler, `rows` lists the runs, `engine_runner` carries out
//! each of them with its own engine, and `kernel_runner` under a scheduler of the kernel, with the engine or with fio; [`job_text`] redirects job files for fio, and
//! [`fio_process`] runs it.
//!
//! ```no_run
//! use hoistway_experiment::{Alone, Load, Unobserved};
//! use hoistway_experiment::real::{RealExperiment, RealPlan};
//!
//! let experiment = RealExperiment {
//!     load: Load::text("[reader]\nfilename=/dev/sda\nrw=randread\nsize=1m\n"),
//!     target: "mem:64m".to_owned(),
//!     schedulers: vec!["none".to_owned(), "mq-deadline".to_owned()],
//!     ..RealExperiment::default()
//! };
//! let plan = RealPlan::of(&experiment, &Alone).unwrap();
//! let controls = plan.controls();
//! if plan.prepare(&controls).unwrap() {
//!     let document = plan.run(&controls, &Unobserved, &|_, _| {}).unwrap();
//!     assert_eq!(document.runs.len(), 2);
//! }
//! ```

mod engine_runner;
pub mod fio_process;
pub mod job_text;
mod kernel_runner;
pub mod made;
mod rows;
mod target;
mod variants;

use std::path::Path;
use std::sync::Arc;

use hoistway_answer::document::{MeasuredWindow, RealPlace, SetupSummary};
use hoistway_answer::{Condition, ResultsDocument, WeightedFigure};
use hoistway_blk::ground::Nanos;
use hoistway_blk::policy::ContentionOptions;
use hoistway_engine::job::LoadRun;
use hoistway_fio::JobFile;
use hoistway_linux::apply::TemporaryQueues;
use serde_json::{Value, json};

use self::engine_runner::EngineRunner;
use self::kernel_runner::KernelRunner;
use self::target::Target;
use crate::comparison::judging::{impossible, unknown_job};
use crate::load::unused_logs_notice;
use crate::outcome::RunOutcome;
use crate::outcome::document::DocumentHead;
use crate::plan::window::measured_together;
use crate::run::rounds::carry_out;
use crate::run::runner::{RunOrder, Runner};
use crate::{
    CallerEnvironment, Comparison, Error, Field, KernelOption, Load, LoadText, PlannedRun, QueueFile, Replay,
    RunObserver, Tunable, Vary, seeds,
};

/// Notice in every document that defines its latencies.
const ABOUT_LATENCY: &str = "Latencies are from the submission of an I/O until the process is notified of its completion; fio's slat is \
                             part of its clat here.";

/// An experiment in real time, as plain data.
#[derive(Clone, Debug)]
pub struct RealExperiment {
    /// The job file or the recording.
    pub load: Load,
    /// How a recording is replayed.
    pub replay: Replay,
    /// The target: `file:PATH`, `blk:PATH`, `mem:SIZE`, `null:` or `sim:PRESET`.
    pub target: String,
    /// The schedulers in order, each as often as it is listed.
    pub schedulers: Vec<String>,
    /// Tunables of these schedulers.
    pub tunables: Vec<Tunable>,
    /// Files of `queue/`.
    pub queue_files: Vec<QueueFile>,
    /// Settings that are varied: each combination of values is a variant of its scheduler, and runs in every round.
    pub vary: Vec<Vary>,
    /// Number of rounds; in each all schedulers run.
    pub repeats: u32,
    /// The baseline of comparisons; `None` for the first scheduler.
    pub baseline: Option<String>,
    /// The figures that schedulers are ranked by.
    pub focus: Vec<WeightedFigure>,
    /// Smaller differences, as a fraction, are ignored; `None` for the default.
    pub smallest_effect: Option<f64>,
    /// Replaces the runtime of every process.
    pub runtime_ns: Option<u64>,
    /// Replaces the ramp time of every process.
    pub ramp_ns: Option<u64>,
    /// Whether to measure as fio does, each job from its start to its end, rather than the time in which all jobs run.
    pub from_start: bool,
    /// The seed of all random numbers of the load.
    pub seed: u64,
    /// Whether logs of single I/Os are kept.
    pub logs: bool,
    /// Whether a device, or a file that no earlier run created, may be overwritten.
    pub force: bool,
    /// Whose schedulers run.
    pub layer: RealLayer,
}

/// The block layer of an experiment in real time.
#[derive(Clone, Debug)]
pub enum RealLayer {
    /// That of the engine.
    Engine(EngineOptions),
    /// That of the running kernel. fio runs job files, and the engine, without a scheduler, recordings.
    Kernel(KernelOption),
}

/// Options of the engine.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Worker threads; `None` for one per process, at most one per CPU.
    pub workers: Option<usize>,
    /// Commands per hardware queue at the target; `None` for the target's maximum.
    pub queue_depth: Option<u32>,
    /// Contention options for the scheduler's lock.
    pub contention_options: ContentionOptions,
    /// Bytes of memory that are registered with the ring of every worker.
    pub fixed_buffers: usize,
}

impl Default for RealExperiment {
    /// One run of the example under none, with an engine over memory.
    fn default() -> Self {
        let Comparison { load, replay, seed, .. } = Comparison::default();
        RealExperiment {
            load,
            replay,
            target: "mem:1g".to_owned(),
            schedulers: vec!["none".to_owned()],
            tunables: Vec::new(),
            queue_files: Vec::new(),
            vary: Vec::new(),
            repeats: 1,
            baseline: None,
            focus: Vec::new(),
            smallest_effect: None,
            runtime_ns: None,
            ramp_ns: None,
            from_start: false,
            seed,
            logs: false,
            force: false,
            layer: RealLayer::Engine(EngineOptions::default()),
        }
    }
}

impl RealExperiment {
    fn is_on_kernel(&self) -> bool {
        matches!(self.layer, RealLayer::Kernel(_))
    }
}

/// A checked experiment in real time.
pub struct RealPlan<'a> {
    experiment: &'a RealExperiment,
    environment: &'a dyn CallerEnvironment,
    target: Target,
    text: LoadText,
    file: JobFile,
    /// The measured window, which the load of `file` has; `None` if it is that of fio.
    window: Option<MeasuredWindow>,
    rows: Vec<PlannedRun>,
    /// Notices about the settings of the runs.
    setting_notices: Vec<String>,
}

/// Controls that cancel the runs of a plan and report their progress.
#[derive(Clone, Debug)]
pub struct RealControls(Vec<Arc<LoadRun>>);

impl RealControls {
    /// Ends all runs early. Measurements until then are kept.
    pub fn cancel(&self) {
        self.0.iter().for_each(|run| run.cancel());
    }

    /// Whether the runs were cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.iter().any(|run| run.is_cancelled())
    }

    /// I/Os completed so far in all runs together.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.0.iter().map(|run| run.ios()).sum()
    }
}

impl<'a> RealPlan<'a> {
    /// Checks an experiment. Nothing is opened or written yet.
    ///
    /// # Errors
    /// The first field that is invalid.
    pub fn of(experiment: &'a RealExperiment, environment: &'a dyn CallerEnvironment) -> Result<RealPlan<'a>, Error> {
        let target = Target::parse(&experiment.target, environment)?;
        let comparison = Comparison {
            load: experiment.load.clone(),
            replay: experiment.replay.clone(),
            runtime_ns: experiment.runtime_ns,
            ramp_ns: experiment.ramp_ns,
            logs: experiment.logs,
            ..Comparison::default()
        };
        let mut text = LoadText::read(&comparison, environment)?;
        let runs_fio = experiment.is_on_kernel() && !text.text().is_empty();
        if runs_fio {
            let path = target.path().ok_or_else(|| {
                let name = environment.name(Field::Target);
                let problem = "has no queue of this machine (expected file:PATH or blk:PATH)";
                error(Field::Target, format!("{name} {}: {problem}", experiment.target))
            })?;
            let load = job_text::on_target(&text, path, &comparison)?;
            text = LoadText::read(&Comparison { load, ..comparison.clone() }, environment)?;
        }
        let mut file = text.job_file(&comparison, environment, cpus())?;
        if !runs_fio {
            hoistway_engine::job::check(&file.load).map_err(|refused| error(Field::Load, refused.to_string()))?;
        }
        let names = file.load.processes.iter().map(|process| &*process.name);
        if let Some((figure, problem)) = unknown_job(experiment.focus.iter().map(|focus| &focus.figure), names) {
            let name = environment.name(Field::Focus);
            return Err(error(Field::Focus, format!("{name} {figure}: {problem}")));
        }
        let (rows, setting_notices) = rows::rows(experiment, environment)?;
        let together = || measured_together(&file.load, experiment.runtime_ns.map(Nanos));
        let window = together().filter(|_| !experiment.from_start).map(|(load, window)| {
            file.load = load;
            window
        });
        Ok(RealPlan { experiment, environment, target, text, file, window, rows, setting_notices })
    }

    /// Leaves out the variants of which `keeps` does not want the label.
    pub fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        self.rows.retain(|row| keeps(&row.variant.label));
    }

    /// The first of these conditions that no result could meet, since its job or its scheduler does not run, and why.
    pub fn impossible<'c>(&self, conditions: &'c [Condition]) -> Option<(&'c Condition, String)> {
        let names = self.file.load.processes.iter().map(|process| &*process.name);
        impossible(conditions, names, self.rows.iter().map(|row| &*row.variant.label))
    }

    /// Number of runs.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.rows.len()
    }

    /// The path of the target, if it is a file or a device: results must not be written over it.
    #[must_use]
    pub fn target_path(&self) -> Option<&Path> {
        self.target.path()
    }

    /// Controls of the runs.
    #[must_use]
    pub fn controls(&self) -> RealControls {
        RealControls(self.rows.iter().map(|_| Arc::new(LoadRun::new(&self.file.load))).collect())
    }

    /// Checks that the load may run on the target, and creates a missing file. Returns whether the target is ready; it is not if the
    /// runs were cancelled meanwhile, in which case the file is removed again.
    ///
    /// # Errors
    /// If the load would overwrite something, or the file cannot be created.
    pub fn prepare(&self, controls: &RealControls) -> Result<bool, Error> {
        let force = self.environment.name(Field::Force);
        let is_ready =
            self.target.prepare(&self.file.load, (self.experiment.force, &force), &|| controls.is_cancelled());
        is_ready.map_err(|problem| self.target_error(&problem))
    }

    fn target_error(&self, problem: &str) -> Error {
        let name = self.environment.name(Field::Target);
        error(Field::Target, format!("{name} {}: {problem}", self.experiment.target))
    }

    /// Carries out all runs, one after the other, on a target that was [prepared](RealPlan::prepare). `on_begin` is called when a run begins.
    /// `controls` must come from this plan.
    ///
    /// # Errors
    /// The first run that cannot begin.
    pub fn run(
        &self,
        controls: &RealControls,
        observer: &dyn RunObserver,
        on_begin: &(dyn Fn(&PlannedRun, &Arc<LoadRun>) + Sync),
    ) -> Result<ResultsDocument, Error> {
        let runner = EngineRunner::new(self, &controls.0, observer, on_begin);
        runner.check()?;
        let measured = self.carry_out(&runner, observer)?;
        Ok(self.document(measured, runner.facts()))
    }

    /// Carries out all runs under the schedulers of the kernel, which `queues` sets and restores. As [`run`](RealPlan::run) otherwise.
    ///
    /// # Errors
    /// The first run that cannot begin or fails, or a value that is not restored.
    pub fn run_on_kernel(
        &self,
        queues: TemporaryQueues<'_>,
        controls: &RealControls,
        observer: &dyn RunObserver,
        on_begin: &(dyn Fn(&PlannedRun, &Arc<LoadRun>) + Sync),
    ) -> Result<ResultsDocument, Error> {
        let runner = KernelRunner::new(self, queues, &controls.0, observer, on_begin)?;
        let measured = self.carry_out(&runner, observer)?;
        Ok(self.document(measured, runner.restored()?))
    }

    /// The outcomes of all runs, and how long they took, s.
    fn carry_out<R: Runner<Error = Error>>(
        &self,
        runner: &R,
        observer: &dyn RunObserver,
    ) -> Result<(Vec<Option<RunOutcome>>, f64), Error> {
        let begin = observer.seconds();
        let repeats: Vec<u32> = self.rows.iter().map(|row| row.repeat).collect();
        let outcomes = carry_out(runner, &RunOrder { repeats: &repeats, is_parallel: false }, observer)?;
        Ok((outcomes, observer.seconds() - begin))
    }

    fn document(&self, (outcomes, seconds): (Vec<Option<RunOutcome>>, f64), facts: QueueFacts) -> ResultsDocument {
        let begun = self.rows.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_some());
        let repeats = begun.map(|(row, _)| row.repeat + 1).max().unwrap_or(1);
        let document = self.head(facts, repeats).document(outcomes, self.runs_per_round(), seconds);
        ResultsDocument { window: self.window.clone(), ..document }.judged()
    }

    /// The parts of the document other than the runs.
    fn head(&self, facts: QueueFacts, repeats: u32) -> DocumentHead {
        let experiment = self.experiment;
        let logs_option = self.environment.name(Field::Logs);
        let (kernel, real_place) = match &experiment.layer {
            RealLayer::Engine(_) => (hoistway_engine::Config::default().kernel.to_string(), RealPlace::Engine),
            RealLayer::Kernel(running) => (running.to_string(), RealPlace::Kernel),
        };
        let mut notices = facts.notes;
        notices.extend(self.setting_notices.iter().cloned());
        if !self.runs_fio() {
            notices.extend(unused_logs_notice(&logs_option, &self.file.load));
            notices.extend(hoistway_engine::job::notices(&self.file.load));
            notices.extend(self.file.notices.iter().cloned());
            notices.push(ABOUT_LATENCY.to_owned());
        }
        DocumentHead {
            job_file: self.text.name().to_owned(),
            job_text: self.text.text().to_owned(),
            setups: vec![SetupSummary {
                device: json!({ "name": self.target.name(), "target": experiment.target }),
                kernel,
                cpus: u32::from(cpus()),
                hw_queues: facts.hw_queues,
                nr_requests: facts.nr_requests,
                host: Value::from("this machine"),
                default_scheduler: None,
            }],
            guests: None,
            seed: experiment.seed,
            seeds: seeds(experiment.seed, repeats),
            real_place: Some(real_place),
            notices,
            logs_option,
            baseline: experiment.baseline.clone(),
            focus: None,
            focuses: experiment.focus.clone(),
            smallest_effect: experiment.smallest_effect,
            writes: Vec::new(),
            doubts: Vec::new(),
        }
    }

    fn runs_per_round(&self) -> usize {
        self.rows.len() / self.experiment.repeats as usize
    }

    /// Whether fio runs the load.
    fn runs_fio(&self) -> bool {
        self.experiment.is_on_kernel() && !self.text.text().is_empty()
    }

    /// Replaces the runtime of every process; a measured window has its own.
    fn runtime(&self) -> Option<Nanos> {
        self.experiment.runtime_ns.filter(|_| self.window.is_none()).map(Nanos)
    }
}

/// Facts about the queues of the target, which are known once the first run has begun.
#[derive(Clone, Default)]
struct QueueFacts {
    hw_queues: u32,
    nr_requests: u32,
    /// Notes about the target.
    notes: Vec<String>,
}

/// CPUs of this machine.
fn cpus() -> u16 {
    std::thread::available_parallelism().map_or(1, |cpus| u16::try_from(cpus.get()).unwrap_or(u16::MAX))
}

fn error(field: Field, message: String) -> Error {
    Error { field, message, place: None }
}
