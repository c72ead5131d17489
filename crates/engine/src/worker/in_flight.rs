//! The requests in flight of a worker's clients.

use std::ops::Range;

use hoistway_blk::bio::{Bio, Op};

use crate::memory::Buffer;
use crate::request::{Completion, Errno};

/// The table of requests in flight, by their numbers on this worker.
pub struct InFlight {
    in_flight: Vec<Entry>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Entry {
    client: u32,
    /// Whether it is a part of an unaligned request.
    is_part: bool,
    /// Sectors that it writes; 0 if none.
    written: u32,
    /// Sectors that have not completed; a request without sectors counts as one. 0 if the entry is free.
    sectors_left: u32,
    /// The first error of any part.
    errno: Option<Errno>,
    token: u64,
    buffer: Buffer,
}

/// A completed request.
pub struct EndedRequest {
    pub client: u32,
    /// Whether it is a part of an unaligned request.
    pub is_part: bool,
    pub completion: Completion,
}

impl InFlight {
    /// The table of a worker with these slots.
    pub fn new(slots: Range<u32>) -> Self {
        let count = slots.len() as u32;
        InFlight { in_flight: (0..count).map(|_| Entry::default()).collect(), free: (0..count).rev().collect() }
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() == self.in_flight.len()
    }

    /// The token of a client's request; `None` for a part.
    pub fn token(&self, local: usize) -> Option<u64> {
        let entry = &self.in_flight[local];
        (!entry.is_part).then_some(entry.token)
    }

    /// The numbers of all writes, and their sectors.
    pub fn writes(&self) -> impl Iterator<Item = (usize, u32)> {
        self.in_flight.iter().map(|entry| entry.written).enumerate().filter(|&(_, written)| written > 0)
    }

    /// Adds a request.
    ///
    /// # Panics
    /// If all numbers are in use.
    #[inline]
    pub fn begin(&mut self, client: u32, is_part: bool, token: u64, buffer: Buffer, bio: &Bio) -> usize {
        let local = self.free.pop().expect("the caller has checked that there is room") as usize;
        let written = if bio.op == Op::Read { 0 } else { bio.sectors };
        self.in_flight[local] =
            Entry { client, is_part, written, sectors_left: bio.sectors.max(1), errno: None, token, buffer };
        local
    }

    /// Some sectors of a request have completed. Returns the request if they were the last.
    #[inline]
    pub fn part_ended(&mut self, local: usize, sectors: u32, result: Result<(), Errno>) -> Option<EndedRequest> {
        let entry = &mut self.in_flight[local];
        debug_assert!(entry.sectors_left >= sectors.max(1), "a part ends once");
        entry.sectors_left = entry.sectors_left.saturating_sub(sectors.max(1));
        entry.errno = entry.errno.or(result.err());
        if entry.sectors_left > 0 {
            return None;
        }
        self.free.push(local as u32);
        let result = entry.errno.map_or(Ok(()), Err);
        let completion = Completion { token: entry.token, result, buffer: std::mem::take(&mut entry.buffer) };
        entry.written = 0;
        Some(EndedRequest { client: entry.client, is_part: entry.is_part, completion })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // A worker that panics does not wait for its device, which may still be writing to these buffers.
        if std::thread::panicking() {
            std::mem::forget(std::mem::take(&mut self.in_flight));
        }
    }
}
