//! Zones that are used one after the other (tried with fio 3.33).
//!
//! A zone is done when so many bytes were moved in it, by all directions together; then the next one begins, and behind
//! the last one the first. A random job visits each block of a zone once before it visits one again, and forgets that
//! when it leaves the zone.

use crate::Strided;

/// Where a job is among its zones. Positions are relative to the region.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    rule: Strided,
    start: u64,
    done_bytes: u64,
    /// Counts the zones that were entered.
    visit: u32,
    /// A write that repeats the range of a trim counts with it.
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

    /// Begins with the first zone.
    pub(super) fn restart(&mut self) {
        self.enter(0);
    }

    /// Goes to the next zone if this one is done; answers whether it did. `last_start` is the last place of the region at
    /// which a zone may begin.
    pub(super) fn go_on(&mut self, last_start: u64) -> bool {
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

    pub(super) fn moved(&mut self, bytes: u32) {
        self.done_bytes += u64::from(bytes) * (1 + u64::from(self.counts_twice));
    }

    /// Where an I/O goes that follows one that ended at `end`, `skip` bytes behind it. As in fio a block, and what is
    /// skipped, may reach over the end of the zone.
    pub(super) fn following(&self, end: u64, skip: i64) -> u64 {
        if end <= self.start || end >= self.start + self.rule.range_bytes {
            return self.start;
        }
        end.checked_add_signed(skip).filter(|&start| start >= self.start).unwrap_or(self.start)
    }
}
