//! `hoistway run`: a load in real time.

mod arguments;
mod engine_runner;
mod progress;
mod rows;
pub(super) mod target;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant as WallClock;

use anyhow::{Context as _, Result, bail};
use hoistway_answer::WeightedFigure;
use hoistway_answer::document::SetupSummary;
use hoistway_engine::job::LoadRun;
use hoistway_experiment::{
    CallerEnvironment as _, DocumentHead, Ended, RunObserver, RunOrder, carry_out, seeds, unknown_job,
    unused_logs_notice,
};
use hoistway_fio::{Environment, JobFile};
use hoistway_terminal::Ending;
use serde_json::{Value, json};

use self::engine_runner::EngineRunner;
use self::target::Target;
use crate::commands::compare::asked;
use crate::commands::outputs::Outputs;
use crate::input::CommandLine;

pub(crate) use self::arguments::Arguments;

/// What latencies are of.
const ABOUT_LATENCY: &str = "Latencies are from when a process submits an I/O until it is notified of its end; fio's slat is \
                             part of its clat here.";

/// The option that has logs written.
const LOGS: &str = "--fio-logs";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::default();
    let target = Target::parse(&arguments.target, &environment)?;
    let (text, file) = job_file(arguments, &environment)?;
    let files = [&arguments.run.output, &arguments.outputs.report].into_iter().flatten();
    files.clone().try_for_each(|file| environment.spare(file))?;
    hoistway_engine::job::check(&file.load)?;
    let focuses = asked::focus(&arguments.judging)?;
    if let Some((figure, problem)) = unknown_job(&focuses, file.load.processes.iter().map(|process| &*process.name)) {
        bail!("--focus {figure}: {problem}");
    }
    let rows = rows::rows(arguments)?;
    files.clone().try_for_each(|file| target.spare(file))?;
    let results = arguments.run.output.as_deref();
    let outputs = Outputs::open(&arguments.judging, &arguments.outputs, results, rows.len(), false)?;
    let load_runs: Vec<Arc<LoadRun>> = rows.iter().map(|_| Arc::new(LoadRun::new(&file.load))).collect();
    let interrupted = load_runs.clone();
    ctrlc::set_handler(move || interrupted.iter().for_each(|load_run| load_run.cancel()))
        .context("cannot install a handler for Ctrl-C")?;
    let is_interrupted = || load_runs.iter().any(|load_run| load_run.is_cancelled());
    if !target.prepare(&file.load, arguments.force, &is_interrupted)? {
        let _ = writeln!(std::io::stderr(), "hoistway: {}: interrupted while it was filled; removed", arguments.target);
        return Ok(Ending::Interrupted);
    }
    let observer = Observing { begin: WallClock::now(), outputs: &outputs, load_runs: &load_runs };
    let runner = EngineRunner::new(arguments, &target, &file.load, &rows, &load_runs, &observer);
    let repeats: Vec<u32> = rows.iter().map(|row| row.repeat).collect();
    let outcomes = carry_out(&runner, &RunOrder { repeats: &repeats, is_parallel: false }, &observer)?;
    let begun = rows.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_some());
    let repeats = begun.map(|(row, _)| row.repeat + 1).max().unwrap_or(1);
    let head = head(arguments, &target, &file, text, repeats, runner, focuses);
    let document = head.document(outcomes, arguments.scheduler.len(), observer.seconds());
    outputs.finish(document)
}

/// What the document says beside the runs.
fn head(
    arguments: &Arguments,
    target: &Target,
    file: &JobFile,
    job_text: String,
    repeats: u32,
    runner: EngineRunner<'_>,
    focuses: Vec<WeightedFigure>,
) -> DocumentHead {
    let seed = arguments.run.seed;
    let found = runner.found();
    let mut notices = found.notes;
    notices.extend(unused_logs_notice(LOGS, &file.load));
    notices.extend(hoistway_engine::job::notices(&file.load));
    notices.extend(file.notices.iter().cloned());
    notices.push(ABOUT_LATENCY.to_owned());
    DocumentHead {
        job_file: arguments.job.display().to_string(),
        job_text,
        setups: vec![SetupSummary {
            device: json!({ "name": target.name(), "target": arguments.target }),
            kernel: hoistway_engine::Config::default().kernel.to_string(),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
            hw_queues: found.hw_queues,
            nr_requests: found.nr_requests,
            host: Value::from("this machine"),
            default_scheduler: None,
        }],
        guests: None,
        seed,
        seeds: seeds(seed, repeats),
        is_real: true,
        notices,
        logs_option: LOGS.to_owned(),
        baseline: arguments.judging.baseline.clone(),
        focus: None,
        focuses,
        smallest_effect: arguments.judging.smallest_effect,
        writes: Vec::new(),
        doubts: Vec::new(),
    }
}

/// The job file, and what it says.
fn job_file(arguments: &Arguments, environment: &CommandLine) -> Result<(String, JobFile)> {
    let name = arguments.job.display().to_string();
    let read = |path: &std::path::Path| {
        let text = String::from_utf8(environment.read(path)?);
        text.map_err(|_| std::io::Error::other("not text (expected options of a fio job file)"))
    };
    let text = read(&arguments.job).with_context(|| format!("{name}: cannot be read (expected a fio job file)"))?;
    let environment = Environment {
        variable: &|name| environment.variable(name),
        include: &read,
        log: &|path| environment.log(path),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        page_bytes: 4096,
        memory_mib: 4096,
        runtime: arguments.run.runtime,
    };
    let mut file = JobFile::parse(&text, &name, &environment)?;
    for process in &mut file.load.processes {
        process.schedule.ramp = arguments.run.ramp.unwrap_or(process.schedule.ramp);
        if arguments.outputs.fio_logs.is_some() {
            process.log = Some(process.log_settings);
        }
    }
    Ok((text, file))
}

/// Writes the logs of runs as they end.
struct Observing<'a> {
    begin: WallClock,
    outputs: &'a Outputs<'a>,
    load_runs: &'a [Arc<LoadRun>],
}

impl RunObserver for Observing<'_> {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, ended: &Ended<'_>) {
        if !self.outputs.ended(ended) {
            self.load_runs.iter().for_each(|load_run| load_run.cancel());
        }
    }
}
