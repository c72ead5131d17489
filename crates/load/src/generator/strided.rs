//! Zones that are used in turn (tried with fio 3.33).
//!
//! A zone is done when all directions together have transferred a number of bytes in it. Then the next zone begins; the
//! first zone follows the last. A random job visits each block of a zone once before it visits one again, and forgets
//! visited blocks when it leaves the zone.

use crate::Strided;

/// The position of a job in its zones. Offsets are relative to the region.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    rule: Strided,
    start: u64,
    done_bytes: u64,
    /// Number of zones entered so far.
    visit: u32,
    /// Whether a write that repeats the range of a trim counts, too.
    counts_twice: bool,
}

impl Zones {
    pub(super) fn new(rule: Strided, counts_twice: bool) -> Zones {
        Zones { rule, start: 0, done_bytes: 0, visit: 0, counts_twice }
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn visit(&self) -> u32 {
        self.visit
    }

    /// Starts over with the first zone.
    pub(super) fn restart(&mut self) {
        self.enter(0);
    }

    /// Switches to the next zone if this one is done; returns whether it did. `last_start` is the last offset of the
    /// region at which a zone may begin.
    pub(super) fn leave_if_done(&mut self, last_start: u64) -> bool {
        if self.done_bytes < self.rule.zone_bytes {
            return false;
        }
        let next = self.start + self.rule.range_bytes + self.rule.skip_bytes;
        self.enter(if next <= last_start { next } else { 0 });
        true
    }

    fn enter(&mut self, start: u64) {
        (self.start, self.done_bytes) = (start, 0);
        self.visit += 1;
    }

    pub(super) fn count_transferred(&mut self, bytes: u32) {
        self.done_bytes += u64::from(bytes) * (1 + u64::from(self.counts_twice));
    }

    /// The offset of an I/O `skip` bytes behind one that ended at `end`. As in fio, a block and its skip may reach
    /// beyond the end of the zone.
    pub(super) fn next_offset(&self, end: u64, skip: i64) -> u64 {
        if end <= self.start || end >= self.start + self.rule.range_bytes {
            return self.start;
        }
        end.checked_add_signed(skip).filter(|&start| start >= self.start).unwrap_or(self.start)
    }
}
