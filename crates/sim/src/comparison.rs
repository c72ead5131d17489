//! A comparison: the same load under several schedulers, side by side on all cores.

use std::time::Instant as WallClock;

use hoistway_blk::{NoProbe, Probe};
use hoistway_results::document::{DiskSummary, Front, JobSummary, Run, cpu_us_per_io};
use hoistway_results::fio::{Output, OutputParameters};
use rayon::prelude::*;
use serde_json::{Map, Value};

use crate::scenario::{Control, RunError, RunResult, RunSpec, Scenario};
use crate::simulation::run_probed;
use crate::statistics::Statistics;

/// Runs all `specs`, as many at once as there are cores, and answers in their order. `controls` has one entry for each
/// of them. A run that was cancelled before it began is left out. `seen` is shown what each run measured, by its place
/// among the `specs`, as soon as it has ended: in any order, on any thread.
///
/// The outcome does not depend on how many run at once.
///
/// # Errors
/// The first run that cannot begin.
pub fn compare(
    scenario: &Scenario<'_>,
    specs: &[RunSpec],
    controls: &[Control],
    seen: &(dyn Fn(usize, &Run, &RunResult) + Sync),
) -> Result<(Vec<Run>, bool), RunError> {
    let runs: Vec<Option<(Run, bool)>> = specs
        .par_iter()
        .zip(controls)
        .enumerate()
        .map(|(place, (spec, control))| {
            if control.cancelled.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(None);
            }
            let (run, result, NoProbe) = watched(scenario, spec, control, NoProbe)?;
            seen(place, &run, &result);
            Ok(Some((run, result.partial)))
        })
        .collect::<Result<_, RunError>>()?;
    let partial = runs.iter().any(|run| run.as_ref().is_none_or(|(_, partial)| *partial));
    Ok((runs.into_iter().flatten().map(|(run, _)| run).collect(), partial))
}

/// One run of a comparison, watched by a probe, which is given back, and what was measured.
///
/// # Errors
/// If it cannot begin.
pub fn watched<P: Probe>(
    scenario: &Scenario<'_>,
    spec: &RunSpec,
    control: &Control,
    probe: P,
) -> Result<(Run, RunResult, P), RunError> {
    let begin = WallClock::now();
    let both = (Statistics::new(scenario, spec), probe);
    let (result, (statistics, probe)) = run_probed(scenario, spec, control, both)?;
    let disks = statistics.summaries(scenario, result.simulated);
    let wall_seconds = begin.elapsed().as_secs_f64();
    let disk_util = disks.iter().map(DiskSummary::as_fio).collect();
    let parameters = OutputParameters { disk_util, ..OutputParameters::default() };
    let tunables: Map<String, Value> = spec
        .tunables
        .iter()
        .map(|(name, text)| {
            (name.clone(), text.parse::<i64>().map_or_else(|_| Value::from(text.as_str()), Value::from))
        })
        .collect();
    let run = Run {
        scheduler: spec.label(),
        front: if scenario.queue.schedulers.is_legacy(&spec.scheduler) { Front::Legacy } else { Front::Mq },
        tunables,
        repeat: 0,
        seed: spec.seed,
        simulated_seconds: result.simulated.as_secs_f64(),
        simulated_ios: result.ios,
        wall_seconds,
        cpu_us_per_io: cpu_us_per_io(&result.processes),
        disks,
        page_cache: result.page_cache.clone(),
        jobs: JobSummary::from_processes(&result.processes),
        fio: Output::from_processes(&scenario.workload.options, &result.processes, &parameters),
    };
    Ok((run, result, probe))
}
