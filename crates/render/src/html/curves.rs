//! Curves for charts: latencies by percentile, and I/Os over time.

use hoistway_answer::analysis::Variant;
use hoistway_answer::document::{JobSummary, LatencyDistribution, LatencySummary, Run, SeriesSummary};
use hoistway_measure::Operation;
use serde::Serialize;

/// A latency distribution: the means over the repeats, as in tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Curve {
    pub(crate) percent: Vec<f64>,
    /// The latency at each percentile, ns.
    pub(crate) lat_ns: Vec<f64>,
}

impl Curve {
    /// The curve of an operation of a job; `None` without such I/O.
    pub(crate) fn of(variant: &Variant<'_>, job: u32, operation: Operation) -> Option<Curve> {
        let repeats: Vec<LatencyDistribution> =
            variant.runs.iter().filter_map(|run| distribution(run, job, operation)).collect();
        // A repeat with fewer I/Os has fewer percentiles.
        let shortest = repeats.iter().min_by_key(|distribution| distribution.percent.len())?;
        let mean = |point: usize| {
            repeats.iter().map(|distribution| distribution.lat_ns[point] as f64).sum::<f64>() / repeats.len() as f64
        };
        Some(Curve { percent: shortest.percent.clone(), lat_ns: (0..shortest.percent.len()).map(mean).collect() })
    }
}

fn job_of(run: &Run, job: u32) -> Option<&JobSummary> {
    run.jobs.iter().find(|summary| summary.job == job)
}

fn distribution(run: &Run, job: u32, operation: Operation) -> Option<LatencyDistribution> {
    let summary = job_of(run, job)?.operation(operation)?;
    let known = &summary.distribution;
    let is_valid = !known.is_empty() && known.percent.len() == known.lat_ns.len();
    Some(if is_valid { known.clone() } else { from_summary(&summary.lat_ns) })
}

/// The curve for a document that only has a summary.
fn from_summary(summary: &LatencySummary) -> LatencyDistribution {
    LatencyDistribution {
        percent: vec![0.0, 50.0, 99.0, 99.9],
        lat_ns: vec![summary.min, summary.p50, summary.p99, summary.p99_9],
    }
}

/// An operation of a job over time in a variant's first run; `None` if unknown, as for syncs.
pub(crate) fn over_time<'a>(variant: &Variant<'a>, job: u32, operation: Operation) -> Option<&'a SeriesSummary> {
    let summary = job_of(variant.first(), job)?.operation(operation)?;
    (!summary.series.ios.is_empty() && summary.series.interval_seconds > 0.0).then_some(&summary.series)
}
