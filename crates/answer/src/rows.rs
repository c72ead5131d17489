//! Results as rows for other programs' tables: one row per figure of a run, or per interval of a series.
//!
//! Used by: crate `experiment`.
//! Tests: `crates/answer/tests/rows.rs`.
//!
//! Each row is self-contained: it identifies its run. Rows borrow their names from the document, or own them when read from elsewhere.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::{Front, JobSummary, OperationSummary, ResultsDocument, Run, SetupSummary, device_name};
use crate::figure::Figure;
use hoistway_measure::Operation;

/// The identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRow<'a> {
    /// The scheduler, as in sysfs; with guests `GUEST-over-HOST`.
    pub scheduler: Cow<'a, str>,
    /// The variant's label: with seed and setup it is unique in a document.
    pub label: Cow<'a, str>,
    /// The block layer that it ran on.
    pub block_layer: Front,
    /// The requested kernel.
    pub kernel: Cow<'a, str>,
    /// The name of the device, or the combined name of several.
    pub device: Cow<'a, str>,
    /// The host's profile.
    pub host: Cow<'a, str>,
    /// Tunables that were set: `slice_idle=0, low_latency=0`.
    pub settings: Cow<'a, str>,
    /// The run's seed.
    pub seed: u64,
    /// Number of the repeat, from 0.
    pub repeat: u32,
}

/// One operation of a job in one run: all its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationRow<'a> {
    /// The job's name.
    pub job: Cow<'a, str>,
    /// Read, write, trim or sync.
    pub operation: Operation,
    /// Number of completed operations.
    pub ios: u64,
    /// Number of the job's processes that ended with an error.
    pub failed_processes: u32,
    /// The figures that apply to the operation, in the order of [`Figure::ALL`].
    pub figures: Vec<(Figure, f64)>,
}

/// One figure of one operation of a job in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureRow<'a> {
    /// The run.
    #[serde(flatten)]
    pub run: RunRow<'a>,
    /// The job's name.
    pub job: Cow<'a, str>,
    /// Read, write, trim or sync.
    pub operation: Operation,
    /// The figure.
    pub figure: Figure,
    /// Its [unit](Figure::unit).
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
    /// Number of I/Os that the figure covers.
    pub ios: u64,
    /// Number of the job's processes that ended with an error.
    pub failed_processes: u32,
}

/// One interval of one operation of a job in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalRow<'a> {
    /// The run.
    #[serde(flatten)]
    pub run: RunRow<'a>,
    /// The job's name.
    pub job: Cow<'a, str>,
    /// Read, write or trim.
    pub operation: Operation,
    /// Start of the interval, s since the start of the measurement.
    pub start_seconds: f64,
    /// Length of the interval, s.
    pub length_seconds: f64,
    /// I/Os that completed in it.
    pub ios: u64,
    /// Their mean total latency, ns; `None` without any.
    pub mean_lat_ns: Option<u64>,
}

impl RunRow<'_> {
    /// The row of a run of a document.
    pub fn of<'a>(document: &'a ResultsDocument, run: &'a Run) -> RunRow<'a> {
        let (device, kernel) = document.setup_of(run);
        let host = document.setups.get(run.setup as usize).map_or(&document.host, |setup| &setup.host);
        Self::build(run, device, kernel, host)
    }

    /// The row of a run in this setup.
    pub fn at<'a>(setup: &'a SetupSummary, run: &'a Run) -> RunRow<'a> {
        Self::build(run, &setup.device, &setup.kernel, &setup.host)
    }

    /// The names of a setup's device and host.
    pub fn names(setup: &SetupSummary) -> (String, &str) {
        (device_name(&setup.device), host_name(&setup.host))
    }

    fn build<'a>(run: &'a Run, device: &Value, kernel: &'a str, host: &'a Value) -> RunRow<'a> {
        let label = if run.variant.label.is_empty() { &run.scheduler } else { &run.variant.label };
        RunRow {
            scheduler: Cow::Borrowed(&run.scheduler),
            label: Cow::Borrowed(label),
            block_layer: run.front,
            kernel: Cow::Borrowed(kernel),
            device: Cow::Owned(device_name(device)),
            host: Cow::Borrowed(host_name(host)),
            settings: Cow::Owned(run.tunables_text()),
            seed: run.seed,
            repeat: run.repeat,
        }
    }
}

/// The name of a host. Documents of runs in real time, and old documents, hold the name alone.
fn host_name(host: &Value) -> &str {
    host.as_str().or_else(|| host["name"].as_str()).unwrap_or_default()
}

impl<'a> OperationRow<'a> {
    /// All operations of a run that occurred, by job, in the order of tables.
    pub fn all_of(run: &'a Run) -> impl Iterator<Item = OperationRow<'a>> {
        run.jobs.iter().flat_map(|job| {
            job.operations.iter().filter(|summary| summary.ios > 0).map(move |summary| Self::of(job, summary))
        })
    }

    fn of(job: &'a JobSummary, summary: &OperationSummary) -> Self {
        let figures = Figure::ALL.into_iter().filter(|figure| figure.is_of(summary.operation));
        OperationRow {
            job: Cow::Borrowed(&job.name),
            operation: summary.operation,
            ios: summary.ios,
            failed_processes: job.failed_processes(),
            figures: figures.map(|figure| (figure, summary.figure(figure))).collect(),
        }
    }

    /// A row for each of the operation's figures.
    pub fn into_figures(self, run: &RunRow<'a>) -> impl Iterator<Item = FigureRow<'a>> {
        let OperationRow { job, operation, ios, failed_processes, figures } = self;
        figures.into_iter().map(move |(figure, value)| FigureRow {
            run: run.clone(),
            job: job.clone(),
            operation,
            figure,
            unit: figure.unit(),
            value,
            ios,
            failed_processes,
        })
    }
}

impl ResultsDocument {
    /// A row for each figure of each run.
    pub fn figure_rows(&self) -> impl Iterator<Item = FigureRow<'_>> {
        self.runs.iter().flat_map(|run| {
            let row = RunRow::of(self, run);
            OperationRow::all_of(run).flat_map(move |operation| operation.into_figures(&row).collect::<Vec<_>>())
        })
    }

    /// A row for each interval of each run. Syncs have none.
    pub fn interval_rows(&self) -> impl Iterator<Item = IntervalRow<'_>> {
        self.runs.iter().flat_map(|run| {
            let row = RunRow::of(self, run);
            let operations =
                run.jobs.iter().flat_map(|job| job.operations.iter().map(move |operation| (job, operation)));
            operations.flat_map(move |(job, operation)| intervals(&row, job, operation).collect::<Vec<_>>())
        })
    }
}

fn intervals<'a>(
    run: &RunRow<'a>,
    job: &'a JobSummary,
    summary: &'a OperationSummary,
) -> impl Iterator<Item = IntervalRow<'a>> {
    let series = &summary.series;
    series.ios.iter().zip(&series.mean_lat_ns).enumerate().map(move |(number, (&ios, &mean_lat_ns))| IntervalRow {
        run: run.clone(),
        job: Cow::Borrowed(&job.name),
        operation: summary.operation,
        start_seconds: number as f64 * series.interval_seconds,
        length_seconds: series.interval_seconds,
        ios,
        mean_lat_ns: (ios > 0).then_some(mean_lat_ns),
    })
}
