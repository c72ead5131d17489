//! The path of a write: through the front end into the buffer, up to its acknowledgement.
//!
//! Usually the dies take data from the buffer, and data that does not fit waits outside. If data is dealt to dies
//! ([`stripes`](super::stripes)), they also take it from waiting writes: then the buffer only limits how much may be
//! acknowledged before it is in the flash, and a large write is not acknowledged before that.

use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};

use super::Flash;
use crate::model::Schedule;

/// A write that passes the front end within this time counts as arrived, which saves an alarm.
const ARRIVAL_SLACK: Nanos = Nanos::from_micros(10);

/// The sectors of a write.
#[inline]
fn sectors_of(bytes: u64) -> u32 {
    (bytes / SECTOR_BYTES) as u32
}

/// A write that is not completely in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) tag: u32,
    pub(super) fua: bool,
    pub(super) is_random: bool,
    pub(super) bytes: u64,
    /// Bytes that are not in the buffer yet.
    pub(super) unbuffered: u64,
    /// When its data has passed the front end.
    pub(super) ready: Instant,
}

/// A write that was dealt to dies but may not be acknowledged yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unacknowledged {
    tag: u32,
    fua: bool,
    bytes: u64,
    /// Total bytes put into the buffer including it.
    position: u64,
    ready: Instant,
}

impl Flash {
    /// Moves arrived data that fits into the buffer, and drains the buffer.
    #[inline]
    pub(super) fn fill_buffer(&mut self, at: Instant, schedule: &mut Schedule) {
        if let Some(write_through_bytes) = self.write_through_bytes {
            return self.deal(at, write_through_bytes, schedule);
        }
        let mut programs_at = at;
        while let Some(write) = self.waiting.front_mut()
            && write.ready <= at + ARRIVAL_SLACK
        {
            programs_at = at.max(write.ready);
            let bytes_that_fit = write.unbuffered.min(self.buffer.room());
            self.buffer.put(bytes_that_fit, write.is_random);
            write.unbuffered -= bytes_that_fit;
            if write.unbuffered > 0 {
                break;
            }
            let Waiting { tag, fua, bytes, ready, .. } = *write;
            self.waiting.pop_front();
            self.end_write(at.max(ready), (tag, sectors_of(bytes)), fua, schedule);
        }
        self.buffer.start_programs(programs_at, &mut self.dies, &mut self.random);
    }

    /// Deals all arrived data to dies, and acknowledges as much as the buffer allows.
    fn deal(&mut self, at: Instant, write_through_bytes: u64, schedule: &mut Schedule) {
        let mut programs_at = at;
        while let Some(&Waiting { tag, fua, is_random, bytes, ready, .. }) = self.waiting.front()
            && ready <= at + ARRIVAL_SLACK
        {
            programs_at = at.max(ready);
            self.waiting.pop_front();
            if bytes >= write_through_bytes && is_random {
                self.buffer.put_write_through(tag, bytes, is_random, &self.dies, &mut self.random);
            } else {
                self.buffer.put(bytes, is_random);
                let position = self.buffer.total_put_bytes();
                self.unacknowledged.push_back(Unacknowledged { tag, fua, bytes, position, ready });
            }
        }
        self.buffer.start_programs(programs_at, &mut self.dies, &mut self.random);
        self.end_write_throughs(schedule);
        while let Some(&Unacknowledged { tag, fua, bytes, position, ready }) = self.unacknowledged.front()
            && self.buffer.may_acknowledge(position)
        {
            self.unacknowledged.pop_front();
            self.end_write(at.max(ready), (tag, sectors_of(bytes)), fua, schedule);
        }
    }

    /// A write is in the buffer.
    #[inline]
    fn end_write(&mut self, at: Instant, (tag, sectors): (u32, u32), fua: bool, schedule: &mut Schedule) {
        if fua {
            self.barrier(at, tag, sectors, schedule);
        } else {
            self.record_leaving(at, sectors);
            schedule.complete(at + self.acknowledge + self.write_outbound, tag);
        }
    }

    /// Ends writes whose arrival in the flash is known.
    pub(super) fn end_write_throughs(&mut self, schedule: &mut Schedule) {
        while let Some((tag, bytes, at)) = self.buffer.stripes().and_then(|stripes| stripes.pop_end()) {
            self.record_leaving(at, sectors_of(bytes));
            schedule.complete(at + self.acknowledge + self.write_outbound, tag);
        }
    }

    /// When the next write that the buffer has room for passes the front end.
    #[inline]
    pub(super) fn next_ready(&self) -> Option<Instant> {
        let write = self.waiting.front()?;
        (self.write_through_bytes.is_some() || self.buffer.room() > 0 || write.unbuffered == 0).then_some(write.ready)
    }

    /// Whether a command waits for data that is dealt to dies.
    #[inline]
    pub(super) fn waits_for_dealt_data(&self) -> bool {
        !self.unacknowledged.is_empty() || self.buffer.has_waiting_write_through()
    }
}
