//! A substitute for io_uring where it is missing or forbidden, as often in containers: threads that make the same
//! system calls.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use rustix::io::{Errno, ReadWriteFlags, preadv, pwritev2};

use super::{Job, JobKind, Ring};
use crate::memory::RawSegment;
use crate::wake::{Parker, Wake};

/// Maximum threads of a ring: enough to keep a disk busy, and few enough to start for each worker.
const THREADS_MAX: u32 = 16;

/// Threads as a substitute for a ring of the kernel.
pub struct ThreadRing {
    files: Vec<Option<Arc<File>>>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    jobs: Mutex<Jobs>,
    pushed: Condvar,
    results: Mutex<Vec<(u64, i32)>>,
    parker: Arc<Parker>,
}

#[derive(Default)]
struct Jobs {
    queued: VecDeque<QueuedJob>,
    is_closed: bool,
}

/// A job with the address of its segments, to be sent to another thread.
struct QueuedJob {
    tag: u64,
    file: Option<Arc<File>>,
    offset: u64,
    kind: Call,
}

/// The kinds of [`JobKind`].
#[derive(Clone, Copy)]
enum Call {
    Read(List),
    Write(List, bool),
    Sync,
    Punch(u64),
    Zero(u64),
}

/// A list of segments.
#[derive(Clone, Copy)]
struct List(*const RawSegment, usize);

// SAFETY: `push` requires the list to stay in place, and only the thread that has taken the job uses it.
unsafe impl Send for List {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadRing {
    /// A ring for this many jobs at a time, over these files.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn new(jobs: u32, files: &[Option<Arc<File>>]) -> std::io::Result<ThreadRing> {
        let shared = Arc::new(Shared {
            jobs: Mutex::default(),
            pushed: Condvar::new(),
            results: Mutex::default(),
            parker: Arc::default(),
        });
        let mut ring = ThreadRing { files: files.to_vec(), shared: Arc::clone(&shared), threads: Vec::new() };
        for _ in 0..jobs.clamp(1, THREADS_MAX) {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("hoistway-io".into());
            ring.threads.push(thread.spawn(move || shared.work())?);
        }
        Ok(ring)
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let jobs = lock(&self.jobs);
            let wait = self.pushed.wait_while(jobs, |jobs| jobs.queued.is_empty() && !jobs.is_closed);
            let Some(job) = wait.unwrap_or_else(PoisonError::into_inner).queued.pop_front() else { return };
            let result = self.carry_out(&job).map_or_else(|errno| -errno.raw_os_error(), |bytes| bytes as i32);
            lock(&self.results).push((job.tag, result));
            self.parker.wake();
        }
    }

    fn carry_out(&self, job: &QueuedJob) -> Result<usize, Errno> {
        let (file, offset) = (job.file.as_ref().ok_or(Errno::BADF)?, job.offset);
        let allocate = |bytes, mode: FallocateFlags| fallocate(file, mode | FallocateFlags::KEEP_SIZE, offset, bytes);
        match job.kind {
            Call::Read(list) => preadv(file, &mut list.slices_mut(), offset),
            Call::Write(list, is_durable) => {
                let flags = if is_durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
                pwritev2(file, &list.slices(), offset, flags)
            }
            Call::Sync => fdatasync(file).map(|()| 0),
            Call::Punch(bytes) => allocate(bytes, FallocateFlags::PUNCH_HOLE).map(|()| 0),
            Call::Zero(bytes) => allocate(bytes, FallocateFlags::ZERO_RANGE).map(|()| 0),
        }
    }
}

impl List {
    fn of(segments: &[RawSegment]) -> List {
        List(segments.as_ptr(), segments.len())
    }

    fn segments(&self) -> &[RawSegment] {
        // SAFETY: the list stays in place until the job has come back, as `push` requires.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }
    }

    fn slices_mut(&self) -> Vec<IoSliceMut<'_>> {
        // SAFETY: they stay allocated and untouched by others until the job has come back.
        let slice = |segment: &RawSegment| unsafe { std::slice::from_raw_parts_mut(segment.start, segment.len) };
        self.segments().iter().map(|segment| IoSliceMut::new(slice(segment))).collect()
    }

    fn slices(&self) -> Vec<IoSlice<'_>> {
        // SAFETY: as above.
        let slice = |segment: &RawSegment| unsafe { std::slice::from_raw_parts(segment.start, segment.len) };
        self.segments().iter().map(|segment| IoSlice::new(slice(segment))).collect()
    }
}

impl Ring for ThreadRing {
    unsafe fn push(&mut self, tag: u64, Job { file, offset, kind }: Job<'_>) -> bool {
        let kind = match kind {
            JobKind::Read(list) => Call::Read(List::of(list)),
            JobKind::Write(list, is_durable) => Call::Write(List::of(list), is_durable),
            JobKind::Sync => Call::Sync,
            JobKind::Punch(bytes) => Call::Punch(bytes),
            JobKind::Zero(bytes) => Call::Zero(bytes),
        };
        let file = self.files.get(file as usize).cloned().flatten();
        lock(&self.shared.jobs).queued.push_back(QueuedJob { tag, file, offset, kind });
        self.shared.pushed.notify_one();
        true
    }

    fn set_file(&mut self, index: u32, file: Option<&Arc<File>>) {
        let index = index as usize;
        self.files.resize(self.files.len().max(index + 1), None);
        self.files[index] = file.cloned();
    }

    fn reap(&mut self, results: &mut Vec<(u64, i32)>) {
        results.append(&mut lock(&self.shared.results));
    }

    fn sleep(&mut self, timeout: Option<Duration>) {
        self.shared.parker.park(timeout);
    }

    fn wake_instead(&mut self, waker: Arc<dyn Wake>) {
        self.shared.parker.wake_instead(waker);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.shared.parker) as Arc<dyn Wake>
    }
}

impl Drop for ThreadRing {
    fn drop(&mut self) {
        lock(&self.shared.jobs).is_closed = true;
        self.shared.pushed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}
