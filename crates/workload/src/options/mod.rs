//! Every option of fio, in one table: its name, its values, its default, what it is for, and what is done with
//! it here. The parser, the help and the documentation come from it.
//!
//! An option is *honoured*, *ignored* because it cannot change a simulation, or only by something that is no part of
//! one (and named in a notice, in the second case with what is simulated instead), or *not supported*: then it is an error, because the results would be those of another job. There is no fourth way:
//! nothing is read and dropped in silence.

mod depth;
mod distribution;
mod files;
mod groups;
mod ignored;
mod index;
mod latency;
mod logs;
mod pace;
mod pattern;
mod priority;
mod refused;
mod replay;
mod setter;
mod spec;
mod steady;
mod suggest;
mod verify;
mod volume;
mod zones;

pub(crate) use groups::PROCESSES_MAX;
pub(crate) use index::OptionIndex;
pub(crate) use spec::{Action, Subject};
pub use spec::{OptionSpec, Treatment};

/// The parts of the table, by subject.
const TABLE: [&[OptionSpec]; 15] = [
    groups::OPTIONS,
    files::OPTIONS,
    volume::OPTIONS,
    zones::OPTIONS,
    pattern::OPTIONS,
    depth::OPTIONS,
    verify::OPTIONS,
    pace::OPTIONS,
    latency::OPTIONS,
    steady::OPTIONS,
    priority::OPTIONS,
    replay::OPTIONS,
    logs::OPTIONS,
    refused::OPTIONS,
    ignored::OPTIONS,
];

/// How many options the table has.
pub(crate) const COUNT: usize = {
    let mut count = 0;
    let mut part = 0;
    while part < TABLE.len() {
        count += TABLE[part].len();
        part += 1;
    }
    count
};

/// All options that are known, by subject.
pub fn options() -> impl Iterator<Item = &'static OptionSpec> {
    TABLE.into_iter().flatten()
}
