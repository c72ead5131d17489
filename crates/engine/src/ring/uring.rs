//! io_uring. The files are registered, and the ring belongs to one thread: completions are posted when that thread
//! enters the kernel.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};

use super::{Job, JobKind, Ring};
use crate::memory::{Arena, RawSegment};
use crate::wake::Wake;

/// The tag of the request that watches for wake-ups; jobs have smaller tags.
const WAKE_TAG: u64 = u64::MAX;
/// The tag of the request that watches another descriptor.
const WATCH_TAG: u64 = u64::MAX - 1;
const RWF_DSYNC: u32 = 2;
const FALLOC_KEEP_SIZE: i32 = 1;
const FALLOC_PUNCH_HOLE: i32 = 2;
const FALLOC_ZERO_RANGE: i32 = 16;
const POLL_IN: u32 = 1;
/// Marks an index without a file.
const NO_FILE: i32 = -1;

/// A ring of the kernel.
pub struct Uring {
    ring: IoUring,
    wake_fd: Arc<WakeFd>,
    /// Whether the eventfd is being watched.
    is_watched: bool,
    /// Whether the ring is enabled. It belongs to the thread that enables it, which is the first to use it.
    is_enabled: bool,
    /// The registered addresses: jobs with data there need no pages pinned.
    fixed: Range<usize>,
    /// Keeps the registered memory alive.
    _arena: Option<Arc<Arena>>,
    /// Signaled by the kernel whenever a job ends, for a worker that sleeps elsewhere.
    results_fd: Option<OwnedFd>,
    /// Another descriptor that ends a sleep.
    watch: Option<Watch>,
    /// Results that have come while it slept.
    results: Vec<(u64, i32)>,
}

/// A descriptor that ends a sleep when it is readable.
struct Watch {
    descriptor: OwnedFd,
    /// Whether the kernel watches it.
    is_armed: bool,
    /// Whether it has been readable since the owner last asked.
    is_readable: bool,
    /// Whether pushed jobs have waited for one call of `reap`: if the worker sleeps next, the same system call submits them.
    was_deferred: bool,
}

struct WakeFd(OwnedFd);

