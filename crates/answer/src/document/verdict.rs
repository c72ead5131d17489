//! What a comparison says to do, as data: the sentences for people are made from it.

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::figure_name::FigureName;
use crate::focus::WeightedFigure;
use hoistway_measure::Operation;

/// What to do in one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The place: index into [`setups`](super::ResultsDocument::setups); 0 if there are none.
    pub setup: u32,
    /// By what it was judged.
    pub focus: Vec<WeightedFigure>,
    /// Jobs that are alike and stand together for the first figure's job, itself included, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// What chose that.
    pub focus_from: FocusFrom,
    /// What is less, as a fraction, is no difference.
    pub smallest_effect: f64,
    /// What others were compared with, by its label.
    pub reference: String,
    /// Whether that is what the kernel gives the device by itself.
    pub reference_is_default: bool,
    /// What to do.
    pub decision: Decision,
    /// What to use, by its label. Of one run: what had the best figure in it.
    pub recommended: String,
    /// Whether requests waited for a scheduler to choose among them; None if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub had_a_choice: Option<bool>,
    /// In which share of resamplings of the repeats the decision is the same, 0 to 1; None of single runs, and in documents of
    /// versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<f64>,
    /// The judged figure under the reference and the recommended variant, where its repeats differ widely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
    /// All others, the best first.
    pub candidates: Vec<Candidate>,
    /// One that no kernel has and that would be better than what is recommended; the best of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Candidate>,
}

/// A figure whose repeats differ so much that a mean describes none of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The figure.
    pub figure: FigureName,
    /// The variant, by its label.
    pub scheduler: String,
    /// The smallest of the repeats, in the figure's unit.
    pub least: f64,
    /// The largest of the repeats, in the figure's unit.
    pub most: f64,
}

/// What chose the figures that a comparison is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FocusFrom {
    /// The caller that asked for the comparison.
    Asked,
    /// The author of the load.
    Load,
    /// Neither: it follows from what the jobs did.
    Figures,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Change to another scheduler or setting.
    Change,
    /// Stay: nothing is worth a change.
    Keep,
    /// Nothing can be said of single runs.
    OneRun,
    /// There is nothing to compare.
    Alone,
}

/// A scheduler with a setting, beside the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its label.
    pub scheduler: String,
    /// How it does by the figure in focus; None if it cannot be compared.
    pub gain: Option<Change>,
    /// How it does for all parties together, by which it is judged: the geometric mean of how much better each is off, weighted by
    /// their votes. None if it cannot be compared, and in documents of versions that judged by the focus alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Change>,
    /// What became of it.
    pub outcome: Outcome,
    /// What it loses elsewhere, worst first.
    pub losses: Vec<Shift>,
    /// What it gains elsewhere, most first: what the runs agree on, and if that is nothing although it is better on balance, the rest.
    pub gains: Vec<Shift>,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is better on balance, and by the focus.
    Better,
    /// It is better on balance, and not by the focus.
    BetterElsewhere,
    /// It is better by the focus or on balance, but losses outweigh that, or those of parties that wait do.
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

/// By what factor something is better than under the reference: 1.25 is a quarter more I/Os, or a fifth less latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The geometric mean over the repeats.
    pub factor: f64,
    /// The lower end of its 95 % interval; None of one run.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A figure that is another one than under the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// The job; of jobs that are alike the first.
    pub job: String,
    /// How many jobs are alike, itself included.
    pub jobs: u32,
    /// The operation; None of fairness.
    pub operation: Option<Operation>,
    /// What of it.
    pub aspect: Aspect,
    /// Under the reference: the mean over the repeats, of maxima the geometric one.
    pub from: f64,
    /// Under the candidate.
    pub to: f64,
    /// By what factor it is worse (or better, of a gain): above 1.
    pub factor: f64,
    /// Whether that is beyond the noise; None of one run.
    pub significant: Option<bool>,
    /// Whether it is more than a single I/O or chance.
    pub weighs: bool,
}

/// A measure of an operation or of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// A figure; of jobs that are alike the median of their figures.
    Figure(Figure),
    /// That of the job that is worst off, of several that are alike.
    Worst(Figure),
    /// Jain's index of I/Os a second among processes, or among jobs that are alike.
    Fairness,
}
