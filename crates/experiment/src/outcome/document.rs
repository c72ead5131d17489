//! The result document of runs, in virtual or in real time.

use hoistway_answer::document::{FormatTag, GuestsSummary, JobSummary, REVISION, RealPlace, Run, SetupSummary};
use hoistway_answer::verdict::SMALLEST_EFFECT;
use hoistway_answer::{FigureName, ResultsDocument, WeightedFigure};
use hoistway_measure::Operation;
use hoistway_sim::Fate;

use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::notices::{behind, borders, calibrated, io_cost, io_latency, stacked};
use crate::outcome::RunOutcome;
use crate::plan::Plan;
use crate::plan::guests::ChosenGuests;
use crate::plan::{repeats, writes};

/// All parts of an experiment's document except its runs.
#[derive(Clone, Debug)]
pub struct DocumentHead {
    /// Path of the job file, as given.
    pub job_file: String,
    /// Its text.
    pub job_text: String,
    /// The setups that the runs took place in, at least one.
    pub setups: Vec<SetupSummary>,
    /// The guests that the load ran in, if any.
    pub guests: Option<GuestsSummary>,
    /// The seed that the repeats' seeds are derived from.
    pub seed: u64,
    /// The seeds of all repeats that were started.
    pub seeds: Vec<u64>,
    /// What ran the load in real time, on the device that the setup names; `None` if it was simulated.
    pub real_place: Option<RealPlace>,
    /// Notices about the figures, one sentence each.
    pub notices: Vec<String>,
    /// The option that turns on logs of single I/Os, as its caller names it.
    pub logs_option: String,
    /// The baseline of comparisons.
    pub baseline: Option<String>,
    /// The figure that the load's author chose, if any.
    pub focus: Option<FigureName>,
    /// The figures that the user chose.
    pub focuses: Vec<WeightedFigure>,
    /// Smaller differences, as a fraction, are ignored; `None` for the default.
    pub smallest_effect: Option<f64>,
    /// The writes to files of `queue/` during each run.
    pub writes: Vec<String>,
    /// Reasons for doubt that the results themselves do not show.
    pub doubts: Vec<String>,
}

impl DocumentHead {
    /// Makes the document of these runs, which is not [judged](ResultsDocument::judged) yet, which are ordered by repeat with `of_repeat` runs in each; `None` stands for a run that
    /// never began.
    ///
    /// # Panics
    /// If there is no setup.
    #[must_use]
    pub fn document(
        self,
        outcomes: Vec<Option<RunOutcome>>,
        runs_per_repeat: usize,
        wall_seconds: f64,
    ) -> ResultsDocument {
        let DocumentHead { job_file, job_text, mut setups, guests, seed, seeds, real_place, mut notices, .. } = self;
        let partial = outcomes.iter().any(|outcome| outcome.as_ref().is_none_or(|outcome| outcome.is_partial));
        if outcomes.iter().flatten().any(|outcome| outcome.is_log_cut) {
            notices.push(format!(
                "{}: a process did more I/Os than its log can hold, and later ones are missing; set log_avg_msec in the job file.",
                self.logs_option
            ));
        }
        notices.extend(outcomes.iter().flatten().flat_map(|outcome| &outcome.refused).cloned());
        let counted = repeats::counted(outcomes, runs_per_repeat, |outcome| !outcome.is_partial);
        let runs: Vec<Run> = counted.into_iter().map(|outcome| outcome.run).collect();
        let first = if setups.len() > 1 { setups[0].clone() } else { setups.remove(0) };
        ResultsDocument {
            format: FormatTag,
            revision: REVISION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: String::new(),
            arguments: Vec::new(),
            job_file,
            job_text,
            recording: None,
            window: None,
            device: first.device,
            guests,
            kernel: first.kernel,
            cpus: first.cpus,
            hw_queues: first.hw_queues,
            nr_requests: first.nr_requests,
            host: first.host,
            seed,
            seeds,
            setups,
            wall_seconds,
            simulated_ios: runs.iter().map(|run| run.simulated_ios).sum(),
            is_real: real_place.is_some(),
            real_place,
            partial,
            notices,
            default_scheduler: first.default_scheduler,
            disk_groups: Vec::new(),
            baseline: self.baseline,
            focus: self.focus,
            focuses: self.focuses,
            smallest_effect: Some(self.smallest_effect.unwrap_or(SMALLEST_EFFECT)),
            writes: self.writes,
            doubts: self.doubts,
            device_checks: Vec::new(),
            verdicts: Vec::new(),
            conclusion: Vec::new(),
            advice: Vec::new(),
            statistics: None,
            runs,
        }
    }
}

