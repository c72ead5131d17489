//! What can be seen of runs, and done with them, while they are under way.

use std::sync::atomic::Ordering;

use hoistway_answer::document::Run;
use hoistway_measure::DiskSummary;
use hoistway_measure::ProcessResult;
use hoistway_measure::fio::{Output, OutputParameters};
use hoistway_sim::Control;

use crate::fio_options;

/// Whoever watches runs.
pub trait Watch: Sync {
    /// Seconds of wall-clock time since any moment: durations in the document come from it. By default it stands still.
    fn seconds(&self) -> f64 {
        0.0
    }

    /// Whether repeat number `repeat`, from 0, is wanted as well. It is asked once for each but the first, when the runs of those
    /// before have begun; after a no there are no more.
    fn goes_on(&self, repeat: u32) -> bool {
        let _ = repeat;
        true
    }

    /// Is shown a run as soon as it has ended: in any order, on any thread.
    fn ended(&self, ended: &Ended<'_>) {
        let _ = ended;
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// What the run is of; with its repeat it is unique.
    pub label: &'a str,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// The run as the document will have it.
    pub run: &'a Run,
    /// What each process measured, with its logs.
    pub processes: &'a [ProcessResult],
    /// Options of the job file's `[global]`.
    pub(crate) global_options: &'a [(String, String)],
}

impl Ended<'_> {
    /// fio's document of it with all latency bins (fio's json+).
    #[must_use]
    pub fn fio_json_plus(&self) -> Output {
        fio_document(self.global_options, self.processes, &self.run.disks, true)
    }
}

/// What may be done with runs, and seen of them, while they are under way.
#[derive(Debug, Default)]
pub struct Controls(pub(crate) Vec<Control>);

impl Controls {
    pub(crate) fn new(runs: usize) -> Self {
        Controls((0..runs).map(|_| Control::default()).collect())
    }

    /// Ends all runs early. What they have measured until then counts.
    pub fn cancel(&self) {
        self.0.iter().for_each(|run| run.cancelled.store(true, Ordering::Relaxed));
    }

    /// Virtual time that has passed, in all runs together.
    #[must_use]
    pub fn reached_ns(&self) -> u64 {
        self.0.iter().fold(0, |sum, run| sum.saturating_add(run.reached_ns.load(Ordering::Relaxed)))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Control> {
        self.0.iter()
    }
}

/// What fio would have written of a run.
pub(crate) fn fio_document(
    global_options: &[(String, String)],
    processes: &[ProcessResult],
    disks: &[DiskSummary],
    bins: bool,
) -> Output {
    let disk_util = disks.iter().map(DiskSummary::as_fio).collect();
    let parameters = OutputParameters { bins, disk_util, ..OutputParameters::default() };
    let mut output = Output::from_processes(global_options, processes, &parameters);
    fio_options::complete(&mut output);
    output
}
