//! A queue: the sync requests of one process, or the async requests of everybody of one class and level in a group.
//!
//! Rules: CFQ-6, CFQ-22; lifetimes CFQ-65 to CFQ-74.

use hoistway_blk::ground::{CgroupId, IoContextId, Sector};
use hoistway_blk::kit::process_queue::{Backlog, SEEK_DISTANCE, SMALL_ON_FLASH, SeekHistory, distance};

use super::class::{Class, Priority, TreeId, Workload};

/// More seeks than this among the last 32 requests make a queue seeky.
const SEEKS_MAX: u32 = 4;

/// A queue's index in the table of queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueId(pub(super) u32);

/// A queue. Times are in units of the clock.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Whose it is; of an async queue, who made it.
    pub(super) owner: IoContextId,
    /// Whether it holds sync requests.
    pub(super) sync: bool,
    /// Its group, by cgroup.
    pub(super) group: CgroupId,
    /// Class and level as they count now: important requests boost them for a while.
    pub(super) priority: Priority,
    /// Class and level without a boost.
    pub(super) original: Priority,
    /// Its process got another priority, which has not been looked at yet.
    pub(super) priority_changed: bool,

    /// The requests that wait.
    pub(super) backlog: Backlog,
    /// Requests at the dispatch list or the driver.
    pub(super) in_flight: u32,

    /// Linked in the round robin: it has requests, or is active, or was emptied by merging.
    pub(super) busy: bool,
    /// The tree of its group that it is in, which is the one that fitted when it was last put there.
    pub(super) tree: Option<TreeId>,
    /// The position tree that it is in, by level.
    pub(super) position_tree: Option<u8>,
    /// Credit from its last turn, to be used up by its next ordinary key. Negative: it overran.
    pub(super) residual: i64,

    /// When its turn began.
    pub(super) turn_start: i64,
    /// The timed part of its turn, once the first completion has started it.
    pub(super) slice: Option<Slice>,
    /// Requests given out in this turn.
    pub(super) turn_requests: u32,
    /// Sectors given out in this turn.
    pub(super) turn_sectors: u64,
    /// The expired oldest request is looked for once a turn: done.
    pub(super) fifo_checked: bool,
    /// The next dispatch must choose a request of this queue, whatever the limits say.
    pub(super) must_dispatch: bool,
    /// It has used its right to an extra request allocation in this turn.
    pub(super) must_allocate_used: bool,
    /// The idle timer runs for its next request.
    pub(super) waiting_for_request: bool,
    /// Its slice is over and it is kept for its next request only so that its group keeps its place.
    pub(super) waiting_busy: bool,

    /// Worth waiting for by itself.
    pub(super) idle_window: bool,
    /// It had four or more requests waiting at once.
    pub(super) deep: bool,
    /// Several processes share it.
    pub(super) shared: bool,
    /// The processes that share it are to leave it.
    pub(super) to_be_split: bool,
    /// Which of its last requests were seeks.
    seeks: SeekHistory,

    /// The queue that its processes are to move to.
    pub(super) merge_target: Option<QueueId>,
    /// References of processes, of planned merges, and (async) of the group.
    pub(super) process_refs: u32,
    /// References of requests: allocated and not yet released.
    pub(super) request_refs: u32,
}

/// The timed part of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// When the turn's first request completed.
    pub(super) start: i64,
    /// When it is over.
    pub(super) end: i64,
    /// Its length as it was given, whatever has been added since.
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

    /// The kind of its load, as of now.
    #[inline]
    pub(super) fn workload(&self) -> Workload {
        match (self.sync, self.idle_window) {
            (false, _) => Workload::Async,
            (true, false) => Workload::NoIdle,
            (true, true) => Workload::Idleable,
        }
    }

    /// The tree that it belongs into now.
    #[inline]
    pub(super) fn fitting_tree(&self) -> TreeId {
        TreeId::of(self.priority.class, self.workload())
    }

    /// Takes over a priority permanently.
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

    /// Whether its slice has started and is over.
    #[inline]
    pub(super) fn slice_used(&self, now: i64) -> bool {
        self.slice.is_some_and(|slice| now >= slice.end)
    }

    /// What is left of its slice: nothing before that has started.
    #[inline]
    pub(super) fn remaining(&self, now: i64) -> i64 {
        self.slice.map_or(0, |slice| slice.end - now)
    }

    /// Notes where a new request lies.
    pub(super) fn note_seek(&mut self, rotational: bool, sector: Sector, sectors: u32) {
        let is_seek = if rotational {
            distance(self.seeks.last_end(), sector) > SEEK_DISTANCE
        } else {
            // However near: distance plays no role here.
            sectors < SMALL_ON_FLASH
        };
        self.seeks.push(is_seek);
        self.seeks.set_last_end(sector + sectors);
    }

    /// Whether its process jumps about.
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
