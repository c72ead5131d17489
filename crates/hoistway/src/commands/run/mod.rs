//! `hoistway run`: runs a load in real time.

mod arguments;
mod progress;

use std::io::Write as _;
use std::time::Instant as WallClock;

use anyhow::{Result, bail};
use hoistway_experiment::real::{EngineOptions, RealControls, RealExperiment, RealLayer, RealPlan};
use hoistway_experiment::{Ended, Load, RunObserver};
use hoistway_terminal::Ending;
use hoistway_terminal::output::is_same_path;

use self::progress::Progress;
use crate::commands::compare::parse;
use crate::commands::outputs::Outputs;
use crate::input::CommandLine;

pub(crate) use self::arguments::Arguments;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::of_real_runs();
    let experiment = experiment(arguments)?;
    let plan = RealPlan::of(&experiment, &environment)?;
    arguments.judging.limits.check(|limits| plan.impossible(limits))?;
    for file in [&arguments.run.output, &arguments.outputs.report].into_iter().flatten() {
        environment.spare(file)?;
        if plan.target_path().is_some_and(|path| is_same_path(path, file)) {
            bail!("{}: is the target (expected another file for the results)", file.display());
        }
    }
    let results = arguments.run.output.as_deref();
    let outputs = Outputs::open(&arguments.judging, &arguments.outputs, results, plan.run_count(), false)?;
    let controls = plan.controls();
    let interrupted = controls.clone();
    hoistway_terminal::interrupt::on_interrupt(move || interrupted.cancel())?;
    if !plan.prepare(&controls)? {
        let _ = writeln!(std::io::stderr(), "hoistway: {}: interrupted while it was filled; removed", arguments.target);
        return Ok(Ending::Interrupted);
    }
    let observer = Observer { begin: WallClock::now(), outputs: &outputs, controls: &controls };
    let progress = Progress::default();
    let document = plan.run(&controls, &observer, &|row, run| progress.show(run, &row.variant.label))?;
    drop(progress);
    outputs.finish(document)
}

/// The experiment that the options describe.
fn experiment(arguments: &Arguments) -> Result<RealExperiment> {
    let (run, judging) = (&arguments.run, &arguments.judging);
    Ok(RealExperiment {
        load: Load::File(arguments.job.clone()),
        replay: parse::replay(&arguments.replay)?,
        target: arguments.target.clone(),
        schedulers: arguments.scheduler.clone(),
        tunables: parse::parse_each(&run.set, parse::tunable)?,
        queue_files: parse::queue_files(&run.queue, None)?,
        vary: parse::parse_each(&arguments.vary, parse::vary)?,
        repeats: arguments.repeat,
        baseline: judging.baseline.clone(),
        focus: parse::focus(judging)?,
        smallest_effect: judging.smallest_effect,
        runtime_ns: run.runtime.map(|runtime| runtime.0),
        ramp_ns: run.ramp.map(|ramp| ramp.0),
        from_start: arguments.measures_as_fio(),
        seed: run.seed,
        logs: arguments.outputs.fio_logs.is_some(),
        force: allows_writes(arguments)?,
        layer: RealLayer::Engine(EngineOptions {
            workers: arguments.workers.map(usize::from),
            queue_depth: arguments.queue_depth,
            contention_options: arguments.techniques,
            fixed_buffers: arguments.fixed_buffers,
        }),
    })
}

/// Whether the target may be overwritten, which the user allows by naming it again.
fn allows_writes(arguments: &Arguments) -> Result<bool> {
    let Some(named) = &arguments.writes else { return Ok(arguments.force) };
    let (target, path) = (&arguments.target, arguments.target.split_once(':').map_or("", |(_, path)| path));
    if named != target && named != path {
        bail!("--writes {named}: is not the target (expected {target} again)");
    }
    Ok(true)
}

/// Writes the logs of runs as they end.
struct Observer<'a> {
    begin: WallClock,
    outputs: &'a Outputs<'a>,
    controls: &'a RealControls,
}

impl RunObserver for Observer<'_> {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, ended: &Ended<'_>) {
        if !self.outputs.ended(ended) {
            self.controls.cancel();
        }
    }
}
