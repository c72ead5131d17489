//! `hoistway verify`: compares a prediction with measurements under this machine's kernel.

mod fit_conditions;
mod progress;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use hoistway_answer::verification::{About, Verification};
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_experiment::limits::REPEATS_MAX;
use hoistway_experiment::real::{RealControls, RealExperiment, RealLayer, RealPlan, job_text, made};
use hoistway_experiment::{Comparison, KernelOption, Load, LoadText, Unobserved};
use hoistway_terminal::output::{Output, different, is_same_path};
use hoistway_terminal::{Ending, printable};

use self::fit_conditions::FitConditions;
use self::progress::{Progress, say};
use crate::commands::calibrate::fit::{host_called, preset_called};
use crate::commands::compare::parse;
use crate::commands::options::{ReplayOptions, RunOptions};
use crate::commands::outputs::{LimitOptions, print_limits};
use crate::commands::target::{Target, TargetOptions};
use crate::input::CommandLine;

/// The schedulers that both the kernel and the simulator have.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Predict a load under each scheduler, run it under the same schedulers of this machine's kernel, and compare.
///
/// A job file runs in fio on the target, which replaces its filename; a recording of block I/O runs in hoistway's own engine.
/// Each round runs every scheduler once. The target is only read, unless --writes names it again. The scheduler of its disk is
/// restored at the end; after a killed run the next hoistway verify, calibrate device or apply restores it.
///
/// Prints predicted and measured figures, the error, the spread of the rounds, and whether the order of the schedulers is right.
/// What was measured is a results document, too, as hoistway run makes it. docs/verify.md explains the details.
///
/// Exit status: 0 on success; 3 if a prediction that was certain is wrong, or a --fail-if condition is true; 2 for bad input; 130 if
/// interrupted.
///
/// Examples:
///   sudo hoistway verify my-load.fio --device my-disk.toml --target /dev/nvme0n1
///   sudo hoistway verify my-load.fio --device my-disk.toml --target /mnt/new --writes /mnt/new
///   sudo hoistway verify incident.blktrace.0 --device my-disk.toml --target /dev/sdb --format json
///   sudo hoistway verify my.fio --device my.toml --target /dev/sdb --vary mq-deadline.fifo_batch=1,16
///   sudo hoistway verify my.fio --device my.toml --target /dev/sdb --report a.html --measured a.json
///   sudo hoistway verify my.fio --device my.toml --target /dev/sdb --fail-if "backends:read:p99>2ms"
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
    /// Compare several values of a tunable, or of a file that --queue accepts (queue.nr_requests=64,256), in the simulation and on the
    /// kernel. The scheduler runs with its default and with each value. May be given several times: every combination runs.
    #[arg(long, value_name = "SCHED.TUNABLE=V1,V2,...")]
    vary: Vec<String>,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    limits: LimitOptions,
    /// The host for the prediction: a profile of `hoistway hosts`, or a TOML file. [default: the one that the device model was fitted
    /// with; for a model without a fit server, for a recording its own]
    #[arg(long, value_name = "PROFILE")]
    host: Option<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: VerifyFormat,
    /// Also write an HTML page of what was measured, with charts (docs/report.md).
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Also write what was measured as a results document (docs/results.md), for hoistway report and hoistway diff.
    #[arg(long, value_name = "FILE.json")]
    measured: Option<PathBuf>,
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
#[derive(Default)]
struct Interrupt {
    is_requested: AtomicBool,
    /// The controls of the runs on the kernel, once they are planned.
    controls: OnceLock<RealControls>,
}

impl Interrupt {
    fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Relaxed)
    }

    fn request(&self) {
        self.is_requested.store(true, Ordering::Relaxed);
        self.controls.get().inspect(|controls| controls.cancel());
    }

    /// The controls of a plan, which are cancelled from now on.
    fn controls_of(&self, plan: &RealPlan<'_>) -> &RealControls {
        let controls = self.controls.get_or_init(|| plan.controls());
        // The interruption may have come before the controls existed.
        if self.is_requested() {
            controls.cancel();
        }
        controls
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::default();
    let interrupt = Arc::new(Interrupt::default());
    let handler = Arc::clone(&interrupt);
    hoistway_terminal::interrupt::on_interrupt(move || handler.request())?;
    let mut comparison = comparison(arguments)?;
    let text = LoadText::read(&comparison, &environment)?;
    let Some(target) = target(arguments, &comparison, &text, (&environment, &interrupt))? else {
        return Ok(Ending::Interrupted);
    };
    comparison.schedulers = schedulers(arguments, &target)?;
    let kernel = target.kernel()?;
    comparison.kernels = vec![kernel.to_string()];
    let conditions = conditions(arguments, &kernel, &environment)?;
    if comparison.hosts.is_empty() {
        comparison.hosts = conditions.host.iter().map(|host| host.as_str().into()).collect();
    }
    if !text.text().is_empty() {
        comparison.load = Load::Text { name: text.name().to_owned(), text: text.text().to_owned() };
    }
    let experiment = experiment(arguments, &comparison, (&target, kernel));
    let mut plan = RealPlan::of(&experiment, &environment)?;
    arguments.limits.check(|limits| plan.impossible(limits))?;
    if !text.text().is_empty() {
        // Predict the load that runs. The simulated device is the model, whatever device the target is.
        comparison.load = job_text::on_target(&text, Path::new("target"), &comparison)?;
    }
    let outputs = Outputs::open(arguments, &target, &environment)?;
    let (applier, restored) = target.applier(&arguments.target_options.journal)?;
    restored.iter().for_each(|restored| say(&format!("{}: rolled back what a killed run had left", restored.device)));
    let mut predicted = comparison.run_observed(&environment, &Unobserved)?;
    predicted.doubts.extend(conditions.doubts);
    // Whether a value is a default, and has no variant of its own, depends on the model or on the disk.
    plan.retain(|label| predicted.runs.iter().any(|run| run.variant.label == label));
    let queues = target.queues(&applier)?;
    let controls = interrupt.controls_of(&plan);
    plan.prepare(controls)?;
    let progress = Progress::of(plan.run_count());
    let mut measured = plan.run_on_kernel(queues, controls, &progress, &|row, _| progress.begins(row))?;
    drop(progress);
    if measured.partial {
        return Ok(Ending::Interrupted);
    }
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
    (measured.arguments, measured.command) = crate::command_line();
    let analysis = Analysis::of(&measured);
    let exceeded = arguments.limits.exceeded(&analysis)?;
    measured.conclusion = hoistway_render::text::conclusion(&analysis);
    outputs.write(&verification, &measured, arguments.format)?;
    print_limits(&exceeded);
    let is_broken = !exceeded.is_empty() || verification.refuted().next().is_some();
    Ok(if is_broken { Ending::LimitBroken } else { Ending::Done })
}

