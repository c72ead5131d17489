//! cfq, completely fair queueing: time on the device, divided among processes.
//!
//! **Promises**: each process has a queue of its own; queues take turns, each with a time slice that its priority
//! scales; cgroups divide the device's time by weight; real-time queues go before all others of their group and idle
//! ones behind; the device is kept idle for a process that is about to go on where it stopped, so that readers are
//! not torn apart by others. **Costs**: O(log n) an insertion and a dispatch, and the time that is idled away.
//! **Rules**: docs/rules/cfq.md; each file names its own.
//!
//! A reader may begin with [`select`] (whose turn is it?), go on with [`serve`] (may it dispatch, and what?),
//! [`turn`] (how turns begin, end and are charged) and [`insert`], [`complete`] (what arrivals and ends change).
//! The legacy single queue drives it: allocation ([`lifecycle`]) comes before insertion, the driver's first look
//! ([`LegacyHooks::on_started`](hoistway_blk::policy::LegacyHooks::on_started)) behind dispatch, and it is asked for one request at a time,
//! when the dispatch list is empty.

mod class;
mod clock;
mod complete;
mod context;
mod cooperate;
mod depth_detector;
mod gate;
mod group;
mod idle;
mod insert;
mod lifecycle;
mod log;
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

/// What cfq is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CfqConfig {
    /// The generation.
    pub generation: CfqGeneration,
    /// Ticks per second.
    pub hz: Hz,
    /// Whether the device seeks.
    pub rotational: bool,
    /// Which weights cgroups have.
    pub cgroups: CgroupVersion,
    /// How far the clock moves on while a completion is handled, before slices are looked at. The kernel reads it
    /// anew; a clock that stood still would start and end a slice at one moment.
    pub completion_step: Nanos,
}

impl CfqConfig {
    /// As a kernel has it, for a device that seeks or does not.
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

/// The policy. Clone it to look ahead. `L` takes the messages of its white-box log.
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
    /// What is known of each request slot.
    entries: Vec<Entry>,
    requests: RequestTable,
    /// Nodes of the groups' service trees, by queue. Keys are moments, see [`round_robin`].
    service_nodes: Nodes,
    /// Nodes of the position trees, by queue.
    position_nodes: Nodes,
    /// Busy queues by the sector of their next request, for each original level.
    position_trees: [PositionTree; 8],

    /// What is being served.
    serving: Serving,
    /// The queue whose turn it is.
    active: Option<QueueId>,
    /// The process that issued the first request of the turn.
    turn_context: Option<ContextId>,
    /// The idle timer runs.
    timer_armed: bool,

    /// Busy queues on the device.
    busy_queues: u32,
    /// Those of them that are sync.
    busy_sync_queues: u32,
    /// Requests that wait in all queues.
    waiting: u32,
    /// Requests that the driver has started.
    in_driver: u32,
    /// Requests at the dispatch list or the driver, of async and of sync queues.
    in_flight: [u32; 2],
    depth: DepthDetector,
    /// Where the request that the driver started last ends.
    head: Sector,
    /// When a sync request that was over its time last completed.
    last_delayed_sync: i64,

    log: L,
}

/// The class and kind that are being served.
#[derive(Clone, Copy, Debug)]
struct Serving {
    class: Class,
    workload: Workload,
    /// When the workload slice ends. Looked at only when a queue must be chosen.
    end: i64,
}

/// What is known of a request slot.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The queue and the process that it was allocated for; nothing if the slot is free.
    owner: Option<(QueueId, ContextId)>,
    place: Whereabouts,
    /// When it was allocated.
    allocated: i64,
    sync: bool,
    /// A sync write after which no more is announced.
    noidle_write: bool,
    /// Where it begins: kept from dispatch on.
    sector: Sector,
    /// Its length: kept from dispatch on.
    sectors: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Whereabouts {
    /// Allocated, but not here yet or no longer: plugged, or absorbed by another.
    #[default]
    Elsewhere,
    /// In its queue's backlog.
    Waiting,
    /// At the dispatch list.
    Dispatched,
    /// At the driver.
    Started,
}

impl Cfq {
    /// A fresh scheduler with default tunables, attached now, for request ids below `capacity`.
    #[must_use]
    pub fn new(config: CfqConfig, now: Now, capacity: u32) -> Self {
        Cfq::with_log(config, now, capacity, NoCfqLog)
    }
}

impl<L: CfqLog> Cfq<L> {
    /// As [`Cfq::new`], with somebody who listens.
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

    /// The queue that the request `id` belongs to, as messages name it.
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

    /// How two requests of a queue are compared.
    fn chooser(&self) -> Chooser {
        Chooser {
            back_sectors_max: 2 * u64::from(self.settings.back_seek_max_kib),
            back_penalty: u64::from(self.settings.back_seek_penalty),
        }
    }

    /// Whether groups are charged requests instead of time.
    fn is_iops_mode(&self) -> bool {
        self.settings.slice_idle == 0 && self.depth.queues()
    }

    /// Whether the device neither seeks nor lacks a queue of its own: there is nothing to gain by waiting for a
    /// single process.
    fn is_queueing_flash(&self) -> bool {
        !self.config.rotational && self.depth.queues()
    }

    /// Asks for a run of the queue, unless there is nothing to run for.
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

    /// Says something about a queue, or about the device.
    #[inline]
    fn note(&mut self, queue: Option<QueueId>, event: CfqEvent) {
        if L::ENABLED {
            let queue = queue.map(|id| self.name_of(id));
            self.log.message(CfqMessage { queue, event });
        }
    }
}
