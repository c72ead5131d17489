//! Guests of a comparison: virtual machines that the load runs in.

use hoistway_answer::document::GuestsSummary;
use hoistway_blk::schedulers::Registry;
use hoistway_device::Preset;
use hoistway_load::Load;
use hoistway_sim::{Guests, QueueSettings, VirtualDisk};

use crate::comparison::Profile;
use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::plan::files::means;
use crate::plan::schedulers;

/// Valid weights of cgroups.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=1000;

/// The meaning of a comparison's rows.
const ROWS: &str = "Rows are GUEST-over-HOST schedulers.";

/// Rewords a notice of a comparison for a search, in which all guests have the same scheduler.
pub(crate) fn search_notice(notice: &str, guests: &ChosenGuests) -> String {
    let scheduler = guests.schedulers.first().map_or("", String::as_str);
    notice.replace(ROWS, &format!("All guests have {scheduler}; settings are those of the host."))
}

/// The guests of a comparison.
#[derive(Debug)]
pub(crate) struct ChosenGuests {
    pub(crate) guests: Guests,
    /// The schedulers of the guests' disks; each is compared.
    pub(crate) schedulers: Vec<String>,
}

/// The requested guest schedulers, or the scenario's.
pub(crate) fn requested_schedulers<'a>(
    options: &Options<'a>,
    scenario_schedulers: &'a [String],
) -> Result<&'a [String], Error> {
    let guests = &options.comparison.guests;
    let schedulers = if guests.schedulers.is_empty() { scenario_schedulers } else { &guests.schedulers };
    let option = options.name(Field::GuestSchedulers);
    if !schedulers.is_empty() {
        if options.comparison.shared_tags {
            let problem = format!("the disks of guests are on one device (expected no {option})");
            return Err(Error::new(Field::SharedTags, format!("{}: {problem}", options.name(Field::SharedTags))));
        }
        return Ok(schedulers);
    }
    let weight = guests.weights.first().map(|(file, weight)| (Field::GuestWeights, format!("{file}={weight}")));
    let given = guests.virtual_disk.as_ref().map(|disk| (Field::VirtualDisk, disk.to_string())).or(weight);
    match given {
        Some((field, value)) => {
            Err(options.refuse(field, value, format!("the load does not run in guests (expected {option} as well)")))
        }
        None => Ok(schedulers),
    }
}

/// Returns the guests, if the load runs in any.
pub(crate) fn choose(
    options: &Options<'_>,
    requested: &[String],
    workload: &Load,
    host_device: &Preset,
    queue: &QueueSettings,
    notices: &mut Vec<String>,
) -> Result<Option<ChosenGuests>, Error> {
    if requested.is_empty() {
        return Ok(None);
    }
    let default = Profile::from(VirtualDisk::DEFAULT);
    let profile = options.comparison.guests.virtual_disk.as_ref().unwrap_or(&default);
    let expected = "a virtual disk profile in TOML";
    let read = options.environment.profile(profile, expected, VirtualDisk::from_toml, VirtualDisk::builtin);
    let disk = read.map_err(|fault| fault.of(Field::VirtualDisk))?;
    if host_device.transport().is_some() {
        let problem = format!(
            "{} is behind a transport, whose workers need the host's CPUs (expected another device)",
            host_device.name
        );
        return Err(options.refuse(Field::GuestSchedulers, requested.join(","), problem));
    }
    // The guests' queues have default settings.
    let queue = QueueSettings { schedulers: queue.schedulers.clone(), ..QueueSettings::new(queue.kernel, queue.cpus) };
    let shape = disk.shape(&host_device.shape(), workload.files.len());
    if shape.capacity_sectors == 0 {
        let (option, count) = (options.name(Field::GuestSchedulers), workload.files.len());
        let problem = format!("{} is too small for {count} virtual disks (expected a larger one)", host_device.name);
        return Err(Error::new(Field::GuestSchedulers, format!("{option}: {problem}")));
    }
    let shapes = vec![(profile.to_string(), shape.clone())];
    let default = schedulers::DefaultScheduler { shapes, queue: &queue, elevator: None };
    let chosen = schedulers::choose(options, Field::GuestSchedulers, requested, &default, notices)?;
    notices.push(format!(
        "Guests: each file of the job file is a virtual disk ({}) of {:.0} GB on {}, the device of the host. \
         {ROWS} The costs of virtual disks are assumed, not measured.",
        disk.name,
        shape.capacity_sectors as f64 * 512.0 / 1e9,
        host_device.name,
    ));
    let weights = weights(options, workload)?;
    Ok(Some(ChosenGuests { guests: Guests { disk, weights }, schedulers: chosen }))
}

fn weights(options: &Options<'_>, workload: &Load) -> Result<Vec<(String, u32)>, Error> {
    let mut weights: Vec<(String, u32)> = Vec::with_capacity(options.comparison.guests.weights.len());
    for (name, weight) in &options.comparison.guests.weights {
        let refuse =
            |problem: String| Err(options.refuse(Field::GuestWeights, format_args!("{name}={weight}"), problem));
        if !WEIGHTS.contains(weight) {
            return refuse(weight_expected());
        }
        let Some(file) = workload.files.iter().find(|file| means(name, file)) else {
            let known = workload.files.join(", ");
            return refuse(format!("the job file has no filename \"{name}\" (expected one of {known})"));
        };
        if weights.iter().any(|(known, _)| known == file) {
            return refuse(format!("a weight of {file} was already given (expected one for each file)"));
        }
        weights.push((file.clone(), *weight));
    }
    Ok(weights)
}

/// Describes the valid weights.
#[must_use]
pub fn weight_expected() -> String {
    format!("expected FILE=N with N from {} to {}", WEIGHTS.start(), WEIGHTS.end())
}

/// A notice if weights on the host have no effect under some schedulers there.
pub(crate) fn weights_notice(
    options: &Options<'_>,
    guests: &Guests,
    schedulers: &[String],
    known: &Registry,
) -> Option<String> {
    let ignores_weights = |name: &&str| known.find(name).is_some_and(|row| !row.weights);
    let ignoring: Vec<&str> = schedulers.iter().map(String::as_str).filter(ignores_weights).collect();
    (!guests.weights.is_empty() && !ignoring.is_empty()).then(|| {
        format!("{} has no effect with {} on the host.", options.name(Field::GuestWeights), ignoring.join(", "))
    })
}

impl ChosenGuests {
    /// The summary of the guests for the result document.
    pub(crate) fn summary(&self) -> Result<GuestsSummary, Error> {
        Ok(GuestsSummary {
            virtual_disk: serde_json::to_value(&self.guests.disk).about(Field::VirtualDisk)?,
            schedulers: self.schedulers.clone(),
            weights: self.guests.weights.iter().cloned().collect(),
        })
    }
}
