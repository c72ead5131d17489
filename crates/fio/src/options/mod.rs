//! Every option of fio, in one table: its name, its values, its default, what it is for, and what is done with
//! it here. The parser, the help and the documentation come from it; the rows are in [`subjects`](crate::subjects).
//!
//! An option is *honoured*, *ignored* because it cannot change a simulation, or only by something that is no part of
//! one (and named in a notice, in the second case with what is simulated instead), or *not supported*: then it is an error,
//! because the results would be those of another job. There is no fourth way: nothing is read and dropped in silence.

mod index;
mod setter;
mod spec;
mod suggest;

pub(crate) use index::OptionIndex;
pub(crate) use setter::{Setter, U32_MAX};
pub(crate) use spec::{Action, Topic, row};
pub use spec::{OptionSpec, Treatment};

use crate::subjects::SUBJECTS;

/// All options that are known, by subject.
pub fn options() -> impl Iterator<Item = &'static OptionSpec> {
    SUBJECTS.iter().flat_map(|subject| subject.rows)
}
