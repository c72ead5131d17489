//! The devices of a comparison: `--device`.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hoistway_device::Preset;
use hoistway_load::Load;
use serde_json::Value;

use crate::input;

/// The device of whoever names none.
const DEFAULT_DEVICE: &str = "intel-s3520-1600gb";

/// A built-in preset by name, or a preset from a file.
pub(crate) fn device_named(name: &str) -> Result<Preset> {
    Ok(match input::toml_named(name, "a device preset in TOML")? {
        Some(text) => Preset::from_toml(&text, name)?,
        None => Preset::builtin(name)?,
    })
}

/// The one device of a host with guests. `fitting` is the one that goes with a bundled load.
pub(super) fn choose_one(wanted: &[String], fitting: Option<&str>) -> Result<(Vec<Preset>, Vec<String>)> {
    match wanted {
        [] => Ok((vec![Preset::builtin(default_name(fitting))?], vec![default_notice(fitting)])),
        [one] if !one.contains('=') => Ok((vec![device_named(one)?], Vec::new())),
        [.., last] => {
            bail!(
                "--device {last}: the disks of all guests lie on one device of the host (expected one --device PRESET)"
            )
        }
    }
}

fn default_name(fitting: Option<&str>) -> &str {
    fitting.unwrap_or(DEFAULT_DEVICE)
}

fn default_notice(fitting: Option<&str>) -> String {
    format!("No --device was given: {} was taken (see `hoistway devices`).", default_name(fitting))
}

/// The device of each file of the load. `fitting` is the one that goes with a bundled load.
pub(super) fn choose(workload: &Load, wanted: &[String], fitting: Option<&str>) -> Result<(Vec<Preset>, Vec<String>)> {
    let mut named: BTreeMap<&str, Preset> = BTreeMap::new();
    let mut common = None;
    for device in wanted {
        match device.split_once('=') {
            Some((file, name)) => {
                if !workload.files.iter().any(|known| known == file) {
                    bail!(
                        "--device {device}: the job file has no filename \"{file}\" (expected one of {})",
                        workload.files.join(", ")
                    );
                }
                named.insert(file, device_named(name)?);
            }
            None if common.is_some() => {
                bail!("--device {device}: a device for all files was given before (expected NAME=PRESET)")
            }
            None => common = Some(device_named(device)?),
        }
    }
    let mut notices = Vec::new();
    let needs_default = workload.files.iter().any(|file| !named.contains_key(file.as_str()));
    if common.is_none() && needs_default {
        notices.push(default_notice(fitting));
    }
    let common = match common {
        Some(preset) => preset,
        None => Preset::builtin(default_name(fitting))?,
    };
    let devices =
        workload.files.iter().map(|file| named.get(file.as_str()).cloned().unwrap_or_else(|| common.clone())).collect();
    Ok((devices, notices))
}

pub(super) fn describe(workload: &Load, devices: &[Preset]) -> Result<Value> {
    let mut described = Vec::with_capacity(devices.len());
    for (file, preset) in workload.files.iter().zip(devices) {
        let mut value = serde_json::to_value(preset)?;
        if let (true, Value::Object(object)) = (devices.len() > 1, &mut value) {
            object.insert("file".to_owned(), Value::from(file.as_str()));
        }
        described.push(value);
    }
    Ok(if described.len() == 1 { described.remove(0) } else { Value::Array(described) })
}
