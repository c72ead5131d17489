//! Options of a recording, and its end.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What to record, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the recording: its files are `NAME.blktrace.N` and `NAME.host.json`.
    pub name: PathBuf,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// Stop when the files have this size in bytes. The content of the buffers is still written.
    pub bytes_max: Option<u64>,
    /// Buffer per CPU in bytes; by default 16 MiB, but at most 1/32 of the memory for all CPUs together.
    pub buffer_bytes: Option<u64>,
}

/// Why a recording ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The time was over.
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
    /// I/Os.
    pub ios: u64,
    /// Bytes in the files.
    pub bytes: u64,
    /// Events that were lost.
    pub lost: u64,
    /// New warnings, a sentence each; each is reported once.
    pub warnings: Vec<String>,
}

/// The more informative of two ends.
pub(crate) fn worse(one: End, other: End) -> End {
    match (&one, &other) {
        (End::Failed(_), _) | (End::Full, End::Full) => one,
        _ => other,
    }
}

pub(crate) fn failed(error: &io::Error) -> End {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
    if kinds.contains(&error.kind()) { End::Full } else { End::Failed(error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_more_than_a_full_disk_and_that_more_than_the_time() {
        let failure = || End::Failed("x".to_owned());
        assert_eq!(worse(End::Time, End::Full), End::Full);
        assert_eq!(worse(End::Full, failure()), failure());
        assert_eq!(worse(failure(), End::Full), failure());
        assert_eq!(failed(&io::Error::from(io::ErrorKind::StorageFull)), End::Full);
    }
}
