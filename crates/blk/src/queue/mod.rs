//! The request queue of a device, from `submit` to the end of a request.
//!
//! Used by: `kit`; crates `legacy`, `engine`, `experiment`, `sim`, `calibrate` and others.
//! Tests: `crates/blk/src/queue/` (in its files), `crates/blk/src/queue/tests/`, `checks/tests/loom.rs`, `checks/tests/shuttle.rs`.
//!
//! The files in the order of a request's path: `submission` (the state of a bio during its submission), `submit` (split and merge) and
//! `fast_path` (the same for a plain bio in one step), `allocate` (a tag and a request), `unplug`, `insert`, `run` (which request is
//! dispatched next), `send` (to the driver), `complete` (end, tags, restart), `requeue`. Others are `cancel` (of a submission), `flush`
//! (sequences of flush and FUA writes), `timeout` (requests that did not complete in time), `freeze`, `wbt` (write-back throttling),
//! `state` and `reconfigure` (changes of scheduler and limits), and `attributes` (the files in sysfs).
//!
//! Nothing blocks: a submission that must wait is parked, so `QueueSubmission` is a state machine, and is continued by an
//! [`Effect`](crate::drive::Effect). `PlugFlush` works in steps for a replay, which executes single events.

mod affinity;
mod allocate;
mod attributes;
mod block_queue;
mod cancel;
mod complete;
mod default_scheduler;
mod fast_path;
mod flush;
pub(crate) mod flush_queue;
mod freeze;
mod hardware_queue;
mod insert;
mod reconfigure;
mod requeue;
mod run;
mod send;
mod state;
mod submission;
mod submit;
mod timeout;
mod unplug;
mod wbt;

#[cfg(test)]
mod tests;

pub use affinity::{Affinity, CompletionPlace};
pub use default_scheduler::default_scheduler;
pub use hardware_queue::{HardwareQueue, SoftwareQueue};
pub use reconfigure::ChangeError;
pub use submission::QueueSubmission;
pub use unplug::PlugFlush;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::bio::Bio;
use crate::bio::limits::Limits;
use crate::bio::split;
use crate::caller::env::{Cx, Env};
use crate::drive::effects::Effects;
use crate::drive::timeouts::Timeouts;
use crate::elevator::Elevator;
use crate::ground::ids::{CpuId, HctxId};
use crate::ground::kernel::{Generation, Kernel};
use crate::ground::meter::NoMeter;
use crate::ground::sharing::{Lock, Padded, ReadMostly, Sharing, Word};
use crate::ground::time::Now;
use crate::ground::tunables::StoreError;
use crate::policy::{ContentionOptions, SchedulerEvent};
use crate::request::Rq;
use crate::request::cpu_map::{Arbitration, CpuMap, QueueType, Transport};
use crate::request::merge::{MergeRules, Merging};
use crate::schedulers::{Attachment, BFQ, KYBER, Layer, MQ_DEADLINE, NONE, Registry, Row, scaled};
use crate::tags::{TagLayout, TagSet, TagUser};
use crate::wbt::Throttle;
use freeze::Freeze;
use state::QueueState;
use wbt::Wbt;

/// Whether there is more to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Call again. Between the calls no lock is held.
    More,
    /// The path has ended.
    Done,
}

