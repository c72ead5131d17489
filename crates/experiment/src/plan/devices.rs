//! The devices of a comparison.

use hoistway_device::{Preset, PresetError};
use hoistway_load::Load;
use serde_json::Value;

use crate::comparison::environment::{CallerEnvironment, Options};
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::{Devices, Profile};
use crate::nearest;

/// The default device.
const DEFAULT: &str = "intel-s3520-1600gb";

/// A device: a built-in preset by name, or a preset from a file.
///
/// # Errors
/// If there is no such preset or file, or something in the file is wrong.
pub fn preset(profile: &Profile, environment: &dyn CallerEnvironment) -> Result<Preset, Error> {
    let known = || Preset::classes().map(|(class, _)| class).chain(Preset::builtin_names());
    let builtin = |name: &str| {
        Preset::builtin(name).map_err(|error| match error {
            // A kind of device without a preset: the error already names the nearest preset.
            PresetError::NoSuchPreset { nearest: Some(_), .. } => error.to_string(),
            _ => format!("{error}{}", hint_suffix(name, known())),
        })
    };
    let read = |text: &str, file: &str| Preset::from_toml(text, file).map(Preset::without_borrowed_claims);
    let preset = environment.profile(profile, "a device preset in TOML", read, builtin);
    preset.map_err(|fault| fault.of(Field::Devices))
}

/// A spelling hint as the end of an error message; empty if no name is close.
fn hint_suffix(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    match nearest::hint(name, known).trim_end() {
        "" => String::new(),
        hint => format!("; {hint}"),
    }
}

/// The only device of a host with guests. `fitting` is the device of a bundled load.
pub(crate) fn choose_guest_host_device(
    options: &Options<'_>,
    requested: &Devices,
    suggested: Option<&str>,
) -> Result<(Vec<Preset>, Vec<String>), Error> {
    if let Some((file, device)) = requested.files.first_key_value() {
        let expected = options.given(Field::Devices, "PRESET");
        return Err(options.refuse(
            Field::Devices,
            format_args!("{file}={device}"),
            format_args!("the disks of all guests are on one device of the host (expected one {expected})"),
        ));
    }
    let (device, notice) = common_device(options, requested, suggested)?;
    Ok((vec![device], notice.into_iter().collect()))
}

/// The device of all files without a device of their own, and a notice if it is the default.
fn common_device(
    options: &Options<'_>,
    requested: &Devices,
    suggested: Option<&str>,
) -> Result<(Preset, Option<String>), Error> {
    if let Some(profile) = &requested.common {
        return Ok((preset(profile, options.environment)?, None));
    }
    let name = suggested.unwrap_or(DEFAULT);
    let option = options.name(Field::Devices);
    let notice = format!("No {option} given; using {name} (see `hoistway devices`).");
    Ok((preset(&name.into(), options.environment)?, Some(notice)))
}

/// The device of each file of the load. `fitting` is the device of a bundled load.
pub(crate) fn choose(
    options: &Options<'_>,
    requested: &Devices,
    workload: &Load,
    suggested: Option<&str>,
) -> Result<(Vec<Preset>, Vec<String>), Error> {
    for (file, device) in &requested.files {
        if !workload.files.contains(file) {
            let known = workload.files.join(", ");
            return Err(options.refuse(
                Field::Devices,
                format_args!("{file}={device}"),
                format_args!("the job file has no filename \"{file}\" (expected one of {known})"),
            ));
        }
    }
    let (common_device, notice) = common_device(options, requested, suggested)?;
    let device_of = |file: &String| match requested.files.get(file) {
        Some(device) => preset(device, options.environment),
        None => Ok(common_device.clone()),
    };
    let devices = workload.files.iter().map(device_of).collect::<Result<_, Error>>()?;
    let needs_common = workload.files.iter().any(|file| !requested.files.contains_key(file));
    Ok((devices, notice.filter(|_| needs_common).into_iter().collect()))
}

/// The devices as shown in the document: one device, or an array with the files of each.
pub(crate) fn describe(workload: &Load, devices: &[Preset]) -> Result<Value, Error> {
    let mut described = Vec::with_capacity(devices.len());
    for (file, preset) in workload.files.iter().zip(devices) {
        let mut value = serde_json::to_value(preset).about(Field::Devices)?;
        if let (true, Value::Object(object)) = (devices.len() > 1, &mut value) {
            object.insert("file".to_owned(), Value::from(file.as_str()));
        }
        described.push(value);
    }
    Ok(if described.len() == 1 { described.remove(0) } else { Value::Array(described) })
}
