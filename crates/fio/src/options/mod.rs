//! Every option of fio in one table: its name, values, default, purpose, and treatment. The parser, the help and the
//! documentation use this table. Each file contains the options of one subject: their rows and defaults, checks of
//! their combinations, how they set a process, and notices about those without effect.
//!
//! Used by: `build`, `jobfile`, `command_line`, `iolog`; crate `experiment`.
//! Tests: `crates/fio/src/options/index.rs`, `crates/fio/tests/job_files.rs`, `crates/fio/tests/fio.rs`.
//!
//! An option is *honoured*, *ignored* (with a notice) because it cannot change a simulation or only affects something
//! that is not simulated, or *not supported*, which is an error, because the results would be those of a different job.
//! No option is silently dropped.

mod depth;
mod distribution;
pub(crate) mod files;
pub(crate) mod groups;
mod ignored;
mod index;
mod job;
mod latency;
mod logs;
mod pace;
mod pattern;
pub(crate) mod priority;
mod refused;
mod replay;
mod setter;
mod spec;
mod steady;
mod verify;
mod volume;
mod zones;

pub(crate) use groups::PROCESSES_MAX;
pub(crate) use index::OptionIndex;
pub(crate) use job::Job;
pub(crate) use replay::ReplaySettings;
pub(crate) use setter::{Setter, U32_MAX};
pub use spec::OptionSpec;
pub(crate) use spec::{Action, Topic, row};

use hoistway_load::{Caching, LatencyTarget, Pattern, Process, Volume};

use crate::JobFileError;

/// The options of one subject.
pub(crate) struct Subject {
    /// The options.
    pub(crate) rows: &'static [OptionSpec],
    /// Checks combinations of a job's options, and applies them to its processes. The load makes further checks itself.
    pub(crate) apply: fn(&Job<'_>, &mut Process) -> Result<(), JobFileError>,
    /// The fields of a process that a load's error may name, with the options that set them.
    pub(crate) fields: &'static [(&'static str, OptionOf)],
}

/// Returns the option that set a field.
type OptionOf = fn(&Settings) -> &'static str;

/// All subjects in the order of application: later ones may depend on fields that earlier ones have set.
pub(crate) const SUBJECTS: [Subject; 15] = [
    groups::SUBJECT,
    files::SUBJECT,
    depth::SUBJECT,
    volume::SUBJECT,
    pattern::SUBJECT,
    zones::SUBJECT,
    verify::SUBJECT,
    pace::SUBJECT,
    latency::SUBJECT,
    steady::SUBJECT,
    priority::SUBJECT,
    replay::SUBJECT,
    logs::SUBJECT,
    refused::SUBJECT,
    ignored::SUBJECT,
];

/// The options of one job as typed values. Defaults are fio's.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Options that are independent of all others are set here directly; the others are applied once all are known.
    pub(crate) process: Process,
    pub(crate) groups: groups::Groups,
    pub(crate) files: files::Files,
    depth: depth::Depth,
    pattern: pattern::Pattern,
    zones: zones::Zones,
    verify: verify::Verify,
    pace: pace::Pace,
    latency: LatencyTarget,
    steady: steady::Steady,
    priority: priority::Priority,
    pub(crate) replay: ReplaySettings,
    /// For each option of the table: 1 + the index of the line that set it last; 0 if none did.
    pub(crate) last_entry: Vec<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        let caching = Caching { direct: false, ..Caching::default() };
        Settings {
            process: Process { caching, ..Process::default() },
            groups: Default::default(),
            files: Default::default(),
            depth: Default::default(),
            pattern: Default::default(),
            zones: Default::default(),
            verify: Default::default(),
            pace: Default::default(),
            latency: Default::default(),
            steady: Default::default(),
            priority: Default::default(),
            replay: Default::default(),
            last_entry: Vec::new(),
        }
    }
}

impl Settings {
    fn pattern(&mut self) -> &mut Pattern {
        self.process.plan.pattern_mut()
    }

    fn volume(&mut self) -> &mut Volume {
        &mut self.pattern().volume
    }
}

/// All known options, by subject.
pub fn options() -> impl Iterator<Item = &'static OptionSpec> {
    SUBJECTS.iter().flat_map(|subject| subject.rows)
}
