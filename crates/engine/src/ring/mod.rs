//! The way to the system's files: jobs go in, results come out, in any order.

mod threads;
mod uring;

pub use threads::ThreadRing;
pub use uring::Uring;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::RawSegment;
use crate::wake::Wake;

/// What a ring can do to the files that it was made for, which jobs name by their place among them. Places and lengths are in
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Which file.
    pub file: u32,
    /// Where in it.
    pub at: u64,
    /// What to do there.
    pub what: What<'a>,
}

/// What a job does.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// Fills these.
    Read(&'a [RawSegment]),
    /// Writes these, and durably so before it ends if that is asked for (`RWF_DSYNC`).
    Write(&'a [RawSegment], bool),
    /// `fdatasync`.
    Sync,
    /// Deallocates this many bytes, which read as zeroes then (`FALLOC_FL_PUNCH_HOLE`).
    Punch(u64),
    /// Zeroes this many bytes without writing them, and keeps their space (`FALLOC_FL_ZERO_RANGE`).
    Zero(u64),
}

/// A ring: io_uring, or what stands in for it.
pub trait Ring: Send {
    /// Takes a job, and returns whether there was room for it. It comes back from [`reap`](Self::reap) with its tag.
    ///
    /// # Safety
    /// The list of segments stays where it is, and what they name stays allocated and untouched by others, until the job
    /// has come back.
    #[allow(unsafe_code)]
    unsafe fn push(&mut self, tag: u64, job: Job<'_>) -> bool;

    /// Submits pushed jobs, and takes those that have ended, with what the system call returned: a number of
    /// bytes, or a negative errno. Never sleeps.
    fn reap(&mut self, results: &mut Vec<(u64, i32)>);

    /// Sleeps until a job ends, it is woken, or `most` has passed.
    fn sleep(&mut self, most: Option<Duration>);

    /// What becomes readable whenever a job comes back, if no other thread brings it.
    ///
    /// # Errors
    /// If the system refuses it.
    fn descriptor(&mut self) -> std::io::Result<Option<BorrowedFd<'_>>> {
        Ok(None)
    }

    /// It does not sleep any longer: this is woken instead.
    fn wake_instead(&mut self, _waker: Arc<dyn Wake>) {}

    /// What wakes it.
    fn waker(&self) -> Arc<dyn Wake>;
}
