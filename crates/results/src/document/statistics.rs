//! What the repeats of a comparison say together: means, intervals, and what is significant.

use serde::{Deserialize, Serialize};

use super::ResultsDocument;
use crate::comparison::{Comparison, Difference, DirectionComparison, Figure, Row};
use crate::measurement::Direction;
use crate::ordered_map::OrderedMap;
use crate::stats::CONFIDENCE;

/// How [`Statistics`] came about, in words.
const METHOD: &str = "intervals of the mean by Student's t; differences repeat by repeat (same seed, same offered load) \
                      from the baseline; significant if the interval excludes zero, each comparison for itself";

/// Statistics over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Most repeats of a scheduler.
    pub repeats: usize,
    /// Confidence of every interval: 0.95.
    pub confidence: f64,
    /// How they were computed.
    pub method: String,
    /// What others are compared with, by its label.
    pub baseline: String,
    /// One for each scheduler (with its setting), job and direction.
    pub rows: Vec<RowStatistics>,
}

/// One direction of a job under one scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowStatistics {
    /// The scheduler, as tables call it.
    pub scheduler: String,
    /// The job's name.
    pub job: String,
    /// Index of the job's section.
    pub job_index: u32,
    /// Read, write or trim.
    pub direction: Direction,
    /// The figures by name and unit.
    pub figures: OrderedMap<FigureStatistics>,
}

/// One figure over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureStatistics {
    /// Its value in each repeat.
    pub samples: Vec<f64>,
    /// Their mean; of maxima the largest.
    pub mean: f64,
    /// Half the width of the mean's interval; null of a single run and of maxima.
    pub half_width: Option<f64>,
    /// The difference from the baseline; null for itself.
    pub from_baseline: Option<DifferenceStatistics>,
    /// Whether it is among the best: no scheduler is better beyond the noise, but some are worse.
    pub best: bool,
    /// Whether it is among the worst.
    pub worst: bool,
}

/// A difference from the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferenceStatistics {
    /// Mean of the paired differences, in the figure's unit.
    pub mean: f64,
    /// Half the width of its interval; null of fewer than two pairs and of maxima.
    pub half_width: Option<f64>,
    /// The mean as a fraction of the baseline's; null if that is zero.
    pub relative: Option<f64>,
    /// Whether the interval excludes zero; null without an interval.
    pub significant: Option<bool>,
}

impl Statistics {
    /// The statistics of a document's runs.
    pub fn of(document: &ResultsDocument) -> Self {
        let comparison = Comparison::of(document);
        let label = |variant: usize| comparison.variants.get(variant).map_or("", |variant| &variant.label).to_owned();
        let mut rows = Vec::new();
        for (job, direction) in comparison.jobs.iter().flat_map(|job| job.directions.iter().map(move |d| (job, d))) {
            rows.extend(direction.rows.iter().enumerate().map(|(index, row)| {
                RowStatistics {
                    scheduler: label(row.variant),
                    job: job.name.clone(),
                    job_index: job.job,
                    direction: direction.direction,
                    figures: Figure::ALL
                        .into_iter()
                        .map(|figure| (figure.key(), figure_of(figure, index, row, direction, comparison.baseline)))
                        .collect(),
                }
            }));
        }
        Self {
            repeats: comparison.repeats(),
            confidence: CONFIDENCE,
            method: METHOD.to_owned(),
            baseline: label(comparison.baseline),
            rows,
        }
    }
}

fn figure_of(
    figure: Figure,
    index: usize,
    row: &Row,
    direction: &DirectionComparison,
    baseline: usize,
) -> FigureStatistics {
    let estimate = row.estimate(figure);
    let ranking = direction.ranking(figure);
    let baseline = direction.row(baseline).filter(|baseline| baseline.variant != row.variant);
    FigureStatistics {
        samples: row.samples().map(|sample| figure.of(sample)).collect(),
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
