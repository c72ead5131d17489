//! Parses the text of a job file into sections of options, with includes and variables resolved.
//!
//! Used by: `lib.rs`.
//! Tests: `crates/fio/src/jobfile/expand.rs`, `crates/fio/src/jobfile/reader.rs`, `crates/fio/tests/job_files.rs`.
//!
//! This module knows only the grammar; [`options`](mod@crate::options) defines what options mean.

mod expand;
mod reader;

pub(crate) use reader::read;
