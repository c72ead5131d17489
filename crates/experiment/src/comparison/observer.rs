//! Observing and cancelling runs while they are running.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::Run;
use hoistway_measure::DiskSummary;
use hoistway_measure::ProcessResult;
use hoistway_measure::fio::{Output, OutputParameters};
use hoistway_sim::Control;

use crate::comparison::fio_options;

/// Receives notifications of runs.
pub trait RunObserver: Sync {
    /// Wall-clock seconds since an arbitrary start, for the durations in the document. By default always 0.
    fn seconds(&self) -> f64 {
        0.0
    }

    /// Called once before each repeat after the first, when all runs of earlier repeats have begun; returning false stops.
    /// Repeats are numbered from 0.
    fn goes_on(&self, repeat: u32) -> bool {
        let _ = repeat;
        true
    }

    /// Called as soon as a run has ended, in any order and on any thread.
    fn ended(&self, ended: &Ended<'_>) {
        let _ = ended;
    }
}

/// Ignores all notifications.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl RunObserver for Unobserved {}

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The label of the run's variant; label and repeat identify the run.
    pub label: &'a str,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// The run as stored in the document.
    pub run: &'a Run,
    /// What each process measured, with its logs.
    pub processes: &'a [ProcessResult],
    /// Options of the job file's `[global]` section.
    pub(crate) global_options: &'a [(String, String)],
}

impl Ended<'_> {
    /// The run as output of fio; with `bins` it contains all latency bins (fio's json+).
    #[must_use]
    pub fn fio_output(&self, bins: bool) -> Output {
        let disk_util = self.run.disks.iter().map(DiskSummary::as_fio).collect();
        let parameters = OutputParameters { bins, disk_util, ..OutputParameters::default() };
        let mut output = Output::from_processes(self.global_options, self.processes, &parameters);
        fio_options::complete(&mut output);
        output
    }
}

/// Keeps fio's output of each run: figures of single processes, which a document has only per job.
#[derive(Debug, Default)]
pub struct FioOutputs(Mutex<BTreeMap<(String, u32), Output>>);

impl FioOutputs {
    /// Returns the outputs for a document's runs, in their order.
    ///
    /// # Panics
    /// If one of the runs was not observed.
    #[must_use]
    pub fn of_runs(self, document: &ResultsDocument) -> Vec<Output> {
        let mut outputs = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let output_of = |run: &Run| outputs.remove(&(run.variant.label.clone(), run.repeat));
        document.runs.iter().map(output_of).collect::<Option<_>>().expect("each run was observed")
    }
}

impl RunObserver for FioOutputs {
    fn ended(&self, ended: &Ended<'_>) {
        let identity = (ended.label.to_owned(), ended.repeat);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(identity, ended.fio_output(false));
    }
}

/// Controls that cancel runs and report their progress.
#[derive(Debug, Default)]
pub struct Controls(pub(crate) Vec<Control>);

impl Controls {
    pub(crate) fn new(runs: usize) -> Self {
        Controls((0..runs).map(|_| Control::default()).collect())
    }

    /// Ends all runs early. Measurements until then are kept.
    pub fn cancel(&self) {
        self.0.iter().for_each(|run| run.cancelled.store(true, Ordering::Relaxed));
    }

    /// Whether the runs were cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.iter().any(|run| run.cancelled.load(Ordering::Relaxed))
    }

    /// Virtual time that has passed in all runs together, ns.
    #[must_use]
    pub fn reached_ns(&self) -> u64 {
        self.0.iter().fold(0, |sum, run| sum.saturating_add(run.reached_ns.load(Ordering::Relaxed)))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Control> {
        self.0.iter()
    }
}
