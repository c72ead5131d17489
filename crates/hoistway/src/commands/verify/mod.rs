//! `hoistway verify`: compares a prediction with measurements under this machine's kernel.

mod fit_conditions;
mod job_text;

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use hoistway_answer::ResultsDocument;
use hoistway_blk::ground::Nanos;
use hoistway_blk::policy::ContentionOptions;
use hoistway_calibrate::fio::{self, FioError};
use hoistway_experiment::limits::REPEATS_MAX;
use hoistway_experiment::real::{RealControls, RealExperiment, RealPlan, made};
use hoistway_experiment::verify::{About, Figures, KernelFigures, Verification, of_fio, of_run};
use hoistway_experiment::{Comparison, Load, LoadText, Unobserved};
use hoistway_terminal::output::Output;
use hoistway_terminal::{Ending, printable};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::commands::calibrate::fit::{host_called, preset_called};
use crate::commands::compare::parse;
use crate::commands::options::{ReplayOptions, parse_time};
use crate::commands::target::{Queues, Target, TargetOptions};
use crate::input::CommandLine;
use fit_conditions::FitConditions;

/// The schedulers that both the kernel and the simulator have.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Predict a load under each scheduler, run it under the same schedulers of this machine's kernel, and compare.
///
/// A job file runs in fio on the target, which replaces its filename; a recording of block I/O runs in hoistway's own engine.
/// Each round runs every scheduler once. The target is only read, unless --writes names it again. The scheduler of its disk is
/// restored at the end; after a killed run the next hoistway verify, calibrate device or apply restores it.
///
/// Prints predicted and measured figures, the error, the spread of the rounds, and whether the order of the schedulers is right.
/// docs/verify.md explains the details.
///
/// Exit status: 0 on success; 3 if a prediction that was certain is wrong; 2 for bad input; 130 if interrupted.
///
/// Examples:
///   sudo hoistway verify my-load.fio --device my-disk.toml --target /dev/nvme0n1
///   sudo hoistway verify my-load.fio --device my-disk.toml --target /mnt/new --writes /mnt/new
///   sudo hoistway verify incident.blktrace.0 --device my-disk.toml --target /dev/sdb --format json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A fio job file, or a recording of block I/O (docs/recordings.md).
    #[arg(value_name = "JOB|RECORDING")]
    job: PathBuf,
    #[command(flatten)]
    replay: ReplayOptions,
    /// The device model for the prediction: a preset, or a TOML file such as hoistway calibrate device writes.
    #[arg(long, value_name = "PRESET|FILE.toml")]
    device: String,
    /// The block device or file that the load runs on.
    #[arg(long, value_name = "DEVICE|FILE")]
    target: PathBuf,
    #[command(flatten)]
    target_options: TargetOptions,
    /// The schedulers. [default: those that the kernel offers for the target]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = SCHEDULERS)]
    schedulers: Vec<String>,
    /// Run each scheduler N times on the kernel.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=i64::from(REPEATS_MAX)))]
    rounds: u32,
    /// Simulate each scheduler K times.
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=i64::from(REPEATS_MAX)))]
    repeat: u32,
    /// Override the runtime of every job, in the simulation and on the kernel.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    runtime: Option<Nanos>,
    /// The host for the prediction: a profile of `hoistway hosts`, or a TOML file. [default: the one that the device model was fitted
    /// with; for a model without a fit server, for a recording instant]
    #[arg(long, value_name = "PROFILE")]
    host: Option<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: VerifyFormat,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum VerifyFormat {
    /// For people.
    #[default]
    Table,
    /// For programs: docs/verify.md has the fields.
    Json,
}

/// Ends runs early on Ctrl-C.
#[derive(Clone, Default)]
struct Interrupt {
    is_requested: Arc<AtomicBool>,
    /// The run of our own engine, if there is one.
    engine: Arc<Mutex<Option<RealControls>>>,
}

impl Interrupt {
    fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Relaxed)
    }

    fn engine(&self) -> std::sync::MutexGuard<'_, Option<RealControls>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self) {
        self.is_requested.store(true, Ordering::Relaxed);
        if let Some(controls) = &*self.engine() {
            controls.cancel();
        }
    }
}

