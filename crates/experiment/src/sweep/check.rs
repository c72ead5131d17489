//! Checks a space by trying out everything in it before any run.

use std::collections::BTreeSet;
use std::fmt::Display;

use hoistway_answer::rows::RunRow;

use super::axes::{Axes, Position};
use super::inputs::{Read, Recorder, Shared, space_field_name};
use super::space::{Seeds, Space};
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::{Comparison, Vary};
use crate::plan::Plan;
use crate::plan::repeats;

/// The files that a load on a device and a host reads, and the notices.
pub(super) struct TrialResult {
    pub(super) read: Read,
    pub(super) notices: Vec<String>,
    /// Load, device, kernel and host of each run that was tried, as named in results.
    names: Vec<[String; 4]>,
}

/// Rejects an invalid space. Returns its seeds.
pub(super) fn seeds(space: &Space) -> Result<Vec<u64>, Error> {
    let base = &space.base;
    let none = Comparison { load: base.load.clone(), seed: base.seed, ..Comparison::default() };
    // Fields that are axes of the space, or that concern several runs together.
    let misplaced = [
        (Field::Devices, base.devices != none.devices, "devices", "`devices`"),
        (Field::Kernels, base.kernels != none.kernels, "kernels", "`kernels`"),
        (Field::Hosts, base.hosts != none.hosts, "hosts", "`hosts`"),
        (Field::Schedulers, base.schedulers != none.schedulers, "schedulers", "`schedulers`"),
        (Field::GuestSchedulers, !base.guests.schedulers.is_empty(), "guests.schedulers", "`guest_schedulers`"),
        (Field::Tunables, base.tunables != none.tunables, "tunables", "`settings`"),
        (Field::QueueFiles, base.queue_files != none.queue_files, "queue_files", "`settings.queue`"),
        (Field::Repeats, base.repeats != none.repeats, "repeats", "`seeds`"),
        (Field::Measured, base.measured != none.measured, "measured", "`from_start`"),
        (Field::Load, base.load != Default::default() && !space.loads.is_empty(), "load", "one of it and `loads`"),
    ];
    if let Some((field, _, name, expected)) = misplaced.into_iter().find(|(_, is, ..)| *is) {
        return Err(Error::new(field, format_args!("`base.{name}`: is an axis of the sweep (expected {expected})")));
    }
    let together = [
        (Field::Baseline, base.baseline.is_some()),
        (Field::Focus, !base.focus.is_empty()),
        (Field::SmallestEffect, base.smallest_effect.is_some()),
        (Field::Logs, base.logs),
        (Field::Vary, !base.vary.is_empty()),
    ];
    if let Some((field, _)) = together.into_iter().find(|(_, is)| *is) {
        let problem = match field {
            Field::Vary => "cannot be set in a sweep (expected `settings`)",
            _ => "does not apply to a sweep, which stores the figures of each run (expected none)",
        };
        return Err(Error::new(field, format_args!("`base.{}`: {problem}", field.name())));
    }
    if space.schedulers.is_empty() {
        let problem = "each run has one scheduler (expected scheduler names, or default)";
        return Err(Error::new(Field::Schedulers, format_args!("`schedulers`: {problem}")));
    }
    settings(space)?;
    reject_duplicates(Field::Load, &space.loads.iter().map(|load| format!("{load:?}")).collect::<Vec<_>>())?;
    reject_duplicates(Field::Devices, &space.devices.iter().map(|devices| format!("{devices:?}")).collect::<Vec<_>>())?;
    reject_duplicates(Field::Hosts, &space.hosts.iter().map(|host| format!("{host:?}")).collect::<Vec<_>>())?;
    reject_duplicates(Field::Kernels, &space.kernels)?;
    reject_duplicates(Field::Schedulers, &space.schedulers)?;
    reject_duplicates(Field::GuestSchedulers, &space.guest_schedulers)?;
    match &space.seeds {
        Seeds::Count(0) => Err(Error::new(Field::Repeats, "`seeds` 0: expected at least one")),
        Seeds::Count(count) if *count > SEEDS_MAX => {
            Err(Error::new(Field::Repeats, format_args!("`seeds` {count}: expected 1 to {SEEDS_MAX}")))
        }
        Seeds::Count(count) => Ok(repeats::seeds(base.seed, *count)),
        Seeds::List(seeds) if seeds.is_empty() => Err(Error::new(Field::Repeats, "`seeds`: expected at least one")),
        Seeds::List(_) if base.seed != none.seed => {
            let problem = "the seeds are listed (expected one of it and a list of seeds)";
            Err(Error::new(Field::Repeats, format_args!("`base.seed` {}: {problem}", base.seed)))
        }
        Seeds::List(seeds) => {
            let mut seen = BTreeSet::new();
            match seeds.iter().find(|seed| !seen.insert(**seed)) {
                Some(duplicate) => Err(duplicate_value_error("`seeds`", Field::Repeats, duplicate)),
                None => Ok(seeds.clone()),
            }
        }
    }
}

/// Maximum number of seeds, as all of them are held in memory.
const SEEDS_MAX: u32 = 10_000_000;

