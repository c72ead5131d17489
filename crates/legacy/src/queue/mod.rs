//! The legacy single queue: the block layer of Linux up to 4.20, and the home of noop, deadline and cfq.
//!
//! Used by: `any_queue`, `schedulers`, `change`.
//! Tests: `crates/legacy/src/queue/` (in its files), `crates/legacy/src/queue/tests/`, `crates/legacy/tests/properties/`.
//!
//! It has one lock, one elevator, and a *dispatch queue* of requests that have left the elevator. The driver pulls: a
//! CPU that inserts or completes a request runs the queue in its own context, and a run takes as many requests as the
//! device has room for. Rules: docs/rules/legacy-queue.md; each file names its own.
//!
//! The files in the order of a request's path: `submit` (split, merge, plug), `request_list` and `batching` (which tasks may
//! allocate a request), `unplug`, `insert`, `elevator` (the choice of a request), `dispatch_queue` (the order after that),
//! `run` (to the driver) with `driver_tags`, `complete` and `requeue`. In addition `flush` is the sequence of durable writes,
//! `switch` changes the elevator under load, `attributes` are the files in sysfs, and `block_queue` is the interface for
//! callers.
//!
//! It works like [`Queue`](hoistway_blk::queue::Queue): calls get the time and return effects, and tasks that must wait
//! are parked. A queue that runs "on a worker" requests this by [`Effect::RunHctx`] with hardware queue 0.

mod attributes;
mod batching;
mod block_queue;
mod complete;
mod dispatch_queue;
mod driver_tags;
mod elevator;
mod flush;
mod insert;
mod request_list;
mod requeue;
mod run;
mod submit;
mod switch;
mod unplug;

#[cfg(test)]
mod tests;

pub use driver_tags::Tagging;
pub use elevator::LegacyElevator;
pub use request_list::SyncClass;
pub use submit::LegacySubmission;
pub use switch::SWITCH_POLL;

use hoistway_blk::bio::{Bio, Limits};
use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::drive::{Effect, Effects};
use hoistway_blk::ground::{
    CgroupId, CpuId, Generation, HctxId, Kernel, Local, Lock, Nanos, Now, ReadMostly, RqId, Sharing, Site, StoreError,
    Tunable, Word,
};
use hoistway_blk::kit::{Flights, Home, Timeouts, attributes::value_of, flush_queue::FlushQueue, split};
use hoistway_blk::policy::{ElevatorCx, RequestedActions, SchedulerEvent};
use hoistway_blk::queue::{Affinity, ConfigError, NR_REQUESTS_MAX, QUEUE_DEPTH_MAX, QueueConfig};
use hoistway_blk::request::{MergeRules, Merging, Rq};
use hoistway_blk::schedulers::{Layer, Registry};

use batching::Batchers;
use dispatch_queue::DispatchQueue;
use driver_tags::DriverTags;
use request_list::{RequestLists, Thresholds};

/// The last release with a legacy queue. Later ones get the queue of this release.
pub(crate) const LAST_KERNEL: Kernel = Kernel::series(4, 20);

/// The only hardware queue.
const HCTX: HctxId = HctxId(0);

/// The configuration of a legacy queue.
#[derive(Clone, Debug)]
pub struct LegacyConfig {
    /// The kernel to reproduce. Releases after 4.20 have no such queue and get that of 4.20.
    pub kernel: Kernel,
    /// CPUs, at least 1.
    pub cpus: u16,
    /// Maximum commands at the device, at least 1.
    pub queue_depth: u32,
    /// Requests per class, sync and async; at least 4.
    pub nr_requests: u32,
    /// How the device's tags are allocated.
    pub tagging: Tagging,
    /// Which kinds of merging are on (`queue/nomerges`).
    pub merging: Merging,
    /// The limits of a request.
    pub limits: Limits,
    /// The schedulers that can be set.
    pub schedulers: Registry,
}

