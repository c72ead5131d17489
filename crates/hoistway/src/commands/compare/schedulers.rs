//! The schedulers of a comparison: `--schedulers`, and what must be said of some of them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use hoistway_blk::{default_legacy_scheduler, default_scheduler};
use hoistway_device::Shape;
use hoistway_sim::QueueSettings;

/// What the scheduler that the kernel gives a device by itself depends on.
pub(super) struct Default<'a> {
    /// The devices: name and shape.
    pub(super) shapes: Vec<(&'a str, Shape)>,
    pub(super) queue: &'a QueueSettings,
    /// `elevator=`, if the host was booted with it.
    pub(super) elevator: Option<&'a str>,
}

impl Default<'_> {
    /// The scheduler of a device. Up to 4.20, disks behind SCSI had a legacy queue, and all others a multi-queue one.
    fn of(&self, shape: &Shape) -> &'static str {
        let legacy = shape.scsi.then(|| default_legacy_scheduler(&self.queue.config(shape), self.elevator)).flatten();
        legacy.unwrap_or_else(|| default_scheduler(&self.queue.config(shape)))
    }

    /// The scheduler of all devices, and what must be said of it. `option` asks for it.
    fn scheduler(&self, option: &str) -> Result<(&'static str, String)> {
        let [(first, shape), others @ ..] = &self.shapes[..] else {
            bail!("{option} default: the job file uses no device")
        };
        let name = self.of(shape);
        if let Some((other, shape)) = others.iter().find(|(_, shape)| self.of(shape) != name) {
            bail!(
                "{option} default: {first} has {name} and {other} has {} (expected devices with one default, or names)",
                self.of(shape)
            );
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

/// The schedulers of an option's list, each once. Adds what must be said of a default to `notices`.
pub(super) fn choose(
    option: &str,
    wanted: &[String],
    default: &Default<'_>,
    notices: &mut Vec<String>,
) -> Result<Vec<String>> {
    if let (Some(elevator), false) = (default.elevator, wanted.iter().any(|name| name == "default")) {
        bail!("--elevator {elevator}: only the kernel's default depends on it (expected --schedulers default)");
    }
    let known = &default.queue.schedulers;
    let mut chosen: Vec<String> = Vec::new();
    for name in wanted {
        if name == "default" {
            let (name, notice) = default.scheduler(option)?;
            chosen.push(name.to_owned());
            notices.push(notice);
            continue;
        }
        if name == "all" {
            chosen.extend(known.names().into_iter().map(str::to_owned));
        } else if known.find(name).is_some() {
            chosen.push(name.clone());
        } else {
            let name = if name.is_empty() { "\"\"" } else { name };
            bail!(
                "{option} {name}: unknown scheduler (expected all, or some of default, {})",
                known.names().join(", ")
            );
        }
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|name| seen.insert(name.clone()));
    Ok(chosen)
}

/// The row of `--baseline`.
pub(super) fn baseline(wanted: Option<&str>, labels: &[String]) -> Result<Option<String>> {
    match wanted {
        Some(name) if !labels.iter().any(|known| known == name) => bail!(
            "--baseline {name}: not among the schedulers that are compared (expected one of {})",
            labels.join(", ")
        ),
        wanted => Ok(wanted.map(str::to_owned)),
    }
}

/// What must be said of schedulers that run on a block layer which the kernel no longer has.
pub(super) fn legacy_notice(schedulers: &[String], queue: &QueueSettings) -> Option<String> {
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