fn settings(space: &Space) -> Result<(), Error> {
    for (of, names) in &space.settings {
        let field = if of == Vary::QUEUE { Field::QueueFiles } else { Field::Tunables };
        if of != Vary::QUEUE && !space.schedulers.contains(of) && !space.guest_schedulers.contains(of) {
            let problem = "is not among the compared schedulers";
            return Err(Error::new(field, format_args!("`settings.{of}`: {of} {problem}")));
        }
        if of != Vary::QUEUE && !space.schedulers.contains(of) {
            let problem = "settings apply to the host's schedulers only (expected a scheduler of `schedulers`)";
            return Err(Error::new(field, format_args!("`settings.{of}`: {problem}")));
        }
        for (name, values) in names {
            let setting_name = format!("`settings.{of}.{name}`");
            if values.is_empty() {
                return Err(Error::new(field, format_args!("{setting_name}: expected at least one value")));
            }
            let mut seen = BTreeSet::new();
            if let Some(duplicate) = values.iter().find(|value| !seen.insert(*value)) {
                return Err(duplicate_value_error(&setting_name, field, duplicate));
            }
        }
    }
    Ok(())
}

fn reject_duplicates(field: Field, axis: &[String]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    match axis.iter().find(|value| !seen.insert(*value)) {
        Some(duplicate) => Err(duplicate_value_error(&space_field_name(field), field, duplicate)),
        None => Ok(()),
    }
}

fn duplicate_value_error(name: &str, field: Field, value: impl Display) -> Error {
    Error::new(field, format_args!("{name} {value}: is given twice (expected each once)"))
}

/// Tries every load on every device, host and kernel, under every scheduler with every value of each setting. Returns a result
/// for each load, device and host, in the order of [`Axes`].
pub(super) fn trials(space: &Space, axes: &Axes, shared: &Shared<'_>) -> Result<Vec<TrialResult>, Error> {
    let [loads, devices, hosts, ..] = axes.lengths();
    let positions: Vec<(usize, usize, usize)> = (0..loads)
        .flat_map(|load| (0..devices).flat_map(move |device| (0..hosts).map(move |host| (load, device, host))))
        .collect();
    let results = hoistway_parallel::map(&positions, |&(load, devices, host)| {
        let first = Position { load, devices, host, ..axes.position(0) };
        try_position(space, axes, shared, first)
    });
    // Report the first error by number, whichever thread was faster.
    let results = results.into_iter().collect::<Result<Vec<_>, Error>>()?;
    let mut seen = BTreeSet::new();
    if let Some([load, device, kernel, host]) =
        results.iter().flat_map(|result| &result.names).find(|names| !seen.insert(*names))
    {
        let problem = "duplicate run name (expected loads, kernels, devices and hosts with distinct names)";
        let names = format!("{load}, {device}, Linux {kernel}, {host}");
        return Err(Error::new(Field::Devices, format_args!("{names}: {problem}")));
    }
    Ok(results)
}

fn try_position(space: &Space, axes: &Axes, shared: &Shared<'_>, first: Position) -> Result<TrialResult, Error> {
    let [.., kernels, guest_schedulers, schedulers] = axes.lengths();
    let recorder = Recorder::new(shared);
    let (mut notices, mut names): (Vec<String>, Vec<[String; 4]>) = Default::default();
    for kernel in 0..kernels {
        for guest_scheduler in 0..guest_schedulers {
            for scheduler in 0..schedulers {
                for combination in axes.trials(scheduler) {
                    let position = Position { kernel, guest_scheduler, scheduler, combination, ..first };
                    let comparison = axes.comparison(space, &position);
                    let plan = Plan::of(&comparison, &recorder)?;
                    check_single_run(&plan, &comparison)?;
                    if [guest_scheduler, scheduler, combination as usize] == [0; 3] {
                        names.push(setup_names(&plan)?);
                    }
                    let new: Vec<_> = plan.notices.iter().filter(|notice| !notices.contains(notice)).cloned().collect();
                    notices.extend(new);
                }
            }
        }
    }
    Ok(TrialResult { read: recorder.into_read(), notices, names })
}

/// Checks that a point is a single run.
fn check_single_run(plan: &Plan<'_>, comparison: &Comparison) -> Result<(), Error> {
    if plan.runs.len() == 1 {
        return Ok(());
    }
    let (field, given) = match (&comparison.guests.schedulers[..], plan.setups[0].guests.is_some()) {
        ([], true) => (Field::GuestSchedulers, "none"),
        _ => (Field::Schedulers, &*comparison.schedulers[0]),
    };
    let problem =
        format!("each run has one scheduler, but this gives {} (expected schedulers by name)", plan.runs.len());
    Err(Error::new(field, format_args!("{} {given}: {problem}", space_field_name(field))))
}

fn setup_names(plan: &Plan<'_>) -> Result<[String; 4], Error> {
    let setup = plan.setups[0].summary()?;
    let (device, host) = RunRow::names(&setup);
    Ok([plan.load.name.clone(), device, setup.kernel.clone(), host.to_owned()])
}