/// Makes the document of a plan's runs, in order; an outcome of `None` stands for a run that never began.
pub(crate) fn for_plan(
    plan: &Plan<'_>,
    outcomes: Vec<Option<RunOutcome>>,
    wall_seconds: f64,
) -> Result<ResultsDocument, Error> {
    let options = &plan.options;
    let comparison = options.comparison;
    let written = &plan.setups[0].queue.writes;
    let fates: Vec<(&str, &[Fate])> = outcomes
        .iter()
        .flatten()
        .filter(|outcome| !outcome.is_partial)
        .map(|outcome| (&*outcome.run.variant.label, &*outcome.fates))
        .collect();
    let skipped_writes = writes::skipped_write_notices(options, written, &fates);
    let runs_per_repeat = plan.runs_per_repeat();
    let repeats = outcomes.len() / runs_per_repeat.max(1);
    let head = DocumentHead {
        job_file: plan.load.name.clone(),
        job_text: plan.load.text.clone(),
        setups: plan.setups.iter().map(|setup| setup.summary()).collect::<Result<_, Error>>()?,
        guests: plan.setups[0].guests.as_ref().map(ChosenGuests::summary).transpose()?,
        seed: comparison.seed,
        seeds: plan.seeds[..repeats].to_vec(),
        real_place: None,
        notices: plan.notices.clone(),
        logs_option: options.name(Field::Logs),
        baseline: comparison.baseline.clone(),
        focus: plan.load.focus(),
        focuses: comparison.focus.clone(),
        smallest_effect: comparison
            .smallest_effect
            .or_else(|| calibrated::smallest_effect(plan.setups.iter().flat_map(|setup| &setup.devices))),
        writes: written.iter().map(writes::write_text).collect(),
        doubts: Vec::new(),
    };
    let mut document = head.document(outcomes, runs_per_repeat, wall_seconds);
    document.notices.extend(skipped_writes);
    document.notices.extend(io_cost::summaries(&document.runs));
    document.notices.extend(io_latency::summaries(&document.runs));
    if let [setup] = &plan.setups[..] {
        document.disk_groups = setup.disk_groups();
    }
    let reads = share_of_reads(&document);
    let outstanding = plan.load.recorded.as_ref().map(|recorded| recorded.outstanding());
    for setup in &plan.setups {
        let of_disks = setup.workload_of_disks();
        let mut doubts = calibrated::doubts(
            &of_disks,
            &setup.devices,
            setup.guests.is_some(),
            calibrated::Observed { reads, outstanding },
        );
        doubts.extend(behind::doubts(&setup.workload, &document.runs));
        doubts.extend(borders::doubts(&of_disks, &setup.devices, setup.guests.is_some(), &document.runs));
        doubts.extend(io_cost::doubt(&document.runs));
        doubts.extend(io_latency::doubts(&document.runs, document.nr_requests));
        doubts.extend(stacked::doubt(&setup.workload, setup.devices.len(), setup.guests.is_some()));
        let new = doubts.into_iter().filter(|doubt| !document.doubts.contains(doubt)).collect::<Vec<_>>();
        document.doubts.extend(new);
    }
    Ok(document)
}

/// The share of reads among all I/Os of the first run.
fn share_of_reads(document: &ResultsDocument) -> f64 {
    let transfers = || document.runs.iter().take(1).flat_map(|run| &run.jobs).flat_map(JobSummary::transfers);
    let reads: u64 =
        transfers().filter(|summary| summary.operation == Operation::Read).map(|summary| summary.ios).sum();
    let all: u64 = transfers().map(|summary| summary.ios).sum();
    reads as f64 / all.max(1) as f64
}
