//! bfq: Budget Fair Queueing, proportional shares of a device for processes and groups, with low latency for those that
//! wait for it.
//!
//! Used by: `schedulers`, `elevator`, `schedulers::registry`; crates `evidence`, `experiment`.
//! Tests: `crates/blk/src/schedulers/bfq/tests/`, `crates/evidence/tests/bfq.rs`.
//!
//! **Promises**: every process that keeps the device busy gets sectors in proportion to its weight, or time if it is
//! slow; a process that does little I/O, or has just started, is served before those that stream. **Costs**: O(log n)
//! an insertion and a dispatch for n active queues in a level, times the depth of the hierarchy; one lock.
//! **Rules**: docs/rules/bfq.md; [`BfqVariant`] holds what differs between releases.
//!
//! # The files, bottom up
//! | layer | files |
//! | --- | --- |
//! | hierarchy (B-WF2Q+) | `vtime`, `entity`, `service_tree`, `hierarchy`, `weights`, `groups` |
//! | queues and their requests | `queue`, `requests`, `contexts`, `lifecycle`, and parts shared in `process_queue` |
//! | what is measured | `io_bound`, `ncq`, `rate`; think time and seeks are those of `process_queue` |
//! | slots | `budgets`, `slot`, `idling`, `preemption`, `injection`, `wakers` |
//! | who is favoured | `raising`, `bursts` |
//! | cooperation | `cooperation`, `stable_merge`, `split` |
//! | the hooks | `insertion`, `dispatching`, `completion`, `limits`, `tunables`, and this file |

mod budgets;
mod bursts;
mod completion;
mod config;
mod contexts;
mod cooperation;
mod dispatching;
mod entity;
mod groups;
mod hierarchy;
mod idling;
mod injection;
mod insertion;
mod io_bound;
mod lifecycle;
mod limits;
mod ncq;
mod preemption;
mod queue;
mod raising;
mod rate;
mod requests;
mod service_tree;
mod slot;
mod split;
mod stable_merge;
mod state_lines;
mod tunables;
mod variant;
mod vtime;
mod wakers;
mod weights;

#[cfg(test)]
mod tests;

pub use config::{BfqConfig, BfqGroup};
pub use state_lines::{Expiration, QueueLabel, StateChange, StateLine};
pub use variant::BfqVariant;

use crate::bio::Bio;
use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{HctxId, RqId};
use crate::ground::sorted_tree::Nodes;
use crate::ground::time::Now;
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::{Choice, Completions, Needs, Place, PolicyCx, Replayable, Scheduler, SchedulerEvent};
use crate::request::Request;
use crate::request::merge::Edge;

use super::process_queue::RequestTable;
use bursts::Burst;
use config::{ACTUATORS_MAX, DEFAULT_MAX_BUDGET, LONG_AGO};
use contexts::Contexts;
use entity::{CLASSES, Entity, QueueId};
use groups::Groups;
use hierarchy::Hierarchy;
use injection::Measurement;
use lifecycle::Queues;
use ncq::Ncq;
use rate::PeakRate;
use requests::{Entry, Whereabouts};
use state_lines::StateLine as Line;
use tunables::Settings;

/// The time of the current call, as plain numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    /// Nanoseconds; may stand still under a plug, and so lie behind what was seen before (BFQ-4, BFQ-5, BFQ-7).
    ns: u64,
    /// Ticks.
    tick: i64,
}

/// What the current call asks of its caller. A later request about the timer replaces an earlier one.
#[derive(Clone, Copy, Debug, Default)]
struct RequestedActions {
    timer: Option<TimerRequest>,
    run_queues: bool,
}

