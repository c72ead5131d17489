//! Converts the options of a comparison to a `Comparison`, which the library checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use hoistway_answer::WeightedFigure;
use hoistway_experiment::{
    CgroupFile, Comparison, Devices, Guests, Load, MeasuredTime, Mode, QueueFile, QueueWrite, Replay, Sysctl, Tunable,
    Vary, limits, scenarios,
};

use super::arguments::Arguments;
use crate::commands::options::{ReplayOptions, RunOptions, SimulatedHostOptions, parse_time};
use crate::commands::outputs::JudgingOptions;

/// The comparison that the options describe.
pub(super) fn comparison(arguments: &Arguments) -> Result<Comparison> {
    Ok(Comparison {
        load: load(arguments.job.as_deref()),
        devices: devices(&arguments.device)?,
        kernels: arguments.kernel.iter().map(ToString::to_string).collect(),
        hosts: arguments.host.iter().map(|host| host.as_str().into()).collect(),
        schedulers: arguments.schedulers.clone(),
        vary: parse_each(&arguments.vary, vary)?,
        repeats: arguments.repeat.unwrap_or(if arguments.is_for_people() { limits::UNTIL_SURE_MAX } else { 1 }),
        until_sure: arguments.repeats_until_certain(),
        measured: if arguments.measures_what_lasts() { MeasuredTime::Lasting } else { MeasuredTime::AsFio },
        baseline: arguments.judging.baseline.clone(),
        focus: focus(&arguments.judging)?,
        smallest_effect: arguments.judging.smallest_effect,
        logs: arguments.outputs.fio_logs.is_some(),
        excerpts: arguments.outputs.report.is_some(),
        ..common(&arguments.host_options, &arguments.run, &arguments.guest_schedulers)?
    })
}

/// The options that `compare` and `tune` share.
pub(crate) fn common(
    host_options: &SimulatedHostOptions,
    run: &RunOptions,
    guest_schedulers: &[String],
) -> Result<Comparison> {
    Ok(Comparison {
        replay: replay(&host_options.replay)?,
        stacks: host_options.stack.clone(),
        cpus: host_options.cpus,
        memory_bytes: host_options.memory,
        sysctls: parse_each(&host_options.sysctl, sysctl)?,
        journal: host_options.journal,
        elevator: host_options.elevator.clone(),
        guests: Guests {
            schedulers: guest_schedulers.to_vec(),
            virtual_disk: host_options.virtual_disk.as_deref().map(Into::into),
            weights: parse_each(&host_options.guest_weight, weight)?,
        },
        tunables: parse_each(&run.set, tunable)?,
        queue_files: queue_files(&run.queue, host_options.nr_requests.as_deref())?,
        hw_queues: host_options.hw_queues,
        read_queues: host_options.read_queues,
        poll_queues: host_options.poll_queues,
        shared_tags: host_options.shared_tags,
        fill_percent: host_options.fill,
        trimmed: host_options.trimmed,
        submitter_dispatches: host_options.submitter_dispatches,
        techniques: host_options.techniques.clone(),
        writes: parse_each(&host_options.at, write)?,
        io_max: parse_each(&host_options.io_max, |text| {
            let expected =
                || format!("--io-max {text:?}: expected a cgroup and its limits, {}", limits::IO_MAX_EXAMPLE);
            cgroup_file(text).with_context(expected)
        })?,
        io_cost: host_options.io_cost.clone(),
        io_weight: parse_each(&host_options.io_weight, |text| {
            let expected =
                || format!("--io-weight {text:?}: expected a cgroup and its weight, {}", limits::IO_WEIGHT_EXAMPLE);
            cgroup_file(text).with_context(expected)
        })?,
        io_latency: parse_each(&host_options.io_latency, |text| {
            let expected =
                || format!("--io-latency {text:?}: expected a cgroup and its target, {}", limits::IO_LATENCY_EXAMPLE);
            cgroup_file(text).with_context(expected)
        })?,
        io_prio_class: parse_each(&host_options.io_prio_class, |text| {
            let expected =
                || format!("--io-prio-class {text:?}: expected a cgroup and a class, such as \"backup idle\"");
            cgroup_file(text).with_context(expected)
        })?,
        runtime_ns: run.runtime.map(|runtime| runtime.0),
        ramp_ns: run.ramp.map(|ramp| ramp.0),
        seed: run.seed,
        ..Comparison::default()
    })
}

