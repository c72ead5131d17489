//! What `io.latency` knows of a group: its target, its latencies, its outstanding and its waiting I/O.

use std::collections::VecDeque;

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::{Instant, Nanos};

use super::depth::Depth;

/// Bounds of the window of a group (IL-5).
const WINDOW: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_secs(1));

/// Targets in a window, between its bounds (IL-5).
const WINDOW_TARGETS: u64 = 16;

/// One part in this many of a window's I/Os, if they take longer than the target, misses it on a device that does not rotate (IL-2).
const LATE_PARTS: u64 = 10;

/// A group that had no I/O for this long has stopped (IL-9).
pub(super) const STOPPED_AFTER: Nanos = Nanos::from_secs(6);

/// The time in which the moving average decays to 1/e of what it was (IL-6).
const AVERAGE_INTERVAL: Nanos = Nanos::from_secs(1);

/// What `io.stat` shows of a cgroup with `io.latency`, and what the controller did since its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupLatency {
    /// Its target.
    pub target: Option<Nanos>,
    /// I/Os that it may have outstanding; `None` for no limit.
    pub depth: Option<u32>,
    /// Moving average of the latencies of its I/Os and of those of groups below it.
    pub average: Nanos,
    /// Length of its window.
    pub window: Nanos,
    /// I/Os that passed although the group was at its depth, and for which it was not delayed yet.
    pub use_delay: u32,
    /// The delay that it owes for them.
    pub delay: Nanos,
    /// Windows that have ended.
    pub windows: u64,
    /// Of these, windows that missed the target.
    pub missed: u64,
    /// The lowest depth until now; `None` if it never had a limit.
    pub lowest_depth: Option<u32>,
    /// Its own I/Os that waited.
    pub delayed: u64,
    /// Time in which at least one of its own I/Os waited.
    pub throttled: Nanos,
}

/// A group on one device.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyGroup {
    /// The group above it; 0 is the root.
    pub(super) parent: usize,
    /// When the window began.
    window_start: Instant,
    /// Latencies in the window, ns, and their number.
    sum_ns: u64,
    count: u64,
    /// Those of them that were longer than the target.
    late: u64,
    /// End of the last I/O.
    last_end: Instant,
    /// Whether the last window missed the target.
    pub(super) is_missing: bool,
    pub(super) depth: Depth,
    /// When the depth rises if no sibling needs the limit.
    pub(super) next_raise: Instant,
    /// I/Os that have passed and not ended, of the group and those below it.
    pub(super) outstanding: u32,
    /// The most of them since the last step of a depth among the siblings.
    pub(super) peak: u32,
    /// Waiting bios, with the number of parts of each.
    pub(super) waiting: VecDeque<(Bio, u32)>,
    /// Since when bios wait.
    pub(super) waiting_since: Instant,
    /// Bios wait until then for the delay that the group owed.
    pub(super) delayed_until: Instant,
    pub(super) figures: GroupLatency,
}

impl LatencyGroup {
    pub(super) fn new(parent: usize) -> Self {
        let mut group = LatencyGroup { parent, ..LatencyGroup::default() };
        group.set_target(None);
        group
    }

    pub(super) fn set_target(&mut self, target: Option<Nanos>) {
        self.figures.target = target;
        let targets = Nanos(target.unwrap_or_default().0.saturating_mul(WINDOW_TARGETS));
        self.figures.window = targets.clamp(WINDOW.0, WINDOW.1);
    }

    /// Whether a group with this target, or none, is throttled for the target of this one.
    pub(super) fn is_stricter_than(&self, other: Option<Nanos>) -> bool {
        self.figures.target.is_some_and(|target| other.is_none_or(|other| target < other))
    }

    /// Whether it has not stopped: it has I/O, or had some a short time ago.
    pub(super) fn is_active(&self, now: Instant) -> bool {
        self.outstanding > 0 || !self.waiting.is_empty() || now.since(self.last_end) < STOPPED_AFTER
    }

    /// Adds the latency of an I/O that has ended. Returns whether a window has ended with it.
    pub(super) fn add_latency(&mut self, now: Instant, latency: Nanos, rotates: bool) -> bool {
        self.sum_ns += latency.0;
        self.count += 1;
        self.late += u64::from(self.figures.target.is_some_and(|target| latency > target));
        self.last_end = now;
        if now.since(self.window_start) < self.figures.window {
            return false;
        }
        self.end_window(now, rotates);
        true
    }

    /// Ends the window, which has at least one I/O.
    fn end_window(&mut self, now: Instant, rotates: bool) {
        let mean_ns = self.sum_ns / self.count.max(1);
        let (elapsed_ns, average_ns) = (now.since(self.window_start).0, self.figures.average.0);
        let weighted =
            u128::from(mean_ns) * u128::from(elapsed_ns) + u128::from(average_ns) * u128::from(AVERAGE_INTERVAL.0);
        let average_ns = weighted / u128::from(elapsed_ns + AVERAGE_INTERVAL.0);
        self.figures.average = Nanos(if self.figures.windows == 0 { mean_ns } else { average_ns as u64 });
        let is_mean_late = self.figures.target.is_some_and(|target| mean_ns > target.0);
        self.is_missing = if rotates { is_mean_late } else { self.late > 0 && self.late * LATE_PARTS >= self.count };
        self.figures.windows += 1;
        self.figures.missed += u64::from(self.is_missing);
        (self.window_start, self.sum_ns, self.count, self.late) = (now, 0, 0, 0);
    }

    /// How long an I/O would have waited for its place, at the pace of the group's I/Os; nothing if it may pass.
    pub(super) fn expected_wait(&self) -> Nanos {
        let Some(limit) = self.depth.limit.filter(|_| !self.depth.allows(self.outstanding)) else { return Nanos::ZERO };
        let before_it = u64::from(self.outstanding - limit) + 1;
        Nanos(self.figures.average.0.saturating_mul(before_it) / u64::from(limit))
    }
}
