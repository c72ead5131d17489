//! The runs of an experiment in real time, in order.
//!
//! Used by: `lib.rs`.
//! Tests: `crates/hoistway/tests/cli/run.rs`.

use hoistway_answer::document::{Front, RunLabel};
use hoistway_experiment::limits::REPEATS_MAX;
use hoistway_experiment::{CallerEnvironment, Error, Field, PlannedRun, seeds};
use hoistway_measure::Setting;
use serde_json::Map;

use crate::{RealExperiment, error};

/// Rounds, each of which runs every scheduler as often as it is listed.
pub(crate) fn rows(experiment: &RealExperiment, environment: &dyn CallerEnvironment) -> Result<Vec<PlannedRun>, Error> {
    let RealExperiment { schedulers, tunables, queue_files, .. } = experiment;
    let refuse = |field: Field, value: &str, problem: String| {
        Err(error(field, format!("{} {value}: {problem}", environment.name(field))))
    };
    let schedulers_option = environment.name(Field::Schedulers);
    if schedulers.is_empty() {
        return Err(error(
            Field::Schedulers,
            format!("{schedulers_option}: is empty (expected at least one scheduler, such as none)"),
        ));
    }
    if !(1..=REPEATS_MAX).contains(&experiment.repeats) {
        let problem = format!("expected 1 to {REPEATS_MAX}");
        return refuse(Field::Repeats, &experiment.repeats.to_string(), problem);
    }
    if let Some(file) = queue_files.iter().find(|file| file.file == "scheduler" || file.file.contains('/')) {
        let tunables_option = environment.name(Field::Tunables);
        let problem = format!(
            "expected a file of queue/; {schedulers_option} sets the scheduler, {tunables_option} its tunables"
        );
        return refuse(Field::QueueFiles, &format!("{}={}", file.file, file.text), problem);
    }
    if let Some(tunable) = tunables.iter().find(|tunable| !schedulers.contains(&tunable.scheduler)) {
        let scheduler = &tunable.scheduler;
        let value = format!("{scheduler}.{}={}", tunable.name, tunable.text);
        return refuse(
            Field::Tunables,
            &value,
            format!("{scheduler} does not run (expected one of {schedulers_option})"),
        );
    }
    if let Some(baseline) = experiment.baseline.as_ref().filter(|baseline| !schedulers.contains(baseline)) {
        let expected = schedulers.join(", ");
        let problem = format!("not among the compared schedulers (expected one of {expected})");
        return refuse(Field::Baseline, baseline, problem);
    }
    let registry = environment.schedulers();
    let mut rows: Vec<PlannedRun> = Vec::new();
    let seeds = seeds(experiment.seed, experiment.repeats.saturating_mul(schedulers.len() as u32));
    for scheduler in (0..experiment.repeats).flat_map(|_| schedulers) {
        let repeat = rows.iter().filter(|row| row.scheduler == *scheduler).count();
        let own_tunables = tunables.iter().filter(|tunable| tunable.scheduler == *scheduler);
        let mut setting = Setting::untouched(scheduler);
        queue_files.iter().for_each(|file| setting.write(&file.file, &file.text));
        own_tunables.for_each(|tunable| setting.write(&Setting::file_of(&tunable.name), &tunable.text));
        rows.push(PlannedRun {
            scheduler: scheduler.clone(),
            front: Front::Mq,
            ran_as: None,
            research: registry.find(scheduler).and_then(|row| row.outside_linux()).map(str::to_owned),
            setting,
            variant: RunLabel::new(scheduler, Map::new()),
            setup: 0,
            repeat: repeat as u32,
            seed: seeds[repeat],
        });
    }
    Ok(rows)
}
