//! Analysis of a comparison: figures and differences of each scheduler, and which differences are beyond the noise.
//!
//! Used by: `verdict`, `condition`, `advice`, `diff`, `check` and others; crates `render`, `hoistway`, `experiment`.
//! Tests: `crates/answer/tests/judgement.rs`, `crates/answer/tests/verdict.rs`.
//!
//! Runs of one repeat have the same seed and so the same offered load under every scheduler. Differences are therefore
//! *paired*: taken repeat by repeat, so that variation of the offered load cancels. A difference is *significant* if
//! the interval of its mean excludes zero. Intervals are not corrected for multiple comparisons: one in twenty errs.

mod baseline;
mod lookup;
mod ranges;
mod ranking;
mod reference;
mod statistics;
mod variant;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::{Change, DiskGroup, JobDemand, JobSummary, OperationSummary, ResultsDocument, Run};
use crate::figure::Figure;
use hoistway_measure::Operation;
use hoistway_measure::stats;

pub use lookup::NoSuchFigure;
pub use ranges::{Range, widened};
pub use ranking::Ranking;
pub(crate) use reference::{default_reference, find_by_scheduler};
pub use variant::Variant;

/// All jobs of a job file under all variants.
#[derive(Clone, Debug)]
pub struct Analysis<'a> {
    /// The document that was analysed.
    pub document: &'a ResultsDocument,
    /// The compared variants, in the order of their first runs.
    pub variants: Vec<Variant<'a>>,
    /// The baseline of the first variant: index into `variants`.
    pub baseline: usize,
    /// The jobs, in the order of the job file.
    pub jobs: Vec<JobAnalysis<'a>>,
}

/// One job of the job file.
#[derive(Clone, Debug)]
pub struct JobAnalysis<'a> {
    /// The job's name.
    pub name: &'a str,
    /// Index of its section in the job file.
    pub job: u32,
    /// Number of its processes.
    pub processes: u32,
    /// Index of the first equivalent job, which may be its own; `None` if no other job is equivalent.
    pub equivalent_to: Option<u32>,
    /// Whether its I/O is random rather than sequential; `None` if unknown.
    pub random: Option<bool>,
    /// Its demand; `None` if unknown.
    pub demand: Option<JobDemand>,
    /// Its operations, in the order of tables.
    pub operations: Vec<OperationAnalysis<'a>>,
}

/// One operation of a job.
#[derive(Clone, Debug)]
pub struct OperationAnalysis<'a> {
    /// Read, write, trim or sync.
    pub operation: Operation,
    /// One row for each variant with such I/O, in the order of the variants.
    pub rows: Vec<Row<'a>>,
}

/// One operation of a job under one variant.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Index into [`Analysis::variants`].
    pub variant: usize,
    /// The variant that it is compared with, which may be its own, in the same setup unless a row of the table was named: index into
    /// [`Analysis::variants`].
    pub baseline: usize,
    /// Modelled CPU time per I/O of the job, over all operations, us: the mean over the repeats.
    pub cpu_us_per_io: Option<f64>,
    /// Duration of a recorded job's work, s: the mean over the repeats; `None` if it was cut off in one of them.
    pub done_seconds: Option<f64>,
    /// The summary of each repeat, by its number.
    samples: BTreeMap<u32, &'a OperationSummary>,
    /// Ranges of figures over the alternative readings of a recording.
    ranges: Vec<Range>,
}

/// The mean of a figure over the repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean; for maxima the largest value.
    pub mean: f64,
    /// Half the width of its 95 % interval; `None` for a single run and for maxima.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The estimate from a figure's values, one for each repeat.
    pub(crate) fn of(figure: Figure, values: &[f64]) -> Self {
        if figure == Figure::Max {
            return Self { mean: values.iter().copied().fold(0.0, f64::max), half_width: None };
        }
        let mean = stats::mean(values).unwrap_or(0.0);
        Self { mean, half_width: stats::half_width(values).map(|half| half.max(bin_error(figure, mean))) }
    }
}

