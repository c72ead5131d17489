//! Every option of fio, in one table: its name, its values, its default, what it is for, and what is done with
//! it here. The parser, the help and the documentation come from it; a file owns the options of one subject:
//! their rows, their defaults, whether they fit together, how they land in a process, and what is said of those that do nothing.
//!
//! An option is *honoured*, *ignored* because it cannot change a simulation, or only by something that is no part of
//! one (and named in a notice, in the second case with what is simulated instead), or *not supported*: then it is an error,
//! because the results would be those of another job. There is no fourth way: nothing is read and dropped in silence.

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
pub(crate) use spec::{Action, Topic, row};
pub use spec::{OptionSpec, Treatment};

use hoistway_load::{Caching, LatencyTarget, Pattern, Process, Volume};

use crate::JobFileError;

/// Options about one thing.
pub(crate) struct Subject {
    /// The options.
    pub(crate) rows: &'static [OptionSpec],
    /// Checks the options of a job, and says what they make of its processes. What the load checks by itself is left to it.
    pub(crate) land: fn(&Job<'_>, &mut Process) -> Result<(), JobFileError>,
    /// The fields of a process that it sets and a load may complain of, with the options that they come from.
    pub(crate) fields: &'static [(&'static str, OptionOf)],
}

/// The option that a field comes from.
type OptionOf = fn(&Settings) -> &'static str;

/// In the order in which they land: later ones may look at what earlier ones have set.
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
    /// Options that mean the same whatever the others say are set here at once; the others wait until all are known.
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
    /// For each option of the table: 1 + the index of the line that gave it last; 0 if none did.
    pub(crate) given: Vec<u32>,
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
            given: Vec::new(),
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

/// All options that are known, by subject.
pub fn options() -> impl Iterator<Item = &'static OptionSpec> {
    SUBJECTS.iter().flat_map(|subject| subject.rows)
}
