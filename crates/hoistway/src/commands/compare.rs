//! `hoistway compare`: one load under every scheduler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant as WallClock, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use hoistway_blk::{
    ALL_SCHEDULERS, Effects, Front, Instant, Kernel, Local, Nanos, QueueConfig, is_legacy, kernel_of_front,
};
use hoistway_device::Preset;
use hoistway_results::ResultsDocument;
use hoistway_results::document::FormatTag;
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario, compare};
use hoistway_workload::{Environment, Workload};
use serde_json::Value;

use super::{io_max, queue_files};
use crate::Ending;
use crate::input;
use crate::output::{Format, Output};
use crate::progress::Progress;
use crate::trace_file::TraceFile;

/// The load of a first run.
const EXAMPLE: (&str, &str) = ("example.fio (bundled)", include_str!("../../jobs/example.fio"));
/// The device of whoever names none.
const DEFAULT_DEVICE: &str = "intel-s3520-1600gb";
/// Longest `--runtime`: ten years, as in job files.
const RUNTIME_NS_MAX: u64 = 3_653 * 86_400_000_000_000;
/// CPUs of a host profile that does not say how many.
const CPUS: u16 = 8;

/// Runs a fio job file under every scheduler, in virtual time, and compares.
///
/// Examples:
///   hoistway compare
///   hoistway compare my-load.fio --device intel-s3520-1600gb
///   hoistway compare my-load.fio --device my-disk.toml --schedulers none,mq-deadline
///   hoistway compare my-load.fio --set mq-deadline.fifo_batch=1 --queue nr_requests=32 --runtime 2m
///   hoistway compare my-load.fio --format json -o results.json
///   hoistway compare my-load.fio --runtime 1s --trace events.jsonl.gz
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A fio job file, or - for standard input. Without it a bundled example runs.
    job: Option<PathBuf>,
    /// The device: a built-in preset (see `hoistway devices`) or a TOML file. With several devices,
    /// NAME=PRESET for each `filename` of the job file.
    #[arg(long, value_name = "PRESET|FILE.toml|NAME=PRESET")]
    device: Vec<String>,
    /// The schedulers to compare: a list, or all.
    #[arg(long, value_name = "LIST|all", default_value = "all", value_delimiter = ',')]
    schedulers: Vec<String>,
    /// Sets a tunable, as a write to queue/iosched/ would. May be given several times.
    #[arg(long, value_name = "SCHED.TUNABLE=VALUE")]
    set: Vec<String>,
    /// Writes a file of /sys/block/DEV/queue/ of every device: nr_requests, nomerges, write_cache, rotational,
    /// max_sectors_kb, discard_max_bytes. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    queue: Vec<String>,
    /// Limits a cgroup that the job file names, as a write to io.max would, on every device. May be given several
    /// times.
    #[arg(long, value_name = "CGROUP KEY=N...")]
    io_max: Vec<String>,
    /// The kernel whose block layer is simulated: 4.4, 4.12, 4.19, 5.10, 6.3, 6.12 or 6.18.
    #[arg(long, value_name = "VERSION", default_value_t = Kernel::DEFAULT)]
    kernel: Kernel,
    /// The host: a built-in profile (server, instant) or a TOML file. It says what CPU time an I/O costs, and how long
    /// processes and workers take to react.
    #[arg(long, value_name = "PROFILE|FILE.toml", default_value = Host::DEFAULT)]
    host: String,
    /// CPUs of the host. [default: what the profile says, or 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// Replaces the runtime of every job: 30, 30s, 5m, 2h, 500ms.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    runtime: Option<Nanos>,
    /// Everything random is drawn from it; the same seed gives the same results to the bit.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How the results are written.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also writes every event of the runs, and why each request was chosen, as JSON lines (docs/trace.md);
    /// compressed if the name ends in .gz. About 1 KiB for each I/O: use a short --runtime. Runs go one by one.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

