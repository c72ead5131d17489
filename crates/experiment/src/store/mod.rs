//! Data sets of [sweeps](crate::sweep) on disk.
//!
//! ```text
//! DIR/sweeps/KEY.json      a sweep, with all that its runs read
//! DIR/runs/KEY.jsonl       some finished runs: a line that says which, then a line each
//! ```
//!
//! A file has its name when it is complete and on disk, and is never changed: whatever is killed leaves what was finished, and a
//! hidden file at most. Several processes, on several machines, may fill a folder that they share. Runs are found by their keys,
//! so a folder may hold those of several sweeps, and what two of them have in common is run once.
//!
//! The way: `folder` (files that are complete or absent), `runs_file` (what is in them), `index` (which runs there are), `work`
//! (the missing ones are run), `merge` (all of them, in the order of their points, into a `table`).

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
