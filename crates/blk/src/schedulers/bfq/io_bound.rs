//! Whether a process is I/O-bound. Rules: BFQ-68, BFQ-69.

use super::config::MS;

/// Detects whether a process spends its time waiting for I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IoBound {
    /// The current answer.
    pub is: bool,
    /// Start of the window, ns.
    since: u64,
    /// Time in the window in which nothing was queued or in flight, ns. It wraps: the first gap is "minus one".
    idle: u64,
    /// 4.12: arrivals in a row shortly after a completion.
    quick_arrivals: u32,
}

/// Length of the window that is halved when it is full, ns.
const WINDOW: u64 = 200 * MS;
/// 4.12: this many quick arrivals in a row make a queue I/O-bound again.
const QUICK_ARRIVALS: u32 = 120;

impl IoBound {
    /// A process counts as I/O-bound until shown otherwise.
    pub fn new(now: u64) -> Self {
        IoBound { is: true, since: now, idle: 0, quick_arrivals: 0 }
    }

    /// An arrival: `gap` is the time without any request before it. The first one of a queue does not change the
    /// answer.
    pub fn arrival(&mut self, now: u64, gap: Option<u64>, first: bool) {
        let total = now.wrapping_sub(self.since);
        if let Some(gap) = gap {
            self.idle = self.idle.wrapping_add(gap);
        }
        if first {
            return;
        }
        self.is = self.idle.wrapping_mul(5) <= total;
        if total > WINDOW {
            self.since = now.wrapping_sub(total / 2);
            self.idle /= 2;
        }
    }

    /// 4.12: an arrival at a queue without work, soon enough after its last completion or not.
    pub fn count_arrival(&mut self, quick: bool) {
        if self.is {
            return;
        }
        self.quick_arrivals = if quick { self.quick_arrivals + 1 } else { 0 };
        if self.quick_arrivals >= QUICK_ARRIVALS {
            self.is = true;
        }
    }

    /// 4.12: a slot ended too early.
    pub fn refute(&mut self) {
        self.is = false;
        self.quick_arrivals = 0;
    }
}
