//! Reporting groups and phases.

use crate::settings::Settings;

/// Numbers jobs, reporting groups and phases.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) jobs: usize,
    group: u32,
    phase: u32,
}

impl Groups {
    /// Group and phase of the next job.
    pub(super) fn next(&mut self, settings: &Settings) -> (u32, u32) {
        if self.jobs > 0 {
            self.group += u32::from(settings.stonewall || settings.new_group);
            self.phase += u32::from(settings.stonewall);
        }
        self.jobs += 1;
        (self.group, self.phase)
    }
}