/// The options of a replay.
pub(crate) fn replay(options: &ReplayOptions) -> Result<Replay> {
    let default = Replay::default();
    let parse_pairs = |option: &str, texts: &[String], expected: &str| -> Result<Vec<(String, String)>> {
        parse_each(texts, |text| {
            let parts = text.rsplit_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            parts.with_context(|| format!("{option} {text}: expected {expected}"))
        })
    };
    let depths = parse_pairs("--depth", &options.depth, "STREAM=N, such as postgres=32")?;
    let depths = depths.into_iter().map(|(name, text)| {
        let depth =
            text.parse().with_context(|| format!("--depth {name}={text}: expected a whole number after the ="))?;
        Ok((name, depth))
    });
    Ok(Replay {
        mode: match options.replay_as.as_deref() {
            Some("timed") => Mode::Timed,
            Some("fast") => Mode::Fast,
            _ => Mode::RecordedProgram,
        },
        speed: options.speed.unwrap_or(default.speed),
        copies: options.copies.unwrap_or(default.copies),
        depths: depths.collect::<Result<_>>()?,
        priorities: parse_pairs("--prio", &options.prio, "STREAM=CLASS:LEVEL, such as backup=idle")?
            .into_iter()
            .collect(),
        cgroup_weights: parse_each(&options.cgroup, |text| {
            let parts =
                text.split_once("=weight:").and_then(|(id, weight)| Some((id.parse().ok()?, weight.parse().ok()?)));
            parts.with_context(|| format!("--cgroup {text}: expected ID=weight:N, such as 4711=weight:200"))
        })?
        .into_iter()
        .collect(),
        window_ns: options.window.as_deref().map(window).transpose()?,
        streams: options.streams.clone(),
        recorded_under: options.recorded_under.clone(),
        device: options.recorded_device.clone(),
        columns: options.columns.clone(),
        scale_to_fit: options.scale_to_fit,
        lossy: options.lossy,
    })
}

/// `10s..40s`.
fn window(text: &str) -> Result<(u64, u64)> {
    let time = |text: &str| {
        if matches!(text, "0" | "0s") { Some(0) } else { parse_time(text).ok().map(|time| time.0) }
    };
    let parsed = text.split_once("..").and_then(|(from, to)| Some((time(from)?, time(to)?)));
    parsed.with_context(|| format!("--window {text}: expected FROM..TO, such as 10s..40s"))
}

/// The figures that results are ranked by.
pub(crate) fn focus(judging: &JudgingOptions) -> Result<Vec<WeightedFigure>> {
    parse_each(&judging.focus, |text| text.parse().with_context(|| format!("--focus {text}")))
}

pub(crate) fn parse_each<T>(texts: &[String], parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    texts.iter().map(|text| parse(text)).collect()
}

/// A recording has a file for at least one of this many CPUs.
const CPUS_LOOKED_FOR: u32 = 64;

/// The first file of the recording with this name, as `hoistway record -o NAME` and `blktrace -o NAME` make it.
fn recorded_as(name: &Path) -> Option<PathBuf> {
    let file_of = |cpu: u32| PathBuf::from(format!("{}.blktrace.{cpu}", name.display()));
    (0..CPUS_LOOKED_FOR).map(file_of).find(|file| file.exists())
}

/// The job file with this name; if there is no such file, the scenario with this name; without a name the example.
pub(crate) fn load(job: Option<&Path>) -> Load {
    let Some(path) = job else { return Load::Example };
    let name = path.display().to_string();
    if !path.exists() && name == scenarios::EXAMPLE {
        return Load::Example;
    }
    if path.exists() {
        return Load::File(path.to_owned());
    }
    match recorded_as(path) {
        Some(file) => Load::File(file),
        None if scenarios::named(&name).is_some() => Load::Scenario(name),
        None => Load::File(path.to_owned()),
    }
}

/// All combinations of devices: each device without a file name, together with those for single files.
pub(crate) fn devices(options: &[String]) -> Result<Vec<Devices>> {
    let mut files = BTreeMap::new();
    let mut common: Option<&str> = None;
    for device in options {
        match (device.split_once('='), common) {
            (Some((_, list)), _) if list.contains(',') => {
                bail!("--device {device}: a list of devices to compare takes no NAME= (expected NAME=PRESET, or A,B)")
            }
            (Some((file, name)), _) => {
                if let Some(earlier) = files.insert(file.to_owned(), name.into()) {
                    bail!(
                        "--device {device}: --device {file}={earlier} was already given (expected one device for each file)"
                    )
                }
            }
            (None, Some(earlier)) => bail!(
                "--device {device}: --device {earlier} was already given (expected NAME=PRESET; to compare both --device {earlier},{device})"
            ),
            (None, None) => common = Some(device),
        }
    }
    let Some(common) = common else { return Ok(vec![Devices { common: None, files }]) };
    Ok(common.split(',').map(|name| Devices { common: Some(name.into()), files: files.clone() }).collect())
}

