//! Diff of two result documents: which inputs differ, and which figures have changed beyond the noise.
//!
//! Used by: `check`; crates `render`, `hoistway`.
//! Tests: `crates/answer/src/diff/leaves.rs`, `crates/answer/tests/diff.rs`.
//!
//! Runs with the same seed had the same offered load, so their changes are *paired*, seed by seed. Without common seeds the documents
//! are independent samples, and the interval is Welch's. Changes are logarithms of ratios.

mod inputs;
mod leaves;

use serde::{Deserialize, Serialize};

use crate::analysis::{Analysis, Estimate, Row};
use crate::document::Change;
use crate::figure::Figure;
use crate::figure_name::FigureName;
use hoistway_measure::Operation;
use hoistway_measure::stats;

pub use inputs::InputChange;
pub(crate) use leaves::first as first_difference;

/// The value of [`Diff::format`].
pub const FORMAT: &str = "hoistway-diff/1";

/// The differences between two documents.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Diff {
    /// Always [`FORMAT`].
    pub format: String,
    /// The inputs that differ.
    pub inputs: Vec<InputChange>,
    /// Differences below this fraction are ignored: the larger limit of the two documents.
    pub smallest_effect: f64,
    /// Labels of the variants that only the first document has.
    pub only_before: Vec<String>,
    /// Labels of the variants that only the second document has.
    pub only_after: Vec<String>,
    /// Every figure that both documents have, in the order of tables.
    pub figures: Vec<FigureChange>,
}

/// A figure in both documents.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FigureChange {
    /// The variant's label: the scheduler with its settings.
    pub label: String,
    /// The figure.
    pub figure: FigureName,
    /// Its value in the first document.
    pub before: Estimate,
    /// Its value in the second document.
    pub after: Estimate,
    /// The factor by which the figure is better in the second document; below 1 it is worse. `None` if either is zero, or if single
    /// repeats do not pair.
    pub change: Option<Change>,
    /// Whether the change is computed seed by seed.
    pub paired: bool,
    /// The meaning of the change.
    pub outcome: Outcome,
}

/// The meaning of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Bit-identical.
    Same,
    /// Better, beyond the noise and by the smallest effect or more.
    Better,
    /// Worse, beyond the noise and by the smallest effect or more.
    Worse,
    /// Less than the smallest effect.
    Small,
    /// By the smallest effect or more, but within the noise.
    WithinNoise,
    /// By the smallest effect or more, but without an interval, as for single runs and maxima.
    NoInterval,
}

impl Diff {
    /// The differences from the old document to the new one.
    pub fn of(old: &Analysis<'_>, new: &Analysis<'_>) -> Self {
        let (before, after) = (old.document, new.document);
        let smallest_effect = before.smallest_effect().max(after.smallest_effect());
        let labels = |analysis: &Analysis<'_>| -> Vec<String> {
            analysis.variants.iter().map(|variant| variant.label.clone()).collect()
        };
        let (labels_before, labels_after) = (labels(old), labels(new));
        let only = |these: &[String], others: &[String]| {
            these.iter().filter(|label| !others.contains(label)).cloned().collect()
        };
        let mut figures = Vec::new();
        for job in &old.jobs {
            for operation in &job.operations {
                for row in &operation.rows {
                    let label = &labels_before[row.variant];
                    let find_row_after = || {
                        let variant = labels_after.iter().position(|other| other == label)?;
                        let name =
                            |figure| FigureName { job: job.name.to_owned(), operation: operation.operation, figure };
                        let (_, operation) = new.find(&name(Figure::Iops)).ok()?;
                        operation.row(variant)
                    };
                    let Some(row_after) = find_row_after() else { continue };
                    let seeds = Seeds { before: old, after: new };
                    let figure_name = |figure| figure_name(job.name, operation.operation, figure);
                    figures.extend(
                        Figure::ALL
                            .into_iter()
                            .filter(|figure| figure.is_of(operation.operation))
                            .map(|figure| seeds.change(label, figure_name(figure), [row, row_after], smallest_effect)),
                    );
                }
            }
        }
        Diff {
            format: FORMAT.to_owned(),
            inputs: inputs::changes(old, new),
            smallest_effect,
            only_before: only(&labels_before, &labels_after),
            only_after: only(&labels_after, &labels_before),
            figures,
        }
    }
}

fn figure_name(job: &str, operation: Operation, figure: Figure) -> FigureName {
    FigureName { job: job.to_owned(), operation, figure }
}

/// Compares the runs of both documents by their seeds.
struct Seeds<'a> {
    before: &'a Analysis<'a>,
    after: &'a Analysis<'a>,
}

impl Seeds<'_> {
    fn change(&self, label: &str, name: FigureName, rows: [&Row<'_>; 2], smallest_effect: f64) -> FigureChange {
        let figure = name.figure;
        let values = |analysis: &Analysis<'_>, row: &Row<'_>| -> Vec<(u64, f64)> {
            let runs = analysis.variants[row.variant].runs.iter();
            runs.filter_map(|run| Some((run.seed, row.sample(run.repeat)?.figure(figure)))).collect()
        };
        let (before, after) = (values(self.before, rows[0]), values(self.after, rows[1]));
        let pairs: Vec<(f64, f64)> = before
            .iter()
            .filter_map(|(seed, value)| {
                let (_, other) = after.iter().find(|(other, _)| other == seed)?;
                Some((*value, *other))
            })
            .collect();
        // A few seeds in common by accident do not make the documents comparable seed by seed.
        let paired = pairs.len() == before.len().min(after.len());
        let positive_if_better = |logarithm: f64| if figure.higher_is_better() { logarithm } else { -logarithm };
        // Maxima get no interval, as their distribution has too long a tail.
        let without_interval =
            |change: Change| if figure == Figure::Max { Change { low: None, high: None, ..change } } else { change };
        let change = if !paired {
            let logarithms = |values: &[(u64, f64)]| {
                values.iter().map(|(_, value)| positive_if_better(value.ln())).collect::<Vec<_>>()
            };
            let (before, after) = (logarithms(&before), logarithms(&after));
            stats::welch(&before, &after).map(|(mean, half)| Change::within(mean, half))
        } else {
            Change::of(
                &pairs.iter().map(|(before, after)| positive_if_better((after / before).ln())).collect::<Vec<_>>(),
            )
        };
        let change = change.filter(|change| change.factor.is_finite() && change.factor > 0.0).map(without_interval);
        let is_same = paired && pairs.iter().all(|(before, after)| before == after);
        let outcome = match change {
            _ if is_same => Outcome::Same,
            None => Outcome::NoInterval,
            Some(change) if change.factor.max(1.0 / change.factor) < 1.0 + smallest_effect => Outcome::Small,
            Some(change) if change.is_better() => Outcome::Better,
            Some(change) if change.is_worse() => Outcome::Worse,
            Some(change) if change.low.is_some() => Outcome::WithinNoise,
            Some(_) => Outcome::NoInterval,
        };
        FigureChange {
            label: label.to_owned(),
            figure: name,
            before: rows[0].estimate(figure),
            after: rows[1].estimate(figure),
            change,
            paired,
            outcome,
        }
    }
}
