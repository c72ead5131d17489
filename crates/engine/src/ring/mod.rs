//! Access to files: jobs go in, results come out, in any order.
//!
//! Used by: `backend`.
//! Tests: `crates/engine/src/ring/uring.rs`.

mod inline;
mod threads;
mod uring;

pub use inline::InlineAccess;
pub use threads::ThreadRing;
pub use uring::Uring;

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::RawSegment;
use crate::wake::Wake;

/// An operation on one of the ring's files, given by its index. Offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Index of the file.
    pub file: u32,
    /// Offset in the file.
    pub offset: u64,
    /// The operation.
    pub kind: JobKind<'a>,
}

/// The operation of a job.
#[derive(Clone, Copy, Debug)]
pub enum JobKind<'a> {
    /// Reads into these segments.
    Read(&'a [RawSegment]),
    /// Writes these segments; durably (`RWF_DSYNC`) if the flag is set.
    Write(&'a [RawSegment], bool),
    /// `fdatasync`.
    Sync,
    /// Deallocates this many bytes, which then read as zeroes (`FALLOC_FL_PUNCH_HOLE`).
    Punch(u64),
    /// Zeroes this many bytes without writing them, and keeps their space allocated (`FALLOC_FL_ZERO_RANGE`).
    Zero(u64),
}

/// A ring: io_uring, or a substitute for it.
pub trait Ring: Send {
    /// Takes a job, and returns whether there was room for it. It comes back from [`reap`](Self::reap) with its tag.
    ///
    /// # Safety
    /// The list of segments must stay in place, and the memory that they refer to must stay allocated and untouched by
    /// others, until the job has come back.
    #[allow(unsafe_code)]
    unsafe fn push(&mut self, tag: u64, job: Job<'_>) -> bool;

    /// Changes the file with this index; jobs in flight keep the file that they have. Jobs on an index without a file fail with `EBADF`.
    fn set_file(&mut self, _index: u32, _file: Option<&Arc<File>>) {}

    /// Submits pushed jobs, and returns those that have ended with the result of the system call: a number of bytes, or
    /// a negative errno. Never sleeps.
    fn reap(&mut self, results: &mut Vec<(u64, i32)>);

    /// Sleeps until a job ends, it is woken, or `timeout` has passed.
    fn sleep(&mut self, timeout: Option<Duration>);

    /// A descriptor that becomes readable whenever a job ends, unless other threads complete jobs.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    fn descriptor(&mut self) -> std::io::Result<Option<BorrowedFd<'_>>> {
        Ok(None)
    }

    /// Makes [`sleep`](Self::sleep) end when this descriptor is readable, too; returns whether it can. The caller then sleeps here
    /// while jobs are in flight, and soon after it has pushed them, so that one system call does both.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    fn watch(&mut self, _descriptor: BorrowedFd<'_>) -> std::io::Result<bool> {
        Ok(false)
    }

    /// Whether the watched descriptor has been readable since the last call.
    fn take_readiness(&mut self) -> bool {
        false
    }

    /// It no longer sleeps: `waker` is to be woken instead.
    fn wake_instead(&mut self, _waker: Arc<dyn Wake>) {}

    /// Its waker.
    fn waker(&self) -> Arc<dyn Wake>;
}
