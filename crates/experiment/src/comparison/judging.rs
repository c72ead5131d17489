//! Checks that figures and conditions name jobs and schedulers that run.

use hoistway_answer::document::uses_scheduler;
use hoistway_answer::{BreakingError, Condition, FigureName, Limit};

/// The first of these figures that names no job of the experiment, and what is wrong with it. `names` are the names of its
/// processes.
pub(crate) fn unknown_job<'f, 'a>(
    mut figures: impl Iterator<Item = &'f FigureName>,
    names: impl Iterator<Item = &'a str>,
) -> Option<(&'f FigureName, String)> {
    let mut jobs: Vec<&str> = Vec::new();
    for name in names {
        if !jobs.contains(&name) {
            jobs.push(name);
        }
    }
    let figure = figures.find(|figure| !jobs.contains(&&*figure.job))?;
    let problem = format!("there is no job \"{}\" (expected one of {})", figure.job, jobs.join(", "));
    Some((figure, problem))
}

/// The first of these conditions that no result could meet, since its job or its scheduler does not run, and why. `labels` are those of
/// the variants, which begin with the scheduler.
pub(crate) fn impossible<'c, 'a>(
    conditions: &'c [Condition],
    names: impl Iterator<Item = &'a str> + Clone,
    labels: impl Iterator<Item = &'a str>,
) -> Option<(&'c Condition, String)> {
    let mut known: Vec<&str> = labels.filter_map(|label| label.split(' ').next()).collect();
    known.sort_unstable();
    known.dedup();
    conditions.iter().find_map(|condition| {
        let of_job = unknown_job(std::iter::once(&condition.figure), names.clone()).map(|(_, problem)| problem);
        let of_scheduler = || match &condition.limit {
            Limit::Under { scheduler, .. }
                if scheduler != "default" && !known.iter().any(|name| uses_scheduler(name, scheduler)) =>
            {
                let known = known.iter().map(|&name| name.to_owned()).collect();
                Some(BreakingError::Scheduler { scheduler: scheduler.clone(), known }.to_string())
            }
            _ => None,
        };
        Some((condition, of_job.or_else(of_scheduler)?))
    })
}
