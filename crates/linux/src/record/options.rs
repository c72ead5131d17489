//! What a recording is asked for, and how it ends.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What is recorded, and until when.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the recording: its files are `NAME.blktrace.N` and `NAME.host.json`.
    pub name: PathBuf,
    /// Ends after this time.
    pub time: Option<Duration>,
    /// Ends when the files have this size, bytes. What the buffers hold then is written, too.
    pub bytes_max: Option<u64>,
    /// Buffer of each CPU, bytes; by default 16 MiB, but not more than 1/32 of the memory for all of them.
    pub buffer_bytes: Option<u64>,
}

/// Why a recording ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// Its time was over.
    Time,
    /// Its files have the size that they may have.
    Size,
    /// The caller ended it.
    Caller,
    /// There is no room for more.
    Full,
    /// A file could not be written, or a buffer not be read.
    Failed(String),
}

/// How far a recording is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// I/Os.
    pub ios: u64,
    /// Bytes in the files.
    pub bytes: u64,
    /// Events that were lost.
    pub lost: u64,
    /// What has to be said now: a sentence each, once.
    pub warnings: Vec<String>,
}

/// The end of two that says more.
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
