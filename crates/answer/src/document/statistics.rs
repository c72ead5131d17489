//! Statistics over the repeats of a comparison: means, confidence intervals and significance.

use serde::{Deserialize, Serialize};

use hoistway_measure::Operation;
use indexmap::IndexMap;

/// Statistics over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Largest number of repeats of a scheduler.
    pub repeats: usize,
    /// Confidence of every interval: 0.95.
    pub confidence: f64,
    /// The method, in words.
    pub method: String,
    /// The label of the baseline.
    pub baseline: String,
    /// One row for each scheduler (with its setting), job and operation.
    pub rows: Vec<RowStatistics>,
}

/// One operation of a job under one scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowStatistics {
    /// The label of the variant.
    pub scheduler: String,
    /// The job's name.
    pub job: String,
    /// Index of the job's section.
    pub job_index: u32,
    /// Read, write, trim or sync.
    pub operation: Operation,
    /// The label of the baseline in its own setup; `None` if all rows have the same baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// The figures by name and unit.
    pub figures: IndexMap<String, FigureStatistics>,
}

/// One figure over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureStatistics {
    /// The mean over the repeats; for maxima the largest.
    pub mean: f64,
    /// Half the width of the mean's interval; null for a single run and for maxima.
    pub half_width: Option<f64>,
    /// The difference from the baseline; null for the baseline itself.
    pub from_baseline: Option<DifferenceStatistics>,
    /// Whether it is among the best: no scheduler is better beyond the noise, but some are worse.
    pub best: bool,
    /// Whether it is among the worst: no scheduler is worse beyond the noise, but some are better.
    pub worst: bool,
}

/// A difference from the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferenceStatistics {
    /// Mean of the paired differences, in the figure's unit.
    pub mean: f64,
    /// Half the width of its interval; null for fewer than two pairs and for maxima.
    pub half_width: Option<f64>,
    /// The mean as a fraction of the baseline's mean; null if that is zero.
    pub relative: Option<f64>,
    /// Whether the interval excludes zero; null without an interval.
    pub significant: Option<bool>,
}