/// Default number of requests per class.
const NR_REQUESTS: u32 = 128;

impl LegacyConfig {
    /// The configuration for the device of a multi-queue configuration, whose hardware queues are ignored.
    #[must_use]
    pub fn new(config: &QueueConfig) -> Self {
        let nr_requests = config.nr_requests.unwrap_or(NR_REQUESTS);
        LegacyConfig {
            kernel: config.kernel,
            cpus: config.cpus,
            queue_depth: config.queue_depth,
            nr_requests,
            tagging: Tagging::default(),
            merging: config.merging,
            limits: config.limits.clone(),
            schedulers: config.schedulers.clone(),
        }
    }

    /// The generation of the release that the queue reproduces.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.kernel.min(LAST_KERNEL).generation()
    }

    /// Maximum requests of one cgroup: both classes may exceed their number by half.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        2 * Thresholds::new(self.nr_requests).max
    }

    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::out_of("cpus", 1..=u32::from(u16::MAX), self.cpus.into())?;
        ConfigError::out_of("queue_depth", 1..=QUEUE_DEPTH_MAX, self.queue_depth)?;
        ConfigError::out_of("nr_requests", 0..=NR_REQUESTS_MAX, self.nr_requests)?;
        self.limits.contradiction().map_or(Ok(()), |(field, why)| Err(ConfigError::new(field, why)))
    }
}

/// The legacy queue of one device.
pub struct LegacyQueue<Sh: Sharing> {
    generation: Generation,
    /// Limits and rules of merging, as written to `queue/`. Read once per call, before the lock.
    rules: Sh::ReadMostly<MergeRules>,
    /// The configuration; its limits are those of the device.
    config: LegacyConfig,
    timeouts: Timeouts<Sh>,
    /// An [`Affinity`].
    affinity: Sh::Word,
    /// 1 once write-back throttling has been turned off: its file does not exist before that.
    has_wbt_file: Sh::Word,
    locked: Sh::Lock<Locked>,
}

/// The write cache, which flushes depend on.
#[derive(Clone, Copy, Debug)]
struct Cache {
    write_cache: bool,
    fua: bool,
    flush_queueable: bool,
}

