//! Parses the text of a job file into sections of options, with includes and variables resolved.
//!
//! This module knows only the grammar; [`options`](mod@crate::options) defines what options mean.

mod expand;
mod reader;

pub(crate) use reader::read;