/// The open outputs.
struct Outputs {
    verification: Output,
    report: Option<Output>,
    measured: Option<Output>,
}

impl Outputs {
    /// Checks that all outputs can be written, and that none is the target or was read.
    fn open(arguments: &Arguments, target: &Target, environment: &CommandLine) -> Result<Outputs> {
        let Arguments { report, measured, run, .. } = arguments;
        different(&[("--report", report), ("--measured", measured)])?;
        for file in [&run.output, report, measured].into_iter().flatten() {
            environment.spare(file)?;
            ensure!(
                !is_same_path(&target.path, file),
                "{}: is the target (expected another file for the results)",
                file.display()
            );
        }
        let verification = Output::open(run.output.as_deref())?;
        let beside = |option, file: &Option<PathBuf>| {
            file.as_deref().map(|file| Output::beside(option, file, &verification)).transpose()
        };
        let (report, measured) = (beside("--report", report)?, beside("--measured", measured)?);
        Ok(Outputs { verification, report, measured })
    }

    /// Writes each output, even if another one fails.
    fn write(self, verification: &Verification, measured: &ResultsDocument, format: VerifyFormat) -> Result<()> {
        let text = match format {
            VerifyFormat::Table => printable::text(&hoistway_render::text::verification(verification)),
            VerifyFormat::Json => serde_json::to_string_pretty(verification)? + "\n",
        };
        let page = |report: Output| report.write_to_file_only(super::report::page(measured)?);
        let report = self.report.map_or(Ok(()), page);
        let json = |file: Output| file.write_to_file_only(hoistway_render::text::json(measured));
        let stored = self.measured.map_or(Ok(()), json);
        self.verification.write(text).and(report).and(stored)
    }
}

/// The prediction, without what depends on the target.
fn comparison(arguments: &Arguments) -> Result<Comparison> {
    let run = &arguments.run;
    Ok(Comparison {
        load: Load::File(arguments.job.clone()),
        replay: parse::replay(&arguments.replay)?,
        devices: vec![arguments.device.as_str().into()],
        hosts: arguments.host.iter().map(|host| host.as_str().into()).collect(),
        cpus: std::thread::available_parallelism().ok().and_then(|cpus| u16::try_from(cpus.get()).ok()),
        tunables: parse::parse_each(&run.set, parse::tunable)?,
        queue_files: parse::queue_files(&run.queue, None)?,
        vary: parse::parse_each(&arguments.vary, parse::vary)?,
        runtime_ns: run.runtime.map(|runtime| runtime.0),
        ramp_ns: run.ramp.map(|ramp| ramp.0),
        seed: run.seed,
        repeats: arguments.repeat,
        ..Comparison::default()
    })
}

/// The same experiment on the kernel.
fn experiment(
    arguments: &Arguments,
    predicted: &Comparison,
    (target, kernel): (&Target, KernelOption),
) -> RealExperiment {
    let kind = if target.below.is_device { "blk" } else { "file" };
    RealExperiment {
        load: predicted.load.clone(),
        replay: predicted.replay.clone(),
        target: format!("{kind}:{}", target.path.display()),
        schedulers: predicted.schedulers.clone(),
        tunables: predicted.tunables.clone(),
        queue_files: predicted.queue_files.clone(),
        vary: predicted.vary.clone(),
        repeats: arguments.rounds,
        runtime_ns: predicted.runtime_ns,
        ramp_ns: predicted.ramp_ns,
        from_start: true,
        seed: predicted.seed,
        force: arguments.target_options.writes.is_some(),
        layer: RealLayer::Kernel(kernel),
        ..RealExperiment::default()
    }
}

/// Opens the target, and creates it for a load that may write. `None` if that was interrupted.
fn target(
    arguments: &Arguments,
    comparison: &Comparison,
    text: &LoadText,
    (environment, interrupt): (&CommandLine, &Interrupt),
) -> Result<Option<Target>> {
    let load = text.job_file(comparison, environment, comparison.cpus.unwrap_or(1))?.load;
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
    Target::open(&arguments.target, &arguments.target_options, bytes, &|| interrupt.is_requested())
}

/// What the device model was fitted with.
fn conditions(arguments: &Arguments, kernel: &KernelOption, environment: &CommandLine) -> Result<FitConditions> {
    let model = preset_called(&arguments.device, "--device", environment)?;
    let host = arguments.host.as_deref().map(|host| host_called(host, environment)).transpose()?;
    FitConditions::of(&model, host.as_ref(), kernel).map_err(|why| anyhow!("--device {}: {why}", arguments.device))
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
