//! Facts about the jobs of a load that documents show next to their measurements.

use hoistway_answer::document::{JobDemand, JobSummary};
use hoistway_load::{Load, Process};

use crate::load::demand::demand;
use crate::load::equivalent_jobs::equivalent_jobs;
use crate::load::recording::Recorded;

/// The facts about each job of a load.
#[derive(Clone, Debug)]
pub struct JobFacts(Vec<Facts>);

#[derive(Clone, Debug)]
struct Facts {
    /// The first equivalent job.
    equivalent_to: Option<u32>,
    demand: Option<JobDemand>,
    is_random: bool,
}

impl JobFacts {
    /// The facts about the jobs of this load.
    #[must_use]
    pub fn of(load: &Load) -> JobFacts {
        let facts = |(job, equivalent_to): (usize, Option<u32>)| {
            let clones = || load.processes.iter().filter(move |process: &&Process| process.schedule.job == job);
            Facts {
                equivalent_to,
                demand: demand(clones()),
                is_random: clones().any(|process| process.plan.is_random()),
            }
        };
        JobFacts(equivalent_jobs(load).into_iter().enumerate().map(facts).collect())
    }

    /// The facts about the jobs of a recording: their demand was inferred.
    pub(crate) fn of_recorded(load: &Load, recorded: &Recorded) -> JobFacts {
        let JobFacts(mut facts) = JobFacts::of(load);
        for (job, facts) in facts.iter_mut().enumerate() {
            let process = load.processes.iter().find(|process| process.schedule.job == job);
            facts.demand = process.and_then(|process| recorded.demand(&process.name));
        }
        JobFacts(facts)
    }

    /// Gives each job in a guest the weight that was set for the guest on the host, by its file.
    pub(crate) fn set_guest_weights(&mut self, load: &Load, weights: &[(String, u32)]) {
        for (job, facts) in self.0.iter_mut().enumerate() {
            let processes = load.processes.iter().filter(|process| process.schedule.job == job);
            let files = processes.flat_map(|process| process.files.iter()).map(|file| &load.files[*file as usize]);
            let weight_of = |file: &String| weights.iter().find(|(weighted, _)| weighted == file);
            if let (Some(demand), Some((_, weight))) = (&mut facts.demand, files.filter_map(weight_of).next()) {
                demand.weight = Some(*weight);
            }
        }
    }

    /// Adds the facts about its job to a summary.
    pub(crate) fn complete(&self, summary: &mut JobSummary) {
        let facts = self.0.get(summary.job as usize);
        summary.equivalent_to = facts.and_then(|facts| facts.equivalent_to);
        summary.demand = facts.and_then(|facts| facts.demand);
        summary.random = Some(facts.is_some_and(|facts| facts.is_random));
    }
}