/// The configuration of a queue.
#[derive(Clone, Debug)]
pub struct QueueConfig {
    /// The kernel whose behaviour the queue has.
    pub kernel: Kernel,
    /// CPUs, at least 1.
    pub cpus: u16,
    /// Hardware queues, at least 1; more than CPUs are reduced to the number of CPUs.
    pub hw_queues: u16,
    /// Hardware queues for reads alone; 0 if they use the others.
    pub read_queues: u16,
    /// Hardware queues for I/O whose submitter polls; 0 if none can.
    pub poll_queues: u16,
    /// The hardware queue of each CPU; `None`: neighbouring CPUs share one, as the kernel spreads them.
    pub hctx_of_cpu: Option<Vec<HctxId>>,
    /// Driver tags of each hardware queue, at least 1.
    pub queue_depth: u32,
    /// The drive's weighted round robin between classes of hardware queues, if it has that.
    pub arbitration: Option<Arbitration>,
    /// The transport between the block layer and the device, if there is one. A device behind one has no arbitration.
    pub transport: Option<Transport>,
    /// All hardware queues share one space of driver tags.
    pub host_wide_tags: bool,
    /// Whether the driver asks for no scheduler by default.
    pub wants_no_scheduler: bool,
    /// Scheduler tags of each hardware queue; `None` for the kernel's default. Without a scheduler it bounds the
    /// driver tags in use.
    pub nr_requests: Option<u32>,
    /// Which kinds of merging are on.
    pub merging: Merging,
    /// What a request may span.
    pub limits: Limits,
    /// The schedulers that the queue can have.
    pub schedulers: Registry,
    /// Contention options for a scheduler's lock; none by default, as in Linux.
    pub contention_options: ContentionOptions,
    /// The seed of random allocation hints of tags, as the kernel has them; `None`: hints are spread evenly over the map.
    pub hint_seed: Option<u64>,
}

/// Maximum number of hardware queues.
pub const HW_QUEUES_MAX: u16 = 2048;
/// Maximum number of driver tags of a hardware queue.
pub const QUEUE_DEPTH_MAX: u32 = 10_240;
/// Maximum number of scheduler tags of a hardware queue.
pub const NR_REQUESTS_MAX: u32 = 2048;
/// Minimum number of scheduler tags of a hardware queue: smaller values are raised to it.
pub const NR_REQUESTS_MIN: u32 = 4;

/// The multi-queue schedulers of Linux, "none" first.
pub const SCHEDULERS: [&str; 4] = [NONE.name, MQ_DEADLINE.name, KYBER.name, BFQ.name];

/// Why a configuration is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The invalid field.
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

impl ConfigError {
    /// A field, and what is wrong with it.
    #[must_use]
    pub fn new(field: &'static str, why: impl Into<String>) -> Self {
        ConfigError { field, why: why.into() }
    }

    /// Checks whether a value is in range.
    ///
    /// # Errors
    /// If it is not.
    pub fn out_of(field: &'static str, range: std::ops::RangeInclusive<u32>, value: u32) -> Result<(), Self> {
        if range.contains(&value) {
            return Ok(());
        }
        Err(ConfigError::new(field, format!("{value} is not in {} to {}", range.start(), range.end())))
    }

