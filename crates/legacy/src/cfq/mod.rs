//! cfq, completely fair queueing: device time divided among processes.
//!
//! Used by: `schedulers`; crate `evidence`.
//! Tests: `crates/legacy/src/cfq/` (in its files), `crates/legacy/src/cfq/tests/`, `crates/evidence/tests/cfq.rs`.
//!
//! **Promises**: each process has its own queue; queues take turns, with time slices scaled by priority; cgroups divide
//! the device's time by weight; within a group, real-time queues go before all others and idle ones after them; the
//! device is kept idle for a process that is about to continue where it stopped, so that other processes do not
//! interrupt readers. **Costs**: O(log n) per insertion and dispatch, and the time spent idling. **Rules**:
//! docs/rules/cfq.md; each file names its own.
//!
//! Start reading with [`select`] (the queue whose turn it is), then [`serve`] (whether it may dispatch, and which request), [`turn`]
//! (start, end and charge of turns) and [`insert`], [`complete`] (effects of arrivals and completions). The legacy single queue drives it:
//! allocation ([`lifecycle`]) comes before insertion, the driver's first look
//! ([`LegacyHooks::on_started`](hoistway_blk::policy::LegacyHooks::on_started)) after dispatch, and it is asked for one request at a time,
//! when the dispatch list is empty.

mod class;
mod clock;
mod complete;
mod context;
mod cooperate;
mod depth_detector;
mod group;
mod idle;
mod insert;
mod lifecycle;
mod log;
mod may_dispatch;
mod policy;
mod preempt;
mod queue;
mod round_robin;
mod select;
mod serve;
mod slice;
mod tunables;
mod turn;

#[cfg(test)]
mod tests;

pub use group::CgroupVersion;
pub use log::{CfqEvent, CfqLog, CfqMessage, CfqQueueName, NoCfqLog};

use class::{Class, Workload};
use clock::Clock;
use context::{ContextId, Contexts};
use depth_detector::DepthDetector;
use group::Groups;
use hoistway_blk::ground::{CfqGeneration, Generation, Hz, Nanos, Nodes, Now, RqId, Sector};
use hoistway_blk::kit::process_queue::{Backlog, Chooser, PositionTree, RequestTable};
use hoistway_blk::policy::PolicyCx;
use queue::{Queue, QueueId};
use tunables::Settings;

/// The configuration of cfq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CfqConfig {
    /// The generation.
    pub generation: CfqGeneration,
    /// Ticks per second.
    pub hz: Hz,
    /// Whether the device seeks.
    pub rotational: bool,
    /// The weights of cgroups.
    pub cgroups: CgroupVersion,
    /// How far the clock advances during the handling of a completion, before slices are checked. The kernel reads its
    /// clock again there; without a step a slice would start and end at the same time.
    pub completion_step: Nanos,
}

impl CfqConfig {
    /// The configuration in this kernel, for a device that rotates or not.
    #[must_use]
    pub fn new(generation: &Generation, rotational: bool) -> Self {
        CfqConfig {
            generation: generation.cfq,
            hz: generation.hz,
            rotational,
            cgroups: CgroupVersion::V1,
            completion_step: Nanos(1),
        }
    }
}

/// The policy. Clone it to look ahead. `L` receives its messages.
#[derive(Clone)]
pub struct Cfq<L = NoCfqLog> {
    config: CfqConfig,
    clock: Clock,
    settings: Settings,

    /// All queues, by [`QueueId`].
    queues: Vec<Queue>,
    /// Queues whose last reference is gone.
    free_queues: Vec<QueueId>,
    contexts: Contexts,
    groups: Groups,
    /// The state of each request slot.
    entries: Vec<Entry>,
    requests: RequestTable,
    /// Nodes of the groups' service trees, by queue. Keys are times, see [`round_robin`].
    service_nodes: Nodes,
    /// Nodes of the position trees, by queue.
    position_nodes: Nodes,
    /// Busy queues by the sector of their next request, for each original level.
    position_trees: [PositionTree; 8],

    /// The class and kind being served.
    serving: Serving,
    /// The queue whose turn it is.
    active: Option<QueueId>,
    /// The process that issued the first request of the turn.
    turn_context: Option<ContextId>,
    /// Whether the idle timer is set.
    timer_armed: bool,

    /// Busy queues on the device.
    busy_queues: u32,
    /// Busy sync queues.
    busy_sync_queues: u32,
    /// Waiting requests in all queues.
    waiting: u32,
    /// Requests started by the driver.
    in_driver: u32,
    /// Requests at the dispatch list or the driver, of async and of sync queues.
    in_flight: [u32; 2],
    depth: DepthDetector,
    /// The end of the request that the driver started last.
    head: Sector,
    /// When a delayed sync request last completed.
    last_delayed_sync: i64,