fn parse_time(text: &str) -> Result<Nanos, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(format!("unknown unit \"{unit}\" (expected us, ms, s, m, h or d)")),
    };
    let number: u64 = number.parse().map_err(|_| "expected a whole number with a unit, such as 30s".to_owned())?;
    match number.checked_mul(factor) {
        Some(ns @ 1..=RUNTIME_NS_MAX) => Ok(Nanos(ns)),
        _ => Err("expected a time between 1 us and 10 years".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let (job_file, job_text) = read_job(arguments.job.as_deref())?;
    let host = host_named(&arguments.host)?;
    let cpus = arguments.cpus.or(host.cpus).unwrap_or(CPUS);
    let workload = parse_job(&job_text, &job_file, cpus)?;
    let (devices, mut notices) = choose_devices(&workload, &arguments.device)?;
    let schedulers = choose_schedulers(&arguments.schedulers)?;
    let settings = parse_settings(&arguments.set, &schedulers)?;
    let mut queue = QueueSettings::new(arguments.kernel, cpus);
    queue_files::parse(&arguments.queue, &mut queue)?;
    queue.io_max = io_max::parse(&arguments.io_max, &workload)?;
    let config = queue.config(&devices[0]);
    notices.extend(queue_files::try_out(&queue, &config, &schedulers)?);
    notices.extend(try_settings(&settings, &config)?);
    notices.extend(legacy_notice(&schedulers, arguments.kernel));
    notices.extend(workload.notices.iter().cloned());
    let output = Output::open(arguments.output.as_deref())?;
    let trace = arguments.trace.as_deref().map(|file| TraceFile::open(file, &output)).transpose()?;

    let specs: Vec<RunSpec> = schedulers
        .iter()
        .map(|scheduler| RunSpec {
            scheduler: scheduler.clone(),
            tunables: settings.get(scheduler).cloned().unwrap_or_default(),
            seed: arguments.seed,
        })
        .collect();
    let scenario = Scenario {
        workload: &workload,
        devices: devices.iter().collect(),
        queue,
        host: host.clone(),
        runtime: arguments.runtime,
    };

    let controls: Arc<Vec<Control>> = Arc::new(specs.iter().map(|_| Control::default()).collect());
    let interrupted = Arc::clone(&controls);
    ctrlc::set_handler(move || interrupted.iter().for_each(|run| run.cancelled.store(true, Ordering::Relaxed)))
        .context("cannot watch for Ctrl-C")?;
    let begin = WallClock::now();
    let (runs, partial) = {
        let _progress = Progress::show(&controls, expected_ns(&workload, arguments.runtime));
        match trace {
            None => compare(&scenario, &specs, &controls)?,
            Some(trace) => trace.compare(&scenario, &specs, &controls, &job_file)?,
        }
    };
    let wall_seconds = begin.elapsed().as_secs_f64();

    let mut document = ResultsDocument {
        format: FormatTag,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        job_file,
        job_text,
        device: describe_devices(&workload, &devices)?,
        kernel: arguments.kernel.to_string(),
        cpus: u32::from(cpus),
        hw_queues: u32::from(config.hw_queues.min(config.cpus)),
        nr_requests: config.scheduler_depth(),
        host: serde_json::to_value(&host)?,
        seed: arguments.seed,
        wall_seconds,
        simulated_ios: runs.iter().map(|run| run.simulated_ios).sum(),
        partial,
        notices,
        runs,
    };
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    document.runs.iter_mut().for_each(|run| run.fio.set_timestamp_ms(now_ms));
    let text = match arguments.format {
        Format::Table => hoistway_report::table(&document, &output.style()),
        Format::Json => hoistway_report::json(&document),
    };
    output.write(&text)?;
    Ok(if partial { Ending::Interrupted } else { Ending::Done })
}

// --- the job file ---

fn read_job(path: Option<&Path>) -> Result<(String, String)> {
    let Some(path) = path else { return Ok((EXAMPLE.0.to_owned(), EXAMPLE.1.to_owned())) };
    Ok((path.display().to_string(), input::text(path, "a fio job file")?))
}

fn parse_job(text: &str, name: &str, cpus: u16) -> Result<Workload> {
    let memory_mib = 16 * 1024;
    let environment = Environment {
        variable: &|name| std::env::var(name).ok(),
        include: &input::included,
        cpus: u32::from(cpus),
        page_bytes: 4096,
        memory_mib,
    };
    Ok(Workload::parse(text, name, &environment)?)
}

/// Virtual time of a run, if every process is bounded by time.
fn expected_ns(workload: &Workload, runtime: Option<Nanos>) -> Option<u64> {
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    for process in &workload.processes {
        let parts = [process.start_delay, process.ramp, runtime.or(process.runtime)?];
        let length = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.0));
        let phase = phases.entry(process.phase).or_default();
        *phase = length.max(*phase);
    }
    Some(phases.values().fold(0, |sum, phase| sum.saturating_add(*phase)))
}

// --- the host ---

/// A built-in profile by name, or a profile from a file.
fn host_named(name: &str) -> Result<Host> {
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "toml") || name.contains('/') {
        return Ok(Host::from_toml(&input::text(path, "a host profile in TOML")?, name)?);
    }
    Ok(Host::builtin(name)?)
}

// --- devices ---

/// A built-in preset by name, or a preset from a file.
pub(crate) fn device_named(name: &str) -> Result<Preset> {
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "toml") || name.contains('/') {
        return Ok(Preset::from_toml(&input::text(path, "a device preset in TOML")?, name)?);
    }
    Ok(Preset::builtin(name)?)
}

