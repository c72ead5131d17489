//! The memory for data. All code that needs `unsafe` is here and in the ring.
//!
//! Used by: `backend`, `ring`, `worker`, `engine`, `slots` and others; crates `serve`, `calibrate`.
//! Tests: below, `crates/engine/src/memory/arena.rs`, `crates/engine/tests/files.rs`.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

mod arena;

pub(crate) use arena::Arena;

/// Alignment of buffers, in bytes: sufficient for direct I/O on any device.
pub const BUFFER_ALIGN: usize = 4096;

/// Buffers of at least this length are separate mappings: an allocator would clear all of their memory, and so allocate it, at
/// once.
const MAPPED_BYTES: usize = if cfg!(miri) { usize::MAX } else { 256 << 10 };

/// The data of a request. It moves into the engine with the request and comes back with its completion, so only the device
/// touches it meanwhile, even if its client is dropped.
///
/// Its memory begins at a multiple of [`BUFFER_ALIGN`]. Its content may be a [window](Self::window) of the memory, for requests that
/// do not begin or end at a block boundary.
pub struct Buffer {
    start: NonNull<u8>,
    /// Bytes of the memory before the content.
    before: usize,
    len: usize,
    /// Allocated bytes; at least `before + len`.
    capacity: usize,
    /// The arena that it is a part of, if it is not a separate allocation.
    arena: Option<Arc<Arena>>,
}

// SAFETY: a buffer owns its memory, as a boxed slice does.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference only allows reading.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// An empty buffer, for requests without data.
    pub const EMPTY: Buffer = Buffer { start: NonNull::dangling(), before: 0, len: 0, capacity: 0, arena: None };

    /// A buffer of `len` zeroes, aligned to [`BUFFER_ALIGN`]. A long one takes memory only when it is written.
    #[must_use]
    pub fn zeroed(len: usize) -> Buffer {
        if len == 0 {
            return Buffer::EMPTY;
        }
        let layout = Buffer::layout(len);
        // SAFETY: the layout has a size, and a new mapping overlaps nothing.
        let start = unsafe {
            if len < MAPPED_BYTES {
                alloc_zeroed(layout)
            } else {
                let access = ProtFlags::READ | ProtFlags::WRITE;
                mmap_anonymous(null_mut(), len, access, MapFlags::PRIVATE).map_or(null_mut(), |start| start.cast())
            }
        };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Buffer { start, before: 0, len, capacity: len, arena: None }
    }

    /// The memory that a buffer of this length takes, with what its alignment wastes: an allocator puts a header before each aligned piece, so
    /// that the next one begins a page later.
    #[inline]
    #[must_use]
    pub fn footprint(len: usize) -> usize {
        match len {
            0 => 0,
            len if len < MAPPED_BYTES => len.next_multiple_of(BUFFER_ALIGN) + BUFFER_ALIGN,
            len => len.next_multiple_of(BUFFER_ALIGN),
        }
    }

    /// Its maximum length.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity - self.before
    }

    /// Makes the `len` bytes after the first `before` its content.
    ///
    /// # Panics
    /// If its memory is smaller.
    #[must_use]
    pub fn window(mut self, before: usize, len: usize) -> Buffer {
        let fits = before.checked_add(len).is_some_and(|end| end <= self.capacity);
        assert!(fits, "a buffer of {} bytes has no {len} behind {before}", self.capacity);
        (self.before, self.len) = (before, len);
        self
    }

    /// Bytes of its memory before and after its content.
    #[must_use]
    pub fn margins(&self) -> (usize, usize) {
        (self.before, self.capacity - self.before - self.len)
    }

    /// Changes its length, to reuse it for a request of another length. Bytes that are added have old content.
    ///
    /// # Panics
    /// If this exceeds its [capacity](Self::capacity).
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "a buffer of {} bytes cannot hold {len}", self.capacity());
        self.len = len;
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, BUFFER_ALIGN).expect("no buffer fills half of the address space")
    }

    pub(crate) fn address(&mut self) -> usize {
        self.as_mut_ptr().expose_provenance()
    }
}

