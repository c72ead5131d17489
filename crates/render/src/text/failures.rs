//! Notices about processes that ended with an error, whose figures alone would look normal.

use std::collections::BTreeSet;

use hoistway_answer::analysis::{Analysis, JobAnalysis, Variant};
use hoistway_answer::document::FailedProcesses;

use crate::text::words::list;

/// A notice about all failed processes; `None` if there are none.
pub(crate) fn remark(analysis: &Analysis<'_>) -> Option<String> {
    let failed: Vec<String> = analysis.jobs.iter().filter_map(|job| job_failures(job, &analysis.variants)).collect();
    (!failed.is_empty()).then(|| format!("FAILED, and their figures end at the error: {}.", failed.join("; ")))
}

/// The failures of a job under one variant.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    /// The distinct numbers of failed processes over the repeats that had any.
    counts: BTreeSet<u32>,
    /// The Linux errnos, positive.
    pub(crate) errnos: BTreeSet<i32>,
}

impl Failed {
    pub(crate) fn of(job: u32, variant: &Variant<'_>) -> Self {
        let mut failures = Self::default();
        let summaries = variant.runs.iter().flat_map(|run| &run.jobs).filter(|summary| summary.job == job);
        for failed in summaries.map(|summary| &summary.failed).filter(|failed| !failed.is_empty()) {
            failures.counts.insert(failed.iter().map(|failed_processes| failed_processes.processes).sum());
            failures.errnos.extend(failed.iter().map(|FailedProcesses { errno, .. }| *errno));
        }
        failures
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The maximum number of failed processes over the repeats; 0 if none failed.
    pub(crate) fn processes_max(&self) -> u32 {
        self.counts.last().copied().unwrap_or(0)
    }
}

/// `reader under none and bfq (1 to 3 of 3 processes, EIO)`: the minimum and maximum over the runs with failures.
fn job_failures(job: &JobAnalysis<'_>, variants: &[Variant<'_>]) -> Option<String> {
    let mut labels = Vec::new();
    let mut all = Failed::default();
    for variant in variants {
        let failed = Failed::of(job.job, variant);
        if !failed.is_empty() {
            labels.push(variant.label.clone());
        }
        all.counts.extend(failed.counts);
        all.errnos.extend(failed.errnos);
    }
    let (fewest, most) = (all.counts.first()?, all.counts.last()?);
    let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let errors: Vec<String> = all.errnos.into_iter().map(name).collect();
    let is_all = labels.len() > 1 && labels.len() == variants.len();
    let total = match job.processes {
        1 => "1 process".to_owned(),
        processes => format!("{processes} processes"),
    };
    let labels = if is_all { "all schedulers".to_owned() } else { list(&labels) };
    Some(format!("{} under {labels} ({count} of {total}, {})", job.name, list(&errors)))
}

/// The symbolic name of an error that simulated I/O can end with.
fn name(errno: i32) -> String {
    let name = match errno {
        5 => "EIO",
        11 => "EAGAIN",
        19 => "ENODEV",
        22 => "EINVAL",
        28 => "ENOSPC",
        61 => "ENODATA",
        95 => "EOPNOTSUPP",
        110 => "ETIMEDOUT",
        _ => return format!("errno {errno}"),
    };
    name.to_owned()
}
