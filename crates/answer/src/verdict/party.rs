//! Parties of a load: a job, or several equivalent jobs that are judged as one.

use crate::analysis::{Analysis, JobAnalysis, OperationAnalysis};
use crate::document::{Aspect, JobDemand, Run};
use crate::figure::Figure;
use hoistway_measure::Operation;
use hoistway_measure::stats;

/// One job, or several equivalent jobs.
#[derive(Clone)]
pub(super) struct Party<'a> {
    analysis: &'a Analysis<'a>,
    pub(super) jobs: Vec<&'a JobAnalysis<'a>>,
}

impl<'a> Party<'a> {
    /// All parties, in the order of their first jobs. Equivalent jobs are sorted by name, so that the same job represents them whatever
    /// the order of the job file.
    pub(super) fn all(analysis: &'a Analysis<'a>) -> Vec<Self> {
        let mut parties: Vec<Self> = Vec::new();
        for job in &analysis.jobs {
            let is_equivalent = |party: &&mut Self| {
                party.jobs[0].equivalent_to.is_some() && party.jobs[0].equivalent_to == job.equivalent_to
            };
            match parties.iter_mut().find(is_equivalent) {
                Some(party) => party.jobs.push(job),
                None => parties.push(Self { analysis, jobs: vec![job] }),
            }
        }
        parties.iter_mut().for_each(|party| party.jobs.sort_by_key(|job| (job.name, job.job)));
        parties
    }

    /// A party of a single job, even if others are equivalent to it.
    pub(super) fn of(analysis: &'a Analysis<'a>, job: &'a JobAnalysis<'a>) -> Self {
        Self { analysis, jobs: vec![job] }
    }

    /// The party of those of its jobs whose names are included.
    pub(super) fn of_jobs(mut self, includes: impl Fn(&str) -> bool) -> Self {
        self.jobs.retain(|job| includes(job.name));
        self
    }

    /// The runs of all variants.
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a Run> + use<'a> {
        self.analysis.variants.iter().flat_map(|variant| variant.runs.iter().copied())
    }

    /// The demand of its jobs, which is the same for all of them.
    pub(super) fn demand(&self) -> Option<JobDemand> {
        self.jobs[0].demand
    }

    /// The name of the job that represents the party.
    pub(super) fn name(&self) -> &'a str {
        self.jobs[0].name
    }

    /// The operations that any of its jobs did.
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation> + use<'_> {
        let has_operation =
            |operation: &Operation| self.jobs.iter().any(|job| find_operation(job, *operation).is_some());
        Operation::ALL.into_iter().filter(has_operation)
    }

    /// The results of an operation, one for each job.
    pub(super) fn operation_results(&self, operation: Operation) -> impl Iterator<Item = &'a OperationAnalysis<'a>> {
        self.jobs.iter().filter_map(move |job| find_operation(job, operation))
    }

    /// The value of an aspect in one repeat under a variant; `None` if there was nothing to measure.
    pub(super) fn value(
        &self,
        operation: Option<Operation>,
        aspect: Aspect,
        variant: usize,
        repeat: u32,
    ) -> Option<f64> {
        let job_figures = |figure: Figure| -> Vec<f64> {
            let Some(operation) = operation else { return Vec::new() };
            let rows = self.operation_results(operation).filter_map(|operation| operation.row(variant));
            rows.filter_map(|row| Some(row.sample(repeat)?.figure(figure))).collect()
        };
        match aspect {
            Aspect::Figure(figure) => stats::median(job_figures(figure)),
            Aspect::Worst(figure) => {
                let worst_of = if figure.higher_is_better() { f64::min } else { f64::max };
                job_figures(figure).into_iter().reduce(worst_of)
            }
            Aspect::Wait => {
                let rows = self.operation_results(operation?).filter_map(|operation| operation.row(variant));
                stats::median(rows.filter_map(|row| Some(row.sample(repeat)?.waited_ns())).collect())
            }
            Aspect::Fairness => self.fairness(variant, repeat),
        }
    }

    /// Jain's index among its jobs, or among the processes of a single job.
    fn fairness(&self, variant: usize, repeat: u32) -> Option<f64> {
        let run = self.analysis.variants[variant].runs.iter().find(|run| run.repeat == repeat)?;
        let summaries = || run.jobs.iter().filter(|summary| self.jobs.iter().any(|job| job.job == summary.job));
        if self.jobs.len() == 1 {
            return summaries().next()?.fairness;
        }
        let iops = summaries().map(|summary| summary.transfers().map(|transfers| transfers.iops).sum());
        stats::jain_index(&iops.collect::<Vec<f64>>())
    }
}

fn find_operation<'a>(job: &'a JobAnalysis<'a>, operation: Operation) -> Option<&'a OperationAnalysis<'a>> {
    job.operations.iter().find(|known| known.operation == operation)
}
