//! The result of a run.

use std::borrow::Cow;

use hoistway_answer::document::{Run, SetupSummary};
use hoistway_answer::rows::{OperationRow, RunRow};
use serde::{Deserialize, Serialize};

/// The figures of a run. They do not depend on the time, machine and speed of the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRecord<'a> {
    /// The name of the load.
    pub load: Cow<'a, str>,
    /// The row of the run.
    pub run: RunRow<'a>,
    /// Virtual duration, s.
    pub simulated_seconds: f64,
    /// I/Os simulated.
    pub simulated_ios: u64,
    /// Processes that ended with an error, in all jobs.
    pub failed_processes: u32,
    /// The figures of each operation of each job.
    pub operations: Vec<OperationRow<'a>>,
}

impl<'a> RunRecord<'a> {
    pub(super) fn of(load: &'a str, setup: &'a SetupSummary, run: &'a Run) -> RunRecord<'a> {
        RunRecord {
            load: Cow::Borrowed(load),
            run: RunRow::at(setup, run),
            simulated_seconds: run.simulated_seconds,
            simulated_ios: run.simulated_ios,
            failed_processes: run.jobs.iter().map(|job| job.failed_processes()).sum(),
            operations: OperationRow::all_of(run).collect(),
        }
    }
}
