//! Reads and writes that complete when they are started, without a ring: the data is in memory already.
//!
//! Reads through the page cache are tried with `RWF_NOWAIT`, which fails instead of waiting for a disk; the ring does the rest. Files on
//! tmpfs are memory, so they do not wait. Direct I/O waits for the disk even with `RWF_NOWAIT`, so it always goes through the ring, and so
//! do writes through the page cache: they wait for a frozen file system even with it.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::fstatfs;
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use crate::memory::RawSegment;

/// Maximum segments of an inline transfer.
const SEGMENTS_MAX: usize = 16;
/// The number of tmpfs in `statfs`.
const TMPFS: i128 = 0x0102_1994;

/// Which transfers of a file may be tried inline. The default is none.
#[derive(Debug, Default)]
pub struct InlineAccess {
    reads: AtomicBool,
    writes: AtomicBool,
    /// Whether the file is memory, so that transfers do not wait.
    is_memory: bool,
}

impl InlineAccess {
    /// The access to a file; direct I/O excludes it unless the file is memory.
    pub fn of(file: &File, is_direct: bool) -> InlineAccess {
        let is_memory = fstatfs(file).is_ok_and(|system| i128::from(system.f_type) == TMPFS);
        let may_read = is_memory || !is_direct;
        InlineAccess { reads: AtomicBool::new(may_read), writes: AtomicBool::new(is_memory), is_memory }
    }

    /// Whether reads, or writes, may be tried.
    #[inline]
    pub fn allows(&self, is_write: bool) -> bool {
        if is_write { self.writes.load(Relaxed) } else { self.reads.load(Relaxed) }
    }

    /// Transfers data without waiting. Returns the number of bytes, or `None` if the ring has to do it.
    ///
    /// # Safety
    /// The segments must be allocated, and nothing else may use them during the call.
    pub unsafe fn transfer(&self, file: &File, is_write: bool, segments: &[RawSegment], offset: u64) -> Option<u64> {
        let segments = &segments[..segments.len().min(SEGMENTS_MAX)];
        let flags = if self.is_memory { ReadWriteFlags::empty() } else { ReadWriteFlags::NOWAIT };
        let result = if is_write {
            let mut slices: [IoSlice<'_>; SEGMENTS_MAX] = std::array::from_fn(|_| IoSlice::new(&[]));
            for (slice, segment) in slices.iter_mut().zip(segments) {
                // SAFETY: as the caller promises.
                *slice = IoSlice::new(unsafe { std::slice::from_raw_parts(segment.start, segment.len) });
            }
            pwritev2(file, &slices[..segments.len()], offset, flags)
        } else {
            let mut slices: [IoSliceMut<'_>; SEGMENTS_MAX] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
            for (slice, segment) in slices.iter_mut().zip(segments) {
                // SAFETY: as the caller promises.
                *slice = IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(segment.start, segment.len) });
            }
            preadv2(file, &mut slices[..segments.len()], offset, flags)
        };
        if matches!(result, Err(Errno::OPNOTSUPP | Errno::NOSYS)) {
            // The file system cannot do it without waiting.
            if is_write { &self.writes } else { &self.reads }.store(false, Relaxed);
        }
        result.ok().map(|bytes| bytes as u64)
    }
}
