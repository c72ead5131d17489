//! `--guest-schedulers`, `--virtual-disk` and `--guest-weight`: a load in virtual machines.

use anyhow::{Result, bail};
use hoistway_blk::{Kernel, Registry};
use hoistway_device::Preset;
use hoistway_load::Load;
use hoistway_results::document::GuestsSummary;
use hoistway_sim::{Guests, QueueSettings, VirtualDisk};

use super::arguments::Arguments;
use super::schedulers;
use crate::input;

/// Weights of cgroups that schedulers take.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=1000;

/// The guests of a comparison.
pub(super) struct Chosen {
    pub(super) guests: Guests,
    /// The schedulers that their disks get, one after the other.
    pub(super) schedulers: Vec<String>,
}

/// The schedulers that were asked for, or those of a scenario's page.
pub(super) fn wanted<'a>(arguments: &'a Arguments, of_page: &'a [String]) -> Result<&'a [String]> {
    let wanted = if arguments.guest_schedulers.is_empty() { of_page } else { &arguments.guest_schedulers };
    if wanted.is_empty() {
        let given =
            [("--virtual-disk", arguments.virtual_disk.as_ref()), ("--guest-weight", arguments.guest_weight.first())];
        if let Some((option, Some(value))) = given.into_iter().find(|(_, value)| value.is_some()) {
            bail!("{option} {value}: the load does not run in guests (expected --guest-schedulers as well)");
        }
    } else if arguments.shared_tags {
        bail!("--shared-tags: the disks of guests lie on one device (expected no --guest-schedulers)");
    }
    Ok(wanted)
}

/// The guests, if the load runs in any.
pub(super) fn choose(
    arguments: &Arguments,
    wanted: &[String],
    workload: &Load,
    lower: &Preset,
    kernel: Kernel,
    cpus: u16,
    notices: &mut Vec<String>,
) -> Result<Option<Chosen>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let name = arguments.virtual_disk.as_deref().unwrap_or(VirtualDisk::DEFAULT);
    let disk = match input::toml_named(name, "a virtual disk profile in TOML")? {
        Some(text) => VirtualDisk::from_toml(&text, name)?,
        None => VirtualDisk::builtin(name)?,
    };
    let queue = QueueSettings::new(kernel, cpus);
    let shape = disk.shape(&lower.shape(), workload.files.len());
    if shape.capacity_sectors == 0 {
        bail!(
            "--guest-schedulers: {} is too small for {} virtual disks (expected a larger one)",
            lower.name,
            workload.files.len()
        );
    }
    let default = schedulers::Default { shapes: vec![(name, shape.clone())], queue: &queue, elevator: None };
    let chosen = schedulers::choose("--guest-schedulers", wanted, &default, notices)?;
    notices.push(format!(
        "Guests: each file of the job file is a virtual disk ({}) of {:.0} GB on {}, which belongs to the host. \
         A row is the scheduler of the guests over that of the host. What the virtual disks cost is assumed, not measured.",
        disk.name,
        shape.capacity_sectors as f64 * 512.0 / 1e9,
        lower.name,
    ));
    let weights = weights(&arguments.guest_weight, workload)?;
    Ok(Some(Chosen { guests: Guests { disk, weights }, schedulers: chosen }))
}

fn weights(wanted: &[String], workload: &Load) -> Result<Vec<(String, u32)>> {
    let mut weights: Vec<(String, u32)> = Vec::new();
    for text in wanted {
        let parsed = text.rsplit_once('=').and_then(|(file, weight)| Some((file, weight.parse::<u32>().ok()?)));
        let Some((file, weight)) = parsed.filter(|(_, weight)| WEIGHTS.contains(weight)) else {
            bail!("--guest-weight {text}: expected FILE=N with N from {} to {}", WEIGHTS.start(), WEIGHTS.end());
        };
        if !workload.files.iter().any(|known| known == file) {
            bail!(
                "--guest-weight {text}: the job file has no filename \"{file}\" (expected one of {})",
                workload.files.join(", ")
            );
        }
        if weights.iter().any(|(known, _)| known == file) {
            bail!("--guest-weight {text}: a weight of {file} was given before (expected one for each file)");
        }
        weights.push((file.to_owned(), weight));
    }
    Ok(weights)
}

/// What must be said if weights on the host do nothing under some schedulers there.
pub(super) fn weights_notice(guests: &Guests, schedulers: &[String], known: &Registry) -> Option<String> {
    let knows_none = |name: &&str| known.find(name).is_some_and(|row| !row.weights);
    let without: Vec<&str> = schedulers.iter().map(String::as_str).filter(knows_none).collect();
    (!guests.weights.is_empty() && !without.is_empty())
        .then(|| format!("--guest-weight has no effect with {} on the host.", without.join(", ")))
}

impl Chosen {
    /// What the result document says of them.
    pub(super) fn summary(&self) -> Result<GuestsSummary> {
        Ok(GuestsSummary {
            virtual_disk: serde_json::to_value(&self.guests.disk)?,
            schedulers: self.schedulers.clone(),
            weights: self.guests.weights.iter().cloned().collect(),
        })
    }
}