pub(crate) fn vary(text: &str) -> Result<Vary> {
    let parsed = text.split_once('=').and_then(|(key, values)| Some((Vary::split(key)?, values)));
    let Some(((owner, name), values)) = parsed.filter(|(_, values)| !values.split(',').any(str::is_empty)) else {
        bail!(
            "--vary {text}: expected SCHED.TUNABLE=V1,V2,..., queue.FILE=V1,V2,..., io.cost.qos.KEY=V1,V2,... or \
             io.latency.CGROUP.target=V1,V2,..., such as mq-deadline.fifo_batch=1,4,16, queue.nr_requests=64,256 or \
             io.latency.pods/db.target=1000,5000"
        );
    };
    Ok(Vary { of: owner.to_owned(), name: name.to_owned(), texts: values.split(',').map(str::to_owned).collect() })
}

fn weight(text: &str) -> Result<(String, u32)> {
    let parsed = text.rsplit_once('=').and_then(|(file, weight)| Some((file.to_owned(), weight.parse().ok()?)));
    parsed.with_context(|| format!("--guest-weight {text}: {}", limits::weight_expected()))
}

pub(crate) fn tunable(text: &str) -> Result<Tunable> {
    let parsed = text.split_once('=').and_then(|(key, value)| Some((key.split_once('.')?, value)));
    let Some(((scheduler, name), value)) = parsed else {
        bail!("--set {text}: expected SCHED.TUNABLE=VALUE, such as mq-deadline.fifo_batch=1");
    };
    Ok(Tunable { scheduler: scheduler.to_owned(), name: name.to_owned(), text: value.to_owned() })
}

fn sysctl(text: &str) -> Result<Sysctl> {
    let (name, text) = text
        .split_once('=')
        .with_context(|| format!("--sysctl {text}: expected NAME=VALUE, such as vm.dirty_bytes=268435456"))?;
    Ok(Sysctl { name: name.trim().to_owned(), text: text.trim().to_owned() })
}

/// The files of `--queue`, and `--nr-requests`.
pub(crate) fn queue_files(queue: &[String], nr_requests: Option<&str>) -> Result<Vec<QueueFile>> {
    let mut files = parse_each(queue, |setting| {
        let Some((file, text)) = setting.split_once('=') else {
            bail!("--queue {setting}: expected KEY=VALUE, such as nr_requests=64");
        };
        Ok(QueueFile { file: file.to_owned(), text: text.to_owned() })
    })?;
    if let Some(text) = nr_requests {
        if files.iter().any(|setting| setting.file == "nr_requests") {
            bail!("--nr-requests {text}: --queue sets nr_requests too (expected one of them)");
        }
        text.parse::<u32>().with_context(|| format!("--nr-requests {text}: expected a whole number"))?;
        files.insert(0, QueueFile { file: "nr_requests".to_owned(), text: text.to_owned() });
    }
    Ok(files)
}

fn write(text: &str) -> Result<QueueWrite> {
    let parts = text.split_once(':').and_then(|(at, rest)| Some((at, rest.split_once('=')?)));
    let Some((at, (key, value))) = parts else {
        bail!("--at {text}: expected TIME:KEY=VALUE, such as 10s:scheduler=bfq or 10s:bfq.slice_idle=0");
    };
    let at_ns = parse_time(at).map_err(anyhow::Error::msg).with_context(|| format!("--at {text}"))?.0;
    let (scheduler, file) = match key.split_once('.') {
        Some((scheduler, tunable)) => (Some(scheduler.to_owned()), format!("iosched/{tunable}")),
        None => (None, key.to_owned()),
    };
    Ok(QueueWrite { at_ns, under: scheduler, file, text: value.to_owned() })
}

/// A cgroup, and what to write to one of its files.
fn cgroup_file(text: &str) -> Option<CgroupFile> {
    let (cgroup, text) = text.split_once(char::is_whitespace)?;
    Some(CgroupFile { cgroup: cgroup.to_owned(), text: text.to_owned() })
}
