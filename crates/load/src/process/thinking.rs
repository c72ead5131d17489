//! Think times: pauses in which a program processes its data.

use hoistway_blk::ground::{Instant, Nanos};

use crate::{Think, ThinkBlocks};

/// State of the pauses of a process.
pub(super) struct Thinking {
    think: Think,
    /// I/Os since the last pause.
    ios: u32,
    /// When the last pause began.
    last: Instant,
    /// When the current pause ends, if there is one.
    pub(super) until: Option<Instant>,
}

impl Thinking {
    /// The pauses of a process that begins at `start`.
    pub(super) fn new(think: Think, start: Instant) -> Thinking {
        Thinking { think, ios: 0, last: start, until: None }
    }

    /// Counts I/Os that were issued or have completed.
    #[inline]
    pub(super) fn count(&mut self, which: ThinkBlocks, ios: u32) {
        if which == self.think.counting {
            self.ios += ios;
        }
    }

    /// Whether a pause is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let Think { blocks, io_time, .. } = self.think;
        // Tried with fio 3.33: the time before the first pause is longer by the length of a pause.
        (blocks > 0 && self.ios >= blocks) || (io_time > Nanos::ZERO && now >= self.last + io_time + self.length())
    }

    /// Begins a pause. Returns when it ends.
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.last = now;
        self.ios = 0;
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
