//! The runs that the options ask for.

use anyhow::{Result, bail};
use hoistway_answer::document::{Front, RunVariant};
use hoistway_experiment::{RunRow, seeds};
use serde_json::Map;

use super::arguments::Arguments;
use crate::commands::compare::asked;

/// The runs in their order: every scheduler of the list, as often as it was named, then all of them again for the next repeat.
pub(super) fn rows(arguments: &Arguments) -> Result<Vec<RunRow>> {
    let schedulers = &arguments.scheduler;
    let queue_files = asked::queue_files(&arguments.run.queue, None)?;
    if let Some(file) = queue_files.iter().find(|file| file.file == "scheduler" || file.file.contains('/')) {
        bail!(
            "--queue {}={}: expected a file of queue/ other than the scheduler (--scheduler) and its own (--set)",
            file.file,
            file.text
        );
    }
    let tunables = asked::each(&arguments.run.set, asked::tunable)?;
    if let Some(tunable) = tunables.iter().find(|tunable| !schedulers.contains(&tunable.scheduler)) {
        let (scheduler, name, text) = (&tunable.scheduler, &tunable.name, &tunable.text);
        bail!("--set {scheduler}.{name}={text}: {scheduler} does not run (expected one of --scheduler)");
    }
    if let Some(baseline) = arguments.judging.baseline.as_ref().filter(|baseline| !schedulers.contains(baseline)) {
        let known = schedulers.join(", ");
        bail!("--baseline {baseline}: not among the schedulers that are compared (expected one of {known})");
    }
    let mut rows: Vec<RunRow> = Vec::new();
    let seeds = seeds(arguments.run.seed, arguments.repeat.saturating_mul(schedulers.len() as u32));
    for scheduler in (0..arguments.repeat).flat_map(|_| schedulers) {
        let repeat = rows.iter().filter(|row| row.scheduler == *scheduler).count();
        let own = tunables.iter().filter(|tunable| tunable.scheduler == *scheduler);
        rows.push(RunRow {
            scheduler: scheduler.clone(),
            front: Front::Mq,
            ran_as: None,
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