/// Everything is protected by the queue's lock.
struct Locked {
    /// Identifies the queue of its requests and waiters.
    home: Home,
    elevator: LegacyElevator,
    thresholds: Thresholds,
    lists: RequestLists,
    batchers: Batchers,
    /// Free slots with their requests, and the total number: more are made when cgroups or a larger `nr_requests` need
    /// them.
    free: Vec<Rq>,
    capacity: u32,
    /// Requests that the elevator manages.
    managed: u32,
    dispatch: DispatchQueue,
    tags: DriverTags,
    /// The sequencer of durable writes.
    flush: FlushQueue,
    cache: Cache,
    /// Requests at the driver, by class and individually.
    in_flight: [u32; 2],
    flights: Flights<Local>,
    /// Whether the driver has stopped the queue.
    is_stopped: bool,
    /// Number of pending changes of the elevator: new requests bypass it meanwhile.
    bypasses: u32,
    /// A buffer for drains.
    drained: Vec<RqId>,
}

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// Makes a queue with the scheduler of this name, one of the configuration's.
    ///
    /// # Errors
    /// If the name is unknown or the configuration contradicts itself.
    pub fn new(config: &LegacyConfig, scheduler: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let elevator = LegacyElevator::named(scheduler, config, Now::default())
            .ok_or_else(|| ConfigError::unknown(scheduler, config.schedulers.of(Layer::SingleQueue)))?;
        LegacyQueue::with_elevator(config, elevator)
    }

    /// Makes a queue with an elevator, which is enlarged to [`LegacyConfig::capacity`] requests if necessary.
    ///
    /// # Errors
    /// If the configuration contradicts itself.
    pub fn with_elevator(config: &LegacyConfig, mut elevator: LegacyElevator) -> Result<Self, ConfigError> {
        config.check()?;
        let generation = config.generation();
        let capacity = config.capacity();
        elevator.grow(capacity);
        let home = Home::default();
        Ok(LegacyQueue {
            generation,
            rules: Sh::ReadMostly::new(
                MergeRules::new(&generation, config.limits.clone(), config.merging),
                config.cpus,
            ),
            config: config.clone(),
            timeouts: Timeouts::default(),
            affinity: Sh::Word::new(Affinity::default() as u64),
            has_wbt_file: Sh::Word::new(0),
            locked: Sh::Lock::new(Locked {
                elevator,
                thresholds: Thresholds::new(config.nr_requests),
                lists: RequestLists::default(),
                capacity,
                batchers: Batchers::new(generation.hz),
                // The lowest number is used first.
                free: (0..capacity).rev().map(|id| Rq::empty(RqId(id), &home)).collect(),
                managed: 0,
                dispatch: DispatchQueue::default(),
                tags: DriverTags::new(config.queue_depth, config.tagging),
                // Above the ids of slots.
                flush: FlushQueue::new(RqId(u32::MAX)),
                cache: Cache {
                    write_cache: config.limits.write_cache,
                    fua: config.limits.fua,
                    flush_queueable: config.limits.flush_queueable,
                },
                in_flight: [0; 2],
                flights: Flights::new(capacity, 1),
                is_stopped: false,
                bypasses: 0,
                drained: Vec::new(),
                home,
            }),
        })
    }

    /// The kernel that the queue reproduces, which has a legacy queue.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// How far a page cache reads ahead of a sequential reader, KiB (`queue/read_ahead_kb`).
    #[must_use]
    pub fn read_ahead_kib(&self) -> u32 {
        self.rules.read(CpuId(0), |rules| rules.read_ahead_kib)
    }

    /// The number of parts that a bio will be split into.
    #[must_use]
    pub fn parts_of(&self, bio: &Bio) -> u32 {
        self.rules.read(CpuId(0), |rules| split::parts(bio, &rules.limits))
    }

    /// The name of its scheduler.
    #[must_use]
    pub fn scheduler(&self) -> &'static str {
        self.locked.aside(|queue| queue.elevator.name())
    }

    /// Maximum requests per class.
    #[must_use]
    pub fn nr_requests(&self) -> u32 {
        self.locked.aside(|queue| queue.thresholds.nr_requests)
    }

    /// Sets the maximum requests per class, at least 4. Wakes tasks that find room now.
    ///
    /// # Errors
    /// If it exceeds the maximum of any queue.
    pub fn set_nr_requests(&self, nr_requests: u32, effects: &mut Effects) -> Result<(), ConfigError> {
        let thresholds = Thresholds::new(nr_requests);
        ConfigError::out_of("nr_requests", 0..=NR_REQUESTS_MAX, nr_requests)?;
        self.locked.aside(|queue| {
            queue.thresholds = thresholds;
            for list in queue.lists.iter_mut() {
                list.resized(&thresholds, |waiter| effects.push(Effect::Wake(waiter)));
            }
        });
        Ok(())
    }

    /// Whether a class of a cgroup has so many requests that write-back should wait.
    #[must_use]
    pub fn is_congested(&self, cgroup: CgroupId, class: SyncClass) -> bool {
        self.locked.aside(|queue| queue.lists.for_cgroup(cgroup).is_congested(class))
    }

    /// Requests that exist now.
    #[must_use]
    pub fn requests_in_use(&self) -> usize {
        self.locked.aside(|queue| queue.capacity as usize - queue.free.len())
    }

    /// Requests at the driver now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.locked.aside(|queue| queue.in_flight.iter().sum())
    }

    /// Driver tags in use.
    #[must_use]
    pub fn driver_tags_in_use(&self) -> u32 {
        self.locked.aside(|queue| queue.tags.in_use())
    }

    /// The tunables of the scheduler.
    #[must_use]
    pub fn tunables(&self) -> Vec<&'static Tunable> {
        self.locked.aside(|queue| queue.elevator.tunables()).into_iter().map(|(tunable, _)| tunable).collect()
    }

    /// The value of a tunable.
    ///
    /// # Errors
    /// If there is no such tunable.
    pub fn tunable(&self, name: &str) -> Result<i128, StoreError> {
        value_of(&self.locked.aside(|queue| queue.elevator.tunables()), name)
    }

    /// Writes a tunable of the scheduler, with the kernel's parsing and clamping.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, effects: &mut Effects) -> Result<(), StoreError> {
        call(now, effects, |cx| self.locked.aside(|queue| queue.elevator.set_tunable(cx, name, text)))
    }

    /// Notifies the scheduler of an event.
    pub fn notify(&self, now: Now, effects: &mut Effects, event: SchedulerEvent) {
        call(now, effects, |cx| {
            self.locked.aside(|queue| {
                if let SchedulerEvent::IoContextExited(io_context) = event {
                    queue.batchers.forget(io_context);
                }
                queue.elevator.notify(cx, event);
            });
        });
    }

    /// The time requested by [`Effect::SetTimeout`] has come.
    pub fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.locked.aside(|queue| self.timeouts.scan(cx.now.at, &queue.flights, cx.effects));
    }

    /// A request has exceeded its timeout; see [`Queue::timed_out`](hoistway_blk::queue::Queue::timed_out).
    pub fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId) {
        let overdue = self.locked.aside(|queue| queue.flights.overdue(cx.now.at, cx.cpu, id));
        if let Some(deadline) = overdue {
            let next = self.timeouts.ask(cx.now.at, id, cx.driver);
            self.locked.aside(|queue| queue.flights.extend_deadline(id, deadline, next));
        }
    }

    /// The timeout of a request at the device (`queue/io_timeout`).
    #[must_use]
    pub fn io_timeout(&self) -> Nanos {
        self.timeouts.timeout()
    }

    /// The scheduler's timer has fired.
    pub fn timer<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.locked.with(cx.meter, Site::Legacy, |queue| queue.elevator.on_timer(&mut cx.elevator()));
        take_requested(cx);
    }
}

