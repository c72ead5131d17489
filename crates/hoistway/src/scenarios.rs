//! The bundled loads: a job file and a page each, in `scenarios/`.

use hoistway_report::Focus;
use hoistway_results::{Direction, Figure};
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

/// All of them.
const FILES: [(&str, &str, &str); 8] = [
    scenario!("desktop-freeze"),
    scenario!("database"),
    scenario!("compaction"),
    scenario!("backup-beside-oltp"),
    scenario!("vm-host"),
    scenario!("guests"),
    scenario!("video-playback"),
    scenario!("boot"),
];

/// A bundled load.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) job: &'static str,
    pub(crate) page: Page,
}

/// What is said of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// What it is, in one line.
    pub(crate) title: String,
    /// The device that it is typical of.
    pub(crate) device: String,
    /// Schedulers of the guests that it runs in, if it does.
    #[serde(default)]
    pub(crate) guest_schedulers: Vec<String>,
    /// The figure that it is about.
    metric: Metric,
    /// Whose problem it is, and what the jobs stand for.
    pub(crate) load: String,
    /// Which figures to look at, and why.
    pub(crate) look_at: String,
    /// What people measured or reported on real systems, with where.
    pub(crate) reports: String,
    /// What to vary.
    pub(crate) try_also: Vec<String>,
}

/// A figure of one direction of a job.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    job: String,
    direction: Direction,
    figure: Figure,
}

impl Page {
    /// The figure that it is about.
    pub(crate) fn focus(&self) -> Focus {
        Focus { job: self.metric.job.clone(), direction: self.metric.direction, figure: self.metric.figure }
    }
}

/// The names, in the order of the list.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, ..)| *name)
}

/// The scenario of this name.
pub(crate) fn named(name: &str) -> Option<Scenario> {
    let (_, job, page) = FILES.iter().find(|(known, ..)| *known == name)?;
    // A test reads them all.
    let page = toml::from_str(page).unwrap_or_else(|error| panic!("scenarios/{name}.toml: {error}"));
    Some(Scenario { job, page })
}
