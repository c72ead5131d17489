//! The way of a write: through the front end into the buffer, and when it is acknowledged.
//!
//! Usually the dies take what is in the buffer, and what does not fit waits outside. Where data is dealt to dies
//! ([`stripes`](super::stripes)), they take from writes that wait as well: the buffer is only how much may be acknowledged
//! before it is in the flash, and a large write is not acknowledged before it is.

use hoistway_blk::ground::{Instant, Nanos};

use super::Flash;
use crate::model::Schedule;

/// A write that comes through the front end within this time is taken to be there: an alarm saved.
const SOON: Nanos = Nanos::from_micros(10);

/// A write of which not all is in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) tag: u32,
    pub(super) fua: bool,
    pub(super) is_random: bool,
    pub(super) bytes: u64,
    /// What is not yet in the buffer, bytes.
    pub(super) left: u64,
    /// When its data has passed the front end.
    pub(super) ready: Instant,
}

/// A write that is dealt to dies, and too early to be acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unacknowledged {
    tag: u32,
    fua: bool,
    bytes: u64,
    /// Bytes that had ever been put into the buffer when it was.
    put: u64,
    ready: Instant,
}

impl Flash {
    /// Takes in what has come and fits, and drains the buffer.
    #[inline]
    pub(super) fn fill_buffer(&mut self, at: Instant, schedule: &mut Schedule) {
        if let Some(through_bytes) = self.through_bytes {
            return self.deal(at, through_bytes, schedule);
        }
        let mut drained_at = at;
        while let Some(write) = self.waiting.front_mut()
            && write.ready <= at + SOON
        {
            drained_at = at.max(write.ready);
            let fits = write.left.min(self.drain.room());
            self.drain.put(fits, write.is_random);
            write.left -= fits;
            if write.left > 0 {
                break;
            }
            let Waiting { tag, fua, bytes, ready, .. } = *write;
            self.waiting.pop_front();
            self.end_write(at.max(ready), tag, fua, bytes, schedule);
        }
        self.drain.start_programs(drained_at, &mut self.dies, &mut self.random);
    }

    /// Deals all that has come to dies, and acknowledges what the buffer has room for.
    fn deal(&mut self, at: Instant, through_bytes: u64, schedule: &mut Schedule) {
        let mut dealt_at = at;
        while let Some(&Waiting { tag, fua, is_random, bytes, ready, .. }) = self.waiting.front()
            && ready <= at + SOON
        {
            dealt_at = at.max(ready);
            self.waiting.pop_front();
            if bytes >= through_bytes && is_random {
                self.drain.put_through(tag, bytes, is_random, &self.dies, &mut self.random);
            } else {
                self.drain.put(bytes, is_random);
                let put = self.drain.put_bytes();
                self.unacknowledged.push_back(Unacknowledged { tag, fua, bytes, put, ready });
            }
        }
        self.drain.start_programs(dealt_at, &mut self.dies, &mut self.random);
        self.end_through(schedule);
        while let Some(&Unacknowledged { tag, fua, bytes, put, ready }) = self.unacknowledged.front()
            && self.drain.holds(put)
        {
            self.unacknowledged.pop_front();
            self.end_write(at.max(ready), tag, fua, bytes, schedule);
        }
    }

    /// A write is in the buffer.
    #[inline]
    fn end_write(&mut self, at: Instant, tag: u32, fua: bool, bytes: u64, schedule: &mut Schedule) {
        if fua {
            self.barrier(at, tag, bytes, schedule);
        } else {
            self.leave(at, bytes);
            schedule.complete(at + self.acknowledge + self.write_outbound, tag);
        }
    }

    /// Ends writes of which is known when they will be in the flash.
    pub(super) fn end_through(&mut self, schedule: &mut Schedule) {
        while let Some((tag, bytes, at)) = self.drain.stripes().and_then(|stripes| stripes.pop_end()) {
            self.leave(at, bytes);
            schedule.complete(at + self.acknowledge + self.write_outbound, tag);
        }
    }

    /// When a write for which the buffer has room comes through the front end.
    #[inline]
    pub(super) fn next_ready(&self) -> Option<Instant> {
        let write = self.waiting.front()?;
        (self.through_bytes.is_some() || self.drain.room() > 0 || write.left == 0).then_some(write.ready)
    }

    /// Whether somebody waits for data that is dealt to dies.
    #[inline]
    pub(super) fn is_dealt_awaited(&self) -> bool {
        !self.unacknowledged.is_empty() || self.drain.is_awaited()
    }
}
