//! Reporting groups, phases (between stonewalls), and dependencies between jobs: `wait_for` and `exitall`.

use hoistway_load::{Ends, Schedule};

use crate::JobFileError;
use crate::error::quoted;
use crate::options::Job;
use crate::options::groups::Groups as Settings;

/// Numbers jobs, reporting groups and phases.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) jobs: usize,
    group: u32,
    phase: u32,
    /// Names of the jobs so far.
    names: Vec<String>,
    /// For each job, which processes it ends with `exitall`.
    pub(super) ends: Vec<Ends>,
    /// Whether any job sets `exitall`.
    pub(super) exit_all: bool,
}

impl Groups {
    /// Sets job, group and phase of the next job.
    pub(super) fn next(&mut self, settings: &Settings, schedule: &mut Schedule) {
        if self.jobs > 0 {
            self.group += u32::from(settings.stonewall || settings.new_group);
            self.phase += u32::from(settings.stonewall);
        }
        self.jobs += 1;
        self.ends.push(settings.ends.unwrap_or(Ends::Group));
        self.exit_all |= settings.exit_all;
        (schedule.job, schedule.group, schedule.phase) = (self.jobs - 1, self.group, self.phase);
    }

    /// Records the name of this job and returns the index of the job that it waits for; as in fio, that must be an earlier one.
    pub(super) fn resolve_wait_for(&mut self, job: &Job<'_>) -> Result<Option<usize>, JobFileError> {
        let settings = &job.settings.groups;
        let waited_for = settings.wait_for.as_ref().map(|name| {
            let earlier = self.names.iter().rposition(|known| known == name);
            earlier.ok_or_else(|| {
                let error = job.error("wait_for", &format!("there is no job {} before this one", quoted(name)));
                error.with_hint("expected the name of an earlier job")
            })
        });
        self.names.push(settings.name.clone().unwrap_or_else(|| job.section.name.to_string()));
        waited_for.transpose()
    }
}
