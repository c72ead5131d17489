//! The figures of the tables: for each job, one row for each direction and variant.

use std::collections::BTreeMap;

use hoistway_results::Direction;
use hoistway_results::document::{DirectionSummary, JobSummary, LatencySummary, Run};
use hoistway_results::stats::{mean, relative_difference, sample_stddev};

use crate::variants::Variant;

/// One job of the job file under all variants.
pub(crate) struct JobComparison {
    /// The job's name.
    pub(crate) name: String,
    /// Number of its processes.
    pub(crate) processes: u32,
    /// By direction, then in the order of the variants; directions without I/O are left out.
    pub(crate) rows: Vec<Row>,
}

/// One direction of a job under one variant. Figures are means over the repeats.
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) direction: Direction,
    pub(crate) iops: f64,
    /// Standard deviation of the IOPS over the repeats, as a fraction; None of a single run.
    pub(crate) iops_spread: Option<f64>,
    pub(crate) bytes_per_second: f64,
    pub(crate) mean_ns: f64,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) p99_9_ns: f64,
    /// The largest of all repeats.
    pub(crate) max_ns: f64,
    /// Differences to none, as fractions; None for itself, and if it is absent.
    pub(crate) iops_to_none: Option<f64>,
    pub(crate) mean_to_none: Option<f64>,
}

impl JobComparison {
    /// The comparisons of all jobs, in the order of the job file.
    pub(crate) fn of(variants: &[Variant<'_>]) -> Vec<Self> {
        let mut jobs: BTreeMap<u32, &JobSummary> = BTreeMap::new();
        for job in variants.iter().flat_map(|variant| &variant.runs).flat_map(|run| &run.jobs) {
            jobs.entry(job.job).or_insert(job);
        }
        jobs.into_values().map(|job| Self::of_job(job, variants)).collect()
    }

    fn of_job(job: &JobSummary, variants: &[Variant<'_>]) -> Self {
        let rows = Direction::ALL.into_iter().flat_map(|direction| rows(job.job, direction, variants)).collect();
        Self { name: job.name.clone(), processes: job.processes, rows }
    }
}

fn rows(job: u32, direction: Direction, variants: &[Variant<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut none = None;
    for variant in variants {
        let Some(row) = Row::new(job, direction, variant) else { continue };
        if none.is_none() && variant.is_none() {
            none = Some(rows.len());
        }
        rows.push(row);
    }
    let Some(none) = none else { return rows };
    let (none_iops, none_mean_ns) = (rows[none].iops, rows[none].mean_ns);
    for (index, row) in rows.iter_mut().enumerate() {
        if index != none {
            row.iops_to_none = relative_difference(row.iops, none_iops);
            row.mean_to_none = relative_difference(row.mean_ns, none_mean_ns);
        }
    }
    rows
}

impl Row {
    /// None if there was no I/O in this direction.
    fn new(job: u32, direction: Direction, variant: &Variant<'_>) -> Option<Self> {
        let repeats: Vec<_> = variant.runs.iter().filter_map(|run| find(run, job, direction)).collect();
        let figures = |figure: &dyn Fn(&DirectionSummary) -> f64| -> Vec<f64> {
            repeats.iter().map(|repeat| figure(repeat)).collect()
        };
        let mean_of = |figure: &dyn Fn(&DirectionSummary) -> f64| mean(&figures(figure));
        let latency = |figure: fn(&LatencySummary) -> u64| mean_of(&|repeat| figure(&repeat.lat_ns) as f64);
        let iops = mean_of(&|repeat| repeat.iops)?;
        Some(Self {
            label: variant.label.clone(),
            direction,
            iops,
            iops_spread: sample_stddev(&figures(&|repeat| repeat.iops))
                .filter(|_| iops > 0.0)
                .map(|stddev| stddev / iops),
            bytes_per_second: mean_of(&|repeat| repeat.bytes_per_second)?,
            mean_ns: mean_of(&|repeat| repeat.lat_ns.mean)?,
            p50_ns: latency(|lat| lat.p50)?,
            p99_ns: latency(|lat| lat.p99)?,
            p99_9_ns: latency(|lat| lat.p99_9)?,
            max_ns: repeats.iter().map(|repeat| repeat.lat_ns.max).max()? as f64,
            iops_to_none: None,
            mean_to_none: None,
        })
    }
}

fn find(run: &Run, job: u32, direction: Direction) -> Option<&DirectionSummary> {
    let job = run.jobs.iter().find(|summary| summary.job == job)?;
    job.directions.iter().find(|summary| summary.direction == direction && summary.ios > 0)
}
