//! `hoistway calibrate device`: measures a device, and fits a model to it.

use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use hoistway_blk::ground::Nanos;
use hoistway_calibrate::device::{DeviceError, DeviceObserver, DevicePlan, MeasuredRow, measure, to_csv};
use hoistway_calibrate::fit::{EVALUATIONS_MAX, Fit, FitPlan, fit};
use hoistway_device::{Preset, PresetFile};
use hoistway_experiment::real::fio_process::FioError;
use hoistway_linux::host::{Class, Device};
use hoistway_sim::Host;
use hoistway_terminal::output::Output;
use hoistway_terminal::{Ending, printable};
use indicatif::{ProgressBar, ProgressStyle};

use super::fit::{host_called, preset_called};
use crate::commands::options::parse_time;
use crate::commands::target::{Target, TargetOptions};
use crate::input::CommandLine;

/// The model for a device whose class is unknown (a loop device, memory, a virtual disk): the one with the fewest special properties.
const GENERIC_PRESET: &str = "intel-p4800x-375gb";
/// Size of a file that is created.
const FILE_BYTES: u64 = 1 << 30;
/// A smaller target fits into caches.
const BYTES_MIN: u64 = 64 << 20;
/// A poor fit is blamed on differences between rounds if their median over the loads exceeds this ratio minus one.
const SPREAD_MAX: f64 = 0.5;

/// Measure a block device or a file with fio, without a scheduler, and fit a device model to it.
///
/// Reads only, unless --writes names the target again. The scheduler of the disk is set to none for the measurement and is
/// restored at its end; after a killed run the next hoistway calibrate device, verify or apply restores it. Measures the latency
/// at depth 1, the curve over depths, sizes, a sequential load, and with --writes writes and a mix, each once per round. Takes
/// three to five minutes, with --quick under one.
///
/// Refuses to measure if results would not be those of the device: other programs use it, a page cache is below it, or its rate
/// falls under a constant load. Also refuses a fit if half of its figures are off by more than --residuals: then no file is
/// written.
///
/// Exit status: 0 on success; 1 if the fit did not converge, after the file is written and marked; 2 for bad input and for a
/// refusal; 130 if interrupted.
///
/// Examples:
///   sudo hoistway calibrate device /dev/nvme0n1 -o my-disk.toml
///   sudo hoistway calibrate device /mnt/new-file --writes /mnt/new-file -o my-disk.toml
///   hoistway compare my-load.fio --device my-disk.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The block device or the file, such as /dev/nvme0n1.
    #[arg(value_name = "DEVICE|FILE")]
    target: PathBuf,
    /// Write the device model to this file, and name it after the file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write the measurements, as the table that hoistway calibrate fit reads.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Run each load for one second in three rounds, instead of four in five.
    #[arg(long)]
    quick: bool,
    /// Run each load for this time in each round. [default: 4s, with --quick 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    runtime: Option<Nanos>,
    /// Measure every load N times. [default: 5, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// The most similar device, a preset or a TOML file: provides the model and every number that is not fitted. [default: chosen
    /// by the model and the class of the device]
    #[arg(long, value_name = "PRESET")]
    like: Option<String>,
    /// The host that runs fio: a profile of `hoistway hosts`, or a TOML file.
    #[arg(long, value_name = "PROFILE", default_value = Host::DEFAULT)]
    host: String,
    /// Run all rows of the fit at most N times.
    #[arg(long, value_name = "N", default_value_t = 300,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(EVALUATIONS_MAX)))]
    evaluations: u32,
    /// Refuse a fit if half of its figures are off by more than this percentage.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    residuals: u32,
    #[command(flatten)]
    target_options: TargetOptions,
}

