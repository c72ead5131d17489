//! `hoistway calibrate fit`: fits a device model to measurements.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use hoistway_blk::ground::Kernel;
use hoistway_calibrate::fit::{EVALUATIONS_MAX, FitError, FitPlan, fit, from_csv, from_fio_json};
use hoistway_device::{Preset, PresetFile};
use hoistway_experiment::{CallerEnvironment as _, KernelOption};
use hoistway_sim::Host;
use indicatif::{ProgressBar, ProgressStyle};

use hoistway_experiment::fitted_device;
use hoistway_program::{NAME_DEVICE, Options, Program, RequestedDevice};
use hoistway_trace::block::Recording;

use crate::input::CommandLine;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// Fit the parameters of a device model to measurements of a device without a scheduler.
///
/// MEASUREMENTS is a table with the columns rw, bs, iodepth, and optionally numjobs, rwmixread and scheduler, which must be
/// none; and at least one of the figures iops (of all processes), lat_mean_us, lat_p50_us, lat_p99_us, lat_p999_us. It may also
/// be the output of `fio --output-format=json` for jobs that ran one after the other (stonewall).
///
/// MEASUREMENTS may also be a recording of block I/O. The preset then consists of the service times that the device was seen to have, and
/// the output says how far it is off on the last third of the recording, which it was not made of when that was tried.
///
/// The preset of --like provides the model and every number that is not fitted. The output lists the parameters, how well the
/// rows determine each, and the error of each figure; -o is the fitted preset, for `hoistway compare --device`.
///
/// Exit status: 0 on success; 1 if the fit did not converge and 130 if interrupted, both after the best fit so far is written
/// and marked; 2 for bad input.
///
/// Examples:
///   hoistway calibrate fit my-disk.csv --like micron-9100-1600gb -o my-disk.toml
///   hoistway calibrate fit fio.json --like intel-s3520-1600gb -o my-disk.toml \
///     --parameters serial_stage_us,flash_read_us
///   hoistway calibrate fit incident.blktrace.0 -o my-disk.toml
///   hoistway compare my-load.fio --device my-disk.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The measurements: a CSV file, fio's JSON, or a recording of block I/O.
    measurements: PathBuf,
    /// The most similar device, a preset or a TOML file: provides the model and every number that is not fitted. Needed unless the
    /// measurements are a recording.
    #[arg(long, value_name = "PRESET")]
    like: Option<String>,
    /// The device, if the measurements are a recording of several.
    #[arg(long, value_name = "MAJOR,MINOR|NAME")]
    recorded_device: Option<String>,
    /// The parameters to fit, by their names in the section of the model. [default: those that the rows can determine]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    parameters: Vec<String>,
    /// The host that ran the measurements: a profile of `hoistway hosts`, or a TOML file.
    #[arg(long, value_name = "PROFILE", default_value = Host::DEFAULT)]
    host: String,
    /// The Linux release that was measured, any or what `uname -r` prints.
    #[arg(long, value_name = "VERSION", default_value_t = Kernel::DEFAULT.into())]
    kernel: KernelOption,
    /// Write the preset to this file, and name it after the file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Run all rows at most N times.
    #[arg(long, value_name = "N", default_value_t = 600,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(EVALUATIONS_MAX)))]
    evaluations: u32,
}

