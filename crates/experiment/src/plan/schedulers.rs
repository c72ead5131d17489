//! Chooses the schedulers of a comparison, with notices about some of them.

use std::collections::BTreeSet;

use hoistway_blk::ground::{Kernel, Local};
use hoistway_blk::queue::{ConfigError, QueueConfig, default_scheduler};
use hoistway_blk::schedulers::{Origin, Row};
use hoistway_device::{Preset, Shape};
use hoistway_legacy::{AnyQueue, default_legacy_scheduler};
use hoistway_sim::QueueSettings;

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::nearest;

/// List entries that stand for all schedulers of an origin; `all` stands for those of Linux.
const GROUPS: [&str; 2] = ["research", "shipping"];

/// Returns a filter for the schedulers of a group; `None` if there is no such group.
fn group(name: &str) -> Option<fn(&Row) -> bool> {
    match name {
        "all" => Some(|row| row.origin == Origin::Linux),
        "research" => Some(|row| matches!(row.origin, Origin::Research(_))),
        "shipping" => Some(|row| matches!(row.origin, Origin::OutOfTree(_))),
        _ => None,
    }
}

/// The inputs of the kernel's choice of a default scheduler.
pub(crate) struct DefaultScheduler<'a> {
    /// The devices: name and properties.
    pub(crate) shapes: Vec<(String, Shape)>,
    pub(crate) queue: &'a QueueSettings,
    /// `elevator=`, if the host was booted with it.
    pub(crate) elevator: Option<&'a str>,
}

impl DefaultScheduler<'_> {
    /// The default scheduler of a device. Up to 4.20, disks behind SCSI had a legacy queue, and all others a
    /// multi-queue one.
    pub(crate) fn of(&self, shape: &Shape) -> &'static str {
        let legacy = shape.scsi.then(|| default_legacy_scheduler(&self.queue.config(shape), self.elevator)).flatten();
        legacy.unwrap_or_else(|| default_scheduler(&self.queue.config(shape)))
    }

    /// What a scheduler needs and the first device without it, or the host, does not have.
    fn missing_for(&self, row: &Row) -> Option<Missing<'_>> {
        let without = |lacks: &dyn Fn(&Shape) -> bool| {
            self.shapes.iter().find(|(_, shape)| lacks(shape)).map(|(name, _)| name.as_str())
        };
        let lacks_arbitration = |shape: &Shape| shape.arbitration.is_none() || shape.hw_queues < 3;
        let cpus = self.queue.cpus;
        let lacks_transport =
            |shape: &Shape| shape.transport.is_none() || cpus > 1 && u32::from(shape.hw_queues) < 2 * u32::from(cpus);
        if row.needs_arbitration
            && let Some(device) = without(&lacks_arbitration)
        {
            return Some(Missing::Arbitration(device));
        }
        if !row.needs_transport {
            return None;
        }
        match without(&lacks_transport) {
            Some(device) => Some(Missing::Transport(device)),
            None => (cpus < 2).then_some(Missing::Cpus),
        }
    }

    /// The default scheduler of all devices, if it is the same for all.
    pub(crate) fn name(&self) -> Option<String> {
        self.scheduler().ok().map(|(name, _)| name.to_owned())
    }

    /// The default scheduler of all devices, with a notice about it.
    fn scheduler(&self) -> Result<(&'static str, String), String> {
        let [(first, shape), others @ ..] = &self.shapes[..] else {
            return Err("the job file uses no device".to_owned());
        };
        let name = self.of(shape);
        if let Some((other, shape)) = others.iter().find(|(_, shape)| self.of(shape) != name) {
            return Err(format!(
                "{first} has {name} and {other} has {} (expected devices with one default, or names)",
                self.of(shape)
            ));
        }
        let kernel = self.queue.kernel;
        let ignored = match self.elevator {
            Some(elevator) if !self.queue.schedulers.is_legacy(name) => {
                format!(" blk-mq devices have always ignored elevator={elevator}.")
            }
            _ => String::new(),
        };
        Ok((name, format!("default is {name}, as Linux {kernel} chooses for {first}.{ignored}")))
    }
}

/// What a scheduler needs and does not have: of a device, or of the host.
enum Missing<'a> {
    Arbitration(&'a str),
    Transport(&'a str),
    Cpus,
}

impl Missing<'_> {
    /// What is missing, after "because".
    fn because(&self) -> String {
        match self {
            Missing::Arbitration(device) => format!("{device} has no weighted round robin"),
            Missing::Transport(device) => format!("{device} has no transport with two queues for each CPU"),
            Missing::Cpus => "there is only one CPU".to_owned(),
        }
    }

    /// The problem, and what is expected.
    fn problem(&self) -> String {
        match self {
            Missing::Arbitration(device) => {
                let devices = devices_with(|shape| shape.arbitration.is_some());
                format!(
                    "{device} has no weighted round robin between at least three hardware queues (expected a device that has it, such as {devices})"
                )
            }
            Missing::Transport(device) => {
                let devices = devices_with(|shape| shape.transport.is_some());
                format!(
                    "{device} has no transport with a worker and two hardware queues for each CPU (expected a device that has it, such as {devices})"
                )
            }
            Missing::Cpus => format!("{}, so that nothing can move (expected at least two)", self.because()),
        }
    }
}

/// The built-in devices that have something.
fn devices_with(has_it: impl Fn(&Shape) -> bool) -> String {
    let has_it = |name: &&str| Preset::builtin(name).is_ok_and(|preset| has_it(&preset.shape()));
    Preset::builtin_names().filter(has_it).collect::<Vec<_>>().join(", ")
}

