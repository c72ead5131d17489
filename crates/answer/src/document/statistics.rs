//! What the repeats of a comparison say together: means, intervals, and what is significant.

use serde::{Deserialize, Serialize};

use hoistway_measure::Operation;
use indexmap::IndexMap;

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
    /// One for each scheduler (with its setting), job and operation.
    pub rows: Vec<RowStatistics>,
}

/// One operation of a job under one scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowStatistics {
    /// The scheduler, as tables call it.
    pub scheduler: String,
    /// The job's name.
    pub job: String,
    /// Index of the job's section.
    pub job_index: u32,
    /// Read, write, trim or sync.
    pub operation: Operation,
    /// The variant that it is compared with, if not all are compared with one: that of its own place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// The figures by name and unit.
    pub figures: IndexMap<String, FigureStatistics>,
}

/// One figure over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureStatistics {
    /// The mean over the repeats; of maxima the largest.
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
