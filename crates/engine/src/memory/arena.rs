//! Memory for buffers that is registered with a ring (`IORING_REGISTER_BUFFERS`): its pages are pinned once, not for each
//! request.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{BUFFER_ALIGN, Buffer};

/// Number of possible buffer lengths: powers of two from 1 byte.
const CLASSES: usize = 32;

/// A piece of memory that buffers are parts of. Lengths are rounded up to powers of two. Returned memory is reused for the same
/// length, and for any length once all buffers have been returned.
pub struct Arena {
    memory: Buffer,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// Returned parts, as offsets in bytes, by the logarithm of their length.
    free: [Vec<usize>; CLASSES],
    /// Offset of the memory that was never used, in bytes.
    next: usize,
    in_use: usize,
}

/// Bytes of a buffer of this length.
fn rounded(len: usize) -> usize {
    len.max(BUFFER_ALIGN).next_power_of_two()
}

impl Arena {
    /// An arena of this many bytes.
    pub fn new(bytes: usize) -> Arc<Arena> {
        debug_assert!(bytes < 1 << CLASSES);
        Arc::new(Arena { memory: Buffer::zeroed(bytes), parts: Mutex::default() })
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.len
    }

    /// Its address range.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.memory.start.as_ptr().expose_provenance();
        start..start + self.memory.len
    }

    /// A buffer of zeroes in it, if there is room.
    pub fn zeroed(self: &Arc<Self>, len: usize) -> Option<Buffer> {
        if len == 0 || len > self.memory.len {
            return None;
        }
        let offset = self.parts().allocate(rounded(len), self.memory.len)?;
        let (start, arena) = (self.memory.start, Some(Arc::clone(self)));
        // SAFETY: the part ends within the memory.
        let start = unsafe { start.add(offset) };
        let mut buffer = Buffer { start, before: 0, len, capacity: len, arena };
        // The memory may have been used before.
        buffer.fill(0);
        Some(buffer)
    }

    /// Returns the memory of a buffer with this start and capacity.
    pub(super) fn give_back(&self, start: usize, capacity: usize) {
        let offset = start - self.memory.start.as_ptr().addr();
        self.parts().give_back(offset, rounded(capacity));
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    fn allocate(&mut self, bytes: usize, limit: usize) -> Option<usize> {
        let offset = match self.free[bytes.ilog2() as usize].pop() {
            Some(offset) => offset,
            None if self.next + bytes <= limit => {
                self.next += bytes;
                self.next - bytes
            }
            None => return None,
        };
        self.in_use += 1;
        Some(offset)
    }

    fn give_back(&mut self, offset: usize, bytes: usize) {
        self.in_use -= 1;
        if self.in_use == 0 {
            self.free.iter_mut().for_each(Vec::clear);
            self.next = 0;
        } else {
            self.free[bytes.ilog2() as usize].push(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_are_zeroed_and_are_used_again() {
        let arena = Arena::new(64 << 10);
        let mut buffers: Vec<Buffer> = (0..16).map(|_| arena.zeroed(4000).expect("there is room")).collect();
        assert!(arena.zeroed(512).is_none(), "it is full");
        for (n, buffer) in buffers.iter_mut().enumerate() {
            buffer.fill(n as u8 + 1);
        }
        for (n, buffer) in buffers.iter_mut().enumerate() {
            let start = buffer.address();
            assert!(start % BUFFER_ALIGN == 0 && arena.addresses().contains(&start) && buffer.len() == 4000);
            assert!(buffer.iter().all(|&byte| byte == n as u8 + 1));
        }
        buffers.truncate(1);
        assert!(arena.zeroed(8192).is_none(), "its parts are of another length");
        assert!(arena.zeroed(4096).is_some_and(|again| again.iter().all(|&byte| byte == 0)));
        buffers.clear();
        assert_eq!(arena.zeroed(64 << 10).map(|all| all.len()), Some(64 << 10));
        assert!(arena.zeroed((64 << 10) + 1).is_none() && arena.zeroed(0).is_none());
    }

    #[test]
    fn a_buffer_keeps_its_arena() {
        let arena = Arena::new(BUFFER_ALIGN);
        let mut buffer = arena.zeroed(BUFFER_ALIGN).expect("there is room");
        drop(arena);
        buffer.fill(3);
        assert!(buffer.iter().all(|&byte| byte == 3));
    }
}