pub(super) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::default();
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    hoistway_terminal::interrupt::on_interrupt(move || flag.store(true, Ordering::Relaxed))?;
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    let mut host = host_called(&arguments.host, &environment)?;
    host.cpus = Some(std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u16));
    let Some(target) = Target::open(&arguments.target, &arguments.target_options, FILE_BYTES, &is_interrupted)? else {
        return Ok(Ending::Interrupted);
    };
    check(&target, arguments)?;
    let disk = target.disk();
    let like = arguments.like.clone().or_else(|| Some(disk?.preset.as_ref()?.name.clone()));
    let like = like.unwrap_or_else(|| GENERIC_PRESET.to_owned());
    let like = preset_with_sysfs_properties(preset_called(&like, "--like", &environment)?, disk)?;
    environment.spare(&arguments.output)?;
    let output = Output::open(Some(&arguments.output))?;
    let csv = arguments.csv.as_deref().map(|file| Output::open(Some(file))).transpose()?;
    let plan = DevicePlan {
        target: target.path.clone(),
        writes: arguments.target_options.writes.is_some(),
        rounds: arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 5 }),
        time: arguments
            .runtime
            .map_or(Duration::from_secs(if arguments.quick { 1 } else { 4 }), |time| Duration::from_nanos(time.0)),
        is_rotating: disk.is_some_and(|disk| disk.class == Class::Hdd),
    };
    let rows = match measure_without_scheduler(&plan, &target, arguments, &is_interrupted) {
        Err(error) if is_fio_interrupted(&error) => return Ok(Ending::Interrupted),
        rows => rows?,
    };
    if let Some(csv) = csv {
        csv.write(to_csv(&rows))?;
    }
    let fit_plan = FitPlan {
        rows: rows.iter().map(|row| row.row.clone()).collect(),
        source: format!("hoistway calibrate device {}", arguments.target.display()),
        like,
        host,
        kernel: target.kernel()?.kernel,
        parameters: Vec::new(),
        evaluations: arguments.evaluations,
        name: arguments.output.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let fitted = fit(&fit_plan, |_| !is_interrupted())?;
    Output::Standard.write(printable::text(&text(&rows, &fitted, arguments)))?;
    if is_interrupted() {
        return Ok(Ending::Interrupted);
    }
    let residual = median_residual(&fitted);
    ensure!(
        residual <= f64::from(arguments.residuals) / 100.0,
        "{}: half of the figures are off by {:.0} % or more (expected {} % at most: {}; --residuals accepts more)",
        arguments.target.display(),
        100.0 * residual,
        arguments.residuals,
        advice(&rows, &fit_plan.like.name)
    );
    output.write(PresetFile::from(fitted.preset.clone()).to_toml().context("the preset cannot be written as TOML")?)?;
    let file = arguments.output.display();
    Output::Standard.write(printable::text(&format!("\n{file}: written (hoistway compare --device {file})\n")))?;
    if !fitted.has_converged {
        say(&format!(
            "the fit did not converge in {} evaluations: the best was written and marked",
            fitted.evaluations
        ));
    }
    Ok(if fitted.has_converged { Ending::Done } else { Ending::JobFailed })
}

/// What to do about a poor fit.
fn advice(rows: &[MeasuredRow], like: &str) -> String {
    let mut spreads: Vec<f64> = rows.iter().map(|row| row.spread() - 1.0).collect();
    spreads.sort_by(f64::total_cmp);
    match spreads.get(spreads.len() / 2) {
        Some(spread) if *spread > SPREAD_MAX => {
            format!("the rounds differ by {:.0} %, so measure on an idle machine", 100.0 * spread)
        }
        _ => format!("the model of {like} does not describe this device, so try another --like"),
    }
}

/// Rejects a target whose figures would not be those of a device.
fn check(target: &Target, arguments: &Arguments) -> Result<()> {
    let name = arguments.target.display();
    if let Some(file) = &target.below.cached_by {
        bail!(
            "{name}: reads are served from the page cache of {file} below it (expected a loop device with direct I/O: losetup --direct-io=on)"
        );
    }
    ensure!(
        !target.below.disks.is_empty() || target.below.is_in_memory,
        "{name}: is not on a disk that sysfs lists, so its scheduler is unknown (expected a block device, or a file on one)"
    );
    let bytes = if target.below.is_device {
        target.disk().map_or(u64::MAX, |disk| disk.size_bytes)
    } else {
        target.path.metadata()?.len()
    };
    ensure!(bytes >= BYTES_MIN, "{name}: has {bytes} bytes (expected at least 64 MiB: less fits into a cache)");
    let holes = target.below.hole_bytes;
    ensure!(
        holes < bytes / 10,
        "{name}: has holes of {holes} bytes, which are read without the device (expected a file without holes)"
    );
    Ok(())
}