/// A request about the idle timer.
#[derive(Clone, Copy, Debug)]
enum TimerRequest {
    /// Set it, ns.
    At(u64),
    /// Switch it off.
    Off,
}

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct Bfq {
    config: BfqConfig,
    settings: Settings,
    now: Moment,
    requested: RequestedActions,

    hierarchy: Hierarchy,
    groups: Groups,
    queues: Queues,
    contexts: Contexts,
    entries: Vec<Entry>,
    /// Requests in the backlogs of their queues.
    requests: RequestTable,
    /// Queues by the sector of their next request, in the index of their group.
    index_nodes: Nodes,
    /// Requests that precede all others: head insertions and requeued requests.
    immediate: IdList,
    immediate_links: Links,

    /// The queue whose slot it is.
    in_service: Option<QueueId>,
    /// Queues with work, by class.
    busy: [u32; CLASSES],
    /// Of these, the raised ones.
    raised_busy: u32,
    /// Groups that contain a queue with something queued or in flight.
    groups_pending: u32,
    /// Requests waiting in queues.
    queued: u32,
    /// Requests in flight.
    in_driver: u32,
    /// The same, by actuator.
    in_driver_of: Vec<u32>,
    /// The sector after the last dispatched request.
    last_position: u64,
    /// The same for the queue in service; 0 when its slot starts.
    in_service_last_position: u64,
    /// Start of the slot, ns.
    slot_start: u64,
    /// When the idle timer was set, ns.
    idling_start: u64,
    /// The largest budget, sectors: follows the peak rate unless the user fixed it.
    max_budget: u64,
    /// Grows with every slot up to a limit; shows whether there are enough statistics (BFQ-39).
    budgets_assigned: u32,
    ncq: Ncq,
    rate: PeakRate,
    burst: Burst,
    measurement: Measurement,
    /// The queue whose request completed last; `None` if that is shared.
    last_completed: Option<QueueId>,
}

impl Bfq {
    /// A fresh scheduler with default tunables, for request ids below `capacity`.
    #[must_use]
    pub fn new(mut config: BfqConfig, capacity: u32) -> Self {
        // Ranges beyond the last one that counts belong to it; older releases know one range.
        let ranges = if config.variant.actuators { ACTUATORS_MAX } else { 1 };
        config.actuators.truncate(ranges - 1);
        let actuators = config.actuators.len() + 1;
        let mut bfq = Bfq {
            settings: Settings::new(&config),
            now: Moment::default(),
            requested: RequestedActions::default(),
            hierarchy: Hierarchy::new(config.variant, config.ticks(1000) / 5, actuators),
            groups: Groups::new(actuators),
            queues: Queues::default(),
            contexts: Contexts::default(),
            entries: vec![Entry::default(); capacity as usize],
            requests: RequestTable::new(capacity),
            index_nodes: Nodes::default(),
            immediate: IdList::default(),
            immediate_links: Links::new(capacity as usize),
            in_service: None,
            busy: [0; CLASSES],
            raised_busy: 0,
            groups_pending: 0,
            queued: 0,
            in_driver: 0,
            in_driver_of: vec![0; actuators],
            last_position: 0,
            in_service_last_position: 0,
            slot_start: 0,
            idling_start: LONG_AGO,
            max_budget: DEFAULT_MAX_BUDGET,
            budgets_assigned: 0,
            ncq: Ncq::default(),
            rate: PeakRate::new(config.rotational),
            burst: Burst::default(),
            measurement: Measurement::default(),
            last_completed: None,
            config,
        };
        for at in 0..bfq.config.groups.len() {
            let BfqGroup { cgroup, parent, weight } = bfq.config.groups[at];
            bfq.add_group(cgroup, parent, weight);
        }
        bfq
    }

    /// Starts or stops recording every change of the internal state.
    pub fn observe(&mut self, on: bool) {
        self.hierarchy.log.set_on(on);
    }

    /// Takes the state lines recorded since the last call.
    pub fn take_lines(&mut self) -> Vec<Line> {
        self.hierarchy.log.take()
    }

    fn begin(&mut self, now: Now) {
        self.now = Moment { ns: now.at.0, tick: now.tick.0 as i64 };
        self.hierarchy.tick = self.now.tick;
        self.requested = RequestedActions::default();
    }

