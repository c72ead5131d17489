//! Compares a predicted document with one measured on a real kernel: the error of each figure, and the order of the schedulers.
//!
//! Used by: crates `render`, `hoistway`.
//! Tests: `crates/experiment/tests/verify.rs`, `crates/hoistway/tests/machine/verify.rs`.

use serde::{Deserialize, Serialize};

use crate::analysis::{Analysis, JobAnalysis, OperationAnalysis, Row};
use crate::document::{Change, ResultsDocument};
use crate::figure::Figure;
use crate::figure_name::FigureName;
use hoistway_measure::{Operation, stats};

/// The name and version of the document format: fields may be added within a version; none is removed or changes its meaning.
pub const FORMAT: &str = "hoistway-verify/1";
/// Schedulers whose figures differ by less than this fraction are not ordered.
pub const ORDER_MIN: f64 = 0.10;
/// The figures that are checked.
pub const FIGURES: [Figure; 3] = [Figure::Iops, Figure::Mean, Figure::P99];

/// A figure under a scheduler, predicted and measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FigureCheck {
    /// The figure.
    #[serde(flatten, with = "NameInParts")]
    pub name: FigureName,
    /// The scheduler, with its settings if they vary.
    pub scheduler: String,
    /// The mean of the simulated repeats: I/Os per second, or ns.
    pub predicted: f64,
    /// The mean of the rounds on the kernel.
    pub measured: f64,
    /// The relative error of the prediction.
    pub error: f64,
    /// The spread of the measurements: the largest round minus the smallest, relative to the mean.
    pub spread: f64,
}

/// The result for a pair of schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// On the kernel they differ by less than 10 %, or within the noise of the rounds.
    Close,
    /// The order on the kernel is the predicted one.
    Right,
    /// The order on the kernel is the opposite.
    Wrong,
}

/// Two schedulers compared in one figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// The figure.
    #[serde(flatten, with = "NameInParts")]
    pub name: FigureName,
    /// The schedulers: the second one is compared with the first.
    pub schedulers: [String; 2],
    /// The relative difference of the second scheduler, as predicted.
    pub predicted: f64,
    /// Whether the prediction is certain: more than 10 %, the repeats agree (95 %), and the model is calibrated for the load.
    pub is_certain: bool,
    /// The relative difference measured on the kernel.
    pub measured: f64,
    /// Half the width of its 95 % interval; `None` with a single round.
    pub half_width: Option<f64>,
    /// The result.
    pub order: Order,
}

/// The name of a figure as three keys.
#[derive(Serialize, Deserialize)]
#[serde(remote = "FigureName")]
struct NameInParts {
    job: String,
    operation: Operation,
    figure: Figure,
}

/// The document of a checked prediction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// Always [`FORMAT`].
    pub format: String,
    /// The job file or the recording.
    pub load: String,
    /// The device model.
    pub model: String,
    /// The device or file.
    pub target: String,
    /// The kernel's release.
    pub kernel: String,
    /// Rounds on the kernel.
    pub rounds: usize,
    /// Reasons why the prediction is doubtful, as clauses.
    pub doubts: Vec<String>,
    /// Each figure under each scheduler.
    pub figures: Vec<FigureCheck>,
    /// Each pair of schedulers, for each figure.
    pub pairs: Vec<Pair>,
}

/// The names of the load, model, target and kernel of a verification.
#[derive(Clone, Debug)]
pub struct About {
    /// The job file or the recording.
    pub load: String,
    /// The device model.
    pub model: String,
    /// The device or file.
    pub target: String,
    /// The kernel's release.
    pub kernel: String,
}

impl Verification {
    /// Compares predictions with measurements. Figures that only one side has are left out.
    #[must_use]
    pub fn of(predicted: &ResultsDocument, measured: &ResultsDocument, about: About) -> Verification {
        let sides = Sides { predicted: Analysis::of(predicted), measured: Analysis::of(measured) };
        let (mut figures, mut pairs) = (Vec::new(), Vec::new());
        for job in &sides.predicted.jobs {
            for operation in job.operations.iter().filter(|operation| operation.operation != Operation::Sync) {
                let Some(on_kernel) = sides.on_kernel(job, operation.operation) else { continue };
                for figure in FIGURES.into_iter().filter(|figure| sides.has(job, *figure)) {
                    let name = FigureName { job: job.name.to_owned(), operation: operation.operation, figure };
                    let rows = sides.rows(operation, on_kernel, figure);
                    figures.extend(rows.iter().map(|row| row.check(&name)));
                    for (index, first) in rows.iter().enumerate() {
                        pairs.extend(rows[index + 1..].iter().filter_map(|second| first.pair(second, &name)));
                    }
                }
            }
        }
        let doubts = predicted.doubts.clone();
        pairs.iter_mut().for_each(|pair| pair.is_certain &= doubts.is_empty());
        let rounds = sides.measured.variants.iter().map(|variant| variant.runs.len()).min().unwrap_or(0);
        let About { load, model, target, kernel } = about;
        Verification { format: FORMAT.to_owned(), load, model, target, kernel, rounds, doubts, figures, pairs }
    }