    /// There is no scheduler of this name.
    #[must_use]
    pub fn unknown<'a>(scheduler: &str, known: impl Iterator<Item = &'a Row>) -> Self {
        let known: Vec<&str> = known.map(|row| row.name).collect();
        ConfigError::new("scheduler", format!("\"{scheduler}\" is unknown (expected one of {})", known.join(", ")))
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl std::error::Error for ConfigError {}

/// The queue of one device: a part that never changes, and the state, which can be changed while others use the queue.
pub struct Queue<Sh: Sharing> {
    /// The state. It is dropped first, because it owns all requests.
    state: Sh::ReadMostly<QueueState<Sh>>,
    device: Device<Sh>,
}

/// The part of a queue that never changes.
struct Device<Sh: Sharing> {
    /// The configuration that the queue was created with; its limits are those of the hardware.
    config: QueueConfig,
    generation: Generation,
    freeze: Freeze<Sh>,
    driver_tags: TagUser<Sh>,
    hctxs: Vec<Padded<HardwareQueue<Sh>>>,
    cpu_map: CpuMap,
    /// Whether polled I/O is accepted.
    accepts_polled: bool,
    requeued: Sh::Lock<Vec<Rq>>,
    /// Flush commands on their way to the dispatch lists.
    flush_commands: Sh::Lock<Vec<Rq>>,
    /// Whether dispatching is stopped. `Relaxed`, like the files below: threads that depend on when a change takes effect must
    /// synchronize themselves.
    quiesced: Sh::Word,
    /// An [`Affinity`].
    affinity: Sh::Word,
    timeouts: Timeouts<Sh>,
    wbt: Wbt<Sh>,
}

impl QueueConfig {
    /// One CPU, one hardware queue of 32 tags, and everything else as it is by default.
    #[must_use]
    pub fn new(kernel: Kernel) -> Self {
        QueueConfig {
            kernel,
            cpus: 1,
            hw_queues: 1,
            read_queues: 0,
            poll_queues: 0,
            hctx_of_cpu: None,
            queue_depth: 32,
            arbitration: None,
            transport: None,
            host_wide_tags: false,
            wants_no_scheduler: false,
            nr_requests: None,
            merging: Merging::Full,
            limits: Limits::default(),
            schedulers: Registry::multi_queue(),
            contention_options: ContentionOptions::default(),
            hint_seed: None,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let hw_queues = u32::from(HW_QUEUES_MAX);
        ConfigError::out_of("cpus", 1..=u32::from(u16::MAX), self.cpus.into())?;
        ConfigError::out_of("hw_queues", 1..=hw_queues, self.hw_queues.into())?;
        for (field, count) in [("read_queues", self.read_queues), ("poll_queues", self.poll_queues)] {
            ConfigError::out_of(field, 0..=hw_queues, count.into())?;
            if count > 0 && !self.kernel.generation().queue_types {
                return Err(ConfigError::new(field, format!("Linux {} has no such hardware queues", self.kernel)));
            }
        }
        ConfigError::out_of("queue_depth", 1..=QUEUE_DEPTH_MAX, self.queue_depth)?;
        ConfigError::out_of("nr_requests", 0..=NR_REQUESTS_MAX, self.nr_requests.unwrap_or(0))?;
        self.limits.contradiction().map_or(Ok(()), |(field, why)| Err(ConfigError::new(field, why)))
    }

    /// `queue/async_depth` with a scheduler that sets it to `percent` of its tags, or without one. It is set as the
    /// scheduler is attached; a configured number of requests is written after that, and keeps the ratio.
    fn async_depth(&self, percent: u32, is_none: bool) -> u32 {
        let initial_requests = if is_none { self.queue_depth } else { self.default_nr_requests() };
        let depth = initial_requests * percent / 100;
        self.nr_requests.map_or(depth, |nr| scaled(depth, nr.max(NR_REQUESTS_MIN), initial_requests))
    }

    /// The `async_depth` that a scheduler finds when it replaces the first one.
    fn async_depth_at_start(&self) -> u32 {
        let config = QueueConfig { nr_requests: None, ..self.clone() };
        config.async_depth(100, default_scheduler(self) == NONE.name)
    }

    /// Scheduler tags of each hardware queue with a scheduler (BL-53 to BL-55).
    #[must_use]
    pub fn scheduler_depth(&self) -> u32 {
        self.nr_requests.map_or_else(|| self.default_nr_requests(), |nr| nr.max(NR_REQUESTS_MIN))
    }

    /// The default of `nr_requests`.
    fn default_nr_requests(&self) -> u32 {
        2 * self.queue_depth.min(128)
    }

    /// The hardware queues and their CPUs.
    #[must_use]
    pub fn cpu_map(&self) -> CpuMap {
        match &self.hctx_of_cpu {
            Some(hctx_of_cpu) => CpuMap::of_one_type(hctx_of_cpu),
            None => self
                .cpu_map_of_transport()
                .or_else(|_| self.cpu_map_of_classes())
                .unwrap_or_else(|_| CpuMap::new(self.cpus, [self.hw_queues, self.read_queues, self.poll_queues])),
        }
    }

    /// The map of a drive whose hardware queues have classes; otherwise what is missing for that.
    fn cpu_map_of_classes(&self) -> Result<CpuMap, String> {
        if self.arbitration.is_none() {
            return Err("weighted round robin, which this device does not have".to_owned());
        }
        if self.hctx_of_cpu.is_some() || self.read_queues + self.poll_queues > 0 {
            return Err("hardware queues of one type, spread by the kernel".to_owned());
        }
        let has_too_few = || format!("three hardware queues, but this device has {}", self.hw_queues);
        CpuMap::of_classes(self.cpus, self.hw_queues).ok_or_else(has_too_few)
    }

    /// The map of a device behind a transport; otherwise what is missing for steering between its workers.
    fn cpu_map_of_transport(&self) -> Result<CpuMap, String> {
        if self.transport.is_none() {
            return Err("a transport with a worker on each CPU, which this device does not have".to_owned());
        }
        if self.hctx_of_cpu.is_some() || self.read_queues + self.poll_queues > 0 {
            return Err("hardware queues of one type, spread by the kernel".to_owned());
        }
        let has_too_few = || {
            let needed = 2 * u32::from(self.cpus);
            format!("two hardware queues for each CPU, {needed} here, but this device has {}", self.hw_queues)
        };
        CpuMap::of_transport(self.cpus, self.hw_queues).ok_or_else(has_too_few)
    }

    /// What a scheduler needs and the device does not have.
    fn missing_for(&self, row: &Row) -> Option<String> {
        let lacks_arbitration = || self.cpu_map_of_classes().err().filter(|_| row.needs_arbitration);
        let has_workers = || match self.cpu_map_of_transport() {
            Ok(_) if self.cpus < 2 => Err("at least two CPUs, between which it moves work".to_owned()),
            map => map,
        };
        lacks_arbitration().or_else(|| has_workers().err().filter(|_| row.needs_transport))
    }

    /// Maps of scheduler tags.
    fn scheduler_maps(&self) -> u32 {
        let has_one_map = self.host_wide_tags && self.kernel.generation().one_scheduler_map;
        if has_one_map { 1 } else { u32::from(self.cpu_map().hctxs()) }
    }

    /// Tags for the driver of a device like this, or of several behind one controller.
    #[must_use]
    pub fn tag_layout(&self) -> TagLayout {
        TagLayout {
            hctxs: self.cpu_map().hctxs(),
            depth: self.queue_depth,
            host_wide: self.host_wide_tags,
            cpus: self.cpus,
            hint_seed: self.hint_seed,
        }
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Creates a queue with the scheduler of this name, one of [`SCHEDULERS`].
    ///
    /// # Errors
    /// If the name is unknown or the configuration contradicts itself.
    pub fn new(config: &QueueConfig, scheduler: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let elevator = make_elevator(config, scheduler, config.async_depth_at_start())?;
        Queue::with_elevator(config, elevator)
    }

    /// Creates a queue that shares driver tags with others (several disks of one controller, several namespaces of one
    /// drive). Effects that wake one of the others' hardware queues name it by its [`QueueId`](crate::ground::QueueId) in the set.
    ///
    /// # Errors
    /// If the name is unknown, the configuration contradicts itself, or it does not fit the tag set.
    pub fn with_shared_tags(
        config: &QueueConfig,
        scheduler: &str,
        tags: &Arc<TagSet<Sh>>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let layout = config.tag_layout();
        let (hctxs, depth, host_wide) = (tags.hctxs(), tags.depth(), tags.is_host_wide());
        if layout.hctxs != hctxs {
            let why = format!("{} do not fit a tag set for {hctxs}", layout.hctxs);
            return Err(ConfigError::new("hw_queues", why));
        }
        if layout.depth != depth {
            return Err(ConfigError::new("queue_depth", format!("{} does not fit a tag set of {depth}", layout.depth)));
        }
        if (layout.host_wide && layout.hctxs > 1) != host_wide {
            let why = format!("{} does not fit a tag set with {host_wide}", layout.host_wide);
            return Err(ConfigError::new("host_wide_tags", why));
        }
        let elevator = make_elevator(config, scheduler, config.async_depth_at_start())?;
        Queue::build(config, elevator, TagUser::join(tags))
    }

    /// Creates a queue with an elevator, which is enlarged to [`QueueConfig::scheduler_depth`] requests for each hardware queue if it
    /// was created for fewer.
    ///
    /// # Errors
    /// If the configuration contradicts itself.
    pub fn with_elevator(config: &QueueConfig, mut elevator: Elevator<Sh>) -> Result<Self, ConfigError> {
        config.check()?;
        elevator.grow(config.scheduler_depth() * config.scheduler_maps());
        Queue::build(config, elevator, TagUser::join(&TagSet::private(config.tag_layout())))
    }

    fn build(config: &QueueConfig, elevator: Elevator<Sh>, driver_tags: TagUser<Sh>) -> Result<Self, ConfigError> {
        let depth = config.queue_depth;
        if let Some(nr) = config.nr_requests.map(|nr| nr.max(NR_REQUESTS_MIN))
            && elevator.is_none()
            && nr > depth
        {
            let why = format!("{nr} without a scheduler, but the device has {depth} tags");
            return Err(ConfigError::new("nr_requests", why));
        }
        let generation = config.kernel.generation();
        let cpu_map = config.cpu_map();
        let hctx = |id: HctxId| Padded(HardwareQueue::new(id, cpu_map.served(id).to_vec()));
        let device = Device {
            config: config.clone(),
            generation,
            freeze: Freeze::new(),
            driver_tags,
            hctxs: (0..cpu_map.hctxs()).map(HctxId).map(hctx).collect(),
            // Before there were types of hardware queues the flag had no effect.
            accepts_polled: config.poll_queues > 0 || !generation.queue_types,
            cpu_map,
            requeued: Sh::Lock::new(Vec::new()),
            flush_commands: Sh::Lock::new(Vec::new()),
            quiesced: Sh::Word::new(0),
            affinity: Sh::Word::new(Affinity::default() as u64),
            timeouts: Timeouts::default(),
            wbt: Wbt::new(Throttle::new(depth)),
        };
        let rules = MergeRules::new(&generation, config.limits.clone(), config.merging);
        let state = QueueState::new(&device, rules, elevator, config.nr_requests);
        device.wbt_follows_scheduler(&state);
        Ok(Queue { device, state: Sh::ReadMostly::new(state, config.cpus) })
    }

    /// The kernel whose behaviour the queue has.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.device.generation
    }

    /// The weights of the drive's classes that its policy needs, if any: the caller has the driver
    /// [set](crate::drive::Driver::arbitrate) them for a new queue. Later changes are [effects](crate::drive::Effect::Arbitrate).
    #[must_use]
    pub fn arbitration(&self) -> Option<[u16; 3]> {
        self.elevator(Elevator::weights)
    }

    /// The name of its scheduler; "none" if there is none.
    #[must_use]
    pub fn scheduler(&self) -> &'static str {
        self.elevator(Elevator::name)
    }

    /// Calls `look` with its scheduler. `look` must not call the queue.
    pub fn elevator<R>(&self, body: impl FnOnce(&Elevator<Sh>) -> R) -> R {
        self.during(CpuId(0), |queue| body(&queue.state.elevator))
    }

    /// Read-ahead of the page cache for a sequential reader, KiB (`queue/read_ahead_kb`).
    #[must_use]
    pub fn read_ahead_kib(&self) -> u32 {
        self.during(CpuId(0), |queue| queue.state.rules.read_ahead_kib)
    }

    /// Number of parts that a bio will be split into.
    #[must_use]
    pub fn parts_of(&self, bio: &Bio) -> u32 {
        self.during(CpuId(0), |queue| split::parts(bio, &queue.state.rules.limits))
    }

    /// Number of hardware queues.
    #[must_use]
    pub fn hw_queues(&self) -> u16 {
        self.device.hctxs.len() as u16
    }

    /// Requests that each hardware queue can have at once.
    #[must_use]
    pub fn nr_requests(&self) -> u32 {
        self.during(CpuId(0), |queue| queue.state.nr_requests)
    }

    /// A hardware queue.
    #[must_use]
    pub fn hctx(&self, id: HctxId) -> &HardwareQueue<Sh> {
        &self.device.hctxs[id.index()]
    }

    /// The hardware queue of a CPU for all I/O for which there are no separate queues.
    #[inline]
    #[must_use]
    pub fn hctx_of(&self, cpu: CpuId) -> HctxId {
        self.device.hctx_of(cpu)
    }

    /// The hardware queue of a bio that is submitted on this CPU.
    #[inline]
    #[must_use]
    pub fn hctx_for(&self, cpu: CpuId, bio: &Bio) -> HctxId {
        self.device.hctx_for(cpu, bio)
    }

    /// Requests that exist now.
    #[must_use]
    pub fn requests_in_use(&self) -> usize {
        self.during(CpuId(0), |queue| queue.state.pool.in_use())
    }

    /// Driver tags that it has taken.
    #[must_use]
    pub fn driver_tags_in_use(&self) -> u32 {
        self.device.driver_tags.in_use()
    }

    /// The value that `queue/async_depth` shows, on kernels that have the file.
    #[must_use]
    pub fn async_depth(&self) -> u32 {
        self.during(CpuId(0), |queue| queue.state.async_depth)
    }

    /// Writes a tunable of the scheduler, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, effects: &mut Effects) -> Result<(), StoreError> {
        self.elevator(|elevator| effects.call(now, |cx| elevator.set_tunable(&NoMeter, cx, name, text)))?;
        self.during(CpuId(0), |queue| queue.state.announce_min_shallow());
        Ok(())
    }

    /// Notifies the scheduler of an event.
    pub fn notify(&self, now: Now, effects: &mut Effects, event: SchedulerEvent) {
        self.elevator(|elevator| effects.call(now, |cx| elevator.notify(&NoMeter, cx, event)));
    }

    /// The scheduler's timer has fired. A timer that was set by a previous scheduler has no effect.
    pub fn timer<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.during(cx.cpu, |queue| queue.state.elevator.on_timer(cx.meter, &mut cx.elevator()));
        cx.take_requested();
    }

    /// Stops or allows all dispatching; insertion and completion continue. After allowing it again the caller runs all hardware
    /// queues.
    pub fn set_quiesced(&self, quiesced: bool) {
        self.device.quiesced.store(u64::from(quiesced), Relaxed);
    }
}

