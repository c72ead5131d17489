//! Verdicts in the result document: the recommendation of a comparison as data, from which its sentences are made.

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::figure_name::FigureName;
use crate::focus::WeightedFigure;
use hoistway_measure::Operation;

/// The verdict on one setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Index into [`setups`](super::ResultsDocument::setups); 0 if there are none.
    pub setup: u32,
    /// The files of the disks that it is about; empty for all disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The figures that the variants were judged by.
    pub focus: Vec<WeightedFigure>,
    /// Names of the equivalent jobs that were judged together with the first figure's job, itself included; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "alike")]
    pub equivalent_jobs: Vec<String>,
    /// Who chose the focus.
    pub focus_from: FocusFrom,
    /// Differences below this fraction are ignored.
    pub smallest_effect: f64,
    /// The label of the variant that others were compared with.
    pub reference: String,
    /// Whether the reference is the kernel's default for the device.
    pub reference_is_default: bool,
    /// The decision.
    pub decision: Decision,
    /// The label of the recommended variant; for single runs the one that was ahead.
    pub recommended: String,
    /// Whether the schedulers had requests to choose among or to merge; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub had_a_choice: Option<bool>,
    /// The share of resamplings of the repeats that reach the same decision, 0 to 1; `None` for single runs, and in documents of
    /// versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<f64>,
    /// Judged figures whose repeats differ widely, under the reference and the recommended variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
    /// The recommended change in parts of the recording that was the load; `None` if the reference is recommended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartsCheck>,
    /// All variants except the reference, the best first.
    pub candidates: Vec<Candidate>,
    /// The best scheduler that no kernel has, if it would be better than the recommended one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Candidate>,
}

/// The judged figure in parts of equal time: a recording is one sample, and the spread of its parts shows the noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartsCheck {
    /// The figure: IOPS, or the mean latency in place of any latency.
    pub figure: FigureName,
    /// The label of the reference.
    pub reference: String,
    /// The label of the recommended variant.
    pub recommended: String,
    /// Number of parts that have I/Os under both variants.
    pub parts: u32,
    /// The change from the reference to the recommended variant, from the differences of the parts.
    pub change: Change,
    /// Whether the change exceeds the smallest effect beyond the noise.
    pub is_beyond_chance: bool,
}

/// A figure whose repeats differ so widely that their mean is not representative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The figure.
    pub figure: FigureName,
    /// The label of the variant.
    pub scheduler: String,
    /// The smallest of the repeats, in the figure's unit.
    pub least: f64,
    /// The largest of the repeats, in the figure's unit.
    pub most: f64,
}

/// Who chose the figures that a comparison is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FocusFrom {
    /// The user.
    Asked,
    /// The author of the load.
    Load,
    /// Neither: it was derived from the measured figures.
    Figures,
}

/// The decision of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Change to another scheduler or setting.
    Change,
    /// Keep the reference: nothing is worth a change.
    Keep,
    /// Undecided: there are only single runs.
    OneRun,
    /// There is only one variant.
    Alone,
}

/// A variant compared with the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The variant's label.
    pub scheduler: String,
    /// Its change in the focus; `None` if it cannot be compared.
    pub gain: Option<Change>,
    /// Its change on balance, by which it is judged: the geometric mean of the changes for all parties, weighted by their votes.
    /// `None` if it cannot be compared, and in documents of versions that judged by the focus alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Change>,
    /// The result of the comparison.
    pub outcome: Outcome,
    /// Its losses in other figures, worst first.
    pub losses: Vec<Shift>,
    /// Its gains in other figures beyond the noise, largest first.
    pub gains: Vec<Shift>,
    /// What decides against it although it gains more in the focus: its losses compared with the recommended variant, worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind_recommended: Vec<Shift>,
}

/// The result of comparing a candidate with the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is better on balance and in the focus.
    Better,
    /// It is better on balance, but not in the focus.
    BetterElsewhere,
    /// It is better in the focus or on balance, but its losses outweigh that, overall or for the parties that wait.
    Outweighed,
    /// Better by less than the smallest effect, or worse by less.
    NoDifference,
    /// The difference is within the noise.
    WithinNoise,
    /// It is worse on balance.
    Worse,
    /// It cannot be compared: it lacks the I/O, or shares no repeat with the reference.
    Incomparable,
}

/// The factor by which something is better than under the reference: 1.25 means 25 % more IOPS, or 20 % less latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The geometric mean over the repeats.
    pub factor: f64,
    /// The lower end of its 95 % interval; `None` for a single run.
    pub low: Option<f64>,
    /// The upper end of its 95 % interval; `None` for a single run.
    pub high: Option<f64>,
}

/// A change of a figure from the reference to a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// The job; the first of equivalent jobs.
    pub job: String,
    /// Number of equivalent jobs, itself included.
    pub jobs: u32,
    /// The operation; `None` for fairness.
    pub operation: Option<Operation>,
    /// The measure that changes.
    pub aspect: Aspect,
    /// The value under the reference: the mean over the repeats, for maxima the geometric mean.
    pub from: f64,
    /// The value under the candidate, likewise.
    pub to: f64,
    /// The factor by which it is worse (for a gain: better), above 1.
    pub factor: f64,
    /// Whether the change is beyond the noise; `None` for a single run.
    pub significant: Option<bool>,
    /// Whether it counts in the decision: it is more than a single I/O or chance.
    pub weighs: bool,
    /// Whether the job asked for it: I/O of the idle class, and discards, get what others leave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_asked: bool,
}

/// A measure of an operation or of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// A figure; for equivalent jobs the median of their figures.
    Figure(Figure),
    /// The figure of the worst-off of several equivalent jobs.
    Worst(Figure),
    /// The wait that a party is judged by, ns: long latencies count more than in proportion to their number. Listed if it contradicts
    /// the mean or a percentile.
    Wait,
    /// Jain's index of IOPS among processes, or among equivalent jobs.
    Fairness,
}
