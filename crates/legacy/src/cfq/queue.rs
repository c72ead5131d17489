//! A queue: the sync requests of one process, or all async requests of one class and level in a group.
//!
//! Rules: CFQ-6, CFQ-22; lifetimes CFQ-65 to CFQ-74.

use hoistway_blk::ground::{CgroupId, IoContextId, Sector};
use hoistway_blk::kit::process_queue::{Backlog, SEEK_DISTANCE, SMALL_ON_FLASH, SeekHistory, distance};

use super::class::{Class, Priority, TreeId, Workload};

/// A queue with more seeks than this among its last 32 requests is seeky.
const SEEKS_MAX: u32 = 4;

/// A queue's index in the table of queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueId(pub(super) u32);

/// A queue. Times are in the clock's unit.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Its owner; for an async queue, the process that created it.
    pub(super) owner: IoContextId,
    /// Whether it holds sync requests.
    pub(super) sync: bool,
    /// Its group, by cgroup.
    pub(super) group: CgroupId,
    /// Current class and level: important requests boost them temporarily.
    pub(super) priority: Priority,
    /// Class and level without a boost.
    pub(super) original: Priority,
    /// Whether its process has a new priority that has not been applied yet.
    pub(super) priority_changed: bool,

    /// Waiting requests.
    pub(super) backlog: Backlog,
    /// Requests at the dispatch list or the driver.
    pub(super) in_flight: u32,

    /// Whether it is in the round robin: it has requests, or is active, or was emptied by merging.
    pub(super) busy: bool,
    /// The tree of its group that it is in: the right one when it was last placed.
    pub(super) tree: Option<TreeId>,
    /// The position tree that it is in, by level.
    pub(super) position_tree: Option<u8>,
    /// Credit from its last turn, used by its next ordinary key. Negative if it overran.
    pub(super) residual: i64,

    /// When its turn began.
    pub(super) turn_start: i64,
    /// The timed part of its turn, once the first completion has started it.
    pub(super) slice: Option<Slice>,
    /// Requests dispatched in this turn.
    pub(super) turn_requests: u32,
    /// Sectors dispatched in this turn.
    pub(super) turn_sectors: u64,
    /// Whether the check for an expired request, made once per turn, is done.
    pub(super) fifo_checked: bool,
    /// Whether the next dispatch must choose a request of this queue, regardless of limits.
    pub(super) must_dispatch: bool,
    /// Whether it has used its additional request allocation of this turn.
    pub(super) must_allocate_used: bool,
    /// Whether the idle timer is set for its next request.
    pub(super) waiting_for_request: bool,
    /// Whether its slice is over and it is only kept for its next request, so that its group keeps its place.
    pub(super) waiting_busy: bool,

    /// Whether to idle for it.
    pub(super) idle_window: bool,
    /// Whether it had four or more requests waiting at a time.
    pub(super) deep: bool,
    /// Whether several processes share it.
    pub(super) shared: bool,
    /// Whether the processes that share it should leave it.
    pub(super) to_be_split: bool,
    /// Which of its last requests were seeks.
    seeks: SeekHistory,

    /// The queue that its processes will move to.
    pub(super) merge_target: Option<QueueId>,
    /// References from processes, planned merges, and (async) the group.
    pub(super) process_refs: u32,
    /// References from requests that are allocated and not released.
    pub(super) request_refs: u32,
}

/// The timed part of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// When the turn's first request completed.
    pub(super) start: i64,
    /// When it ends.
    pub(super) end: i64,
    /// Its original length, without later extensions.
    pub(super) allocated: i64,
}

impl Queue {
    /// A queue without requests, used by one process.
    pub(super) fn new(owner: IoContextId, sync: bool, group: CgroupId, priority: Priority) -> Self {
        Queue {
            owner,
            sync,
            group,
            priority,
            original: priority,
            priority_changed: false,
            backlog: Backlog::default(),
            in_flight: 0,
            busy: false,
            tree: None,
            position_tree: None,
            residual: 0,
            turn_start: 0,
            slice: None,
            turn_requests: 0,
            turn_sectors: 0,
            fifo_checked: false,
            must_dispatch: false,
            must_allocate_used: false,
            waiting_for_request: false,
            waiting_busy: false,
            idle_window: sync && priority.class != Class::Idle,
            deep: false,
            shared: false,
            to_be_split: false,
            seeks: SeekHistory::default(),
            merge_target: None,
            process_refs: 1,
            request_refs: 0,
        }
    }

    /// Its current kind of load.
    #[inline]
    pub(super) fn workload(&self) -> Workload {
        match (self.sync, self.idle_window) {
            (false, _) => Workload::Async,
            (true, false) => Workload::NoIdle,
            (true, true) => Workload::Idleable,
        }
    }

    /// The tree that it currently belongs to.
    #[inline]
    pub(super) fn fitting_tree(&self) -> TreeId {
        TreeId::of(self.priority.class, self.workload())
    }

    /// Changes its priority permanently.
    pub(super) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
        self.original = priority;
        if priority.class == Class::Idle {
            self.idle_window = false;
        }
        self.priority_changed = false;
    }

    /// Begins a turn.
    pub(super) fn begin_turn(&mut self, now: i64) {
        self.turn_start = now;
        self.slice = None;
        self.turn_requests = 0;
        self.turn_sectors = 0;
        self.waiting_for_request = false;
        self.must_dispatch = false;
        self.must_allocate_used = false;
        self.fifo_checked = false;
    }

    /// Whether its slice has started and has ended.
    #[inline]
    pub(super) fn slice_used(&self, now: i64) -> bool {
        self.slice.is_some_and(|slice| now >= slice.end)
    }

    /// The rest of its slice; nothing before the slice has started.
    #[inline]
    pub(super) fn remaining(&self, now: i64) -> i64 {
        self.slice.map_or(0, |slice| slice.end - now)
    }

    /// Records the position of a new request.
    pub(super) fn note_seek(&mut self, rotational: bool, sector: Sector, sectors: u32) {
        let is_seek = if rotational {
            distance(self.seeks.last_end(), sector) > SEEK_DISTANCE
        } else {
            // On flash only the size counts, not the distance.
            sectors < SMALL_ON_FLASH
        };
        self.seeks.push(is_seek);
        self.seeks.set_last_end(sector + sectors);
    }

    /// Whether its process is seeky.
    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.seeks() > SEEKS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue::new(IoContextId(1), true, CgroupId::ROOT, Priority::default())
    }

    #[test]
    fn far_requests_make_a_queue_seeky_at_the_sixth_for_the_first_has_no_predecessor() {
        let mut queue = queue();
        for nth in 1..=6 {
            queue.note_seek(true, Sector(nth * 100_000), 8);
            assert_eq!(queue.is_seeky(), nth == 6);
        }
        let mut position = 600_008;
        for near in 1..=32 {
            queue.note_seek(true, Sector(position + 800), 8);
            position += 808;
            assert_eq!(queue.is_seeky(), near < 28, "after {near} near requests");
        }
    }

    #[test]
    fn without_rotation_small_requests_make_a_queue_seeky_at_the_fifth() {
        let mut queue = queue();
        for nth in 1..=5 {
            queue.note_seek(false, Sector(nth * 8), 63);
            assert_eq!(queue.is_seeky(), nth == 5);
        }
        let mut large = self::queue();
        for nth in 0..40 {
            large.note_seek(false, Sector(nth * 1_000_000), 64);
        }
        assert!(!large.is_seeky(), "distance plays no role");
    }
}
