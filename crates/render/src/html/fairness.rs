//! The fairness section of a page: each job's share of the bandwidth, and Jain's index.

use hoistway_answer::analysis::{Analysis, Variant};
use serde::Serialize;

/// A job's share under each variant.
#[derive(Debug, Serialize)]
pub(crate) struct JobShares {
    name: String,
    shares: Vec<Share>,
}

/// A job's share under one variant: means over the repeats.
#[derive(Debug, Serialize)]
struct Share {
    /// The job's share of the load's bandwidth, percent, as text; a dash without I/O.
    percent: String,
    /// The share as the width of a bar, percent.
    width: f64,
    /// Jain's index of the job's processes.
    jain: Option<String>,
}

/// The shares of all jobs.
pub(crate) fn shares(analysis: &Analysis<'_>) -> Vec<JobShares> {
    let shares_of_job = |job: u32| analysis.variants.iter().map(move |variant| Share::of(variant, job)).collect();
    analysis.jobs.iter().map(|job| JobShares { name: job.name.to_owned(), shares: shares_of_job(job.job) }).collect()
}

impl Share {
    fn of(variant: &Variant<'_>, job: u32) -> Share {
        let summaries = || variant.runs.iter().flat_map(|run| &run.jobs);
        let bytes = |is_included: &dyn Fn(u32) -> bool| -> f64 {
            summaries()
                .filter(|summary| is_included(summary.job))
                .flat_map(|summary| &summary.operations)
                .map(|operation| operation.bytes_per_second)
                .sum()
        };
        let total = bytes(&|_| true);
        let share_percent = (total > 0.0).then(|| bytes(&|number| number == job) * 100.0 / total);
        let indexes: Vec<f64> =
            summaries().filter(|summary| summary.job == job).filter_map(|summary| summary.fairness).collect();
        let jain = (!indexes.is_empty()).then(|| indexes.iter().sum::<f64>() / indexes.len() as f64);
        Share {
            percent: share_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1} %")),
            width: share_percent.unwrap_or(0.0),
            jain: jain.map(|jain| format!("{jain:.2}")),
        }
    }
}
