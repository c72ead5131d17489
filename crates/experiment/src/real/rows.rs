//! The runs of an experiment in real time, in order.
//!
//! Used by: `real`.
//! Tests: `crates/hoistway/tests/cli/run.rs`.

use hoistway_answer::document::Front;

use super::variants::{self, Variant};
use super::{RealExperiment, error};
use crate::comparison::environment::Options;
use crate::limits::REPEATS_MAX;
use crate::{CallerEnvironment, Comparison, Error, Field, PlannedRun, seeds};

/// Rounds, each of which runs every scheduler as often as it is listed, and notices about their settings.
pub(crate) fn rows(
    experiment: &RealExperiment,
    environment: &dyn CallerEnvironment,
) -> Result<(Vec<PlannedRun>, Vec<String>), Error> {
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
    let comparison =
        Comparison { tunables: tunables.clone(), queue_files: queue_files.clone(), ..Comparison::default() };
    let options = Options { comparison: &comparison, environment };
    variants::check_names(experiment, &options)?;
    let mut notices = Vec::new();
    let mut variants: Vec<(&String, Vec<Variant>)> = Vec::new();
    for scheduler in schedulers {
        if !variants.iter().any(|(known, _)| *known == scheduler) {
            variants.push((scheduler, variants::of(experiment, scheduler, &options, &mut notices)?));
        }
    }
    let labels = || variants.iter().flat_map(|(_, variants)| variants).map(|variant| &*variant.label.label);
    if let Some(baseline) = experiment
        .baseline
        .as_ref()
        .filter(|baseline| !schedulers.contains(baseline) && !labels().any(|label| label == *baseline))
    {
        let expected = labels().collect::<Vec<_>>().join(", ");
        let problem = format!("not among the compared schedulers (expected one of {expected})");
        return refuse(Field::Baseline, baseline, problem);
    }
    let registry = environment.schedulers();
    let mut rows: Vec<PlannedRun> = Vec::new();
    let seeds = seeds(experiment.seed, experiment.repeats.saturating_mul(schedulers.len() as u32));
    let variants_of = |scheduler: &String| variants.iter().find(|(known, _)| *known == scheduler).map(|(_, own)| own);
    for variant in (0..experiment.repeats).flat_map(|_| schedulers).filter_map(variants_of).flatten() {
        let Variant { setting, label } = variant.clone();
        let repeat = rows.iter().filter(|row| row.variant.label == label.label).count();
        rows.push(PlannedRun {
            scheduler: setting.scheduler.clone(),
            front: Front::Mq,
            ran_as: None,
            research: registry.find(&setting.scheduler).and_then(|row| row.outside_linux()).map(str::to_owned),
            setting,
            variant: label,
            setup: 0,
            repeat: repeat as u32,
            seed: seeds[repeat],
        });
    }
    Ok((rows, notices))
}