pub(super) fn run(arguments: &Arguments) -> Result<Ending> {
    let file = arguments.measurements.display().to_string();
    let environment = CommandLine::default();
    if let Some(recording) = environment.recording(&arguments.measurements, None)? {
        return of_recording(recording, arguments, &environment, &file);
    }
    if arguments.recorded_device.is_some() {
        return Err(anyhow!("--recorded-device: {file} is not a recording (expected one, or no --recorded-device)"));
    }
    let Some(like) = &arguments.like else {
        return Err(anyhow!(
            "{file}: measurements in a table say nothing of the model (expected --like with the most similar device)"
        ));
    };
    let text = read_text(&environment, &arguments.measurements)
        .with_context(|| format!("{file}: cannot be read (expected a CSV file, fio's JSON, or a recording)"))?;
    let is_json = text.trim_start().starts_with('{');
    let rows = if is_json { from_fio_json(&text, &file) } else { from_csv(&text, &file) }?;
    let plan = FitPlan {
        rows,
        source: arguments.measurements.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        like: preset_called(like, "--like", &environment)?,
        host: host_called(&arguments.host, &environment)?,
        kernel: arguments.kernel.kernel,
        parameters: arguments.parameters.clone(),
        evaluations: arguments.evaluations,
        name: arguments.output.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    environment.spare(&arguments.output)?;
    let output = Output::open(Some(&arguments.output))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    hoistway_terminal::interrupt::on_interrupt(move || flag.store(true, Ordering::Relaxed))?;
    let bar = if std::io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{spinner} {pos} evaluations, at most {len}  {elapsed} so far");
        ProgressBar::new(arguments.evaluations.into())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
    } else {
        ProgressBar::hidden()
    };
    let fitted = fit(&plan, |done| {
        bar.set_position(done.into());
        !interrupted.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    let fitted = fitted.map_err(|error| match error {
        FitError::Rows(_) => anyhow!("{file}: {error}"),
        FitError::Like(_) => anyhow!("--like {like}: {error}"),
        FitError::Parameters(_) => anyhow!("--parameters: {error}"),
    })?;
    output.write(PresetFile::from(fitted.preset.clone()).to_toml().context("the preset cannot be written as TOML")?)?;
    Output::Standard.write(fitted.report())?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Ending::Interrupted);
    }
    if !fitted.has_converged {
        let _ = writeln!(
            std::io::stderr(),
            "hoistway: the fit did not converge in {} evaluations: the best was written and marked",
            fitted.evaluations
        );
        return Ok(Ending::JobFailed);
    }
    Ok(Ending::Done)
}

/// Makes a preset of the service times of a recording.
fn of_recording(
    mut recording: Recording,
    arguments: &Arguments,
    environment: &CommandLine,
    file: &str,
) -> Result<Ending> {
    if arguments.like.is_some() || !arguments.parameters.is_empty() {
        let option = if arguments.like.is_some() { "--like" } else { "--parameters" };
        return Err(anyhow!(
            "{option}: the model of a recording has no parameters that are fitted (expected a table of measurements)"
        ));
    }
    let device = arguments.recorded_device.as_deref().map(RequestedDevice::parse);
    let options = Options { device, served: true, intervals: true, ..Options::default() };
    let program = Program::infer(&mut recording, file, &options).map_err(|mut error| {
        if error.expected == NAME_DEVICE {
            "--recorded-device with one of them".clone_into(&mut error.expected);
        }
        error
    })?;
    let (preset, off) = fitted_device(&program, file).map_err(|problem| anyhow!("{file}: the recording {problem}"))?;
    environment.spare(&arguments.output)?;
    let preset_file = PresetFile {
        name: arguments.output.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        ..preset.into()
    };
    let text = preset_file.to_toml().context("the preset cannot be written as TOML")?;
    Output::open(Some(&arguments.output))?.write(text)?;
    let kinds = preset_file.service.iter().flat_map(|service| &service.kinds).count();
    Output::Standard.write(format!(
        "{}: {kinds} kinds of requests. Made of the first 70 % of them, it is off on the others by {off}.\n",
        preset_file.title
    ))?;
    Ok(Ending::Done)
}

/// The preset that an option names.
pub(crate) fn preset_called(name_or_path: &str, option: &str, environment: &CommandLine) -> Result<Preset> {
    builtin_or_file(name_or_path, option, environment, Preset::builtin, Preset::from_toml)
}

/// The profile of `--host`.
pub(crate) fn host_called(name_or_path: &str, environment: &CommandLine) -> Result<Host> {
    builtin_or_file(name_or_path, "--host", environment, Host::builtin, Host::from_toml)
}

fn read_text(environment: &CommandLine, path: &Path) -> Result<String> {
    Ok(String::from_utf8(environment.read(path)?)?)
}

/// A built-in item by its name, or the user's own from a file if the name ends in `.toml` or contains a slash.
fn builtin_or_file<T, E: std::error::Error + Send + Sync + 'static>(
    name_or_path: &str,
    option: &str,
    environment: &CommandLine,
    builtin: impl Fn(&str) -> Result<T, E>,
    parse: impl Fn(&str, &str) -> Result<T, E>,
) -> Result<T> {
    if name_or_path.ends_with(".toml") || name_or_path.contains('/') {
        let text = read_text(environment, name_or_path.as_ref())
            .with_context(|| format!("{option} {name_or_path}: cannot be read"))?;
        return Ok(parse(&text, name_or_path)?);
    }
    builtin(name_or_path).with_context(|| option.to_owned())
}
