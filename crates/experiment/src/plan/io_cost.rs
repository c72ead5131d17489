//! `io.cost` of the devices, as writes to `io.cost.qos` and `io.cost.model`, and `io.weight` of cgroups.

use hoistway_cgroup::{CostModel, IoCostSettings};
use hoistway_device::Preset;
use hoistway_load::Load;
use hoistway_sim::DiskIoCost;

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::{CgroupFile, Vary};
use crate::nearest;
use crate::plan::files::means;
use crate::plan::io_max::check_cgroup;

/// An example of a valid write.
pub const EXAMPLE: &str = "such as \"enable=1 rpct=95 rlat=5000 min=50 max=150\"";

/// An example of a weight.
pub const WEIGHT_EXAMPLE: &str = "such as \"pods 50\"";

/// The range of `io.weight`.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;

/// `io.cost` of each of the load's files; empty if no device has it.
pub(crate) fn of_disks(
    options: &Options<'_>,
    workload: &Load,
    devices: &[Preset],
    in_guests: bool,
) -> Result<Vec<Option<DiskIoCost>>, Error> {
    let writes = &options.comparison.io_cost;
    let Some(first) = writes.first() else { return Ok(Vec::new()) };
    if in_guests {
        let problem = "io.cost is not modelled on a host below guests (expected a load without guests)";
        return Err(options.refuse(Field::IoCost, format_args!("{first:?}"), problem));
    }
    let mut disks: Vec<Option<IoCostSettings>> = vec![None; workload.files.len().min(devices.len())];
    for text in writes {
        let refuse = |problem: String| options.refuse(Field::IoCost, format_args!("{text:?}"), problem);
        let (target, settings) = target_of(text);
        let chosen = target
            .map(|target| disk_named(&workload.files[..disks.len()], target, EXAMPLE))
            .transpose()
            .map_err(refuse)?;
        if settings.trim().is_empty() {
            return Err(refuse(format!("expected settings of io.cost.qos or io.cost.model, {EXAMPLE}")));
        }
        for (number, disk) in disks.iter_mut().enumerate() {
            if chosen.is_none_or(|chosen| chosen == number) {
                disk.get_or_insert_default().update(&settings).map_err(|error| refuse(error.to_string()))?;
            }
        }
    }
    let resolved = disks.into_iter().zip(devices).map(|(settings, preset)| {
        let Some(settings) = settings else { return Ok(None) };
        let model = settings.model.resolve(cost_model(preset)).map_err(|missing| {
            let problem = format!(
                "the model of {} does not hold {} (expected \"model=linear rbps=N rseqiops=N rrandiops=N wbps=N wseqiops=N \
                 wrandiops=N\" as measured on the drive, or as in io.cost.model of a machine that has it; or one of the SSDs by model that `hoistway devices` lists at its end, which have these figures)",
                preset.name,
                missing.join(", ")
            );
            options.refuse(Field::IoCost, format_args!("{first:?}"), problem)
        })?;
        Ok(Some(DiskIoCost { qos: settings.qos, model }))
    });
    resolved.collect()
}

/// The figures that a preset holds for io.cost.
fn cost_model(preset: &Preset) -> Option<CostModel> {
    let [rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops] = preset.io_cost_figures()?;
    Some(CostModel { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops })
}

/// The device that a text begins with, and the text with blanks in its place, so that positions stay right.
pub(crate) fn target_of(text: &str) -> (Option<&str>, String) {
    match text.split_ascii_whitespace().next() {
        Some(word) if !word.contains('=') => (Some(word), text.replacen(word, &" ".repeat(word.chars().count()), 1)),
        _ => (None, text.to_owned()),
    }
}

/// The number of the file with this name, as a path or without `/dev/`. A device number means the only file.
pub(crate) fn disk_named(files: &[String], target: &str, example: &str) -> Result<usize, String> {
    let is_number = target.split_once(':').is_some_and(|(major, minor)| {
        [major, minor].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let known = files.join(", ");
    if is_number {
        let problem =
            format!("{target} names no simulated device, since they have no numbers (expected one of {known})");
        return if files.len() == 1 { Ok(0) } else { Err(problem) };
    }
    let named = files.iter().position(|file| means(target, file));
    named.ok_or_else(|| {
        let hint = nearest::hint(target, files.iter().map(String::as_str));
        format!(
            "{target} is not a device of the load ({hint}expected one of {known}, or settings as KEY=VALUE, {example})"
        )
    })
}

/// The weights, by cgroup.
pub(crate) fn weights(options: &Options<'_>, workload: &Load) -> Result<Vec<(String, u32)>, Error> {
    let mut weights: Vec<(String, u32)> = Vec::new();
    for CgroupFile { cgroup, text } in &options.comparison.io_weight {
        let given = format!("{cgroup} {text}");
        let refuse = |problem: String| Err(options.refuse(Field::IoWeight, format_args!("{given:?}"), problem));
        let cgroup = cgroup.trim_matches('/');
        if let Err(problem) = check_cgroup(workload, cgroup) {
            return refuse(problem);
        }
        if weights.iter().any(|(other, _)| other == cgroup) {
            return refuse(format!("cgroup \"{cgroup}\" has a weight already (expected one for each cgroup)"));
        }
        let number = text.trim().strip_prefix("default ").unwrap_or(text).trim();
        match number.parse().ok().filter(|weight| WEIGHTS.contains(weight)) {
            Some(weight) => weights.push((cgroup.to_owned(), weight)),
            None => return refuse(format!("expected a cgroup and a weight from 1 to 10000, {WEIGHT_EXAMPLE}")),
        }
    }
    Ok(weights)
}

/// Changes a setting that is varied on every device that has `io.cost`. `key` is `qos` or `model` with a key, such as `qos.max`.
///
/// # Errors
/// If no device has `io.cost`, or if the setting is refused.
pub(crate) fn vary(disks: &mut [Option<DiskIoCost>], key: &str, text: &str) -> Result<(), String> {
    vary_together(disks, &[(key, text)])
}

/// Changes several settings at once, as [`vary`] does one: bounds of the rate may be valid only together.
///
/// # Errors
/// As of [`vary`].
pub(crate) fn vary_together(disks: &mut [Option<DiskIoCost>], written: &[(&str, &str)]) -> Result<(), String> {
    if disks.iter().flatten().next().is_none() {
        return Err("no device has io.cost (expected it to be turned on for all runs)".to_owned());
    }
    let mut words = Vec::with_capacity(written.len());
    for &(key, text) in written {
        let Some((file @ ("qos" | "model"), key)) = key.split_once('.') else {
            return Err(format!(
                "{}.{key} is not a setting (expected io.cost.qos.KEY or io.cost.model.KEY)",
                Vary::IO_COST
            ));
        };
        if matches!(key, "ctrl" | "model") {
            return Err(format!("{file}.{key} is not varied (expected a parameter, such as io.cost.qos.max)"));
        }
        let word = format!("{key}={text}");
        IoCostSettings::check_file(file, &word).map_err(|error| error.to_string())?;
        words.push(word);
    }
    let words = words.join(" ");
    for disk in disks.iter_mut().flatten() {
        let mut settings = IoCostSettings { qos: disk.qos, model: disk.model.into() };
        settings.update(&words).map_err(|error| error.to_string())?;
        let missing = |_| format!("{words} leaves the device without a model");
        *disk = DiskIoCost { qos: settings.qos, model: settings.model.resolve(Some(disk.model)).map_err(missing)? };
    }
    Ok(())
}
