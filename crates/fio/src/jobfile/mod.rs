//! The text of a job file: lines into sections of options, with includes and variables resolved.
//!
//! This part knows the grammar, not the options: what an option means is in [`options`](mod@crate::options).

mod expand;
mod reader;

pub(crate) use reader::read;