    /// Certain predictions that are wrong.
    pub fn refuted(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.is_certain && pair.order == Order::Wrong)
    }

    /// The median of a figure's absolute prediction errors; `None` if there are no predictions.
    #[must_use]
    pub fn median_error(&self, figure: Figure) -> Option<f64> {
        let of_figure = self.figures.iter().filter(|checked| checked.name.figure == figure);
        stats::median(of_figure.map(|checked| checked.error.abs()).collect())
    }
}

/// Both documents.
struct Sides<'a> {
    predicted: Analysis<'a>,
    measured: Analysis<'a>,
}

/// A figure under one scheduler in both documents.
struct RowInBoth<'a> {
    label: &'a str,
    predicted: &'a Row<'a>,
    measured: &'a Row<'a>,
    figure: Figure,
}

impl<'a> Sides<'a> {
    /// The measurements of an operation of a predicted job.
    fn on_kernel(&'a self, job: &JobAnalysis<'_>, operation: Operation) -> Option<&'a OperationAnalysis<'a>> {
        let measured = self.measured.jobs.iter().find(|other| (other.job, other.name) == (job.job, job.name))?;
        measured.operations.iter().find(|other| other.operation == operation)
    }

    /// Whether a figure of a job is compared: fio's own percentiles are of single processes.
    fn has(&self, job: &JobAnalysis<'_>, figure: Figure) -> bool {
        let is_of_fio = !self.measured.document.job_text.is_empty();
        !(is_of_fio && figure.is_percentile() && job.processes > 1)
    }

    /// The schedulers that have a figure in both documents.
    fn rows(
        &'a self,
        predicted: &'a OperationAnalysis<'a>,
        measured: &'a OperationAnalysis<'a>,
        figure: Figure,
    ) -> Vec<RowInBoth<'a>> {
        let in_both = |row: &'a Row<'a>| {
            let label = &*self.predicted.variants[row.variant].label;
            let variant = self.measured.variants.iter().position(|variant| variant.label == label)?;
            let measured = measured.row(variant).filter(|row| row.estimate(figure).mean > 0.0)?;
            Some(RowInBoth { label, predicted: row, measured, figure })
        };
        predicted.rows.iter().filter_map(in_both).collect()
    }
}

impl RowInBoth<'_> {
    fn check(&self, name: &FigureName) -> FigureCheck {
        let mean_of = |row: &Row<'_>| row.estimate(self.figure).mean;
        let (predicted, measured) = (mean_of(self.predicted), mean_of(self.measured));
        let values = self.measured.samples().map(|sample| sample.figure(self.figure));
        let (least, most) =
            values.fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)));
        FigureCheck {
            name: name.clone(),
            scheduler: self.label.to_owned(),
            predicted,
            measured,
            error: predicted / measured - 1.0,
            spread: (most - least) / measured,
        }
    }

    /// The second scheduler compared with this one; `None` if they share no repeat.
    fn pair(&self, second: &RowInBoth<'_>, name: &FigureName) -> Option<Pair> {
        let difference = second.predicted.difference(self.predicted, self.figure)?;
        let Change { factor, high, .. } = second.measured.ratio(self.measured, self.figure)?;
        let (measured, half_width) = (factor - 1.0, high.map(|high| high / factor - 1.0));
        let predicted = difference.relative.unwrap_or(0.0);
        let is_clear = measured.abs() > ORDER_MIN && half_width.is_some_and(|half| measured.abs() > half);
        let order = if !is_clear {
            Order::Close
        } else if measured.signum() == predicted.signum() && predicted != 0.0 {
            Order::Right
        } else {
            Order::Wrong
        };
        Some(Pair {
            name: name.clone(),
            schedulers: [self.label, second.label].map(str::to_owned),
            predicted,
            is_certain: difference.is_significant() == Some(true) && predicted.abs() > ORDER_MIN,
            measured,
            half_width,
            order,
        })
    }
}
