//! Scores: how well a variant serves a party, as a logarithm. Summing over parties is proportional fairness: starving one never pays.
//!
//! Used by: `verdict`, `verdict::focus`, `verdict::shifts`, `verdict::setup_variants`.
//! Tests: `crates/answer/tests/judgement.rs`, `crates/answer/tests/parties.rs`.

use super::party::Party;
use super::roles::{Role, roles};
use super::turn::{NOTICED_SHARE, Turn, judged_transfers};
use crate::analysis::Analysis;
use crate::document::{JobSummary, Run};
use hoistway_measure::{Operation, stats};

/// A party with its role in the decision.
pub(super) struct JudgedParty<'a> {
    analysis: &'a Analysis<'a>,
    pub(super) party: Party<'a>,
    pub(super) role: Role,
}

impl<'a> JudgedParty<'a> {
    /// All parties that did any I/O, in the order of their first jobs.
    pub(super) fn all(analysis: &'a Analysis<'a>) -> Vec<Self> {
        let parties = Party::all(analysis);
        let roles = roles(&parties);
        let judged = parties.into_iter().zip(roles);
        let judged = judged.filter(|(party, _)| party.operations().next().is_some());
        judged.map(|(party, role)| Self { analysis, party, role }).collect()
    }

    /// The party's score in a repeat under a variant; `None` if there is no such run or job.
    pub(super) fn score(&self, variant: usize, repeat: u32) -> Option<f64> {
        let run = self.analysis.variants[variant].runs.iter().find(|run| run.repeat == repeat)?;
        let jobs: Vec<&JobSummary> = party_jobs(&self.party, run).collect();
        if jobs.is_empty() {
            return None;
        }
        let scores = jobs.iter().map(|job| self.job_score(job, run, jobs.len() == 1));
        Some(scores.sum::<f64>() / jobs.len() as f64)
    }

    fn job_score(&self, job: &JobSummary, run: &Run, is_alone: bool) -> f64 {
        let processes = f64::from(job.processes.max(1));
        let mut progress = progress_per_second(job, run).ln();
        if let Some(fairness) = job.fairness.filter(|fairness| is_alone && *fairness > 0.0) {
            // The mean logarithm of the processes' shares, if they are log-normally distributed.
            progress += 0.5 * fairness.ln();
        }
        if self.role != Role::Waits {
            return progress;
        }
        let (wait_ns, loop_ns) = match Turn::of(job) {
            Some(turn) if !self.lacks_commit(job) => {
                let has_rate = turn.per_second > 0.0;
                let loop_ns =
                    if has_rate { processes * 1e9 / turn.per_second } else { self.longest_run_ns(run.repeat) };
                (turn.waited_ns, loop_ns)
            }
            // It waited from the beginning to the end, and longer than any turn that was seen.
            _ => (self.longest_run_ns(run.repeat), self.longest_run_ns(run.repeat)),
        };
        // Adding a share of the loop damps waits that are negligible within it.
        0.5 * progress - 0.5 * (wait_ns + NOTICED_SHARE * loop_ns).max(1.0).ln()
    }

    /// Whether a job whose turns end with a sync ended none: its writes are parts of a turn that is still open.
    fn lacks_commit(&self, job: &JobSummary) -> bool {
        job.syncs().is_none() && self.party.operations().any(|operation| operation == Operation::Sync)
    }

    /// The longest run of a repeat, ns: a run ends late if it waits for an I/O that began in time.
    fn longest_run_ns(&self, repeat: u32) -> f64 {
        let runs = self.analysis.variants.iter().flat_map(|variant| &variant.runs);
        runs.filter(|run| run.repeat == repeat).map(|run| run.simulated_seconds * 1e9).fold(0.0, f64::max)
    }

    /// How long an operation takes of a turn of its loop under a variant, ns: the mean over its jobs and the repeats.
    pub(super) fn loop_part_ns(&self, operation: Operation, variant: usize) -> f64 {
        let job_part_ns = |job: &JobSummary| {
            let turns = Turn::of(job)?.count.max(1) as f64;
            let part = job.operations.iter().find(|summary| summary.operation == operation && summary.ios > 0);
            Some(part.map_or(0.0, |summary| summary.ios as f64 * summary.lat_ns.mean / turns))
        };
        let runs = &self.analysis.variants[variant].runs;
        let parts = runs.iter().flat_map(|run| party_jobs(&self.party, run).filter_map(job_part_ns));
        stats::mean(&parts.collect::<Vec<f64>>()).unwrap_or(0.0)
    }

    /// Duration of one turn of the party's loop, ns: the longest under two variants.
    pub(super) fn loop_ns(&self, variants: [usize; 2]) -> f64 {
        let runs = variants.iter().flat_map(|variant| &self.analysis.variants[*variant].runs);
        let longest_loop_ns = |run: &&'a Run| {
            let loops = party_jobs(&self.party, run).filter_map(|job| {
                let per_second = Turn::of(job)?.per_second;
                (per_second > 0.0).then(|| f64::from(job.processes.max(1)) * 1e9 / per_second)
            });
            loops.fold(0.0, f64::max)
        };
        runs.map(longest_loop_ns).fold(0.0, f64::max)
    }
}

/// A job's operations of all kinds a second; for a rate-limited job the share of its limit that it reached. No I/O at all counts as half
/// an I/O per run, because the logarithm of zero is not finite.
fn progress_per_second(job: &JobSummary, run: &Run) -> f64 {
    let ios: f64 = judged_transfers(job).map(|transfers| transfers.iops).sum();
    let least = 0.5 / run.simulated_seconds.max(1e-9);
    match job.demand.and_then(|demand| demand.asked_iops) {
        Some(limit_iops) => (ios.max(least) / limit_iops).min(1.0),
        None => (ios + job.syncs().map_or(0.0, |syncs| syncs.iops)).max(least),
    }
}

fn party_jobs<'r>(party: &Party<'_>, run: &'r Run) -> impl Iterator<Item = &'r JobSummary> {
    run.jobs.iter().filter(move |summary| party.jobs.iter().any(|job| job.job == summary.job))
}
