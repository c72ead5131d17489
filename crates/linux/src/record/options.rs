//! Options, progress and end of a recording.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What to record, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the recording: its files are `NAME.blktrace.N` and `NAME.host.json`.
    pub name: PathBuf,
    /// Stop after this time; `None` for no limit.
    pub time: Option<Duration>,
    /// Stop when the files have this size in bytes; events still in the buffers are then written as well. `None` for no
    /// limit.
    pub bytes_max: Option<u64>,
    /// Buffer per CPU in bytes; `None` for 16 MiB, but at most 1/32 of the memory for all CPUs together.
    pub buffer_bytes: Option<u64>,
}

/// Why a recording ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The requested time elapsed.
    Time,
    /// The files reached their maximum size.
    Size,
    /// The caller stopped it.
    Caller,
    /// The file system is full.
    Full,
    /// A file could not be written, or a buffer could not be read.
    Failed(String),
}

/// The progress of a recording.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// I/Os so far.
    pub ios: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Warnings since the last report, one sentence each.
    pub warnings: Vec<String>,
}

/// The more informative of two ends: a failure, then a full file system.
pub(crate) fn more_severe(first: End, second: End) -> End {
    match (&first, &second) {
        (End::Failed(_), _) | (End::Full, End::Full) => first,
        _ => second,
    }
}

pub(crate) fn end_for(error: &io::Error) -> End {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
    if kinds.contains(&error.kind()) { End::Full } else { End::Failed(error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_more_than_a_full_disk_and_that_more_than_the_time() {
        let failure = || End::Failed("x".to_owned());
        assert_eq!(more_severe(End::Time, End::Full), End::Full);
        assert_eq!(more_severe(End::Full, failure()), failure());
        assert_eq!(more_severe(failure(), End::Full), failure());
        assert_eq!(end_for(&io::Error::from(io::ErrorKind::StorageFull)), End::Full);
    }
}