/// The error of a figure that is known only to the bin of a histogram: half of the bin.
fn bin_error(figure: Figure, value: f64) -> f64 {
    /// Bins are at most 1/64 wide.
    const HALF_BIN: f64 = 1.0 / 128.0;
    if figure.is_percentile() { HALF_BIN * value } else { 0.0 }
}

/// The mean of the paired differences of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean, in the figure's unit.
    pub mean: f64,
    /// Half the width of its 95 % interval; `None` for fewer than two pairs.
    pub half_width: Option<f64>,
    /// The mean as a fraction of the other row's mean over the same repeats; `None` if that is zero.
    pub relative: Option<f64>,
    /// Number of repeats that both rows have.
    pub pairs: usize,
}

impl Difference {
    /// Whether the interval excludes zero; `None` if there is no interval.
    pub fn is_significant(&self) -> Option<bool> {
        self.half_width.map(|half_width| self.mean.abs() > half_width)
    }
}

impl<'a> Row<'a> {
    /// The runs' summaries, by repeat.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = &'a OperationSummary> + use<'a, '_> {
        self.samples.values().copied()
    }

    /// The summary of one repeat.
    pub fn sample(&self, repeat: u32) -> Option<&'a OperationSummary> {
        self.samples.get(&repeat).copied()
    }

    /// Number of I/Os in the run that had the fewest.
    pub fn ios_min(&self) -> u64 {
        self.samples().map(|sample| sample.ios).min().unwrap_or(0)
    }

    /// A figure over the repeats.
    pub fn estimate(&self, figure: Figure) -> Estimate {
        let values: Vec<f64> = self.samples().map(|sample| sample.figure(figure)).collect();
        Estimate::of(figure, &values)
    }

    /// The paired difference of a figure between this row and `other`; positive if this row has more. `None` if they
    /// share no repeat. Maxima get no interval, as their distribution has too long a tail.
    pub fn difference(&self, other: &Row<'_>, figure: Figure) -> Option<Difference> {
        let pairs = self.samples.iter().filter_map(|(repeat, sample)| {
            let other = other.samples.get(repeat)?.figure(figure);
            Some((sample.figure(figure) - other, other))
        });
        let (differences, others): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let (mean, other_mean) = (stats::mean(&differences)?, stats::mean(&others)?);
        Some(Difference {
            mean,
            half_width: stats::half_width(&differences)
                .filter(|_| figure != Figure::Max)
                .map(|half| half.max(bin_error(figure, other_mean + mean.abs()))),
            relative: stats::relative_difference(other_mean + mean, other_mean),
            pairs: differences.len(),
        })
    }

    /// The factor by which a figure of this row is larger than that of `other`, paired as [differences](Self::difference) are. `None` if
    /// they share no repeat, or if one of the figures is zero.
    pub fn ratio(&self, other: &Row<'_>, figure: Figure) -> Option<Change> {
        let logarithm = |(repeat, sample): (&u32, &&OperationSummary)| {
            Some((sample.figure(figure) / other.samples.get(repeat)?.figure(figure)).ln())
        };
        let logarithms: Vec<f64> = self.samples.iter().filter_map(logarithm).collect();
        Change::of(&logarithms).filter(|ratio| ratio.factor.is_finite() && ratio.factor > 0.0)
    }
}

impl<'a> OperationAnalysis<'a> {
    /// The baseline of a row; `None` if the row is the baseline itself, or the baseline has no such I/O.
    pub fn baseline_of(&self, row: &Row<'_>) -> Option<&Row<'a>> {
        self.row(row.baseline).filter(|_| row.baseline != row.variant)
    }

    /// The row of a variant.
    pub fn row(&self, variant: usize) -> Option<&Row<'a>> {
        self.rows.iter().find(|row| row.variant == variant)
    }

