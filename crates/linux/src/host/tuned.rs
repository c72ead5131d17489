//! Settings of tuned's active profile for `queue/`.
//!
//! Profiles are read as described in tuned.conf(5): an included profile comes first, and later values replace earlier ones.

use super::class::Class;
use super::device::Device;
use super::glob;
use super::setting::{Certainty, Setting};
use crate::root::Root;

/// Folders of profiles: those of the administrator come first.
const FOLDERS: [&str; 4] = ["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];

/// Maximum length of a chain of included profiles.
const CHAIN_MAX: usize = 16;

/// A line of a profile.
#[derive(Clone, Debug)]
struct Entry {
    /// The plug-in of its section.
    plugin: String,
    /// The devices of its section; empty for all.
    devices: String,
    key: String,
    value: String,
    source: String,
    line: usize,
}

pub(super) fn settings(root: &Root, devices: &[Device]) -> Vec<Setting> {
    let active = root.read("etc/tuned/active_profile").unwrap_or_default();
    let mut entries = Vec::new();
    for profile in active.split_whitespace() {
        read(root, profile, 0, &mut entries);
    }
    devices.iter().flat_map(|device| entries.iter().filter_map(|entry| setting(entry, device))).collect()
}

/// Adds the entries of a profile, after those that it includes.
fn read(root: &Root, profile: &str, depth: usize, entries: &mut Vec<Entry>) {
    if depth >= CHAIN_MAX || profile.contains('/') || profile.starts_with('.') {
        return;
    }
    let paths = FOLDERS.iter().map(|folder| format!("{folder}/{profile}/tuned.conf"));
    let Some((path, text)) = paths.into_iter().find_map(|path| Some((path.clone(), root.read(&path).ok()?))) else {
        return;
    };
    let sections = sections(&text);
    let included = sections.iter().find(|section| section.name == "main").and_then(|main| main.value("include"));
    for name in included.unwrap_or_default().split([',', ' ']).filter(|name| !name.is_empty()) {
        read(root, name, depth + 1, entries);
    }
    for section in &sections {
        let plugin = section.value("type").unwrap_or(&section.name);
        let devices = section.value("devices").unwrap_or_default();
        entries.extend(section.lines.iter().map(|(line, key, value)| Entry {
            plugin: plugin.to_owned(),
            devices: devices.to_owned(),
            key: key.clone(),
            value: value.clone(),
            source: format!("/{path}"),
            line: *line,
        }));
    }
}

struct Section {
    name: String,
    /// Line number, key, value.
    lines: Vec<(usize, String, String)>,
}

impl Section {
    fn value(&self, key: &str) -> Option<&str> {
        self.lines.iter().rev().find(|(_, name, _)| name == key).map(|(_, _, value)| value.as_str())
    }
}

fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push(Section { name: name.trim().to_owned(), lines: Vec::new() });
        } else if let (Some(section), Some((key, value))) = (sections.last_mut(), line.split_once('=')) {
            section.lines.push((number + 1, key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    sections
}

/// The setting of an entry for a device.
fn setting(entry: &Entry, device: &Device) -> Option<Setting> {
    let file = match entry.plugin.as_str() {
        "disk" if is_of_disk_plugin(device) && is_among(&entry.devices, &device.name) => match entry.key.as_str() {
            "elevator" => "scheduler".to_owned(),
            _ => return None,
        },
        "sysfs" => {
            let path = entry.key.trim_start_matches('/').strip_prefix("sys/block/")?;
            let (name, file) = path.split_once("/queue/")?;
            glob::matches(name, &device.name).then(|| file.to_owned())?
        }
        _ => return None,
    };
    // The value of a variable may come from another file.
    let certainty = if entry.value.contains("${") { Certainty::Possible } else { Certainty::Certain };
    Some(Setting {
        device: device.name.clone(),
        file,
        value: entry.value.trim_matches('"').to_owned(),
        by: "tuned",
        source: entry.source.clone(),
        line: entry.line,
        certainty,
    })
}

/// Whether tuned's disk plug-in handles the device: only physical and virtual disks that are not removable.
fn is_of_disk_plugin(device: &Device) -> bool {
    let is_excluded = matches!(device.class, Class::Stacked | Class::Loop | Class::Memory | Class::Removable);
    !is_excluded && !device.removable
}

/// Whether a list of patterns contains a name: `sd*, !sda`.
fn is_among(list: &str, name: &str) -> bool {
    let (mut is_included, mut only_excludes) = (false, true);
    for pattern in list.split([',', ' ']).filter(|pattern| !pattern.is_empty()) {
        match pattern.strip_prefix('!') {
            Some(excluded) if glob::matches(excluded, name) => return false,
            Some(_) => {}
            None => {
                only_excludes = false;
                is_included |= glob::matches(pattern, name);
            }
        }
    }
    is_included || only_excludes
}

#[cfg(test)]
mod tests {
    use super::is_among;

    #[test]
    fn lists_of_devices_include_and_exclude() {
        assert!(is_among("", "sda") && is_among("sd*", "sda") && is_among("!sdb", "sda"));
        assert!(!is_among("sd*, !sda", "sda") && !is_among("vd*", "sda") && !is_among("!sd?", "sda"));
    }
}
