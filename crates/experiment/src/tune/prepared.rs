//! A checked search, with the reference settings that run in each round.

use hoistway_answer::tuning::Setting;
use hoistway_answer::{Limit, Objective};
use hoistway_blk::ground::Nanos;

use super::Search;
use super::evaluate::Evaluator;
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::{Comparison, QueueWrite, Vary};
use crate::nearest;

/// The checked search.
pub(super) struct Prepared {
    /// The search's comparison, with every scheduler that is named anywhere.
    pub(super) comparison: Comparison,
    /// The schedulers that are searched.
    pub(super) searched_schedulers: Vec<String>,
    /// The kernel's default scheduler, which `default` stands for; empty if the devices have none in common.
    pub(super) default: String,
    /// Reference settings that run in each round, each a scheduler with its defaults: the baseline, then the schedulers of conditions.
    pub(super) references: Vec<Setting>,
}

impl Prepared {
    pub(super) fn of(search: &Search, environment: &dyn CallerEnvironment) -> Result<Prepared, Error> {
        let evaluator = Evaluator::new(&search.comparison, environment)?;
        check_jobs(&search.objective, &evaluator)?;
        check_writes(search, &evaluator)?;
        let options = &evaluator.plan.options;
        let searched_schedulers: Vec<String> = evaluator.schedulers().map(str::to_owned).collect();
        let default = evaluator.plan.setups[0].default_scheduler().map(str::to_owned);
        let mut references = vec![Setting::untouched(default.as_deref().unwrap_or(&searched_schedulers[0]))];
        let registry = environment.schedulers();
        for condition in &search.objective.conditions {
            let Limit::Under { scheduler, .. } = &condition.limit else { continue };
            let refuse = |problem: String| Err(options.refuse(Field::Objective, &search.objective, problem));
            let name = match (&**scheduler, &default) {
                ("default", Some(default)) => default,
                ("default", None) => {
                    return refuse(format!("\"{condition}\": the devices have no default scheduler in common"));
                }
                _ if registry.find(scheduler).is_some() => scheduler,
                _ => {
                    let known = registry.names();
                    let hint = nearest::hint(scheduler, known.iter().copied());
                    let known = known.join(", ");
                    let problem = format!("there is no scheduler \"{scheduler}\" ({hint}expected default, {known})");
                    return refuse(format!("\"{condition}\": {problem}"));
                }
            };
            let setting = Setting::untouched(name);
            if !references.contains(&setting) {
                references.push(setting);
            }
        }
        let mut schedulers = searched_schedulers.clone();
        schedulers.extend(
            references
                .iter()
                .map(|reference| reference.scheduler.clone())
                .filter(|name| !searched_schedulers.contains(name)),
        );
        let comparison = Comparison { schedulers, ..search.comparison.clone() };
        Ok(Prepared { comparison, searched_schedulers, default: default.unwrap_or_default(), references })
    }
}

/// Rejects timed writes to files that the search sets itself.
fn check_writes(search: &Search, evaluator: &Evaluator<'_>) -> Result<(), Error> {
    let is_searched = |write: &&QueueWrite| {
        let is_of_scheduler = write.file == "scheduler" || write.file.starts_with("iosched/");
        is_of_scheduler || search.vary.iter().any(|tunable| tunable.of == Vary::QUEUE && tunable.name == write.file)
    };
    match search.comparison.writes.iter().find(is_searched) {
        Some(write) => {
            let problem = "the search sets this file itself (expected a file of queue/ that is not searched)";
            let write = format!("{}:{}={}", Nanos(write.at_ns), write.file, write.text);
            Err(evaluator.plan.options.refuse(Field::TimedWrites, write, problem))
        }
        None => Ok(()),
    }
}

/// Checks that the objective names existing jobs.
fn check_jobs(objective: &Objective, evaluator: &Evaluator<'_>) -> Result<(), Error> {
    let mut jobs: Vec<&str> = Vec::new();
    for process in &evaluator.plan.setups[0].workload.processes {
        if !jobs.contains(&&*process.name) {
            jobs.push(&process.name);
        }
    }
    match objective.figures().into_iter().find(|figure| !jobs.contains(&&*figure.job)) {
        Some(figure) => {
            let hint = nearest::hint(&figure.job, jobs.iter().copied());
            let problem =
                format!("{figure}: there is no job \"{}\" ({hint}expected one of {})", figure.job, jobs.join(", "));
            Err(evaluator.plan.options.refuse(Field::Objective, objective, problem))
        }
        None => Ok(()),
    }
}
