//! `flow`: balances of I/O between jobs.

use std::collections::HashMap;

use hoistway_load::{Flow, Process, Schedule};

use crate::JobFileError;
use crate::options::Job;

/// The jobs of each balance so far, by `flow_id`.
#[derive(Default)]
pub(super) struct Flows {
    by_id: HashMap<u32, Members>,
}

struct Members {
    phase: u32,
    /// The `wait_for` of its jobs, which must be the same for all.
    wait_for: Option<usize>,
}

impl Flows {
    /// Adds a job to its balance, if it has one. As in fio (tried with 3.33), its weight counts before it starts, so
    /// others could wait for a job that waits for them.
    pub(super) fn join(&mut self, job: &Job<'_>, process: &Process) -> Result<(), JobFileError> {
        let Some(Flow { id, .. }) = process.pace.flow else { return Ok(()) };
        let Schedule { phase, wait_for, .. } = process.schedule;
        let members = self.by_id.entry(id).or_insert(Members { phase, wait_for });
        if (members.phase, members.wait_for) == (phase, wait_for) {
            return Ok(());
        }
        let message = format!("the job starts later than others with flow_id={id}, which would wait for it, as in fio");
        Err(job.error("flow", &message).with_hint("give jobs that do not run at the same time different flow_ids"))
    }
}
