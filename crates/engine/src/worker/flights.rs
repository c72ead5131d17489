//! The requests of a worker's clients that are under way.

use std::ops::Range;

use hoistway_blk::bio::Bio;

use crate::memory::Buffer;
use crate::request::{Completion, Errno};

/// Them, by their numbers at this worker.
pub struct Flights {
    flights: Vec<Flight>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Flight {
    seat: u32,
    /// Sectors whose end has not been told; what has none counts as one. 0 if nobody has this number.
    sectors_left: u32,
    /// The first error of any part.
    errno: Option<Errno>,
    token: u64,
    buffer: Buffer,
}

impl Flights {
    /// Of a worker with these slots.
    pub fn new(slots: Range<u32>) -> Self {
        let count = slots.len() as u32;
        Flights { flights: (0..count).map(|_| Flight::default()).collect(), free: (0..count).rev().collect() }
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() == self.flights.len()
    }

    pub fn token(&self, local: usize) -> u64 {
        self.flights[local].token
    }

    /// A request begins.
    ///
    /// # Panics
    /// If all numbers are taken.
    #[inline]
    pub fn begin(&mut self, seat: u32, token: u64, buffer: Buffer, bio: &Bio) -> usize {
        let local = self.free.pop().expect("whoever begins has asked whether there is room") as usize;
        self.flights[local] = Flight { seat, sectors_left: bio.sectors.max(1), errno: None, token, buffer };
        local
    }

    /// A part of a request has ended. Answers who has to be told what, if it was the last.
    #[inline]
    pub fn part_ended(&mut self, local: usize, sectors: u32, result: Result<(), Errno>) -> Option<(u32, Completion)> {
        let flight = &mut self.flights[local];
        debug_assert!(flight.sectors_left >= sectors.max(1), "a part ends once");
        flight.sectors_left = flight.sectors_left.saturating_sub(sectors.max(1));
        flight.errno = flight.errno.or(result.err());
        if flight.sectors_left > 0 {
            return None;
        }
        self.free.push(local as u32);
        let result = flight.errno.map_or(Ok(()), Err);
        let completion = Completion { token: flight.token, result, buffer: std::mem::take(&mut flight.buffer) };
        Some((flight.seat, completion))
    }
}

impl Drop for Flights {
    fn drop(&mut self) {
        // A worker that panics does not wait for its device, which may still be writing into these buffers.
        if std::thread::panicking() {
            std::mem::forget(std::mem::take(&mut self.flights));
        }
    }
}
