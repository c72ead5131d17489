//! The document of a search for the best setting.
//!
//! Used by: crates `experiment`, `render`, `hoistway`.
//! Tests: `crates/answer/src/tuning/losses.rs`, `crates/answer/tests/integrity.rs`, `crates/render/tests/tuning.rs`.

mod check;
mod losses;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::advice::CgroupWrites;
use crate::analysis::Estimate;
use crate::document::{Change, MeasuredWindow, Run, Shift};
use crate::figure_name::FigureName;
use crate::objective::Objective;

pub use hoistway_measure::Setting;
pub use losses::losses;

/// The value of [`Tuning::format`].
pub const FORMAT: &str = "hoistway-tune/1";

/// One run of a search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneRun {
    /// The setting that ran.
    pub setting: Setting,
    /// Random seed of the run.
    pub seed: u64,
    /// Runtime of every process, ns; `None` if the load's own runtime was used.
    pub runtime_ns: Option<u64>,
    /// The figures of the objective that the run has: latencies in ns, rates in I/Os or bytes a second.
    pub figures: BTreeMap<FigureName, f64>,
}

/// The budget of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// This number of runs, however long each is.
    Runs(u64),
    /// Virtual time, ns.
    VirtualNs(u64),
}

/// A search and what it found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tuning {
    /// Always [`FORMAT`].
    pub format: String,
    /// Version of hoistway that wrote the document.
    pub version: String,
    /// The command line; empty if there was none.
    pub command: String,
    /// The name of the load.
    pub job_file: String,
    /// The job file's text.
    pub job_text: String,
    /// The device model with all its parameters, or an array with the models of several files.
    pub device: Value,
    /// The kernel.
    pub kernel: String,
    /// Schedulers of the search that no Linux release has, each with its source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outside_linux: BTreeMap<String, String>,
    /// CPUs of the host.
    pub cpus: u32,
    /// The host profile.
    pub host: Value,
    /// All options of the search; null in documents of earlier versions.
    #[serde(default)]
    pub search: Value,
    /// The objective.
    pub objective: Objective,
    /// The budget.
    pub budget: Budget,
    /// The seed that the seeds of all runs are derived from.
    pub seed: u64,
    /// The search space: all tunables with their values.
    #[serde(rename = "knobs")]
    pub tunables: Vec<Candidates>,
    /// Size of the search space, in settings; at most 2^53.
    pub settings_possible: u64,
    /// The rounds: each has fewer settings than the one before, longer runs and more seeds, all of them new.
    pub rounds: Vec<Round>,
    /// What the runs measured, if it is not what fio measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MeasuredWindow>,
    /// The outcome; `None` if the search was cut short before its last round.
    pub found: Option<SearchOutcome>,
    /// The commands that write what the best setting changes in files of cgroups, for each device of the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroup_writes: Vec<CgroupWrites>,
    /// The Pareto front of the first round, over all figures of the objective.
    pub front: Vec<SettingResult>,
    /// The effect of each tunable on the objective's figure in the first round, largest first.
    pub effects: Vec<SettingEffect>,
    /// Remarks about the figures.
    pub notices: Vec<String>,
    /// The conclusion, one sentence each.
    pub conclusion: Vec<String>,
    /// Every run.
    pub runs: Vec<TuneRun>,
}

/// A tunable of a scheduler or a file of `queue/`, with the values that were tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Candidates {
    /// The scheduler that has it, or under which the file was written.
    pub scheduler: String,
    /// The name of the tunable or file; of io.cost and io.latency as it is varied, such as `io.cost.qos.max`.
    pub name: String,
    /// Whether it is a file of `queue/`.
    pub is_queue_file: bool,
    /// The values that were tried in addition to the default.
    pub texts: Vec<String>,
}

impl Candidates {
    /// The file below `queue/`, or the setting in a file of cgroups.
    pub fn file(&self) -> String {
        if self.is_queue_file || Setting::is_cgroup_file(&self.name) {
            self.name.clone()
        } else {
            Setting::file_of(&self.name)
        }
    }
}

/// A round of a search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Runtime of every process, ns; `None` if the load's own runtime was used.
    pub runtime_ns: Option<u64>,
    /// The settings, best first.
    pub settings: Vec<SettingResult>,
}

/// The result of a setting in a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SettingResult {
    /// The setting.
    pub setting: Setting,
    /// Number of seeds that it ran with.
    pub seeds: u32,
    /// The mean of each figure of the objective.
    pub figures: BTreeMap<FigureName, Estimate>,
    /// The factor by which each condition is met (above 1) or missed (below 1), in their order; `None` if there was nothing to compare.
    pub margins: Vec<Option<Change>>,
    /// Whether all conditions hold, on average.
    pub holds: bool,
    /// The factor by which the objective is better than under the round's best setting: at most 1. `None` if the figure is missing.
    pub beside_best: Option<Change>,
}

/// The outcome of a search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// The best setting, or, if none meets the conditions, the one that comes closest.
    pub best: SettingResult,
    /// Whether the best setting meets the conditions.
    pub holds: bool,
    /// The reference: the kernel's default scheduler with its default settings, or else the first scheduler.
    pub reference: SettingResult,
    /// The change of the objective from the reference to the best setting.
    pub gain: Option<Change>,
    /// Settings that meet the conditions and differ from the best by no more than the noise.
    pub undecided: Vec<Setting>,
    /// The figures other than the objective's that get worse from the reference to the best setting in the last round, worst first.
    /// `None` if no other figures were measured.
    #[serde(default)]
    pub losses: Option<Vec<Shift>>,
}

/// The effect of a tunable.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SettingEffect {
    /// The scheduler that has the tunable; `None` if the tunable is the choice of scheduler.
    pub scheduler: Option<String>,
    /// The tunable; `scheduler` for the choice of scheduler.
    #[serde(rename = "knob")]
    pub tunable: String,
    /// The share of the variance of the figure's logarithm that the tunable explains, 0 to 1, minus the share expected by chance.
    pub share: f64,
    /// The value with the best figure, averaged over all other tunables.
    pub best: String,
    /// The value with the worst figure, likewise.
    pub worst: String,
    /// The factor by which the best value is better than the worst.
    pub factor: f64,
    /// Number of settings that the effect is computed from.
    pub settings: u32,
}

impl Run {
    /// All figures of the run by name; if several jobs share a name, those of the first.
    pub fn figures(&self) -> BTreeMap<FigureName, f64> {
        let mut figures = BTreeMap::new();
        for job in &self.jobs {
            for summary in job.operations.iter().filter(|summary| summary.ios > 0) {
                for figure in crate::Figure::ALL.into_iter().filter(|figure| figure.is_of(summary.operation)) {
                    let name = FigureName { job: job.name.clone(), operation: summary.operation, figure };
                    figures.entry(name).or_insert_with(|| summary.figure(figure));
                }
            }
        }
        figures
    }
}