/// The preset with the properties of the device from sysfs.
fn preset_with_sysfs_properties(like: Preset, disk: Option<&Device>) -> Result<Preset> {
    let Some(disk) = disk else { return Ok(like) };
    let mut file = PresetFile::from(like);
    let name = file.name.clone();
    let shape = &mut file.shape;
    let max_sectors_kb = disk.tunables.iter().find(|tunable| tunable.file == "max_sectors_kb");
    shape.logical_block_bytes = disk.logical_block_bytes.unwrap_or(shape.logical_block_bytes);
    shape.physical_block_bytes = disk.physical_block_bytes.unwrap_or(shape.physical_block_bytes);
    let block = u64::from(shape.logical_block_bytes.max(512));
    shape.capacity_gb = (disk.size_bytes / block * block) as f64 / 1e9;
    if let Some(hardware) = &disk.hardware {
        shape.hw_queues = hardware.queues.max(1);
        shape.queue_depth = hardware.depth;
    }
    shape.write_cache = disk.write_cache.as_ref().map_or(shape.write_cache, |cache| cache.contains("back"));
    shape.max_sectors = max_sectors_kb.and_then(|kb| kb.value.parse().ok()).map_or(shape.max_sectors, |kb: u32| kb * 2);
    Preset::try_from(file).with_context(|| format!("--like {name}: contradicts what sysfs shows of {}", disk.name))
}

/// Measures under the scheduler none: sets it, and restores the previous one.
fn measure_without_scheduler(
    plan: &DevicePlan,
    target: &Target,
    arguments: &Arguments,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Vec<MeasuredRow>> {
    let needs_none = !target.has_scheduler("none");
    // Restores settings left by a killed run, if this user is allowed to.
    let applier = target.applier(&arguments.target_options.journal);
    let applier = match applier {
        Err(error) if needs_none => {
            let name = arguments.target.display();
            return Err(error
                .context(format!("{name}: its scheduler cannot be set to none (expected to run as root, or a scheduler that is none already)")));
        }
        applier => applier.ok(),
    };
    let needs_none = !target.has_scheduler("none");
    let mut queues = None;
    if let Some((applier, restored)) = &applier {
        restored
            .iter()
            .for_each(|restored| say(&format!("{}: rolled back what a killed run had left", restored.device)));
        if needs_none {
            let mut temporary = target.queues(applier)?;
            temporary.set("none", &[])?;
            queues = Some(temporary);
        }
    }
    let bar = if std::io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{bar:40} {pos} of {len} runs  {elapsed} so far, about {eta} to go");
        ProgressBar::new((plan.loads() as u64) * u64::from(plan.rounds))
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    } else {
        ProgressBar::hidden()
    };
    let observer = MeasurementObserver { target, is_interrupted, bar: &bar };
    let rows = measure(plan, &observer);
    bar.finish_and_clear();
    if let Some(queues) = queues {
        let checked = queues.check("none");
        queues.restore()?;
        checked?;
    }
    rows.map_err(|error| anyhow!(error).context(arguments.target.display().to_string()))
}

struct MeasurementObserver<'a> {
    target: &'a Target,
    is_interrupted: &'a dyn Fn() -> bool,
    bar: &'a ProgressBar,
}

impl DeviceObserver for MeasurementObserver<'_> {
    fn goes_on(&self) -> bool {
        !(self.is_interrupted)()
    }

    fn sectors(&self) -> Option<u64> {
        self.target.sectors()
    }

    fn ended(&self, runs: usize) {
        self.bar.set_position(runs as u64);
    }
}

fn is_fio_interrupted(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<DeviceError>(), Some(DeviceError::Fio(FioError::Interrupted)))
}

/// The median of the relative errors.
fn median_residual(fitted: &Fit) -> f64 {
    let mut errors: Vec<f64> =
        fitted.residuals.iter().map(|(_, figure, model)| (model / figure.value - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied().unwrap_or(0.0)
}

/// The measurements with the errors of the fit, and the parameters.
fn text(rows: &[MeasuredRow], fitted: &Fit, arguments: &Arguments) -> String {
    let mut text =
        format!("{}, without a scheduler, medians of {} rounds\n", arguments.target.display(), rows[0].iops.len());
    text += "  load                                                     IOPS  spread    model   error   latency us  error\n";
    for row in rows {
        let row_residuals = fitted.residuals.iter().filter(|(fit_row, ..)| fit_row.line == row.row.line);
        let figures: Vec<(f64, f64)> = row_residuals.map(|(_, figure, model)| (figure.value, *model)).collect();
        let [(iops, model), (latency, modelled)] = figures[..] else { continue };
        let error = |model: f64, measured: f64| 100.0 * (model / measured - 1.0);
        text += &format!(
            "  {:50} {iops:>10.0}  {:>5.0} % {model:>8.0}  {:>+5.0} %   {latency:>10.1}  {:>+4.0} %\n",
            row.row.load_text(),
            100.0 * (row.spread() - 1.0),
            error(model, iops),
            error(modelled, latency)
        );
    }
    text + "\n" + &fitted.parameters_text()
}

fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "hoistway: {}", printable::text(sentence));
}
