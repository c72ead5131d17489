//! The bundled loads: a job file and a page each, in `scenarios/`.
//!
//! Used by: `sweep`, `load`; crates `hoistway`, `evidence`.
//! Tests: `crates/experiment/tests/verdicts.rs`, `crates/hoistway/tests/cli/scenarios.rs`.

use hoistway_answer::FigureName;
use serde::Deserialize;

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
const FILES: [(&str, &str, &str); 23] = [
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