impl From<&[u8]> for Buffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Buffer::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `capacity` bytes that this buffer owns and that have been initialised, and `before + len` is
        // no more than that; with 0 it dangles, which is aligned and not null.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(self.before), self.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(self.before), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(arena) = &self.arena {
            arena.give_back(self.start.as_ptr().addr(), self.capacity);
        } else if self.capacity > 0 {
            // SAFETY: it was allocated with this layout, or mapped with this length.
            unsafe {
                if self.capacity < MAPPED_BYTES {
                    dealloc(self.start.as_ptr(), Buffer::layout(self.capacity));
                } else {
                    // The mapping exists, so this cannot fail.
                    let _ = munmap(self.start.as_ptr().cast(), self.capacity);
                }
            }
        }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer::EMPTY
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

/// A segment of a command's data, in the form of the kernel's `iovec`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawSegment {
    /// Its address.
    pub start: *mut u8,
    /// Its length in bytes.
    pub len: usize,
}

// SAFETY: an address alone may be sent to any thread.
unsafe impl Send for RawSegment {}

impl RawSegment {
    /// A part of a [`Buffer`] whose address was [exposed](Buffer::address).
    #[inline]
    pub(crate) fn at(address: usize, len: usize) -> RawSegment {
        RawSegment { start: std::ptr::with_exposed_provenance_mut(address), len }
    }

    /// Its first bytes.
    #[inline]
    pub(crate) fn first(self, bytes: usize) -> RawSegment {
        RawSegment { start: self.start, len: bytes }
    }

    /// The rest after its first bytes.
    #[inline]
    pub(crate) fn after(self, bytes: usize) -> RawSegment {
        RawSegment { start: self.start.wrapping_add(bytes), len: self.len - bytes }
    }
}

/// The data of a command, segment by segment in the order of its sectors, while a channel starts it.
#[derive(Debug)]
pub struct Segments<'a> {
    raw: &'a [RawSegment],
    _lent: PhantomData<&'a mut [u8]>,
}

impl<'a> Segments<'a> {
    /// The data of a request whose buffers the engine owns.
    ///
    /// # Safety
    /// All of it must stay allocated and untouched by others until the command has ended.
    #[inline]
    pub(crate) unsafe fn new(raw: &'a [RawSegment]) -> Self {
        Segments { raw, _lent: PhantomData }
    }

    /// The segments. Their memory stays in place and untouched by others until the command has ended: a ring relies on
    /// that, because it uses them after the call.
    #[inline]
    #[must_use]
    pub fn raw(&self) -> &'a [RawSegment] {
        self.raw
    }

    /// Calls `body` with each segment and the number of bytes before it.
    #[inline]
    pub fn for_each(&mut self, mut body: impl FnMut(u64, &mut [u8])) {
        let mut before = 0;
        for segment in self.raw {
            // SAFETY: the caller of `new` promised so, and it is lent exclusively.
            body(before, unsafe { std::slice::from_raw_parts_mut(segment.start, segment.len) });
            before += segment.len as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_zeroed_and_an_empty_one_needs_no_memory() {
        let mut buffer = Buffer::zeroed(5000);
        assert_eq!(buffer.address() % BUFFER_ALIGN, 0);
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer[4999] = 7;
        assert_eq!(buffer.last(), Some(&7));
        for len in [1, MAPPED_BYTES - 1, MAPPED_BYTES, MAPPED_BYTES + 1] {
            let mut long = Buffer::zeroed(len);
            assert!(long.address().is_multiple_of(BUFFER_ALIGN) && long.iter().all(|&byte| byte == 0));
            long[len - 1] = 1;
        }
        assert!(Buffer::zeroed(0).is_empty() && Buffer::default().is_empty());
    }

    #[test]
    fn a_window_holds_a_part_of_the_memory() {
        let mut buffer = Buffer::zeroed(4096).window(10, 100);
        assert_eq!((buffer.len(), buffer.margins(), buffer.capacity()), (100, (10, 3986), 4086));
        assert_eq!(buffer.address() % BUFFER_ALIGN, 10);
        buffer.fill(7);
        let whole = buffer.window(0, 4096);
        assert_eq!(whole.iter().position(|&byte| byte == 7), Some(10));
        assert_eq!(whole.iter().filter(|&&byte| byte == 7).count(), 100);
    }

    #[test]
    fn segments_are_lent_piece_by_piece() {
        let mut buffer = Buffer::zeroed(12);
        let start = buffer.address();
        let raw = [RawSegment::at(start + 4, 8), RawSegment::at(start, 4)];
        // SAFETY: the buffer lives on, and is not touched until they have been used.
        let mut segments = unsafe { Segments::new(&raw) };
        segments.for_each(|before, piece| piece.fill(before as u8 + 1));
        assert_eq!(*buffer, [9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}
