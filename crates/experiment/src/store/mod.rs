//! Data sets of [sweeps](crate::sweep) on disk.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/experiment/tests/sweep.rs`, `crates/hoistway/tests/sweep/data_sets.rs`.
//!
//! ```text
//! DIR/sweeps/KEY.json      a sweep, with all files that its runs read
//! DIR/runs/KEY.jsonl       finished runs: a header line, then one line per run
//! ```
//!
//! A file gets its name when it is complete and on disk, and never changes: a process that is killed leaves its finished runs
//! and at most a hidden file. Several processes on several machines may share a folder. Runs are found by their keys, so a
//! folder may contain several sweeps, and a run that two of them share is made once.
//!
//! Modules: `folder` (atomic files), `runs_file` (their format), `index` (existing runs), `work` (makes the missing runs),
//! `merge` (all runs in the order of their points, into a `table`).

mod error;
mod folder;
mod index;
mod merge;
mod runs_file;
mod table;
mod work;

pub use error::DatasetError;
pub use folder::{Folder, complete_file};
pub use index::Index;
pub use merge::{Merged, merge, merge_csv};
pub use runs_file::RunsFile;
pub use table::{Cell, Column, Kind, Table};
pub use work::{Work, missing};