impl Wake for WakeFd {
    fn wake(&self) {
        // It can only fail if the counter is full, in which case it is signaled already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl WakeFd {
    /// Resets the counter. Called only after the watch has ended: the next watch sees later signals.
    fn drain(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl Uring {
    /// A ring for this many jobs at a time, over these files. An index without a file may get one later.
    ///
    /// # Errors
    /// If the system has no io_uring or forbids it (`ENOSYS`, `EPERM`), or lacks a required feature.
    pub fn new(jobs: u32, files: &[Option<Arc<File>>]) -> io::Result<Uring> {
        // Two watches take an entry each, too.
        let entries = (jobs + 2).next_power_of_two();
        let newest = IoUring::builder()
            .setup_clamp()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(entries);
        let (ring, is_enabled) = match newest {
            Ok(ring) => (ring, false),
            // Before Linux 6.1.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                (IoUring::builder().setup_clamp().build(entries)?, true)
            }
            Err(error) => return Err(error),
        };
        if !ring.params().is_feature_ext_arg() {
            // It could not sleep with a timeout, which requires Linux 5.11.
            return Err(io::ErrorKind::Unsupported.into());
        }
        let fds: Vec<_> = files.iter().map(|file| file.as_ref().map_or(NO_FILE, |file| file.as_raw_fd())).collect();
        // The kernel rejects an empty list.
        if !fds.is_empty() {
            ring.submitter().register_files(&fds)?;
        }
        let wake_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Uring {
            ring,
            wake_fd: Arc::new(WakeFd(wake_fd)),
            is_watched: false,
            is_enabled,
            fixed: 0..0,
            _arena: None,
            results_fd: None,
            watch: None,
            results: Vec::new(),
        })
    }

    /// Registers the first bytes of memory: reads and writes there cost less.
    ///
    /// # Errors
    /// If the system does not allow this much memory to be locked (`ENOMEM`: `ulimit -l`), or does not support it.
    pub(crate) fn register(&mut self, memory: &Arc<Arena>, bytes: usize) -> io::Result<()> {
        let all = memory.addresses();
        let addresses = all.start..all.start + bytes.min(all.len());
        let start = std::ptr::with_exposed_provenance_mut(addresses.start);
        let iovec = libc::iovec { iov_base: start, iov_len: addresses.len() };
        // SAFETY: the memory stays as long as this ring.
        unsafe { self.ring.submitter().register_buffers(&[iovec])? };
        (self.fixed, self._arena) = (addresses, Some(Arc::clone(memory)));
        Ok(())
    }

    fn enable(&mut self) {
        if !std::mem::replace(&mut self.is_enabled, true) {
            self.ring.submitter().register_enable_rings().expect("a ring is enabled once, by the thread that uses it");
        }
    }

    fn push_entry(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: memory that the entry points to stays valid until it completes: `push` requires that for jobs, and the
        // watch of the eventfd points to nothing.
        if unsafe { self.ring.submission().push(entry) }.is_ok() {
            return true;
        }
        // The kernel takes all entries, which makes room.
        self.submit();
        // SAFETY: as above.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Takes the results that the kernel has posted.
    fn collect(&mut self) {
        for entry in self.ring.completion() {
            match (entry.user_data(), &mut self.watch) {
                (WAKE_TAG, _) => {
                    self.is_watched = false;
                    self.wake_fd.drain();
                }
                (WATCH_TAG, Some(watch)) => (watch.is_armed, watch.is_readable) = (false, true),
                (tag, _) => self.results.push((tag, entry.result())),
            }
        }
    }

    /// Entries that the kernel does not take now (EBUSY, EAGAIN, EINTR) stay in the ring for the next call.
    fn submit(&mut self) {
        self.enable();
        self.watch.iter_mut().for_each(|watch| watch.was_deferred = false);
        let _ = self.ring.submit();
    }
}

/// Whether all of a segment is in a range of addresses.
fn is_registered(fixed: &Range<usize>, segment: &RawSegment) -> bool {
    let start = segment.start.addr();
    fixed.start <= start && start + segment.len <= fixed.end
}

/// Makes the entry of a job. `fixed` are the registered addresses.
fn entry(tag: u64, Job { file, offset, kind }: Job<'_>, fixed: &Range<usize>) -> squeue::Entry {
    let (file, segments) = (Fixed(file), |list: &[RawSegment]| (list.as_ptr().cast(), list.len() as u32));
    let allocate =
        |bytes, mode| opcode::Fallocate::new(file, bytes).offset(offset).mode(mode | FALLOC_KEEP_SIZE).build();
    let entry = match kind {
        JobKind::Read([segment]) if is_registered(fixed, segment) => {
            opcode::ReadFixed::new(file, segment.start, segment.len as u32, 0).offset(offset).build()
        }
        JobKind::Read([segment]) => opcode::Read::new(file, segment.start, segment.len as u32).offset(offset).build(),
        JobKind::Read(list) => {
            let (start, len) = segments(list);
            opcode::Readv::new(file, start, len).offset(offset).build()
        }
        JobKind::Write([segment], is_durable) if is_registered(fixed, segment) => {
            let flags = if is_durable { RWF_DSYNC } else { 0 };
            opcode::WriteFixed::new(file, segment.start, segment.len as u32, 0)
                .offset(offset)
                .rw_flags(flags as _)
                .build()
        }
        JobKind::Write([segment], is_durable) => {
            let flags = if is_durable { RWF_DSYNC } else { 0 };
            opcode::Write::new(file, segment.start, segment.len as u32).offset(offset).rw_flags(flags as _).build()
        }
        JobKind::Write(list, is_durable) => {
            let ((start, len), flags) = (segments(list), if is_durable { RWF_DSYNC } else { 0 });
            opcode::Writev::new(file, start, len).offset(offset).rw_flags(flags as _).build()
        }
        JobKind::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        JobKind::Punch(bytes) => allocate(bytes, FALLOC_PUNCH_HOLE),
        JobKind::Zero(bytes) => allocate(bytes, FALLOC_ZERO_RANGE),
    };
    entry.user_data(tag)
}

impl Ring for Uring {
    unsafe fn push(&mut self, tag: u64, job: Job<'_>) -> bool {
        self.push_entry(&entry(tag, job, &self.fixed))
    }

    fn set_file(&mut self, index: u32, file: Option<&Arc<File>>) {
        // Pushed jobs take their files when they are submitted.
        self.submit();
        let fd = file.map_or(NO_FILE, |file| file.as_raw_fd());
        // If the system is out of memory, jobs on this index fail.
        let _ = self.ring.submitter().register_files_update(index, &[fd]);
    }

    fn reap(&mut self, results: &mut Vec<(u64, i32)>) {
        let submission = self.ring.submission();
        let has_jobs = !submission.is_empty();
        let has_results = submission.taskrun() || submission.cq_overflow();
        drop(submission);
        let defers = |watch: &mut Watch| !std::mem::replace(&mut watch.was_deferred, true);
        if has_results || has_jobs && !self.watch.as_mut().is_some_and(defers) {
            self.submit();
        }
        self.collect();
        results.append(&mut self.results);
    }

    fn sleep(&mut self, timeout: Option<Duration>) {
        self.enable();
        if !self.is_watched {
            let watch = opcode::PollAdd::new(io_uring::types::Fd(self.wake_fd.0.as_raw_fd()), POLL_IN).build();
            self.is_watched = self.push_entry(&watch.user_data(WAKE_TAG));
        }
        if let Some(watch) = &mut self.watch {
            if watch.is_readable {
                return;
            }
            watch.was_deferred = false;
            if !watch.is_armed {
                let descriptor = io_uring::types::Fd(watch.descriptor.as_raw_fd());
                let entry = opcode::PollAdd::new(descriptor, POLL_IN).build().user_data(WATCH_TAG);
                let is_armed = self.push_entry(&entry);
                self.watch.iter_mut().for_each(|watch| watch.is_armed = is_armed);
            }
        }
        let time = timeout.map(Timespec::from);
        // After a timeout or a signal, the caller also checks for work.
        let _ = match &time {
            Some(time) => self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(time)),
            None => self.ring.submit_and_wait(1),
        };
        self.collect();
    }

    fn watch(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<bool> {
        let descriptor = descriptor.try_clone_to_owned()?;
        self.watch = Some(Watch { descriptor, is_armed: false, is_readable: false, was_deferred: false });
        Ok(true)
    }

    fn take_readiness(&mut self) -> bool {
        self.watch.as_mut().is_some_and(|watch| std::mem::take(&mut watch.is_readable))
    }

    fn descriptor(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        if self.results_fd.is_none() {
            let event_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
            self.ring.submitter().register_eventfd(event_fd.as_raw_fd())?;
            self.results_fd = Some(event_fd);
        }
        Ok(self.results_fd.as_ref().map(AsFd::as_fd))
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.wake_fd) as Arc<dyn Wake>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(10);

    /// A ring over a file that watches an eventfd.
    fn watching() -> (Uring, OwnedFd) {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut ring = Uring::new(4, &[Some(file)]).unwrap();
        let event_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        assert!(ring.watch(event_fd.as_fd()).unwrap());
        (ring, event_fd)
    }

    #[test]
    fn a_watched_descriptor_ends_each_sleep_while_it_is_readable() {
        let (mut ring, event_fd) = watching();
        for _ in 0..3 {
            ring.sleep(Some(SHORT));
            assert!(!ring.take_readiness());
            WakeFd(event_fd.try_clone().unwrap()).wake();
            for _ in 0..2 {
                ring.sleep(None);
                assert!(ring.take_readiness() && !ring.take_readiness());
            }
            WakeFd(event_fd.try_clone().unwrap()).drain();
        }
    }

    #[test]
    fn a_job_is_submitted_by_the_next_sleep_or_the_second_call_of_reap() {
        let (mut ring, _event_fd) = watching();
        let mut results = Vec::new();
        let sync = Job { file: 0, offset: 0, kind: JobKind::Sync };
        // SAFETY: it has no data.
        assert!(unsafe { ring.push(7, sync) });
        ring.reap(&mut results);
        assert!(results.is_empty() && !ring.ring.submission().is_empty(), "it waits");
        ring.sleep(None);
        ring.reap(&mut results);
        assert_eq!(results, [(7, 0)]);
        // SAFETY: as above.
        assert!(unsafe { ring.push(8, sync) });
        ring.reap(&mut results);
        ring.reap(&mut results);
        assert!(ring.ring.submission().is_empty(), "it does not wait for long");
        while results.len() < 2 {
            ring.reap(&mut results);
        }
        assert_eq!(results, [(7, 0), (8, 0)]);
    }
}