    fn end(&mut self, cx: &mut PolicyCx<'_>) {
        self.free_forgotten();
        match self.requested.timer {
            Some(TimerRequest::At(ns)) => {
                cx.requested.set_timer = Some(crate::ground::time::Instant(ns));
                cx.requested.cancel_timer = false;
            }
            Some(TimerRequest::Off) => {
                cx.requested.set_timer = None;
                cx.requested.cancel_timer = true;
            }
            None => {}
        }
        cx.requested.run_queues |= self.requested.run_queues;
    }

    fn call<R>(&mut self, cx: &mut PolicyCx<'_>, body: impl FnOnce(&mut Self) -> R) -> R {
        self.begin(cx.now);
        let answer = body(self);
        self.end(cx);
        answer
    }

    fn entity(&self, q: QueueId) -> &Entity {
        &self.hierarchy.entities[self.queues[q].entity]
    }

    fn entity_mut(&mut self, q: QueueId) -> &mut Entity {
        &mut self.hierarchy.entities[self.queues[q].entity]
    }

    /// Queues with work.
    fn busy_queues(&self) -> u32 {
        self.busy.iter().sum()
    }

    fn is_raised(&self, q: QueueId) -> bool {
        self.entity(q).raise > 1
    }

    fn is_seeky(&self, q: QueueId) -> bool {
        self.queues[q].seeks.seeks() > self.config.variant.seeky_above
    }

    /// Whether the device is flash that queues commands, as far as is known.
    fn is_queueing_flash(&self) -> bool {
        !self.config.rotational && self.ncq.queues()
    }

    fn log_queue(&mut self, q: QueueId, what: impl FnOnce() -> StateChange) {
        let label = self.entity(q).label;
        self.hierarchy.log.queue(label, what);
    }

    /// Asks for a run of the hardware queues if there is something for them.
    fn schedule_dispatch(&mut self) {
        if self.queued > 0 {
            self.hierarchy.log.device(|| StateChange::Kick);
            self.requested.run_queues = true;
        }
    }
}

impl Scheduler for Bfq {
    fn needs(&self) -> Needs {
        Needs {
            completions: Completions::AtOnce,
            bios: true,
            depth_by_context: self.config.variant.tag_limits,
            min_shallow: self.config.variant.tag_limits.then_some(1),
            single_dispatch: self.config.variant.single_dispatch,
            disables_wbt: true,
            async_percent: config::ASYNC_PERCENT,
            ..Needs::default()
        }
    }

    fn on_arrived(&mut self, cx: &mut PolicyCx<'_>, rq: &Request) {
        // A requeued request comes back without a queue.
        if self.entries[rq.id().index()].whereabouts != Whereabouts::Requeued {
            self.call(cx, |bfq| bfq.set_up(rq));
        }
    }