/// The device of each file of the load.
fn choose_devices(workload: &Workload, wanted: &[String]) -> Result<(Vec<Preset>, Vec<String>)> {
    let mut named: BTreeMap<&str, Preset> = BTreeMap::new();
    let mut common = None;
    for device in wanted {
        match device.split_once('=') {
            Some((file, name)) => {
                if !workload.files.iter().any(|known| known == file) {
                    bail!(
                        "--device {device}: the job file has no filename \"{file}\" (expected one of {})",
                        workload.files.join(", ")
                    );
                }
                named.insert(file, device_named(name)?);
            }
            None if common.is_some() => {
                bail!("--device {device}: a device for all files was given before (expected NAME=PRESET)")
            }
            None => common = Some(device_named(device)?),
        }
    }
    let mut notices = Vec::new();
    let needs_default = workload.files.iter().any(|file| !named.contains_key(file.as_str()));
    if common.is_none() && needs_default {
        notices.push(format!("No --device was given: {DEFAULT_DEVICE} was taken (see `hoistway devices`)."));
    }
    let common = match common {
        Some(preset) => preset,
        None => Preset::builtin(DEFAULT_DEVICE)?,
    };
    let devices =
        workload.files.iter().map(|file| named.get(file.as_str()).cloned().unwrap_or_else(|| common.clone())).collect();
    Ok((devices, notices))
}

fn describe_devices(workload: &Workload, devices: &[Preset]) -> Result<Value> {
    let mut described = Vec::with_capacity(devices.len());
    for (file, preset) in workload.files.iter().zip(devices) {
        let mut value = serde_json::to_value(preset)?;
        if let (true, Value::Object(object)) = (devices.len() > 1, &mut value) {
            object.insert("file".to_owned(), Value::from(file.as_str()));
        }
        described.push(value);
    }
    Ok(if described.len() == 1 { described.remove(0) } else { Value::Array(described) })
}

// --- schedulers and tunables ---

fn choose_schedulers(wanted: &[String]) -> Result<Vec<String>> {
    let mut chosen: Vec<String> = Vec::new();
    for name in wanted {
        if name == "all" {
            chosen.extend(ALL_SCHEDULERS.map(str::to_owned));
        } else if ALL_SCHEDULERS.contains(&name.as_str()) {
            chosen.push(name.clone());
        } else {
            bail!("--schedulers {name}: unknown scheduler (expected all, or some of {})", ALL_SCHEDULERS.join(", "));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    chosen.retain(|name| seen.insert(name.clone()));
    Ok(chosen)
}

/// What must be said of schedulers that run on a block layer which the kernel no longer has.
fn legacy_notice(schedulers: &[String], kernel: Kernel) -> Option<String> {
    let legacy: Vec<&str> = schedulers.iter().map(String::as_str).filter(|name| is_legacy(name)).collect();
    let runs_as = kernel_of_front(kernel, legacy.first()?);
    (runs_as != kernel).then(|| {
        format!(
            "{}: the legacy single queue, which Linux {kernel} no longer has; run as in 4.20, the last release with it.",
            legacy.join(", ")
        )
    })
}

type Settings = BTreeMap<String, Vec<(String, String)>>;

fn parse_settings(wanted: &[String], schedulers: &[String]) -> Result<Settings> {
    let mut settings = Settings::new();
    for setting in wanted {
        let parsed = setting.split_once('=').and_then(|(name, value)| {
            let (scheduler, tunable) = name.split_once('.')?;
            Some((scheduler, tunable, value))
        });
        let Some((scheduler, tunable, value)) = parsed else {
            bail!("--set {setting}: expected SCHED.TUNABLE=VALUE, such as mq-deadline.fifo_batch=1");
        };
        if !ALL_SCHEDULERS.contains(&scheduler) {
            bail!("--set {setting}: unknown scheduler \"{scheduler}\" (expected one of {})", ALL_SCHEDULERS.join(", "));
        }
        if !schedulers.iter().any(|known| known == scheduler) {
            bail!("--set {setting}: {scheduler} is not among the schedulers that are compared");
        }
        settings.entry(scheduler.to_owned()).or_default().push((tunable.to_owned(), value.to_owned()));
    }
    Ok(settings)
}

/// Tries the settings on queues of their own, so that a mistake is told at once and with what would be right. Answers
/// with a notice for each value that the kernel takes for another.
fn try_settings(settings: &Settings, config: &QueueConfig) -> Result<Vec<String>> {
    let now = config.kernel.generation().hz.now(Instant::ZERO);
    let mut notices = Vec::new();
    for (scheduler, wanted) in settings {
        let queue: Front<Local> = Front::new(config, scheduler)?;
        let tunables = queue.tunables();
        for (name, text) in wanted {
            let setting = format!("--set {scheduler}.{name}={text}");
            let Some(tunable) = tunables.iter().find(|tunable| tunable.name == name) else {
                if tunables.is_empty() {
                    bail!("{setting}: {scheduler} has no tunables");
                }
                let known: Vec<&str> = tunables.iter().map(|tunable| tunable.name).collect();
                bail!("{setting}: {scheduler} has no tunable \"{name}\" (expected one of {})", known.join(", "));
            };
            if let Err(error) = queue.set_tunable(now, name, text, &mut Effects::new()) {
                bail!("{setting}: {error}; expected {} to {} ({})", tunable.min, tunable.max, tunable.unit);
            }
            match queue.tunable(name) {
                Ok(value) if value.to_string() != *text => {
                    notices.push(format!("{setting}: the kernel takes this for {value}."));
                }
                _ => {}
            }
        }
    }
    Ok(notices)
}
