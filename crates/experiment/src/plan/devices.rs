//! The devices of a comparison.

use hoistway_device::{Preset, PresetError};
use hoistway_load::Load;
use hoistway_sim::StackedDevice;
use serde_json::Value;

use crate::comparison::environment::{CallerEnvironment, Options};
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::{Devices, Profile};
use crate::load::recording::{Recorded, SeenDevice};
use crate::nearest;
use crate::plan::files::means;
use crate::scenarios::Page;

/// The default device.
const DEFAULT: &str = "intel-s3520-1600gb";

/// The device of a load that names none.
#[derive(Clone, Copy)]
pub(crate) enum Suggested<'a> {
    /// Nothing is known.
    None,
    /// A preset.
    Named(&'a str),
    /// That of a bundled load.
    Bundled(&'a Page),
    /// What a recording shows of its device.
    Seen(&'a Recorded),
}

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

/// The only device of a host with guests.
pub(crate) fn choose_guest_host_device(
    options: &Options<'_>,
    requested: &Devices,
    suggested: Suggested<'_>,
) -> Result<(Vec<Preset>, Vec<String>), Error> {
    if let Some((file, device)) = requested.files.first_key_value() {
        let expected = options.given(Field::Devices, "PRESET");
        return Err(options.refuse(
            Field::Devices,
            format_args!("{file}={device}"),
            format_args!("the disks of all guests are on one device of the host (expected one {expected})"),
        ));
    }
    let (device, notices) = common_device(options, requested, suggested)?;
    Ok((vec![device], notices))
}

/// The device of all files without a device of their own, and notices if it was not asked for.
fn common_device(
    options: &Options<'_>,
    requested: &Devices,
    suggested: Suggested<'_>,
) -> Result<(Preset, Vec<String>), Error> {
    if let Some(profile) = &requested.common {
        return Ok((preset(profile, options.environment)?, Vec::new()));
    }
    let option = options.name(Field::Devices);
    let notice = |name: &str| format!("No {option} given; using {name} (see `hoistway devices`).");
    let name = match suggested {
        Suggested::Seen(recorded) => match recorded.seen_device() {
            Some(SeenDevice { preset, notices }) => return Ok((preset.clone(), notices.clone())),
            None => recorded.suggested_device_class(),
        },
        Suggested::Bundled(page) => {
            let device = preset(&page.device_profile(), options.environment)?;
            return Ok((device, vec![notice(&page.device_in_words())]));
        }
        Suggested::Named(name) => name,
        Suggested::None => DEFAULT,
    };
    Ok((preset(&name.into(), options.environment)?, vec![notice(name)]))
}

/// The device of each file of the load that is a disk.
pub(crate) fn choose(
    options: &Options<'_>,
    requested: &Devices,
    files: &[String],
    stacks: &[StackedDevice],
    suggested: Suggested<'_>,
) -> Result<(Vec<Preset>, Vec<String>), Error> {
    for (name, device) in &requested.files {
        if !files.iter().any(|file| means(name, file)) {
            let known = files.join(", ");
            let problem = if stacks.iter().any(|stack| means(name, &stack.name)) {
                format!("{name} is a stacked device (expected a device for a disk: one of {known})")
            } else {
                format!("the job file has no filename \"{name}\" (expected one of {known})")
            };
            return Err(options.refuse(Field::Devices, format_args!("{name}={device}"), problem));
        }
        let in_full = requested.files.keys().find(|other| *other != name && means(name, other));
        if let Some(other) = in_full {
            let problem = format!("{other} is the same device (expected it once)");
            return Err(options.refuse(Field::Devices, format_args!("{name}={device}"), problem));
        }
    }
    let (common_device, notices) = common_device(options, requested, suggested)?;
    let requested_of =
        |file: &String| requested.files.iter().find(|(name, _)| means(name, file)).map(|(_, device)| device);
    let device_of = |file: &String| match requested_of(file) {
        Some(device) => preset(device, options.environment),
        None => Ok(common_device.clone()),
    };
    let devices = files.iter().map(device_of).collect::<Result<_, Error>>()?;
    let needs_common = files.iter().any(|file| requested_of(file).is_none());
    Ok((devices, if needs_common { notices } else { Vec::new() }))
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