impl<Sh: Sharing> Device<Sh> {
    #[inline]
    fn is_quiesced(&self) -> bool {
        self.quiesced.load(Relaxed) != 0
    }

    #[inline]
    fn hctx_of(&self, cpu: CpuId) -> HctxId {
        self.cpu_map.hctx_of(cpu, QueueType::Default)
    }

    #[inline]
    fn hctx_for(&self, cpu: CpuId, bio: &Bio) -> HctxId {
        self.cpu_map.hctx_of(cpu, QueueType::of(bio.op, bio.flags))
    }
}

/// Creates the scheduler of this name for a queue with this configuration and `async_depth`.
fn make_elevator<Sh: Sharing>(
    config: &QueueConfig,
    scheduler: &str,
    async_depth: u32,
) -> Result<Elevator<Sh>, ConfigError> {
    let mut candidates = config.schedulers.of(Layer::MultiQueue);
    let row = candidates
        .clone()
        .find(|row| row.name == scheduler)
        .ok_or_else(|| ConfigError::unknown(scheduler, candidates.by_ref()))?;
    if let Some(missing) = config.missing_for(row) {
        return Err(ConfigError::new("scheduler", format!("{} needs {missing}", row.name)));
    }
    let nr_requests = config.scheduler_depth();
    let queue = Attachment {
        generation: &config.kernel.generation(),
        limits: &config.limits,
        nr_requests,
        default_nr_requests: config.default_nr_requests(),
        async_depth,
        queue_depth: config.queue_depth,
        capacity: nr_requests * config.scheduler_maps(),
        arbitration: config.arbitration,
        transport: config.transport,
        seed: config.hint_seed.unwrap_or_default(),
        now: Now::default(),
    };
    Ok(Elevator::new(&config.schedulers, row, &queue, &config.cpu_map()).with(config.contention_options))
}