/// The kernel's schedulers that pass a filter.
pub(crate) fn kernel_schedulers(queue: &QueueSettings, matches: impl Fn(&Row) -> bool) -> Vec<String> {
    let rows = queue.schedulers.rows().iter().filter(|row| row.exists_in(queue.kernel) && matches(row));
    rows.map(|row| row.name.to_owned()).collect()
}

/// Whether a kernel is older than a scheduler. For newer kernels without it, the last kernel that had it is used.
fn is_newer_than_kernel(row: &Row, kernel: Kernel) -> bool {
    kernel < row.since && !row.exists_in(kernel)
}

/// The schedulers in a field's list, without duplicates. Adds notices about defaults to `notices`.
pub(crate) fn choose(
    options: &Options<'_>,
    field: Field,
    requested: &[String],
    default: &DefaultScheduler<'_>,
    notices: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    if let (Some(elevator), false) = (default.elevator, requested.iter().any(|name| name == "default")) {
        let expected = options.given(Field::Schedulers, "default");
        let problem = format!("only the kernel's default depends on it (expected {expected})");
        return Err(options.refuse(Field::Elevator, elevator, problem));
    }
    let known = &default.queue.schedulers;
    let mut chosen: Vec<String> = Vec::new();
    for name in requested {
        if name == "default" {
            let (scheduler, notice) = default.scheduler().map_err(|problem| options.refuse(field, name, problem))?;
            chosen.push(scheduler.to_owned());
            notices.push(notice);
        } else if let Some(belongs) = group(name) {
            let group_rows = known.rows().iter().filter(|row| belongs(row));
            let (possible, impossible): (Vec<&Row>, Vec<&Row>) =
                group_rows.partition(|row| default.missing_for(row).is_none());
            let (newer, existing): (Vec<&Row>, Vec<&Row>) =
                possible.into_iter().partition(|row| is_newer_than_kernel(row, default.queue.kernel));
            notices.extend(impossible.into_iter().filter_map(|row| {
                let missing = default.missing_for(row)?;
                Some(format!("{}: left out, because {}.", row.name, missing.because()))
            }));
            chosen.extend(existing.iter().map(|row| row.name.to_owned()));
            if !newer.is_empty() {
                let newer: Vec<_> = newer.iter().map(|row| format!("{} ({})", row.name, row.since)).collect();
                let kernel = default.queue.kernel;
                notices.push(format!("Linux {kernel} is older than {}: left out.", newer.join(", ")));
            }
        } else if let Some(row) = known.find(name) {
            let kernel = default.queue.kernel;
            if is_newer_than_kernel(row, kernel) {
                let existing = kernel_schedulers(default.queue, |_| true).join(", ");
                let newer = options.given(Field::Kernels, row.since);
                let problem =
                    format!("Linux {kernel} does not have it yet (expected some of {existing}, or {newer} or later)");
                return Err(options.refuse(field, name, problem));
            }
            if let Some(missing) = default.missing_for(row) {
                return Err(options.refuse(field, name, missing.problem()));
            }
            chosen.push(name.clone());
        } else {
            let hint = nearest::hint(name, known.names().into_iter().chain(GROUPS));
            let name = if name.is_empty() { "\"\"" } else { name };
            let (groups, known) = (GROUPS.join(", "), known.names().join(", "));
            let problem = format!("unknown scheduler ({hint}expected all, or some of default, {groups}, {known})");
            return Err(options.refuse(field, name, problem));
        }
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|name| seen.insert(name.clone()));
    Ok(chosen)
}

/// A queue with a scheduler, in the kernel that the scheduler runs on.
pub(crate) fn queue_under(scheduler: &str, config: &QueueConfig) -> Result<AnyQueue<Local>, ConfigError> {
    let kernel = config.schedulers.kernel_under(config.kernel, scheduler);
    AnyQueue::new(&QueueConfig { kernel, ..config.clone() }, scheduler)
}

/// Notices about schedulers that no release of Linux has.
pub(crate) fn outside_linux_notices(schedulers: &[String], queue: &QueueSettings) -> Vec<String> {
    let group_notice = |(name, what): (&str, &str)| {
        let belongs = group(name)?;
        let rows = schedulers.iter().filter_map(|name| queue.schedulers.find(name)).filter(|row| belongs(row));
        let sources: Vec<String> =
            rows.filter_map(|row| Some(format!("{} ({})", row.name, row.outside_linux()?))).collect();
        (!sources.is_empty()).then(|| format!("{}: {what}; no Linux kernel has it.", sources.join(", ")))
    };
    [("research", "research"), ("shipping", "out of tree")].into_iter().filter_map(group_notice).collect()
}

/// A notice about schedulers that need a block layer which the kernel no longer has.
pub(crate) fn legacy_notice(schedulers: &[String], queue: &QueueSettings) -> Option<String> {
    let (known, kernel) = (&queue.schedulers, queue.kernel);
    let legacy: Vec<&str> = schedulers.iter().map(String::as_str).filter(|name| known.is_legacy(name)).collect();
    let runs_as = known.kernel_under(kernel, legacy.first()?);
    (runs_as != kernel).then(|| {
        format!(
            "{}: the legacy single queue, which Linux {kernel} no longer has; run as in 4.20, the last release with it.",
            legacy.join(", ")
        )
    })
}
