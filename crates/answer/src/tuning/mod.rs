//! The document of a search for the best setting.

mod check;
mod losses;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::analysis::Estimate;
use crate::document::{Change, Run, Shift};
use crate::figure_name::FigureName;
use crate::objective::Objective;

pub use losses::losses;

/// What [`Tuning::format`] is written as.
pub const FORMAT: &str = "hoistway-tune/1";

/// A scheduler with what is set beside what is set in all runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The scheduler.
    pub scheduler: String,
    /// Its tunables, as they are written; those that are not here are as the kernel has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
    /// Files of `queue/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queue_files: BTreeMap<String, String>,
}

impl Setting {
    /// A scheduler as it is.
    pub fn untouched(scheduler: &str) -> Self {
        Self { scheduler: scheduler.to_owned(), ..Self::default() }
    }

    /// Whether it is a scheduler as it is.
    pub fn is_kernel_default(&self) -> bool {
        self.tunables.is_empty() && self.queue_files.is_empty()
    }

    /// All that is set: first tunables.
    pub fn knobs(&self) -> impl Iterator<Item = (&String, &String)> {
        self.tunables.iter().chain(&self.queue_files)
    }
}

/// As a row of a comparison is called: `mq-deadline fifo_batch=4 nr_requests=64`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheduler)?;
        self.knobs().try_for_each(|(name, text)| write!(f, " {name}={text}"))
    }
}

/// One run of a search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneRun {
    /// What ran.
    pub setting: Setting,
    /// Everything random was drawn from it.
    pub seed: u64,
    /// What replaced the runtime of every process; none if it was as the load says.
    pub runtime_ns: Option<u64>,
    /// Those of the objective, and only those that there were: latencies in ns, I/Os and bytes a second.
    pub figures: BTreeMap<FigureName, f64>,
}

/// What may be spent on a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// This number of runs, however long each is.
    Runs(u64),
    /// So much virtual time, ns.
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
    /// What the load is called.
    pub job_file: String,
    /// The job file's text.
    pub job_text: String,
    /// The device model with all its parameters, or those of several files.
    pub device: Value,
    /// The kernel.
    pub kernel: String,
    /// Schedulers of the search that no release of Linux has, and where each comes from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outside_linux: BTreeMap<String, String>,
    /// CPUs of the host.
    pub cpus: u32,
    /// The host profile.
    pub host: Value,
    /// The whole search as programs say it; null in documents of earlier versions.
    #[serde(default)]
    pub search: Value,
    /// What was looked for.
    pub objective: Objective,
    /// What could be spent.
    pub budget: Budget,
    /// All seeds were drawn from it.
    pub seed: u64,
    /// What was searched.
    pub knobs: Vec<Knob>,
    /// How many settings there are in all; not more than 2^53.
    pub settings_possible: u64,
    /// The rounds: each has fewer settings than the one before, longer runs and more seeds, none of which was used before.
    pub rounds: Vec<Round>,
    /// The outcome; none if the search was cut short before its last round.
    pub found: Option<SearchOutcome>,
    /// The settings of the first round that no other of it beats in all figures of the objective.
    pub front: Vec<SettingResult>,
    /// What each knob did to the figure in the first round, the most first.
    pub effects: Vec<KnobEffect>,
    /// Remarks about the figures.
    pub notices: Vec<String>,
    /// What it means, a sentence each.
    pub conclusion: Vec<String>,
    /// Every run.
    pub runs: Vec<TuneRun>,
}

/// A tunable of a scheduler or a file of `queue/`, with what was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Knob {
    /// The scheduler that has it, or under which the file was written.
    pub scheduler: String,
    /// Its name.
    pub name: String,
    /// Whether it is a file of `queue/`.
    pub is_queue_file: bool,
    /// What was written, beside leaving it as it is.
    pub texts: Vec<String>,
}

/// A round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Round {
    /// What replaced the runtime of every process; none if it was as the load says.
    pub runtime_ns: Option<u64>,
    /// The settings, best first.
    pub settings: Vec<SettingResult>,
}

/// How a setting stands in a round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SettingResult {
    /// The setting.
    pub setting: Setting,
    /// How many seeds it ran with.
    pub seeds: u32,
    /// The mean of each figure of the objective.
    pub figures: BTreeMap<FigureName, Estimate>,
    /// By what factor each condition is kept (above 1) or missed, in their order; none if there was nothing to compare.
    pub margins: Vec<Option<Change>>,
    /// Whether all conditions hold, on average.
    pub holds: bool,
    /// By what factor the objective is better than the best one's of the round: below 1. None if there is no such figure.
    pub beside_best: Option<Change>,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// The best setting, or, if none keeps the conditions, the one that comes closest.
    pub best: SettingResult,
    /// Whether it keeps the conditions.
    pub holds: bool,
    /// What was compared with: the kernel's default scheduler with its default settings, or the first one.
    pub reference: SettingResult,
    /// By what factor the best is better than that, by the objective.
    pub gain: Option<Change>,
    /// Settings that keep the conditions and differ from the best by no more than the noise.
    pub undecided: Vec<Setting>,
    /// What gets worse from that to the best in the last round, beside the objective's figure, worst first. None if nothing else is
    /// known.
    #[serde(default)]
    pub losses: Option<Vec<Shift>>,
}

/// What a knob did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KnobEffect {
    /// The scheduler; none of the choice of a scheduler itself.
    pub scheduler: Option<String>,
    /// The knob; `scheduler` of that choice.
    pub knob: String,
    /// The share of the variance of the figure's logarithm that goes with it, 0 to 1, less what chance would explain.
    pub share: f64,
    /// With which value the figure was best, on average over all else.
    pub best: String,
    /// With which it was worst.
    pub worst: String,
    /// By what factor the best is better than the worst.
    pub factor: f64,
    /// Settings that this rests on.
    pub settings: u32,
}

impl Run {
    /// All its figures by name, of the first job of each name.
    pub fn figures(&self) -> BTreeMap<FigureName, f64> {
        let mut figures = BTreeMap::new();
        for job in &self.jobs {
            for of in job.operations.iter().filter(|of| of.ios > 0) {
                for figure in crate::Figure::ALL.into_iter().filter(|figure| figure.is_of(of.operation)) {
                    let name = FigureName { job: job.name.clone(), operation: of.operation, figure };
                    figures.entry(name).or_insert_with(|| of.figure(figure));
                }
            }
        }
        figures
    }
}