    fn on_dropped(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        self.finish(cx, id);
    }

    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        self.begin(cx.now);
        if !matches!(self.entries[id.index()].whereabouts, Whereabouts::SetUp | Whereabouts::Requeued) {
            self.set_up(cx.rq(id));
        }
        self.insert_request(id.0, place);
        self.end(cx);
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        self.call(cx, Bfq::choose)
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        self.call(cx, |bfq| bfq.release_request(id.0));
    }

    fn has_work(&self) -> bool {
        let busy = self.config.variant.busy_is_work && self.busy_queues() > 0;
        !self.immediate.is_empty() || self.queued > 0 || busy
    }

    fn on_bio(&mut self, cx: &mut PolicyCx<'_>, bio: &Bio) {
        if let Some(context) = self.contexts.find(bio.io_context) {
            self.call(cx, |bfq| bfq.follow_cgroup(context, bio.cgroup));
        }
    }

    fn allow_merge(&mut self, cx: &mut PolicyCx<'_>, id: RqId, bio: &Bio) -> bool {
        self.call(cx, |bfq| bfq.bio_may_join(id.0, bio))
    }

    fn front_candidate(&self, cx: &PolicyCx<'_>, bio: &Bio) -> Option<RqId> {
        let q = self.queue_of_bio(bio)?;
        let id = self.queues[q].backlog.starting_at(&self.requests, bio.end())?;
        crate::request::merge::mergeable(cx.rq(id)).then_some(id)
    }

    fn previous(&self, id: RqId) -> Option<RqId> {
        let q = self.queue_if_queued(id)?;
        self.queues[q].backlog.before(&self.requests, id)
    }

    fn next(&self, id: RqId) -> Option<RqId> {
        let q = self.queue_if_queued(id)?;
        self.queues[q].backlog.after(&self.requests, id)
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, edge: Edge) {
        let (sector, sectors) = (cx.rq(id).sector.0, cx.rq(id).sectors);
        self.call(cx, |bfq| bfq.request_grew(id, sector, sectors, edge));
    }

    fn on_absorbed(&mut self, cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        let first = cx.rq(survivor);
        let (sector, sectors) = (first.sector.0, first.sectors + cx.rq(absorbed).sectors);
        self.call(cx, |bfq| bfq.request_absorbed(survivor, absorbed, sector, sectors));
    }

    /// Requests of different actuators stay apart (BFQ-128).
    fn allow_request_merge(&self, first: RqId, second: RqId) -> bool {
        let actuator = |id: RqId| self.entries[id.index()].queue.map(|q| self.queues[q].actuator);
        self.config.actuators.is_empty() || actuator(first) == actuator(second)
    }

    fn limit_depth(&mut self, cx: &mut PolicyCx<'_>, bio: &Bio) -> Option<u32> {
        self.call(cx, |bfq| bfq.tag_limit(bio))
    }

    fn on_requeued(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        self.call(cx, |bfq| {
            bfq.release_request(id.0);
            bfq.entries[id.index()].whereabouts = Whereabouts::Requeued;
        });
    }

    fn on_timer(&mut self, cx: &mut PolicyCx<'_>) {
        self.call(cx, Bfq::idle_timer_fired);
    }

    fn grow(&mut self, capacity: u32) {
        let room = (capacity as usize).max(self.entries.len());
        self.entries.resize(room, Entry::default());
        self.requests.grow(capacity);
        self.immediate_links.grow(room);
    }

    fn on_event(&mut self, cx: &mut PolicyCx<'_>, event: SchedulerEvent) {
        match event {
            SchedulerEvent::Depths { nr_requests, async_depth } => {
                self.config.nr_requests = nr_requests;
                self.config.async_depth = async_depth;
            }
            SchedulerEvent::Rotational(rotational) => self.config.rotational = rotational,
            SchedulerEvent::IoContextExited(io_context) => self.call(cx, |bfq| bfq.context_exited(io_context)),
            // Noticed with the next request.
            SchedulerEvent::Priority { io_context, ioprio } => {
                if let Some(context) = self.contexts.find(io_context) {
                    self.contexts[context].reported_ioprio = ioprio;
                }
            }
            SchedulerEvent::Moved { io_context, cgroup } => {
                if let Some(context) = self.contexts.find(io_context) {
                    self.call(cx, |bfq| bfq.follow_cgroup(context, cgroup));
                }
            }
            SchedulerEvent::CgroupAdded { cgroup, parent } => self.call(cx, |bfq| bfq.register_group(cgroup, parent)),
            SchedulerEvent::CgroupRemoved(cgroup) => self.call(cx, |bfq| bfq.remove_group(cgroup)),
            SchedulerEvent::Weight { cgroup, weight } => self.call(cx, |bfq| {
                let group = bfq.group_of(cgroup);
                bfq.set_group_weight(group, weight);
            }),
            // It does not distinguish the own tasks of a cgroup from its child groups.
            SchedulerEvent::LeafWeight { .. } => {}
        }
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        self.settings.tunables().shown(self)
    }

    fn set_tunable(&mut self, cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        self.call(cx, |bfq| bfq.settings.tunables().store(bfq, name, text))
    }
}

impl Replayable for Bfq {
    fn adopt(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId, id: RqId) {
        self.call(cx, |bfq| bfq.adopt_choice(id.0));
    }
}
