//! `hoistway compare`: one load under every scheduler.

mod arguments;
pub(crate) mod asked;
mod fio_logs;
mod format;

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant as WallClock, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use hoistway_answer::{ResultsDocument, Threshold};
use hoistway_experiment::{Comparison, Controls, Ended, Load, Plan, RunObserver};
use hoistway_measure::fio;

use self::fio_logs::FioLogs;
use crate::input::CommandLine;
use crate::progress::{Lines, Progress};
use crate::trace_file::TraceFile;
use hoistway_terminal::Ending;
use hoistway_terminal::output::{Output, different};

pub(crate) use self::arguments::Arguments;
pub(crate) use self::format::Format;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    compare(arguments, asked::comparison(arguments)?)
}

/// The same of a load that is at hand: options may not name another.
pub(crate) fn run_load(arguments: &Arguments, load: Load) -> Result<Ending> {
    if let Some(job) = &arguments.job {
        bail!("{}: the load comes from the fio command line (expected options only)", job.display());
    }
    compare(arguments, Comparison { load, ..asked::comparison(arguments)? })
}

fn compare(arguments: &Arguments, comparison: Comparison) -> Result<Ending> {
    let environment = CommandLine::default();
    let plan = Plan::of(&comparison, &environment)?;
    [&arguments.run.output, &arguments.trace, &arguments.report]
        .into_iter()
        .flatten()
        .try_for_each(|file| environment.spare(file))?;
    arguments.format.check(plan.run_count())?;
    arguments.advice.as_ref().map_or(Ok(()), |_| arguments.format.check_advice())?;
    different(&[("--report", &arguments.report), ("--trace", &arguments.trace)])?;
    let output = Output::open(arguments.run.output.as_deref())?;
    let report = arguments.report.as_deref().map(|file| Output::beside("--report", file, &output)).transpose()?;
    let trace = arguments.trace.as_deref().map(|file| TraceFile::open(file, &output)).transpose()?;
    let logs = arguments.fio_logs.as_deref().map(FioLogs::open).transpose()?;
    let controls = Arc::new(plan.controls());
    let interrupted = Arc::clone(&controls);
    ctrlc::set_handler(move || interrupted.cancel()).context("cannot install a handler for Ctrl-C")?;
    let lines = Arc::new(Lines::default());
    let observing = Observing {
        lines: &lines,
        begin: WallClock::now(),
        controls: &controls,
        logs: logs.as_ref(),
        wants_json_plus: arguments.format == Format::FioJsonPlus,
        json_plus: Mutex::new(None),
        is_repeat_wanted: arguments.repeat.is_some() || arguments.stable,
        is_stable: arguments.stable,
    };
    let mut document = {
        // The number of runs that fit into the budget is not known before.
        let expected_ns = plan.expected_ns().filter(|_| observing.is_repeat_wanted || !arguments.is_for_people());
        let _progress = Progress::show(&controls, &lines, expected_ns);
        match trace {
            None => plan.run(&controls, &observing)?,
            Some(trace) => trace.run(&plan, &controls, &observing)?,
        }
    };
    (document.arguments, document.command) = crate::command_line();
    document.runs.iter_mut().for_each(|run| run.fio.set_timestamp_ms(now_ms()));
    if arguments.stable {
        document = ResultsDocument { command: String::new(), arguments: Vec::new(), ..document.without_wall_clock() };
    }
    check_focus(&document)?;
    let broken = broken(&document, &arguments.fail_if)?;
    document.conclusion = hoistway_render::text::conclusion(&document);
    if let Some(devices) = &arguments.advice {
        document.advice = hoistway_answer::advice::advice(&document, devices).context("--advice")?;
    }
    let json_plus = observing.json_plus.into_inner().unwrap_or_else(PoisonError::into_inner);
    let text = arguments.format.rendered(&document, json_plus.as_ref(), arguments.wide, &output)?;
    // Each is written even if another cannot be.
    let logs = logs.map_or(Ok(()), FioLogs::finish);
    let report =
        report.map_or(Ok(()), |report| super::report::page(&document).and_then(|page| report.write_there(page)));
    output.write(&text).and(logs).and(report)?;
    if document.partial {
        return Ok(Ending::Interrupted);
    }
    for broken in &broken {
        // Not `eprintln!`, which panics if standard error is closed.
        let _ = writeln!(std::io::stderr(), "hoistway: {broken}");
    }
    Ok(match () {
        () if has_failed(&document) => Ending::JobFailed,
        () if !broken.is_empty() => Ending::LimitBroken,
        () => Ending::Done,
    })
}

/// A sentence for each limit that is broken.
fn broken(document: &ResultsDocument, limits: &[Threshold]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for limit in limits {
        let breaking = document.breaking(limit).with_context(|| format!("--fail-if {limit}"))?;
        if !breaking.is_empty() {
            let shown = |(label, value): &(String, f64)| {
                format!("{} under {label}", hoistway_render::text::figure_value(limit.figure.figure, *value))
            };
            let shown: Vec<String> = breaking.iter().map(shown).collect();
            broken.push(format!("--fail-if {limit}: {}", shown.join(", ")));
        }
    }
    Ok(broken)
}

/// Whether what was asked to be in focus was there.
fn check_focus(document: &ResultsDocument) -> Result<()> {
    let comparison = hoistway_answer::Analysis::of(document);
    for focus in document.focuses.iter().filter(|_| !document.partial) {
        comparison.find(&focus.figure).map(|_| ()).with_context(|| format!("--focus {}", focus.figure))?;
    }
    Ok(())
}

/// Whether an error ended a process in any run.
fn has_failed(document: &ResultsDocument) -> bool {
    document.runs.iter().flat_map(|run| &run.jobs).any(|job| !job.failed.is_empty())
}

/// Writes the logs of runs as they end.
struct Observing<'a> {
    lines: &'a Lines,
    begin: WallClock,
    controls: &'a Controls,
    logs: Option<&'a FioLogs>,
    wants_json_plus: bool,
    /// fio's json+ of the last run.
    json_plus: Mutex<Option<fio::Output>>,
    /// Whether the number of repeats was given, or must not depend on the machine.
    is_repeat_wanted: bool,
    is_stable: bool,
}

/// Repeats are added until they take this long, s.
const AUTO_REPEAT_BUDGET_SECONDS: f64 = 10.0;

impl RunObserver for Observing<'_> {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn goes_on(&self, repeat: u32) -> bool {
        // As long as those before, on average.
        let after = self.seconds() * f64::from(repeat + 1) / f64::from(repeat);
        self.is_repeat_wanted || repeat < asked::REPEATS_AT_LEAST || after < AUTO_REPEAT_BUDGET_SECONDS
    }

    fn ended(&self, ended: &Ended<'_>) {
        if ended.repeat == 0 {
            self.lines.push(hoistway_render::text::run_line(ended.label, ended.run));
        }
        if self.logs.is_none() && !self.wants_json_plus {
            return;
        }
        let mut json = ended.fio_json_plus();
        json.set_timestamp_ms(if self.is_stable { 0 } else { now_ms() });
        if let Some(logs) = self.logs
            && !logs.write(ended, &json)
        {
            self.controls.cancel();
        }
        *self.json_plus.lock().unwrap_or_else(PoisonError::into_inner) = Some(json);
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