    log: L,
}

/// The class and kind being served.
#[derive(Clone, Copy, Debug)]
struct Serving {
    class: Class,
    workload: Workload,
    /// When the workload slice ends. Checked only when a queue is chosen.
    end: i64,
}

/// The state of a request slot.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The queue and the process of the request; None if the slot is free.
    owner: Option<(QueueId, ContextId)>,
    location: Location,
    /// When it was allocated.
    allocated: i64,
    sync: bool,
    /// Whether it is a sync write that announces no further one.
    noidle_write: bool,
    /// Its start: valid from dispatch on.
    sector: Sector,
    /// Its length: valid from dispatch on.
    sectors: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Location {
    /// Allocated, but not in the scheduler: plugged, or merged into another one.
    #[default]
    Outside,
    /// In its queue's backlog.
    Waiting,
    /// At the dispatch list.
    Dispatched,
    /// At the driver.
    Started,
}

impl Cfq {
    /// A new scheduler with default tunables, attached at `now`, for request ids below `capacity`.
    #[must_use]
    pub fn new(config: CfqConfig, now: Now, capacity: u32) -> Self {
        Cfq::with_log(config, now, capacity, NoCfqLog)
    }
}

impl<L: CfqLog> Cfq<L> {
    /// The same as [`Cfq::new`], with a log.
    #[must_use]
    pub fn with_log(config: CfqConfig, now: Now, capacity: u32, log: L) -> Self {
        let clock = Clock { generation: config.generation, hz: config.hz };
        let now = clock.read(now);
        Cfq {
            clock,
            settings: Settings::new(clock, config.rotational),
            queues: Vec::new(),
            free_queues: Vec::new(),
            contexts: Contexts::default(),
            groups: Groups::new(config.cgroups, now),
            entries: vec![Entry::default(); capacity as usize],
            requests: RequestTable::new(capacity),
            service_nodes: Nodes::new(0),
            position_nodes: Nodes::new(0),
            position_trees: [PositionTree::default(); 8],
            serving: Serving { class: Class::BestEffort, workload: Workload::Async, end: now },
            active: None,
            turn_context: None,
            timer_armed: false,
            busy_queues: 0,
            busy_sync_queues: 0,
            waiting: 0,
            in_driver: 0,
            in_flight: [0; 2],
            depth: DepthDetector::default(),
            head: Sector(0),
            last_delayed_sync: now - clock.second(),
            log,
            config,
        }
    }

    /// The log, to be read and emptied.
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.log
    }

    /// The name of the queue of request `id`, as in messages.
    #[must_use]
    pub fn queue_of(&self, id: RqId) -> Option<CfqQueueName> {
        self.entries[id.index()].owner.map(|(queue, _)| self.name_of(queue))
    }

    #[inline]
    fn queue(&self, id: QueueId) -> &Queue {
        &self.queues[id.0 as usize]
    }

    #[inline]
    fn queue_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.queues[id.0 as usize]
    }

    #[inline]
    fn now(&self, cx: &PolicyCx<'_>) -> i64 {
        self.clock.read(cx.now)
    }

    /// The comparison of two requests of a queue.
    fn chooser(&self) -> Chooser {
        Chooser {
            back_sectors_max: 2 * u64::from(self.settings.back_seek_max_kib),
            back_penalty: u64::from(self.settings.back_seek_penalty),
        }
    }

    /// Whether groups are charged by requests instead of time.
    fn is_iops_mode(&self) -> bool {
        self.settings.slice_idle == 0 && self.depth.queues()
    }

    /// Whether the device does not seek and queues commands: then idling for a single process gains nothing.
    fn is_queueing_flash(&self) -> bool {
        !self.config.rotational && self.depth.queues()
    }

    /// Requests a run of the queue, unless nothing is waiting.
    fn schedule_dispatch(&mut self, cx: &mut PolicyCx<'_>) {
        if self.busy_queues > 0 {
            self.note(None, CfqEvent::ScheduleDispatch);
            cx.requested.run_queues = true;
        }
    }

    fn name_of(&self, id: QueueId) -> CfqQueueName {
        let queue = self.queue(id);
        CfqQueueName { owner: queue.owner, sync: queue.sync, noidle: queue.workload() == Workload::NoIdle }
    }

    /// Logs an event of a queue or of the device.
    #[inline]
    fn note(&mut self, queue: Option<QueueId>, event: CfqEvent) {
        if L::ENABLED {
            let queue = queue.map(|id| self.name_of(id));
            self.log.message(CfqMessage { queue, event });
        }
    }
}
