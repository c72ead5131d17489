//! The runs of an experiment in real time, in order.

use hoistway_answer::document::{Front, RunVariant};
use hoistway_experiment::limits::REPEATS_MAX;
use hoistway_experiment::{CallerEnvironment, Error, Field, PlannedRun, seeds};
use serde_json::Map;

use crate::{RealExperiment, error};

/// Rounds, each of which runs every scheduler as often as it is listed.
pub(crate) fn rows(experiment: &RealExperiment, environment: &dyn CallerEnvironment) -> Result<Vec<PlannedRun>, Error> {
    let RealExperiment { schedulers, tunables, queue_files, .. } = experiment;
    let refuse = |field: Field, given: &str, problem: String| {
        Err(error(field, format!("{} {given}: {problem}", environment.name(field))))
    };
    let list = environment.name(Field::Schedulers);
    if schedulers.is_empty() {
        return Err(error(
            Field::Schedulers,
            format!("{list}: is empty (expected at least one scheduler, such as none)"),
        ));
    }
    if !(1..=REPEATS_MAX).contains(&experiment.repeats) {
        let problem = format!("expected 1 to {REPEATS_MAX}");
        return refuse(Field::Repeats, &experiment.repeats.to_string(), problem);
    }
    if let Some(file) = queue_files.iter().find(|file| file.file == "scheduler" || file.file.contains('/')) {
        let own = environment.name(Field::Tunables);
        let problem = format!("expected a file of queue/; {list} sets the scheduler, {own} its tunables");
        return refuse(Field::QueueFiles, &format!("{}={}", file.file, file.text), problem);
    }
    if let Some(tunable) = tunables.iter().find(|tunable| !schedulers.contains(&tunable.scheduler)) {
        let scheduler = &tunable.scheduler;
        let given = format!("{scheduler}.{}={}", tunable.name, tunable.text);
        return refuse(Field::Tunables, &given, format!("{scheduler} does not run (expected one of {list})"));
    }
    if let Some(baseline) = experiment.baseline.as_ref().filter(|baseline| !schedulers.contains(baseline)) {
        let known = schedulers.join(", ");
        let problem = format!("not among the compared schedulers (expected one of {known})");
        return refuse(Field::Baseline, baseline, problem);
    }
    let registry = environment.schedulers();
    let mut rows: Vec<PlannedRun> = Vec::new();
    let seeds = seeds(experiment.seed, experiment.repeats.saturating_mul(schedulers.len() as u32));
    for scheduler in (0..experiment.repeats).flat_map(|_| schedulers) {
        let repeat = rows.iter().filter(|row| row.scheduler == *scheduler).count();
        let own = tunables.iter().filter(|tunable| tunable.scheduler == *scheduler);
        rows.push(PlannedRun {
            scheduler: scheduler.clone(),
            front: Front::Mq,
            ran_as: None,
            research: registry.find(scheduler).and_then(|row| row.outside_linux()).map(str::to_owned),
            tunables: own.map(|tunable| (tunable.name.clone(), tunable.text.clone())).collect(),
            queue_files: queue_files.iter().map(|file| (file.file.clone(), file.text.clone())).collect(),
            variant: RunVariant::new(scheduler, Map::new()),
            setup: 0,
            repeat: repeat as u32,
            seed: seeds[repeat],
        });
    }
    Ok(rows)
}
