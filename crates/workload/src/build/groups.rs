//! Reporting groups, phases, and which jobs wait for others or end them.

use crate::JobFileError;
use crate::checks::JobContext;
use crate::error::quoted;
use crate::settings::Settings;
use crate::workload::Ends;

/// Numbers jobs, reporting groups and phases.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) jobs: usize,
    group: u32,
    phase: u32,
    /// Names of the jobs so far.
    names: Vec<String>,
    /// Whom each job would end.
    pub(super) ends: Vec<Ends>,
    /// Whether a job says `exitall`.
    pub(super) exit_all: bool,
}

impl Groups {
    /// Group and phase of the next job.
    pub(super) fn next(&mut self, settings: &Settings) -> (u32, u32) {
        if self.jobs > 0 {
            self.group += u32::from(settings.stonewall || settings.new_group);
            self.phase += u32::from(settings.stonewall);
        }
        self.jobs += 1;
        self.ends.push(settings.ends);
        self.exit_all |= settings.exit_all;
        (self.group, self.phase)
    }

    /// Which job the next one waits for: as in fio, one that stands before it.
    pub(super) fn waited_for(&mut self, context: &JobContext<'_>) -> Result<Option<usize>, JobFileError> {
        let settings = context.settings;
        let job = settings.wait_for.as_ref().map(|name| {
            let job = self.names.iter().rposition(|known| known == name);
            job.ok_or_else(|| {
                let error = context.error("wait_for", &format!("there is no job {} before this one", quoted(name)));
                error.hinting("expected the name of an earlier job")
            })
        });
        self.names.push(settings.name.clone().unwrap_or_else(|| context.section.name.to_string()));
        job.transpose()
    }
}
