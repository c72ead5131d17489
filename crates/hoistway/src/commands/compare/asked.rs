//! The options of a comparison as the value that they mean. What the values may be is the library's matter.

use anyhow::{Context as _, Result, bail};
use hoistway_lab::{CgroupFile, Comparison, Devices, Guests, Load, QueueFile, Tunable, Write, limits, scenarios};

use super::arguments::{Arguments, parse_time};

/// Repeats without which an interval says little.
pub(super) const REPEATS_AT_LEAST: u32 = 3;
/// Repeats, if nobody says how many: as many as fit into a short time, and no more than these.
const REPEATS_AT_MOST: u32 = 10;

/// What the options ask for.
pub(super) fn comparison(arguments: &Arguments) -> Result<Comparison> {
    Ok(Comparison {
        load: load(arguments),
        devices: vec![devices(&arguments.device)?],
        kernels: vec![arguments.kernel.to_string()],
        hosts: arguments.host.iter().map(|host| host.as_str().into()).collect(),
        cpus: arguments.cpus,
        memory_bytes: arguments.memory,
        schedulers: arguments.schedulers.clone(),
        elevator: arguments.elevator.clone(),
        guests: Guests {
            schedulers: arguments.guest_schedulers.clone(),
            virtual_disk: arguments.virtual_disk.as_deref().map(Into::into),
            weights: each(&arguments.guest_weight, weight)?,
        },
        tunables: each(&arguments.set, tunable)?,
        queue_files: queue_files(arguments)?,
        hw_queues: arguments.hw_queues,
        read_queues: arguments.read_queues,
        poll_queues: arguments.poll_queues,
        shared_tags: arguments.shared_tags,
        submitter_dispatches: false,
        writes: each(&arguments.at, write)?,
        io_max: each(&arguments.io_max, |text| {
            let missing = || format!("--io-max {text:?}: expected a cgroup and its limits, {}", limits::IO_MAX_EXAMPLE);
            cgroup_file(text).with_context(missing)
        })?,
        io_prio_class: each(&arguments.io_prio_class, |text| {
            let missing =
                || format!("--io-prio-class {text:?}: expected a cgroup and a class, such as \"backup idle\"");
            cgroup_file(text).with_context(missing)
        })?,
        runtime_ns: arguments.runtime.map(|runtime| runtime.0),
        ramp_ns: arguments.ramp.map(|ramp| ramp.0),
        repeats: arguments.repeat.unwrap_or(match arguments.is_for_people() {
            false => 1,
            // How many fit into a time depends on the machine.
            true if arguments.stable => REPEATS_AT_LEAST,
            true => REPEATS_AT_MOST,
        }),
        baseline: arguments.baseline.clone(),
        focus: each(&arguments.focus, |text| text.parse().with_context(|| format!("--focus {text}")))?,
        smallest_effect: arguments.smallest_effect,
        seed: arguments.seed,
        logs: arguments.fio_logs.is_some(),
        excerpts: arguments.report.is_some(),
    })
}

fn each<T>(texts: &[String], read: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    texts.iter().map(|text| read(text)).collect()
}

/// The job file that was named, the scenario of that name if there is no such file, or the example.
fn load(arguments: &Arguments) -> Load {
    let Some(path) = &arguments.job else { return Load::Example };
    let name = path.display().to_string();
    if !path.exists() && scenarios::named(&name).is_some() { Load::Scenario(name) } else { Load::File(path.clone()) }
}

fn devices(wanted: &[String]) -> Result<Devices> {
    let mut devices = Devices::default();
    for device in wanted {
        match device.split_once('=') {
            Some((file, name)) => {
                devices.files.insert(file.to_owned(), name.into());
            }
            None if devices.common.is_some() => {
                bail!("--device {device}: a device for all files was given before (expected NAME=PRESET)")
            }
            None => devices.common = Some(device.as_str().into()),
        }
    }
    Ok(devices)
}

fn weight(text: &str) -> Result<(String, u32)> {
    let parsed = text.rsplit_once('=').and_then(|(file, weight)| Some((file.to_owned(), weight.parse().ok()?)));
    parsed.with_context(|| format!("--guest-weight {text}: {}", limits::weight_expected()))
}

fn tunable(text: &str) -> Result<Tunable> {
    let parsed = text.split_once('=').and_then(|(key, value)| Some((key.split_once('.')?, value)));
    let Some(((scheduler, name), value)) = parsed else {
        bail!("--set {text}: expected SCHED.TUNABLE=VALUE, such as mq-deadline.fifo_batch=1");
    };
    Ok(Tunable { scheduler: scheduler.to_owned(), name: name.to_owned(), text: value.to_owned() })
}

/// Those of `--queue`, and `--nr-requests`.
fn queue_files(arguments: &Arguments) -> Result<Vec<QueueFile>> {
    let mut files = each(&arguments.queue, |setting| {
        let Some((file, text)) = setting.split_once('=') else {
            bail!("--queue {setting}: expected KEY=VALUE, such as nr_requests=64");
        };
        Ok(QueueFile { file: file.to_owned(), text: text.to_owned() })
    })?;
    if let Some(text) = &arguments.nr_requests {
        if files.iter().any(|setting| setting.file == "nr_requests") {
            bail!("--nr-requests {text}: --queue sets nr_requests too (expected one of them)");
        }
        text.parse::<u32>().with_context(|| format!("--nr-requests {text}: expected a whole number"))?;
        files.insert(0, QueueFile { file: "nr_requests".to_owned(), text: text.clone() });
    }
    Ok(files)
}

fn write(text: &str) -> Result<Write> {
    let parts = text.split_once(':').and_then(|(at, rest)| Some((at, rest.split_once('=')?)));
    let Some((at, (key, value))) = parts else {
        bail!("--at {text}: expected TIME:KEY=VALUE, such as 10s:scheduler=bfq or 10s:bfq.slice_idle=0");
    };
    let at_ns = parse_time(at).map_err(anyhow::Error::msg).with_context(|| format!("--at {text}"))?.0;
    let (under, file) = match key.split_once('.') {
        Some((scheduler, tunable)) => (Some(scheduler.to_owned()), format!("iosched/{tunable}")),
        None => (None, key.to_owned()),
    };
    Ok(Write { at_ns, under, file, text: value.to_owned() })
}

/// A cgroup and what is written to a file of it.
fn cgroup_file(text: &str) -> Option<CgroupFile> {
    let (cgroup, text) = text.split_once(char::is_whitespace)?;
    Some(CgroupFile { cgroup: cgroup.to_owned(), text: text.to_owned() })
}
