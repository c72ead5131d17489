//! A queue: the requests of one process, or the async requests of one level of a group, and what has been learned about
//! their pattern. Rules: BFQ-8.

use super::super::process_queue::{Backlog, SeekHistory, ThinkTime};
use super::config::LONG_AGO_TICK;
use super::contexts::ContextId;
use super::entity::{EntityId, GroupId, QueueId};
use super::io_bound::IoBound;
use super::variant::BfqVariant;

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Its entity, which holds weight, class, budget and service.
    pub entity: EntityId,
    /// Whether its requests are synchronous.
    pub sync: bool,
    /// The actuator whose sectors its requests lie on.
    pub actuator: u8,
    /// The only process that uses it; `None` for async and shared queues.
    pub owner: Option<ContextId>,
    /// Its group.
    pub group: GroupId,
    /// Level of its priority.
    pub level: u8,

    /// The requests that wait.
    pub backlog: Backlog,
    /// Requests in flight.
    pub dispatched: u32,
    /// The learned budget, sectors.
    pub max_budget: u64,
    /// The tick at which the slot times out; once the queue is empty with nothing in flight, the tick since when.
    pub budget_timeout: i64,

    pub seeks: SeekHistory,
    pub think: ThinkTime,
    pub io_bound: IoBound,
    pub raising: Raising,
    pub injection: Injection,
    pub waker: Waker,

    /// Tick of the last change from idle to backlogged.
    pub backlogged_at: i64,
    /// Sectors served since then.
    pub service_since_backlogged: u64,
    /// Tick of the first service since then.
    pub first_io: i64,
    /// Tick of creation.
    pub created: i64,
    /// Tick at which it was split off a shared queue.
    pub split: i64,
    /// The queue that will absorb it.
    pub merge_target: Option<QueueId>,

    /// It has requests, is in service, or is kept scheduled though empty.
    pub busy: bool,
    /// The class under which it was counted busy.
    pub busy_class: usize,
    /// The idle timer runs for it.
    pub waiting: bool,
    /// It expired while empty for a reason that allows service recovery (BFQ-81).
    pub non_blocking_wait: bool,
    /// The fifo has been checked in this slot.
    pub fifo_checked: bool,
    /// Its process has a short think time between requests.
    pub short_think: bool,
    /// 4.12: it is worth waiting for it (BFQ-66, BFQ-67).
    pub idle_window: bool,
    /// It is new and has not had work yet.
    pub just_created: bool,
    /// It was created in a large burst.
    pub in_large_burst: bool,
    /// It has absorbed another queue.
    pub shared: bool,
    /// Its processes are to split off from it.
    pub split_wanted: bool,
    /// The next arrival that may count as soft real time is still to be computed.
    pub soft_rt_pending: bool,
    /// It has requests queued or in flight, and its group counts it.
    pub pending_in_group: bool,
    /// It is in its group's index by sector (BFQ-105).
    pub indexed: bool,

    /// Processes (for an async queue: the group) that use it, and those that will after a planned merge.
    pub process_refs: u32,
    /// Processes that remember it for a delayed stable merge.
    pub merge_refs: u32,
    /// The slot of the table is in use.
    pub alive: bool,
}

/// The state of weight raising, except the factor, which is in the entity (BFQ-91 to BFQ-99).
#[derive(Clone, Copy, Debug)]
pub(super) struct Raising {
    /// Tick of its start, or for a queue that is not raised of the last arrival or expiration.
    pub start: i64,
    /// For how many ticks it lasts.
    pub duration: i64,
    /// Sectors served meanwhile.
    pub service: u64,
    /// Tick at which the interactive raising began that was replaced by soft real-time raising.
    pub start_at_switch: i64,
    /// Earliest tick of an arrival that may count as soft real time.
    pub soft_rt_next_start: i64,
}

/// What injection has learned about a queue (BFQ-87, BFQ-88).
#[derive(Clone, Copy, Debug)]
pub(super) struct Injection {
    /// Requests that may be in flight while another queue's is injected.
    pub limit: u32,
    /// Service time of its requests when nothing is injected, ns; 0 while unknown.
    pub baseline: u64,
    /// Tick of the last decrease or reset of the limit.
    pub decreased: i64,
}

/// Which queue wakes a queue's process (BFQ-90).
#[derive(Clone, Debug, Default)]
pub(super) struct Waker {
    /// The queue whose completions wake this one's process.
    pub known: Option<QueueId>,
    /// The queue that is suspected.
    pub tentative: Option<QueueId>,
    /// Coincidences so far.
    pub detections: u32,
    /// Time of the first of them, ns.
    pub since: u64,
    /// Queues that this one wakes; the one that got work last is first.
    pub woken: Vec<QueueId>,
}

/// What a queue is created with.
pub(super) struct NewQueue {
    pub entity: EntityId,
    pub sync: bool,
    pub actuator: u8,
    pub group: GroupId,
    pub level: u8,
    /// Learned budget, sectors.
    pub max_budget: u64,
    /// Nanosecond clock.
    pub ns: u64,
    pub tick: i64,
}

impl Queue {
    /// A queue without requests.
    pub fn new(new: &NewQueue, variant: &BfqVariant) -> Self {
        // In a plug the first request arrives at the instant of creation, one nanosecond before this (BFQ-5).
        let last_completion = if variant.first_elapsed_is_minus_one { new.ns.wrapping_add(1) } else { new.ns };
        let soft_rt_next_start = if variant.soft_rt_filters { new.tick } else { i64::MAX };
        Queue {
            entity: new.entity,
            sync: new.sync,
            actuator: new.actuator,
            owner: None,
            group: new.group,
            level: new.level,
            backlog: Backlog::default(),
            dispatched: 0,
            max_budget: new.max_budget,
            budget_timeout: LONG_AGO_TICK,
            seeks: SeekHistory::with_a_seek(),
            think: ThinkTime::new(last_completion as i64),
            io_bound: IoBound::new(new.ns),
            raising: Raising {
                start: new.tick,
                duration: 0,
                service: 0,
                start_at_switch: LONG_AGO_TICK,
                soft_rt_next_start,
            },
            injection: Injection { limit: 0, baseline: 0, decreased: new.tick },
            waker: Waker::default(),
            backlogged_at: LONG_AGO_TICK,
            service_since_backlogged: 0,
            first_io: LONG_AGO_TICK,
            created: new.tick,
            split: LONG_AGO_TICK,
            merge_target: None,
            busy: false,
            busy_class: 0,
            waiting: false,
            non_blocking_wait: false,
            fifo_checked: false,
            short_think: new.sync,
            idle_window: new.sync,
            just_created: new.sync,
            in_large_burst: false,
            shared: false,
            split_wanted: false,
            soft_rt_pending: false,
            pending_in_group: false,
            indexed: false,
            process_refs: 0,
            merge_refs: 0,
            alive: true,
        }
    }

    /// Whether it has no requests waiting.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Requests waiting.
    #[inline]
    pub fn queued(&self) -> u32 {
        self.backlog.len()
    }

    /// The request to dispatch next.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        self.backlog.next().map(|id| id.0)
    }

    /// Whether all of the last 32 requests were far.
    pub fn is_totally_seeky(&self) -> bool {
        self.seeks.seeks() == 32
    }
}