    /// Best and worst by a figure.
    pub fn ranking(&self, figure: Figure) -> Ranking {
        Ranking::of(&self.rows, figure)
    }
}

impl JobAnalysis<'_> {
    /// What its rows are compared with, without duplicates: one variant for each setup, unless a row of the table was named.
    pub fn baselines(&self) -> Vec<usize> {
        let rows = self.operations.iter().flat_map(|operation| &operation.rows);
        let mut distinct: Vec<usize> = rows.map(|row| row.baseline).collect();
        distinct.sort_unstable();
        distinct.dedup();
        distinct
    }
}

impl<'a> Analysis<'a> {
    /// Analyses a document.
    pub fn of(document: &'a ResultsDocument) -> Self {
        let variants = Variant::of(&document.runs);
        let baselines = baseline::baselines(document, &variants, None);
        let baseline = baselines.first().copied().unwrap_or(0);
        let of_group = |group: &'a DiskGroup| (&group.jobs[..], baseline::baselines(document, &variants, Some(group)));
        let of_groups: Vec<(&[u32], Vec<usize>)> = document.disk_groups.iter().map(of_group).collect();
        let baselines_of = |job: u32| {
            let group = of_groups.iter().find(|(jobs, _)| jobs.contains(&job));
            group.map_or(&baselines, |(_, baselines)| baselines)
        };
        let mut jobs: BTreeMap<u32, &JobSummary> = BTreeMap::new();
        for job in document.runs.iter().flat_map(|run| &run.jobs) {
            jobs.entry(job.job).or_insert(job);
        }
        let jobs = jobs.into_values().map(|job| JobAnalysis {
            name: &job.name,
            job: job.job,
            processes: job.processes,
            equivalent_to: job.equivalent_to,
            random: job.random,
            demand: job.demand,
            operations: operations(job.job, &variants, baselines_of(job.job)),
        });
        let mut jobs: Vec<JobAnalysis<'a>> = jobs.collect();
        ranges::add(document, &variants, &mut jobs);
        Self { document, jobs, variants, baseline }
    }

    /// The analysis with these jobs only, by their indexes.
    pub(crate) fn of_jobs(&self, jobs: &[u32]) -> Self {
        let jobs = self.jobs.iter().filter(|job| jobs.contains(&job.job)).cloned().collect();
        Self { jobs, variants: self.variants.clone(), ..*self }
    }

    /// Largest number of repeats of a variant.
    pub fn repeats(&self) -> usize {
        self.variants.iter().map(|variant| variant.runs.len()).max().unwrap_or(0)
    }
}

fn operations<'a>(job: u32, variants: &[Variant<'a>], baselines: &[usize]) -> Vec<OperationAnalysis<'a>> {
    let analyse_operation = |operation| {
        let row = |(variant, compared): (usize, &Variant<'a>)| {
            let sample = |run: &&'a Run| Some((run.repeat, job_summary(run, job)?.operation(operation)?));
            let samples: BTreeMap<_, _> = compared.runs.iter().filter_map(sample).collect();
            let cpu: Vec<f64> = compared.runs.iter().filter_map(|run| job_summary(run, job)?.cpu_us_per_io).collect();
            (!samples.is_empty()).then(|| Row {
                variant,
                baseline: baselines[variant],
                cpu_us_per_io: stats::mean(&cpu),
                done_seconds: compared
                    .runs
                    .iter()
                    .map(|run| job_summary(run, job)?.done_seconds)
                    .collect::<Option<Vec<_>>>()
                    .and_then(|all| stats::mean(&all)),
                samples,
                ranges: Vec::new(),
            })
        };
        OperationAnalysis { operation, rows: variants.iter().enumerate().filter_map(row).collect() }
    };
    Operation::ALL.into_iter().map(analyse_operation).filter(|operation| !operation.rows.is_empty()).collect()
}

fn job_summary(run: &Run, job: u32) -> Option<&JobSummary> {
    run.jobs.iter().find(|summary| summary.job == job)
}
