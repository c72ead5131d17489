//! The schedulers of a comparison, and what must be said of some of them.

use std::collections::BTreeSet;

use hoistway_blk::{ConfigError, Local, QueueConfig, default_scheduler};
use hoistway_device::Shape;
use hoistway_legacy::{Front, default_legacy_scheduler};
use hoistway_sim::QueueSettings;

use crate::error::{Error, Field};
use crate::surroundings::Asked;

/// What the scheduler that the kernel gives a device by itself depends on.
pub(crate) struct Default<'a> {
    /// The devices: name and shape.
    pub(crate) shapes: Vec<(String, Shape)>,
    pub(crate) queue: &'a QueueSettings,
    /// `elevator=`, if the host was booted with it.
    pub(crate) elevator: Option<&'a str>,
}

impl Default<'_> {
    /// The scheduler of a device. Up to 4.20, disks behind SCSI had a legacy queue, and all others a multi-queue one.
    fn of(&self, shape: &Shape) -> &'static str {
        let legacy = shape.scsi.then(|| default_legacy_scheduler(&self.queue.config(shape), self.elevator)).flatten();
        legacy.unwrap_or_else(|| default_scheduler(&self.queue.config(shape)))
    }

    /// The scheduler of all devices, and what must be said of it.
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
                format!(" elevator={elevator} never mattered to multi-queue devices.")
            }
            _ => String::new(),
        };
        Ok((name, format!("default is {name}, as Linux {kernel} chooses for {first}.{ignored}")))
    }
}

/// The schedulers of a field's list, each once. Adds what must be said of a default to `notices`.
pub(crate) fn choose(
    asked: &Asked<'_>,
    field: Field,
    wanted: &[String],
    default: &Default<'_>,
    notices: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    if let (Some(elevator), false) = (default.elevator, wanted.iter().any(|name| name == "default")) {
        let expected = asked.given(Field::Schedulers, "default");
        let problem = format!("only the kernel's default depends on it (expected {expected})");
        return Err(asked.refuse(Field::Elevator, elevator, problem));
    }
    let known = &default.queue.schedulers;
    let mut chosen: Vec<String> = Vec::new();
    for name in wanted {
        if name == "default" {
            let (scheduler, notice) = default.scheduler().map_err(|problem| asked.refuse(field, name, problem))?;
            chosen.push(scheduler.to_owned());
            notices.push(notice);
        } else if name == "all" {
            chosen.extend(known.names().into_iter().map(str::to_owned));
        } else if known.find(name).is_some() {
            chosen.push(name.clone());
        } else {
            let name = if name.is_empty() { "\"\"" } else { name };
            let known = known.names().join(", ");
            let problem = format!("unknown scheduler (expected all, or some of default, {known})");
            return Err(asked.refuse(field, name, problem));
        }
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|name| seen.insert(name.clone()));
    Ok(chosen)
}

/// A queue with a scheduler, on the kernel that it runs on.
pub(crate) fn queue_under(scheduler: &str, config: &QueueConfig) -> Result<Front<Local>, ConfigError> {
    let kernel = config.schedulers.kernel_under(config.kernel, scheduler);
    Front::new(&QueueConfig { kernel, ..config.clone() }, scheduler)
}

/// What must be said of schedulers that run on a block layer which the kernel no longer has.
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
