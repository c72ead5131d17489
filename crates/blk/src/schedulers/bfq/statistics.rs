//! What is measured of a queue's pattern: seeks, think time, whether I/O is what bounds it. Rules: bfq.md 13.

use super::config::MS;

/// The last 32 requests of a queue, 1 for a far one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SeekHistory {
    /// The newest is the lowest bit.
    bits: u32,
    /// The sector after the last inserted request; 0 before the first.
    pub last_position: u64,
}

impl Default for SeekHistory {
    fn default() -> Self {
        SeekHistory { bits: 1, last_position: 0 }
    }
}

impl SeekHistory {
    /// Notes a request.
    pub fn note(&mut self, far: bool) {
        self.bits = self.bits << 1 | u32::from(far);
    }

    /// Whether more than `above` of the last requests were far.
    pub fn is_seeky(&self, above: u32) -> bool {
        self.bits.count_ones() > above
    }

    /// Whether all of them were.
    pub fn is_totally_seeky(&self) -> bool {
        self.bits == u32::MAX
    }
}

/// The time between a completion and the next request, as a decaying mean in fixed point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThinkTime {
    samples: u64,
    total: u64,
    /// The mean, ns.
    pub mean: u64,
    /// Time of the last completion, ns.
    pub last_completion: u64,
}

impl ThinkTime {
    /// No samples.
    pub fn new(last_completion: u64) -> Self {
        ThinkTime { samples: 0, total: 0, mean: 0, last_completion }
    }

    /// Adds the time since the last completion, at most `cap`.
    pub fn sample(&mut self, now: u64, cap: u64) {
        let elapsed = now.wrapping_sub(self.last_completion).min(cap);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    /// Whether there are enough samples: from the third on.
    pub fn is_valid(&self) -> bool {
        self.samples > 80
    }
}

/// Whether a process spends its time waiting for I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IoBound {
    /// The verdict.
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
/// 4.12: so many quick arrivals in a row make a queue I/O-bound again.
const QUICK_ARRIVALS: u32 = 120;

impl IoBound {
    /// Assumed until disproved.
    pub fn new(now: u64) -> Self {
        IoBound { is: true, since: now, idle: 0, quick_arrivals: 0 }
    }

    /// An arrival: `gap` is the time without any request before it. The first one of a queue decides nothing.
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
