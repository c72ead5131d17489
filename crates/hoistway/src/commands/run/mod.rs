//! `hoistway run`: a load for real.

mod arguments;
mod document;
mod progress;
pub(super) mod target;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant as WallClock;

use anyhow::{Context as _, Result, bail};
use hoistway_engine::job::{JobSettings, LoadRun};
use hoistway_engine::{Config, Engine};
use hoistway_experiment::CallerEnvironment as _;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::ProcessResult;

use self::progress::Progress;
use self::target::Target;
use crate::input::CommandLine;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

pub(crate) use self::arguments::Arguments;

/// What a run under one scheduler left.
struct RunOf {
    scheduler: String,
    tunables: Vec<(String, String)>,
    processes: Vec<ProcessResult>,
    seconds: f64,
    hw_queues: u32,
    nr_requests: u32,
    notes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::default();
    let target = Target::parse(&arguments.target, &environment)?;
    let (text, file) = job_file(arguments, &environment)?;
    arguments.run.output.iter().try_for_each(|file| environment.spare(file))?;
    arguments.format.check(arguments.scheduler.len())?;
    hoistway_engine::job::check(&file.load)?;
    let settings = settings_of(arguments)?;
    arguments.run.output.iter().try_for_each(|file| target.spare(file))?;
    let output = Output::open(arguments.run.output.as_deref())?;
    let load_runs: Vec<Arc<LoadRun>> = arguments.scheduler.iter().map(|_| Arc::new(LoadRun::new(&file.load))).collect();
    let interrupted = load_runs.clone();
    ctrlc::set_handler(move || interrupted.iter().for_each(|load_run| load_run.cancel()))
        .context("cannot install a handler for Ctrl-C")?;
    let is_interrupted = || load_runs.iter().any(|load_run| load_run.is_cancelled());
    if !target.prepare(&file.load, arguments.force, &is_interrupted)? {
        let _ = writeln!(std::io::stderr(), "hoistway: {}: interrupted while it was filled; removed", arguments.target);
        return Ok(Ending::Interrupted);
    }
    let begin = WallClock::now();
    let mut runs = Vec::new();
    for (scheduler, load_run) in arguments.scheduler.iter().zip(&load_runs) {
        if load_run.is_cancelled() {
            break;
        }
        let _progress = Progress::show(load_run, scheduler);
        runs.push(run_one(arguments, &target, &file, scheduler, &settings, load_run)?);
    }
    let is_partial = is_interrupted();
    let has_failed = runs.iter().flat_map(|run| &run.processes).any(|process| process.error != 0);
    let plus = runs.first().map(|run| document::fio_output(&file.load, run, true));
    let mut document = document::of(arguments, &target, &file, text, runs, begin.elapsed().as_secs_f64());
    document.partial = is_partial;
    document.conclusion = hoistway_render::text::conclusion(&document);
    let text = arguments.format.rendered(&document, plus.as_ref(), arguments.wide, &output)?;
    output.write(&text)?;
    Ok(match (is_partial, has_failed) {
        (true, _) => Ending::Interrupted,
        (_, true) => Ending::JobFailed,
        _ => Ending::Done,
    })
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
    }
    Ok((text, file))
}

/// Files of `queue/` to be written, `None` for those of every scheduler: of which scheduler, which, and what.
type Writes = Vec<(Option<String>, String, String)>;

/// What `--set` and `--queue` ask for.
fn settings_of(arguments: &Arguments) -> Result<Writes> {
    let mut writes = Vec::new();
    for setting in &arguments.run.queue {
        let Some((file, text)) = setting.split_once('=') else {
            bail!("--queue {setting}: expected KEY=VALUE, such as nr_requests=64");
        };
        if file == "scheduler" || file.contains('/') {
            bail!(
                "--queue {setting}: expected a file of queue/ other than the scheduler (--scheduler) and its own (--set)"
            );
        }
        writes.push((None, file.to_owned(), text.to_owned()));
    }
    for setting in &arguments.run.set {
        let Some(((scheduler, name), text)) =
            setting.split_once('=').and_then(|(key, value)| Some((key.split_once('.')?, value)))
        else {
            bail!("--set {setting}: expected SCHED.TUNABLE=VALUE, such as mq-deadline.fifo_batch=1");
        };
        if !arguments.scheduler.iter().any(|chosen| chosen == scheduler) {
            bail!("--set {setting}: {scheduler} does not run (expected one of --scheduler)");
        }
        writes.push((Some(scheduler.to_owned()), format!("iosched/{name}"), text.to_owned()));
    }
    Ok(writes)
}

fn run_one(
    arguments: &Arguments,
    target: &Target,
    file: &JobFile,
    scheduler: &str,
    writes: &Writes,
    load_run: &Arc<LoadRun>,
) -> Result<RunOf> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = arguments.workers.map_or(cpus.min(file.load.processes.len()).max(1), usize::from);
    let (backend, notes) = target.open(&file.load, arguments.run.seed, workers, arguments.fixed_buffers)?;
    let config = Config {
        workers,
        scheduler: scheduler.to_owned(),
        queue_depth: arguments.queue_depth,
        techniques: arguments.techniques,
        // A resident on a worker of its own never waits for a slot.
        requests_per_worker: file.load.processes.iter().map(|process| process.issue.depth).sum::<u32>().max(64),
        ..Config::default()
    };
    let engine = Engine::start(&config, backend).with_context(|| format!("--scheduler {scheduler}"))?;
    let own = writes.iter().filter(|(of, ..)| of.as_deref().is_none_or(|of| of == scheduler));
    for (_, file, text) in own.clone() {
        let option = if file.starts_with("iosched/") { "--set" } else { "--queue" };
        let name = file.trim_start_matches("iosched/");
        engine.set_attribute(file, text).with_context(|| format!("{option} {name}={text} under {scheduler}"))?;
    }
    let begin = WallClock::now();
    let settings = JobSettings { seed: arguments.run.seed, runtime: arguments.run.runtime };
    let cpu_ns = cpu_time_ns();
    let mut processes = hoistway_engine::job::run(&engine, &file.load, &settings, load_run)?;
    share_cpu_time(&mut processes, cpu_time_ns() - cpu_ns);
    let tunables = own.filter(|(of, ..)| of.is_some());
    Ok(RunOf {
        scheduler: scheduler.to_owned(),
        tunables: tunables.map(|(_, file, text)| (file["iosched/".len()..].to_owned(), text.clone())).collect(),
        processes,
        seconds: begin.elapsed().as_secs_f64(),
        hw_queues: u32::from(engine.hw_queues()),
        nr_requests: engine.attribute("nr_requests").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        notes,
    })
}

/// CPU time of this program so far.
fn cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processes share workers: each is charged for its share of the I/Os, beside the time for which it kept its CPU busy itself.
fn share_cpu_time(processes: &mut [ProcessResult], cpu_ns: u64) {
    let spun_ns: u64 = processes.iter().map(|process| process.cpu.user_ns).sum();
    let cpu_ns = cpu_ns.saturating_sub(spun_ns);
    let all: u64 = processes.iter().map(ProcessResult::total_ios).sum();
    for process in processes {
        process.cpu.system_ns = (u128::from(cpu_ns) * u128::from(process.total_ios()) / u128::from(all.max(1))) as u64;
    }
}
