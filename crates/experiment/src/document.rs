//! The result document of runs.

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{FormatTag, REVISION, Run, Statistics};
use hoistway_answer::verdict::{SMALLEST_EFFECT, verdicts};
use hoistway_measure::Direction;
use hoistway_sim::Fate;

use crate::calibrated;
use crate::error::{Error, Field};
use crate::guests::Chosen;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::{repeats, writes};

/// The document of a plan's runs, in their order; without an outcome those that never began.
pub(crate) fn of(plan: &Plan<'_>, outcomes: Vec<Option<Outcome>>, wall_seconds: f64) -> Result<ResultsDocument, Error> {
    let options = &plan.options;
    let partial = outcomes.iter().any(|outcome| outcome.as_ref().is_none_or(|outcome| outcome.is_partial));
    let mut notices = plan.notices.clone();
    if outcomes.iter().flatten().any(|outcome| outcome.is_log_cut) {
        notices.push(format!(
            "{}: a process did more I/Os than its log can hold, and later ones are missing; set log_avg_msec in the job file.",
            options.name(Field::Logs)
        ));
    }
    notices.extend(outcomes.iter().flatten().flat_map(|outcome| &outcome.refused).cloned());
    let fates: Vec<(&str, &[Fate])> = outcomes
        .iter()
        .flatten()
        .filter(|outcome| !outcome.is_partial)
        .map(|outcome| (&*outcome.run.variant.label, &*outcome.fates))
        .collect();
    let written = &plan.setups[0].queue.writes;
    notices.extend(writes::not_done(options, written, &fates));
    let repeats = outcomes.len() / plan.runs_of_repeat().max(1);
    let counted = repeats::counted(outcomes, plan.runs_of_repeat(), |outcome| !outcome.is_partial);
    let runs: Vec<Run> = counted.into_iter().map(|outcome| outcome.run).collect();
    let mut setups = plan.setups.iter().map(|setup| setup.summary()).collect::<Result<Vec<_>, Error>>()?;
    let first = if setups.len() > 1 { setups[0].clone() } else { setups.remove(0) };
    let mut document = ResultsDocument {
        format: FormatTag,
        revision: REVISION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: String::new(),
        arguments: Vec::new(),
        job_file: plan.load.name.clone(),
        job_text: plan.load.text.clone(),
        recording: None,
        device: first.device,
        guests: plan.setups[0].guests.as_ref().map(Chosen::summary).transpose()?,
        kernel: first.kernel,
        cpus: first.cpus,
        hw_queues: first.hw_queues,
        nr_requests: first.nr_requests,
        host: first.host,
        seed: options.comparison.seed,
        seeds: plan.seeds[..repeats].to_vec(),
        setups,
        wall_seconds,
        simulated_ios: runs.iter().map(|run| run.simulated_ios).sum(),
        is_real: false,
        partial,
        notices,
        default_scheduler: first.default_scheduler,
        baseline: options.comparison.baseline.clone(),
        focus: plan.load.page.as_ref().map(|page| page.focus.clone()),
        focuses: options.comparison.focus.clone(),
        smallest_effect: Some(options.comparison.smallest_effect.unwrap_or(SMALLEST_EFFECT)),
        writes: written.iter().map(writes::in_words).collect(),
        doubts: Vec::new(),
        verdicts: Vec::new(),
        conclusion: Vec::new(),
        advice: Vec::new(),
        statistics: None,
        runs,
    };
    let reads = share_of_reads(&document);
    for setup in &plan.setups {
        let found = calibrated::doubts(&setup.workload, &setup.devices, setup.guests.is_some(), reads);
        let new = found.into_iter().filter(|doubt| !document.doubts.contains(doubt)).collect::<Vec<_>>();
        document.doubts.extend(new);
    }
    document.statistics = Some(Statistics::of(&document));
    document.verdicts = verdicts(&document);
    Ok(document)
}

/// Of all I/Os of the first run.
fn share_of_reads(document: &ResultsDocument) -> f64 {
    let directions = || document.runs.iter().take(1).flat_map(|run| &run.jobs).flat_map(|job| &job.directions);
    let reads: u64 =
        directions().filter(|summary| summary.direction == Direction::Read).map(|summary| summary.ios).sum();
    let all: u64 = directions().map(|summary| summary.ios).sum();
    reads as f64 / all.max(1) as f64
}
