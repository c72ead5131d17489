//! The bundled loads: a job file and a page each, in `scenarios/`.
//!
//! Used by: `sweep`, `load`; crates `hoistway`, `evidence`.
//! Tests: `crates/experiment/tests/verdicts.rs`, `crates/hoistway/tests/cli/scenarios.rs`.

use std::collections::BTreeMap;

use hoistway_answer::FigureName;
use hoistway_device::Preset;
use serde::Deserialize;

use crate::comparison::Profile;

/// The name of a scenario with its job file and its page.
macro_rules! scenario {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../scenarios/", $name, ".fio")),
            include_str!(concat!("../scenarios/", $name, ".toml")),
        )
    };
}

/// All scenarios.
const FILES: [(&str, &str, &str); 26] = [
    scenario!("desktop-freeze"),
    scenario!("database"),
    scenario!("compaction"),
    scenario!("backup-beside-oltp"),
    scenario!("file-server"),
    scenario!("vm-host"),
    scenario!("guests"),
    scenario!("video-playback"),
    scenario!("boot"),
    scenario!("deep-neighbour"),
    scenario!("fua-writer"),
    scenario!("priority-shares"),
    scenario!("collection-deadline"),
    scenario!("real-time-read"),
    scenario!("l-and-t-apps"),
    scenario!("training-checkpoint"),
    scenario!("checkpoint-restore"),
    scenario!("training-epochs"),
    scenario!("kv-cache"),
    scenario!("vector-search"),
    scenario!("container-storm"),
    scenario!("surveillance"),
    scenario!("etcd-beside-pods"),
    scenario!("column-store"),
    scenario!("bursts"),
    scenario!("bonnie"),
];

/// The name of the bundled example, which is not a scenario: it runs if no load is named.
pub const EXAMPLE: &str = "example";

/// The job file of the bundled example.
pub const EXAMPLE_JOB: &str = include_str!("../jobs/example.fio");

/// A bundled load.
#[derive(Debug)]
pub struct Scenario {
    /// Its fio job file.
    pub job: &'static str,
    /// Its description.
    pub page: Page,
}

/// The description of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// A summary in one line.
    pub title: String,
    /// What it is for: `ai`, `database`, `desktop`, ...
    pub tags: Vec<String>,
    /// A device that is typical for it.
    pub device: String,
    /// What differs from that preset: values by section and key, such as `flash.fua_blocks_reads`.
    #[serde(default)]
    pub device_changes: BTreeMap<String, toml::Value>,
    /// Schedulers of its guests, if it runs in guests.
    #[serde(default)]
    pub guest_schedulers: Vec<String>,
    /// Whether its files are those of a file system with a journal.
    #[serde(default)]
    pub journal: bool,
    /// The figure to rank schedulers by.
    pub focus: FigureName,
    /// The systems that have this problem, and the program that each job represents.
    pub load: String,
    /// Which figures to look at, and why.
    pub look_at: String,
    /// Measurements and reports from real systems, with sources.
    pub reports: String,
    /// What to vary.
    pub try_also: Vec<String>,
}

impl Page {
    /// The device in words: the preset, and what differs from it.
    #[must_use]
    pub fn device_in_words(&self) -> String {
        let changes: Vec<String> = self.device_changes.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        if changes.is_empty() { self.device.clone() } else { format!("{} with {}", self.device, changes.join(" and ")) }
    }

    /// The device, with what differs from the preset.
    ///
    /// # Panics
    /// If there is no such preset, section or key, which a test of all pages excludes.
    #[must_use]
    pub fn device_profile(&self) -> Profile {
        if self.device_changes.is_empty() {
            return Profile::Named(self.device.clone());
        }
        let text = Preset::builtin_toml(&self.device).expect("the device of a page is built in");
        let mut preset: toml::Table = text.parse().expect("a built-in preset is TOML");
        for (path, value) in &self.device_changes {
            let (section, key) = path.split_once('.').expect("a change names a section and a key");
            let section = preset.get_mut(section).and_then(toml::Value::as_table_mut);
            section.expect("the preset has this section").insert(key.to_owned(), value.clone());
        }
        Profile::Text { name: self.device_in_words(), text: preset.to_string() }
    }
}

/// The names, in the order of the list.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, ..)| *name)
}

/// The scenario of this name.
#[must_use]
pub fn named(name: &str) -> Option<Scenario> {
    let (_, job, page) = FILES.iter().find(|(known, ..)| *known == name)?;
    // A test reads all pages.
    let page = toml::from_str(page).unwrap_or_else(|error| panic!("scenarios/{name}.toml: {error}"));
    Some(Scenario { job, page })
}

/// All tags, sorted.
#[must_use]
pub fn tags() -> Vec<String> {
    let mut tags: Vec<String> = names().filter_map(named).flat_map(|scenario| scenario.page.tags).collect();
    tags.sort();
    tags.dedup();
    tags
}