/// How the load runs on the kernel.
enum KernelRuns<'a> {
    /// In fio, with this job file.
    Fio(tempfile::NamedTempFile),
    /// In our own engine.
    Engine(&'a RealExperiment),
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::default();
    let interrupt = Interrupt::default();
    let handler = interrupt.clone();
    hoistway_terminal::interrupt::on_interrupt(move || handler.request())?;
    let mut comparison = Comparison {
        load: Load::File(arguments.job.clone()),
        replay: parse::replay(&arguments.replay)?,
        devices: vec![arguments.device.as_str().into()],
        hosts: arguments.host.iter().map(|host| host.as_str().into()).collect(),
        cpus: std::thread::available_parallelism().ok().and_then(|cpus| u16::try_from(cpus.get()).ok()),
        runtime_ns: arguments.runtime.map(|runtime| runtime.0),
        repeats: arguments.repeat,
        ..Comparison::default()
    };
    let text = LoadText::read(&comparison, &environment)?;
    let is_recording = text.text().is_empty();
    let load = text.job_file(&comparison, &environment, comparison.cpus.unwrap_or(1))?.load;
    let modifies = load.processes.iter().any(|process| process.plan.modifies());
    ensure!(
        !modifies || arguments.target_options.writes.is_some(),
        "{}: the load writes (expected --writes with the target named again, whose data is then lost)",
        arguments.job.display()
    );
    let bytes = made::bytes_of(&load).unwrap_or(0);
    ensure!(
        bytes > 0 || arguments.target.exists(),
        "{}: does not exist, and the load does not set its size (expected size= in every job, or an existing file)",
        arguments.target.display()
    );
    let Some(target) = Target::open(&arguments.target, &arguments.target_options, bytes, &|| interrupt.is_requested())?
    else {
        return Ok(Ending::Interrupted);
    };
    comparison.schedulers = schedulers(arguments, &target)?;
    let kernel = target.kernel()?;
    comparison.kernels = vec![kernel.to_string()];
    let model = preset_called(&arguments.device, "--device", &environment)?;
    let host = arguments.host.as_deref().map(|host| host_called(host, &environment)).transpose()?;
    let conditions = FitConditions::of(&model, host.as_ref(), &kernel)
        .map_err(|why| anyhow!("--device {}: {why}", arguments.device))?;
    if comparison.hosts.is_empty() {
        comparison.hosts = conditions.host.iter().map(|host| host.as_str().into()).collect();
    }
    let experiment;
    let runs = if is_recording {
        experiment = recording_experiment(arguments, &comparison, &target);
        KernelRuns::Engine(&experiment)
    } else {
        let runtime_ms = comparison.runtime_ns.map(|ns| (ns / 1_000_000).max(1));
        let on_target = |target_path: &Path| {
            let job_file = job_text::on_target(text.text(), target_path, runtime_ms);
            job_file.map_err(|why| anyhow!("{}: {why}", arguments.job.display()))
        };
        // Predict the load that runs. The simulated device is the model, whatever device the target is.
        comparison.load = Load::Text { name: text.name().to_owned(), text: on_target(Path::new("target"))? };
        let job_file = on_target(&target.path)?;
        let mut file = tempfile::Builder::new().suffix(".fio").tempfile().context("a job file for fio")?;
        file.write_all(job_file.as_bytes()).context("a job file for fio")?;
        KernelRuns::Fio(file)
    };
    if let Some(output) = &arguments.output {
        environment.spare(output)?;
    }
    let output = Output::open(arguments.output.as_deref())?;
    let (applier, restored) = target.applier(&arguments.target_options.journal)?;
    restored.iter().for_each(|restored| say(&format!("{}: rolled back what a killed run had left", restored.device)));
    let mut predicted = comparison.run_observed(&environment, &Unobserved)?;
    predicted.doubts.extend(conditions.doubts);
    let queues = Queues::of(&target, &applier)?;
    let Some(measured) = measured(arguments, queues, &runs, (&comparison.schedulers, modifies), &interrupt)? else {
        return Ok(Ending::Interrupted);
    };
    let about = About {
        load: text.name().to_owned(),
        model: arguments.device.clone(),
        target: arguments.target.display().to_string(),
        kernel: target.host.kernel.release.clone(),
    };
    let verification = Verification::of(&predicted, &measured, about);
    ensure!(
        !verification.figures.is_empty(),
        "{}: no figure could be compared (expected jobs that read or write)",
        text.name()
    );
    output.write(match arguments.format {
        VerifyFormat::Table => printable::text(&verification.text()),
        VerifyFormat::Json => serde_json::to_string_pretty(&verification)? + "\n",
    })?;
    Ok(if verification.refuted().next().is_some() { Ending::LimitBroken } else { Ending::Done })
}

/// The requested schedulers, or all that both the kernel and the simulator have.
fn schedulers(arguments: &Arguments, target: &Target) -> Result<Vec<String>> {
    let name = arguments.target.display();
    let offered = target.schedulers();
    if target.below.disks.is_empty() {
        bail!(
            "{name}: is not on a disk that sysfs lists, so no scheduler applies (expected a block device, or a file on one)"
        );
    }
    if let Some(file) = &target.below.cached_by {
        bail!(
            "{name}: reads are served from the page cache of {file} below it (expected a loop device with direct I/O: losetup --direct-io=on)"
        );
    }
    if let Some(missing) = arguments.schedulers.iter().find(|name| !offered.contains(name)) {
        bail!(
            "--schedulers {missing}: not available for {name} (expected one of {}, or its module to be loaded)",
            offered.join(", ")
        );
    }
    let common = || SCHEDULERS.iter().map(|name| (*name).to_owned()).filter(|name| offered.contains(name)).collect();
    Ok(if arguments.schedulers.is_empty() { common() } else { arguments.schedulers.clone() })
}

