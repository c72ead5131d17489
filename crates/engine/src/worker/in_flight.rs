//! The in-entry requests of a worker's clients.

use std::ops::Range;

use hoistway_blk::bio::Bio;

use crate::memory::Buffer;
use crate::request::{Completion, Errno};

/// The table of in-entry requests, by their numbers at this worker.
pub struct InFlight {
    in_flight: Vec<Entry>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Entry {
    client: u32,
    /// Sectors that have not ended; a request without sectors counts as one. 0 if the entry is free.
    sectors_left: u32,
    /// The first error of any part.
    errno: Option<Errno>,
    token: u64,
    buffer: Buffer,
}

impl InFlight {
    /// Of a worker with these slots.
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

    pub fn token(&self, local: usize) -> u64 {
        self.in_flight[local].token
    }

    /// A request begins.
    ///
    /// # Panics
    /// If all numbers are taken.
    #[inline]
    pub fn begin(&mut self, client: u32, token: u64, buffer: Buffer, bio: &Bio) -> usize {
        let local = self.free.pop().expect("the caller has checked that there is room") as usize;
        self.in_flight[local] = Entry { client, sectors_left: bio.sectors.max(1), errno: None, token, buffer };
        local
    }

    /// A part of a request has ended. Returns the client and the completion, if it was the last.
    #[inline]
    pub fn part_ended(&mut self, local: usize, sectors: u32, result: Result<(), Errno>) -> Option<(u32, Completion)> {
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
        Some((entry.client, completion))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // A worker that panics does not wait for its device, which may still be writing into these buffers.
        if std::thread::panicking() {
            std::mem::forget(std::mem::take(&mut self.in_flight));
        }
    }
}
