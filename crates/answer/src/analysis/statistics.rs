//! Computes the statistics of a document from its runs.

use super::{Analysis, Difference, JobAnalysis, OperationAnalysis, Ranking, Row};
use crate::document::{DifferenceStatistics, FigureStatistics, RowStatistics, Statistics};
use crate::figure::Figure;
use hoistway_measure::stats::CONFIDENCE;

/// The method behind [`Statistics`], in words.
const METHOD: &str = "intervals of the mean by Student's t; differences repeat by repeat (same seed, same offered load) \
                      from the baseline; significant if the interval excludes zero, each comparison for itself";

impl Statistics {
    /// The statistics of a document's runs.
    pub fn of(analysis: &Analysis<'_>) -> Self {
        let label = |variant: usize| analysis.variants.get(variant).map_or("", |variant| &variant.label).to_owned();
        let has_several_baselines =
            analysis.jobs.iter().flat_map(JobAnalysis::baselines).any(|baseline| baseline != analysis.baseline);
        let mut rows = Vec::new();
        for (job, operation) in
            analysis.jobs.iter().flat_map(|job| job.operations.iter().map(move |operation| (job, operation)))
        {
            // A ranking is of all rows, and so made once for each figure.
            let figures = Figure::ALL.into_iter().filter(|figure| figure.is_of(operation.operation));
            let rankings: Vec<(Figure, Ranking)> = figures.map(|figure| (figure, operation.ranking(figure))).collect();
            rows.extend(operation.rows.iter().enumerate().map(|(index, row)| {
                RowStatistics {
                    scheduler: label(row.variant),
                    job: job.name.to_owned(),
                    job_index: job.job,
                    operation: operation.operation,
                    compared_with: has_several_baselines.then(|| label(row.baseline)),
                    figures: rankings
                        .iter()
                        .map(|(figure, ranking)| {
                            let figures = figure_of(*figure, (index, row), (operation, ranking));
                            (figure.key().to_owned(), figures)
                        })
                        .collect(),
                }
            }));
        }
        Self {
            repeats: analysis.repeats(),
            confidence: CONFIDENCE,
            method: METHOD.to_owned(),
            baseline: label(analysis.baseline),
            rows,
        }
    }
}

fn figure_of(
    figure: Figure,
    (index, row): (usize, &Row<'_>),
    (operation, ranking): (&OperationAnalysis<'_>, &Ranking),
) -> FigureStatistics {
    let estimate = row.estimate(figure);
    let baseline = operation.baseline_of(row);
    FigureStatistics {
        mean: estimate.mean,
        half_width: estimate.half_width,
        from_baseline: baseline.and_then(|baseline| row.difference(baseline, figure)).map(DifferenceStatistics::from),
        best: ranking.is_best(index),
        worst: ranking.is_worst(index),
    }
}

impl From<Difference> for DifferenceStatistics {
    fn from(difference: Difference) -> Self {
        Self {
            mean: difference.mean,
            half_width: difference.half_width,
            relative: difference.relative,
            significant: difference.is_significant(),
        }
    }
}
