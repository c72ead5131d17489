//! Think times: pauses in which a program processes its data.

use hoistway_blk::ground::{Instant, Nanos};

use crate::{Think, ThinkBlocks};

/// State of the pauses of a process.
pub(super) struct Thinking {
    think: Think,
    /// I/Os since the begin.
    ios: u64,
    /// Whether there was an I/O since the last pause.
    has_issued: bool,
    /// Whether a pause begins as soon as nothing is in flight.
    is_decided: bool,
    /// When the last pause began.
    last: Instant,
    /// When the current pause ends, if there is one.
    pub(super) until: Option<Instant>,
}

impl Thinking {
    /// The pauses of a process that begins at `start`.
    pub(super) fn new(think: Think, start: Instant) -> Thinking {
        Thinking { think, ios: 0, has_issued: false, is_decided: false, last: start, until: None }
    }

    /// Counts I/Os that were issued or have completed.
    #[inline]
    pub(super) fn count(&mut self, which: ThinkBlocks, ios: u32) {
        if which == self.think.counting {
            self.ios += u64::from(ios);
        }
        self.has_issued |= which == ThinkBlocks::Issued;
    }

    /// Whether a pause is due. To be called after each I/O, once it has completed if no other can be in flight beside it.
    ///
    /// Tried with fio 3.33, at depth 1 and 8: whether the number of all I/Os is a multiple of the blocks decides, not how many there were
    /// since the last pause. So with `thinktime_blocks=1` a deep job has one I/O in flight, once its first ones have ended.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let Think { blocks, io_time, .. } = self.think;
        let is_multiple = blocks > 0 && self.ios > 0 && self.ios.is_multiple_of(u64::from(blocks));
        // Tried with fio 3.33: the time before the first pause is longer by the length of a pause.
        let is_late = io_time > Nanos::ZERO && now >= self.last + io_time + self.length();
        self.is_decided |= (is_multiple && self.has_issued) || is_late;
        self.is_decided
    }

    /// Begins a pause. Returns when it ends.
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.last = now;
        (self.has_issued, self.is_decided) = (false, false);
        let until = now + self.length();
        self.until = Some(until);
        until
    }

    /// How long a pause spins on the CPU.
    pub(super) fn spin(&self) -> Nanos {
        self.think.spin
    }

    /// The part of a pause that a rate does not make up for.
    pub(super) fn uncompensated_pause(&self) -> Nanos {
        if self.think.is_lost_to_rate { self.length() } else { Nanos::ZERO }
    }

    fn length(&self) -> Nanos {
        self.think.sleep + self.think.spin
    }
}

#[cfg(test)]
mod tests;
