//! `hoistway compare`: runs one load under every scheduler.

mod arguments;
pub(crate) mod parse;

use std::sync::Arc;
use std::time::Instant as WallClock;

use anyhow::{Result, bail};
use hoistway_experiment::{Comparison, Controls, Ended, Load, Plan, RunObserver};

use crate::commands::outputs::Outputs;
use crate::input::CommandLine;
use crate::progress::{ENDS_BY_AMOUNT, Lines, Progress};
use crate::trace_file::TraceFile;
use hoistway_terminal::Ending;
use hoistway_terminal::output::different;

pub(crate) use self::arguments::Arguments;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    compare(arguments, parse::comparison(arguments)?)
}

/// Compares with a load that has already been read; the options must not name another.
pub(crate) fn run_load(arguments: &Arguments, load: Load) -> Result<Ending> {
    if let Some(job) = &arguments.job {
        bail!("{}: the load comes from the fio command line (expected options only)", job.display());
    }
    compare(arguments, Comparison { load, ..parse::comparison(arguments)? })
}

fn compare(arguments: &Arguments, comparison: Comparison) -> Result<Ending> {
    let environment = CommandLine::default();
    let plan = Plan::of(&comparison, &environment)?;
    arguments.judging.limits.check(|limits| plan.impossible(limits))?;
    [&arguments.run.output, &arguments.trace, &arguments.outputs.report]
        .into_iter()
        .flatten()
        .try_for_each(|file| environment.spare(file))?;
    different(&[("--report", &arguments.outputs.report), ("--trace", &arguments.trace)])?;
    let results = arguments.run.output.as_deref();
    let outputs = Outputs::open(&arguments.judging, &arguments.outputs, results, plan.run_count(), arguments.stable)?;
    let trace = arguments.trace.as_deref().map(|file| TraceFile::open(file, outputs.results())).transpose()?;
    let controls = Arc::new(plan.controls());
    let interrupted = Arc::clone(&controls);
    hoistway_terminal::interrupt::on_interrupt(move || interrupted.cancel())?;
    let lines = Arc::new(Lines::default());
    let observer = Observer { lines: &lines, begin: WallClock::now(), controls: &controls, outputs: &outputs };
    let document = {
        // The number of runs until the decision is certain is not known in advance.
        let expected_ns = plan.expected_ns().filter(|_| !arguments.repeats_until_certain());
        let hint = (plan.expected_ns().is_none() && !plan.is_recorded()).then_some(ENDS_BY_AMOUNT);
        let _progress = Progress::show(&controls, &lines, expected_ns, hint);
        match trace {
            None => plan.run(&controls, &observer)?,
            Some(trace) => trace.run(&plan, &controls, &observer)?,
        }
    };
    outputs.finish(document)
}

/// Writes the logs of runs as they end.
struct Observer<'a> {
    lines: &'a Lines,
    begin: WallClock,
    controls: &'a Controls,
    outputs: &'a Outputs<'a>,
}

impl RunObserver for Observer<'_> {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, ended: &Ended<'_>) {
        if ended.repeat == 0 {
            self.lines.push(hoistway_render::text::run_line(ended.label, ended.run));
        }
        if !self.outputs.ended(ended) {
            self.controls.cancel();
        }
    }
}
