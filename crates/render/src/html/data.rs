//! The data that the page's scripts draw.

use hoistway_answer::analysis::{Analysis, JobAnalysis};
use hoistway_answer::document::SeriesSummary;
use hoistway_measure::Operation;
use serde::Serialize;

use crate::html::curves::{Curve, over_time};
use crate::html::timeline::Timeline;

/// All data of a page.
#[derive(Debug, Serialize)]
pub(crate) struct Data<'a> {
    /// Labels of the variants.
    variants: Vec<&'a str>,
    /// The time from the start of the load on that was left out, s.
    pub(crate) left_out_seconds: f64,
    pub(crate) operations: Vec<OperationData>,
    /// Excerpts of variants, if they were recorded.
    pub(crate) timelines: Vec<Timeline<'a>>,
}

/// An operation of a job.
#[derive(Debug, Serialize)]
pub(crate) struct OperationData {
    job: String,
    operation: &'static str,
    /// Latencies by percentile, for each variant with such I/O.
    curves: Vec<Option<Curve>>,
    /// The first run of each variant over time.
    series: Vec<Option<OverTime>>,
    /// The recorded I/O over time, if the load is a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recorded: Option<OverTime>,
    /// Whether any series is there.
    pub(crate) has_series: bool,
}

/// I/Os and latencies over time.
#[derive(Debug, Serialize)]
pub(crate) struct OverTime {
    interval_seconds: f64,
    /// I/Os per second in each interval.
    iops: Vec<f64>,
    /// Mean latency of the I/Os that completed in each interval, ns; `None` without any.
    mean_lat_ns: Vec<Option<u64>>,
}

impl<'a> Data<'a> {
    pub(crate) fn of(analysis: &'a Analysis<'a>) -> Self {
        let operations = analysis.jobs.iter().flat_map(|job| {
            job.operations.iter().map(|operation| OperationData::of(analysis, job, operation.operation))
        });
        let timelines = analysis.variants.iter().enumerate().filter_map(|(number, variant)| {
            let excerpt = variant.runs.iter().find_map(|run| run.excerpt.as_ref())?;
            Some(Timeline::of(number, excerpt))
        });
        Data {
            variants: analysis.variants.iter().map(|variant| &*variant.label).collect(),
            left_out_seconds: analysis.document.window.as_ref().map_or(0.0, |window| window.from_seconds),
            operations: operations.collect(),
            timelines: timelines.collect(),
        }
    }
}

impl OperationData {
    fn of(analysis: &Analysis<'_>, job: &JobAnalysis<'_>, operation: Operation) -> Self {
        let variants = &analysis.variants;
        let series: Vec<Option<OverTime>> =
            variants.iter().map(|variant| over_time(variant, job.job, operation).map(OverTime::from)).collect();
        OperationData {
            job: job.name.to_owned(),
            operation: operation.name(),
            curves: variants.iter().map(|variant| Curve::of(variant, job.job, operation)).collect(),
            has_series: series.iter().any(Option::is_some),
            series,
            recorded: recorded(analysis, job.name, operation),
        }
    }

    /// The title of the operation's charts.
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.job, self.operation)
    }
}

/// The recorded I/O of an operation of a job over time.
fn recorded(analysis: &Analysis<'_>, job: &str, operation: Operation) -> Option<OverTime> {
    let recording = analysis.document.recording.as_deref()?;
    let stream = recording.streams.iter().find(|stream| stream.name == job)?;
    let recorded_series = stream.over_time.iter().find(|series| series.operation == operation)?;
    Some(OverTime::from(&recorded_series.series))
}

impl From<&SeriesSummary> for OverTime {
    fn from(series: &SeriesSummary) -> Self {
        let mean = |(ios, lat_ns): (&u64, &u64)| (*ios > 0).then_some(*lat_ns);
        OverTime {
            interval_seconds: series.interval_seconds,
            iops: series.ios.iter().map(|ios| *ios as f64 / series.interval_seconds).collect(),
            mean_lat_ns: series.ios.iter().zip(&series.mean_lat_ns).map(mean).collect(),
        }
    }
}
