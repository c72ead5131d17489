//! An allocator that counts, for tests of what a program allocates.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The system's allocator, which counts. To be made the global allocator of a test program.
#[derive(Debug)]
pub struct CountingAllocator {
    allocations: AtomicU64,
    allocated: AtomicUsize,
    most: AtomicUsize,
}

impl CountingAllocator {
    /// Nothing has been allocated yet.
    #[must_use]
    pub const fn new() -> CountingAllocator {
        let (allocated, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        CountingAllocator { allocations: AtomicU64::new(0), allocated, most }
    }

    /// Allocations so far.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Relaxed)
    }

    /// Bytes that are allocated now.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.allocated.load(Relaxed)
    }

    /// The most bytes that were allocated at any time since this was last called.
    #[must_use]
    pub fn take_most_bytes(&self) -> usize {
        self.most.swap(self.allocated_bytes(), Relaxed)
    }
}

impl Default for CountingAllocator {
    fn default() -> Self {
        CountingAllocator::new()
    }
}

// SAFETY: all is the system's; it is only counted.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Relaxed);
        let allocated = self.allocated.fetch_add(layout.size(), Relaxed) + layout.size();
        self.most.fetch_max(allocated, Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        self.allocated.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.dealloc(start, layout) }
    }
}