fn recording_experiment(arguments: &Arguments, comparison: &Comparison, target: &Target) -> RealExperiment {
    let kind = if target.below.is_device { "blk" } else { "file" };
    RealExperiment {
        load: comparison.load.clone(),
        replay: comparison.replay.clone(),
        target: format!("{kind}:{}", target.path.display()),
        // The measured scheduler is the kernel's, so the engine has none.
        schedulers: vec!["none".to_owned()],
        tunables: Vec::new(),
        queue_files: Vec::new(),
        vary: Vec::new(),
        repeats: 1,
        baseline: None,
        focus: Vec::new(),
        smallest_effect: None,
        runtime_ns: comparison.runtime_ns,
        ramp_ns: None,
        from_start: true,
        seed: comparison.seed,
        logs: false,
        workers: None,
        queue_depth: None,
        contention_options: ContentionOptions::default(),
        fixed_buffers: 0,
        force: arguments.target_options.writes.is_some(),
    }
}

/// Measures all rounds, and restores the scheduler. `None` if interrupted.
fn measured(
    arguments: &Arguments,
    mut queues: Queues<'_>,
    runs: &KernelRuns<'_>,
    (schedulers, modifies): (&[String], bool),
    interrupt: &Interrupt,
) -> Result<Option<KernelFigures>> {
    let bar = if std::io::stderr().is_terminal() {
        let style =
            ProgressStyle::with_template("{bar:40} {pos} of {len} runs  {elapsed} so far, about {eta} to go  {msg}");
        ProgressBar::new(u64::from(arguments.rounds) * schedulers.len() as u64)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    } else {
        ProgressBar::hidden()
    };
    let mut measured = KernelFigures::new();
    let mut is_complete = true;
    let begin = Instant::now();
    'rounds: for round in 0..arguments.rounds as usize {
        for index in 0..schedulers.len() {
            // Rotate the order, since the first run of a round may see different conditions.
            let scheduler = &schedulers[(index + round) % schedulers.len()];
            bar.set_message(scheduler.clone());
            queues.set(scheduler)?;
            let Some(figures) = run_once(runs, modifies, interrupt)? else {
                is_complete = false;
                break 'rounds;
            };
            queues.check(scheduler)?;
            if bar.is_hidden() && round + index == 0 {
                let runs = arguments.rounds as usize * schedulers.len();
                let all = HumanDuration(begin.elapsed() * runs as u32);
                say(&format!(
                    "the first of {runs} runs took {:.1} s; all will take about {all}",
                    begin.elapsed().as_secs_f64()
                ));
            }
            measured.entry(scheduler.clone()).or_default().push(figures);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    queues.restore()?;
    Ok(is_complete.then_some(measured))
}

/// The figures of a run. `None` if it was interrupted.
fn run_once(runs: &KernelRuns<'_>, modifies: bool, interrupt: &Interrupt) -> Result<Option<Figures>> {
    match runs {
        KernelRuns::Fio(job) => {
            let mut arguments = vec!["--lat_percentiles=1".to_owned(), "--clat_percentiles=0".to_owned()];
            arguments.extend((!modifies).then(|| "--readonly".to_owned()));
            arguments.push(path_text(job.path()));
            match fio::run(&arguments, &|| !interrupt.is_requested()) {
                Ok(document) => Ok(Some(of_fio(&document))),
                Err(FioError::Interrupted) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
        KernelRuns::Engine(experiment) => {
            let environment = CommandLine::of_real_runs();
            let document = in_engine(experiment, &environment, interrupt)?;
            Ok((!interrupt.is_requested()).then(|| of_run(&document)))
        }
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn in_engine(experiment: &RealExperiment, environment: &CommandLine, interrupt: &Interrupt) -> Result<ResultsDocument> {
    let plan = RealPlan::of(experiment, environment)?;
    let controls = plan.controls();
    *interrupt.engine() = Some(controls.clone());
    // The interruption may have come before the controls existed.
    if interrupt.is_requested() {
        controls.cancel();
    }
    plan.prepare(&controls)?;
    let document = plan.run(&controls, &Unobserved, &|_, _| {});
    *interrupt.engine() = None;
    Ok(document?)
}

fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "hoistway: {}", printable::text(sentence));
}