impl Locked {
    /// Doubles the number of slots.
    #[cold]
    fn grow(&mut self) {
        let more = self.capacity..2 * self.capacity;
        self.capacity = more.end;
        self.elevator.grow(more.end);
        self.flights.grow(more.end);
        self.free.extend(more.rev().map(|id| Rq::empty(RqId(id), &self.home)));
    }
}

/// Calls into the elevator outside of the path of an I/O.
fn call<R>(now: Now, effects: &mut Effects, body: impl FnOnce(&mut ElevatorCx<'_>) -> R) -> R {
    ElevatorCx::alone(now, |cx| {
        let result = body(cx);
        push_requested_actions(effects, cx.requested);
        result
    })
}

/// Converts actions that a policy requested during a call into effects.
#[inline]
fn take_requested<E: Env>(cx: &mut Cx<'_, E>) {
    if cx.scratch.requested != RequestedActions::default() {
        push_requested_actions(cx.effects, &std::mem::take(&mut cx.scratch.requested));
    }
}

/// A run always concerns the only queue, on a worker.
fn push_requested_actions(effects: &mut Effects, requested: &RequestedActions) {
    if let Some(at) = requested.set_timer {
        effects.push(Effect::SetTimer(at));
    } else if requested.cancel_timer {
        effects.push(Effect::CancelTimer);
    }
    if requested.run_queues || !requested.run_hctxs.is_empty() {
        run_on_worker(effects, Nanos::ZERO);
    }
}

/// Runs the queue on a worker.
#[inline]
fn run_on_worker(effects: &mut Effects, delay: Nanos) {
    effects.push(Effect::RunHctx { hctx: HCTX, delay });
}
