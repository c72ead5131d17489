//! Errors of a data set.

use std::io;
use std::path::{Path, PathBuf};

use crate::sweep::{Shard, SweepError};

/// Why a data set cannot be read, filled or merged. A damaged file is never changed.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// A file or a folder cannot be accessed.
    #[error("{}: cannot be {done}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The failed operation: `read`, `written`.
        done: &'static str,
        /// The cause.
        error: io::Error,
    },
    /// A file's content does not match its name or checksum.
    #[error("{}: is damaged, {problem}; it was not changed (remove it to repeat its runs)", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A folder contains no sweep.
    #[error("{}: holds no sweep (expected an output folder of `hoistway sweep`)", .0.display())]
    NoSweep(PathBuf),
    /// It contains sweeps, but none of this version.
    #[error("{}: {error}", path.display())]
    Sweep {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: SweepError,
    },
    /// It contains several sweeps, and none was chosen.
    #[error("{}: holds {} sweeps (expected one of {} to be chosen)", path.display(), keys.len(), keys.join(", "))]
    SeveralSweeps {
        /// The folder.
        path: PathBuf,
        /// Their keys.
        keys: Vec<String>,
    },
    /// Runs are missing.
    #[error("{}: {}", path.display(), missing_runs(*.missing, *.points, .shards))]
    Missing {
        /// The folder.
        path: PathBuf,
        /// The number of missing runs.
        missing: u64,
        /// The number of all runs.
        points: u64,
        /// The shards with missing runs and how many each lacks, if the sweep was cut into shards.
        shards: Vec<(Shard, u64)>,
    },
    /// A run cannot begin.
    #[error(transparent)]
    Run(#[from] SweepError),
    /// The table cannot be written.
    #[error("{0}")]
    Table(String),
}

fn missing_runs(missing: u64, points: u64, shards: &[(Shard, u64)]) -> String {
    /// Longer lists are truncated.
    const NAMED_MAX: usize = 8;
    let mut named: Vec<String> =
        shards.iter().take(NAMED_MAX).map(|(shard, runs)| format!("{shard} ({runs} runs)")).collect();
    if shards.len() > NAMED_MAX {
        named.push(format!("{} more", shards.len() - NAMED_MAX));
    }
    let shard_text = match &named[..] {
        [] => String::new(),
        [one] => format!(", of shard {one}"),
        several => format!(", of shards {}", several.join(", ")),
    };
    format!("{missing} of {points} runs are missing{shard_text} (expected all: run `hoistway sweep` again)")
}

impl DatasetError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> DatasetError + use<> {
        let path = path.to_owned();
        move |error| DatasetError::File { path, done: "read", error }
    }

    pub(crate) fn written(path: &Path) -> impl FnOnce(io::Error) -> DatasetError + use<> {
        let path = path.to_owned();
        move |error| DatasetError::File { path, done: "written", error }
    }
}
