//! Jobs that do not reach the rate that they are to have.

use hoistway_answer::analysis::Analysis;
use hoistway_answer::document::JobSummary;
use hoistway_measure::{stats, units};

use crate::text::words::list;

/// A job misses its rate if it reaches less than this share of it.
const REACHED_SHARE: f64 = 0.95;

/// A sentence for each job that misses its rate, with the rates that it reaches under the variants.
pub(super) fn missed_rates(analysis: &Analysis<'_>) -> Vec<String> {
    let sentence = |job: u32, name: &str, asked: f64| {
        let reached = |variant: usize| {
            let jobs = analysis.variants[variant].runs.iter().flat_map(|run| &run.jobs).filter(|it| it.job == job);
            let rates: Vec<f64> = jobs.map(|job: &JobSummary| job.transfers().map(|it| it.iops).sum()).collect();
            stats::mean(&rates).filter(|rate| *rate < REACHED_SHARE * asked)
        };
        let missed = (0..analysis.variants.len()).filter_map(|variant| {
            Some(format!("{} under {}", units::rate(reached(variant)?), analysis.variants[variant].in_words()))
        });
        let missed: Vec<String> = missed.collect();
        (!missed.is_empty())
            .then(|| format!("{name} wants {} I/Os a second and gets {}.", units::rate(asked), list(&missed)))
    };
    let jobs = analysis.jobs.iter();
    jobs.filter_map(|job| sentence(job.job, job.name, job.demand?.asked_iops?)).collect()
}
