//! The queue of a device: the way of a request from `submit` to its end.
//!
//! The files in the order of the way: `submission` (what is on its way in), `submit` (split, merge, hand on), `allocate` (a
//! tag and a request), `unplug`, `insert`, `run` (which request next), `send` (to the driver), `complete` (end, tags,
//! restart), `requeue`; `cancel`, a submission that is taken back; beside it `flush`, the sequence of what must be
//! durable, `timeout`, who looks for completions that do not come, `freeze`, the gate
//! in front, `wbt`, who has to wait behind it, and `reconfigure`, what can be changed behind it; `attributes`, its files in sysfs.
//!
//! Nothing blocks: what must wait is parked, which makes a state machine of `Submission`, and comes back through an
//! [`Effect`](crate::Effect). `PlugFlush` goes in steps for a replay, which executes single events.

mod affinity;
mod allocate;
mod attributes;
mod block_queue;
mod cancel;
mod complete;
mod flush;
mod freeze;
mod insert;
mod reconfigure;
mod requeue;
mod run;
mod send;
mod submission;
mod submit;
mod timeout;
mod unplug;
mod wbt;

#[cfg(test)]
mod tests;

pub use affinity::{Affinity, CompletionPlace};
pub use reconfigure::ChangeError;
pub use submission::Submission;
pub use submit::Submitted;
pub use unplug::PlugFlush;

use std::sync::Arc;

use crate::bio::Bio;
use crate::cpu_map::{CpuMap, QueueType};
use crate::default_scheduler::default_scheduler;
use crate::effects::Effects;
use crate::elevator::{Elevator, News};
use crate::env::{Cx, Env};
use crate::flights::Flights;
use crate::flush_queue::FlushQueue;
use crate::hardware_queue::HardwareQueue;
use crate::ids::{CpuId, HctxId, QueueId, RqId};
use crate::kernel::{Generation, Kernel};
use crate::limits::Limits;
use crate::merge::{MergeRules, NoMerges};
use crate::meter::NoMeter;
use crate::request::{RequestPool, Rq};
use crate::schedulers::{BFQ, KYBER, Layer, MQ_DEADLINE, NONE, Registry, Surroundings, scaled};
use crate::sharing::{Lock, Sharing, Word};
use crate::tags::{TagLayout, TagSet, TagUser, Tags};
use crate::time::Now;
use crate::timeouts::Timeouts;
use crate::tunables::StoreError;
use crate::wbt::Throttle;
use freeze::Gate;
use wbt::Wbt;

/// More to do, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Call again. Between the calls no lock is held.
    More,
    /// The path has ended.
    Done,
}

/// How to make a queue.
#[derive(Clone, Debug)]
pub struct QueueConfig {
    /// The kernel whose behaviour is wanted.
    pub kernel: Kernel,
    /// CPUs, at least 1.
    pub cpus: u16,
    /// Hardware queues, at least 1; more than CPUs are reduced to the number of CPUs.
    pub hw_queues: u16,
    /// Hardware queues for reads alone; 0 if they use the others.
    pub read_queues: u16,
    /// Hardware queues for I/O whose submitter polls; 0 if nobody can.
    pub poll_queues: u16,
    /// The hardware queue of each CPU, where that is known; else neighbouring CPUs share one, as the kernel spreads them.
    pub hctx_of_cpu: Option<Vec<HctxId>>,
    /// Driver tags of each hardware queue, at least 1.
    pub queue_depth: u32,
    /// All hardware queues share one space of driver tags.
    pub host_wide_tags: bool,
    /// Scheduler tags of each hardware queue; `None` for the kernel's default. Without a scheduler it bounds the
    /// driver tags in use.
    pub nr_requests: Option<u32>,
    /// How much merging is switched off.
    pub nomerges: NoMerges,
    /// What a request may span.
    pub limits: Limits,
    /// The schedulers that the queue can be made with and changed to.
    pub schedulers: Registry,
}

/// Most hardware queues.
pub const HW_QUEUES_MAX: u16 = 2048;
/// Most driver tags of a hardware queue.
pub const QUEUE_DEPTH_MAX: u32 = 10_240;
/// Most scheduler tags of a hardware queue.
pub const NR_REQUESTS_MAX: u32 = 2048;
/// Fewest: smaller values are raised to it.
pub const NR_REQUESTS_MIN: u32 = 4;

/// The multi-queue schedulers of Linux, "none" first.
pub const SCHEDULERS: [&str; 4] = [NONE.name, MQ_DEADLINE.name, KYBER.name, BFQ.name];

/// Why a queue cannot be made as asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError(pub String);

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The queue of one device.
pub struct Queue<Sh: Sharing> {
    /// The home of all requests: it goes first when the queue is torn down.
    pool: RequestPool<Sh>,
    /// How it was made; its limits are those of the device.
    config: QueueConfig,
    gate: Gate<Sh>,
    generation: Generation,
    rules: MergeRules,
    elevator: Elevator<Sh>,
    /// Scheduler tags of each hardware queue, or without a scheduler the driver tags that it may use.
    nr_requests: u32,
    /// What `queue/async_depth` shows: the scheduler tags that all but sync reads may use.
    async_depth: Sh::Word,
    /// From the slots of one hardware queue to those of the next; 0 if all have one tag space.
    slots_per_hctx: u32,
    driver_tags: TagUser<Sh>,
    /// Empty without a scheduler, a single map for all hardware queues, or one for each.
    scheduler_tags: Vec<Tags<Sh>>,
    hctxs: Vec<HardwareQueue<Sh>>,
    cpu_map: CpuMap,
    /// Whether polled I/O is let in.
    takes_polled: bool,
    requeued: Sh::Lock<Vec<Rq>>,
    /// For each hardware queue.
    flush_queues: Vec<Sh::Lock<FlushQueue>>,
    /// Flush commands on their way to the dispatch lists.
    flush_commands: Sh::Lock<Vec<Rq>>,
    quiesced: Sh::Word,
    affinity: Affinity,
    timeouts: Timeouts<Sh>,
    flights: Flights<Sh>,
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
            host_wide_tags: false,
            nr_requests: None,
            nomerges: NoMerges::All,
            limits: Limits::default(),
            schedulers: Registry::multi_queue(),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let fail = |text: String| Err(ConfigError(text));
        if self.cpus == 0 {
            return fail("a queue needs at least 1 CPU".into());
        }
        if !(1..=HW_QUEUES_MAX).contains(&self.hw_queues) {
            return fail(format!("{} hardware queues: expected 1 to {HW_QUEUES_MAX}", self.hw_queues));
        }
        let queues = [self.read_queues, self.poll_queues];
        if let Some(count) = queues.into_iter().find(|&count| count > HW_QUEUES_MAX) {
            return fail(format!("{count} hardware queues of a type: expected 0 to {HW_QUEUES_MAX}"));
        }
        if queues != [0, 0] && !self.kernel.generation().queue_types {
            return fail(format!("Linux {} has no hardware queues for reads or polling", self.kernel));
        }
        if !(1..=QUEUE_DEPTH_MAX).contains(&self.queue_depth) {
            return fail(format!("queue depth {}: expected 1 to {QUEUE_DEPTH_MAX}", self.queue_depth));
        }
        if self.nr_requests.is_some_and(|nr| nr > NR_REQUESTS_MAX) {
            return fail(format!("nr_requests is at most {NR_REQUESTS_MAX}"));
        }
        self.limits.contradiction().map_or(Ok(()), fail)
    }

    /// `queue/async_depth` with a scheduler that sets it to so many percent of its tags, or without one. It is set as the
    /// scheduler is attached; a number of requests that is wanted is written after that, and keeps the ratio.
    fn async_depth(&self, percent: u32, is_none: bool) -> u32 {
        let attached = if is_none { self.queue_depth } else { self.default_nr_requests() };
        let depth = attached * percent / 100;
        self.nr_requests.map_or(depth, |nr| scaled(depth, nr.max(NR_REQUESTS_MIN), attached))
    }

    /// What a scheduler finds there that replaces the one that the device came with.
    fn async_depth_at_start(&self) -> u32 {
        let config = QueueConfig { nr_requests: None, ..self.clone() };
        config.async_depth(100, default_scheduler(self) == "none")
    }

    /// Scheduler tags of each hardware queue with a scheduler (`block-layer.md` 11.1).
    #[must_use]
    pub fn scheduler_depth(&self) -> u32 {
        self.nr_requests.map_or_else(|| self.default_nr_requests(), |nr| nr.max(NR_REQUESTS_MIN))
    }

    /// The same if nobody has said how many.
    fn default_nr_requests(&self) -> u32 {
        2 * self.queue_depth.min(128)
    }

    /// The hardware queues and their CPUs.
    #[must_use]
    pub fn cpu_map(&self) -> CpuMap {
        match &self.hctx_of_cpu {
            Some(hctx_of_cpu) => CpuMap::of_one_type(hctx_of_cpu),
            None => CpuMap::new(self.cpus, [self.hw_queues, self.read_queues, self.poll_queues]),
        }
    }

    /// Maps of scheduler tags.
    fn scheduler_maps(&self) -> u32 {
        let one = self.host_wide_tags && self.kernel.generation().one_scheduler_map;
        if one { 1 } else { u32::from(self.cpu_map().hctxs()) }
    }

    /// Tags for the driver of a device like this, or of several behind one controller.
    #[must_use]
    pub fn tag_layout(&self) -> TagLayout {
        TagLayout {
            hctxs: self.cpu_map().hctxs(),
            depth: self.queue_depth,
            host_wide: self.host_wide_tags,
            cpus: self.cpus,
        }
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Makes a queue with the scheduler of this name, one of the configuration's.
    ///
    /// # Errors
    /// If the name is unknown or the configuration contradicts itself.
    pub fn new(config: &QueueConfig, scheduler: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let elevator = Queue::make_elevator(config, scheduler, config.async_depth_at_start())?;
        Queue::with_elevator(config, elevator)
    }

    /// Makes a queue that shares driver tags with others (several disks of one controller, several namespaces of one
    /// drive). Effects that wake one of the others' hardware queues name it by its [`tag_user`](Self::tag_user).
    ///
    /// # Errors
    /// If the name is unknown, the configuration contradicts itself, or it does not fit the tag set.
    pub fn in_set(config: &QueueConfig, scheduler: &str, tags: &Arc<TagSet<Sh>>) -> Result<Self, ConfigError> {
        config.check()?;
        let asked = config.tag_layout();
        let has = (tags.hctxs(), tags.depth(), tags.is_host_wide());
        if has != (asked.hctxs, asked.depth, asked.host_wide && asked.hctxs > 1) {
            return Err(ConfigError(format!(
                "a queue with {} hardware queues of {} tags does not fit a tag set for {} of {}",
                asked.hctxs, asked.depth, has.0, has.1
            )));
        }
        let elevator = Queue::make_elevator(config, scheduler, config.async_depth_at_start())?;
        Queue::build(config, elevator, TagUser::join(tags))
    }

    /// The scheduler of this name for a queue of this kind, whose `async_depth` it finds.
    fn make_elevator(config: &QueueConfig, scheduler: &str, async_depth: u32) -> Result<Elevator<Sh>, ConfigError> {
        let mut known = config.schedulers.of(Layer::MultiQueue);
        let row = known.clone().find(|row| row.name == scheduler).ok_or_else(|| {
            let names: Vec<&str> = known.by_ref().map(|row| row.name).collect();
            ConfigError(format!("unknown scheduler \"{scheduler}\" (expected one of {})", names.join(", ")))
        })?;
        let nr_requests = config.scheduler_depth();
        let queue = Surroundings {
            generation: &config.kernel.generation(),
            limits: &config.limits,
            nr_requests,
            default_nr_requests: config.default_nr_requests(),
            async_depth,
            queue_depth: config.queue_depth,
            capacity: nr_requests * config.scheduler_maps(),
            now: Now::default(),
        };
        Ok(Elevator::new(row, &queue, &config.cpu_map()))
    }

    /// Makes a queue with an elevator that was made for [`QueueConfig::scheduler_depth`] requests for each hardware
    /// queue.
    ///
    /// # Errors
    /// If the configuration contradicts itself.
    pub fn with_elevator(config: &QueueConfig, elevator: Elevator<Sh>) -> Result<Self, ConfigError> {
        config.check()?;
        Queue::build(config, elevator, TagUser::join(&TagSet::private(config.tag_layout())))
    }

    fn build(config: &QueueConfig, elevator: Elevator<Sh>, mut driver_tags: TagUser<Sh>) -> Result<Self, ConfigError> {
        let generation = config.kernel.generation();
        let cpu_map = config.cpu_map();
        let hctxs = cpu_map.hctxs();
        let nr_requests = match (elevator.is_none(), config.nr_requests.map(|nr| nr.max(NR_REQUESTS_MIN))) {
            (false, _) => config.scheduler_depth(),
            (true, None) => config.queue_depth,
            (true, Some(nr)) if nr <= config.queue_depth => nr,
            (true, Some(nr)) => {
                return Err(ConfigError(format!(
                    "nr_requests {nr} without a scheduler: the device has {} tags",
                    config.queue_depth
                )));
            }
        };
        driver_tags.set_limit(if elevator.is_none() { nr_requests } else { config.queue_depth });
        let flush_queue = |index: u16| {
            // Behind the ids that tags name.
            Sh::Lock::new(FlushQueue::new(RqId(u32::MAX - u32::from(index))))
        };
        // The slots of all requests: those of each space of the tags that they are allocated with.
        let spaces = match (elevator.is_none(), config.host_wide_tags) {
            (true, true) => 1,
            (true, false) => u32::from(hctxs),
            (false, _) => config.scheduler_maps(),
        };
        let of_space = if elevator.is_none() { config.queue_depth } else { nr_requests };
        let scheduler_maps = if elevator.is_none() { 0 } else { spaces };
        let scheduler_map =
            |_| Tags::new(nr_requests, usize::from(config.cpus), generation.shallow, elevator.min_shallow());
        let queue = Queue {
            config: config.clone(),
            gate: Gate::new(config.cpus),
            generation,
            rules: MergeRules::new(&generation, config.limits.clone(), config.nomerges),
            pool: RequestPool::of_queue(of_space * spaces),
            nr_requests,
            async_depth: Sh::Word::new(u64::from(config.async_depth(elevator.async_percent(), elevator.is_none()))),
            slots_per_hctx: if spaces == 1 { 0 } else { of_space },
            driver_tags,
            scheduler_tags: (0..scheduler_maps).map(scheduler_map).collect(),
            hctxs: (0..hctxs).map(HctxId).map(|id| HardwareQueue::new(id, cpu_map.served(id).to_vec())).collect(),
            // Before there were types of hardware queues the flag meant nothing.
            takes_polled: config.poll_queues > 0 || !generation.queue_types,
            cpu_map,
            requeued: Sh::Lock::new(Vec::new()),
            flush_queues: (0..hctxs).map(flush_queue).collect(),
            flush_commands: Sh::Lock::new(Vec::new()),
            quiesced: Sh::Word::new(0),
            affinity: Affinity::default(),
            timeouts: Timeouts::new(),
            flights: Flights::new(of_space * spaces, u32::from(hctxs)),
            wbt: Wbt::new(Throttle::new(config.queue_depth)),
            elevator,
        };
        queue.wbt_follows_scheduler();
        Ok(queue)
    }

    /// The kernel whose behaviour the queue has.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// What a request may span now.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.rules.limits
    }

    /// Its scheduler.
    #[must_use]
    pub fn elevator(&self) -> &Elevator<Sh> {
        &self.elevator
    }

    /// Number of hardware queues.
    #[must_use]
    pub fn hw_queues(&self) -> u16 {
        self.hctxs.len() as u16
    }

    /// Requests that each hardware queue can have at once.
    #[must_use]
    pub fn nr_requests(&self) -> u32 {
        self.nr_requests
    }

    /// What `queue/async_depth` shows, where queues have one.
    #[must_use]
    pub fn async_depth(&self) -> u32 {
        self.async_depth.load() as u32
    }

    /// A hardware queue.
    #[must_use]
    pub fn hctx(&self, id: HctxId) -> &HardwareQueue<Sh> {
        &self.hctxs[id.index()]
    }

    /// The hardware queue of a CPU for everything that has no queues of its own.
    #[inline]
    #[must_use]
    pub fn hctx_of(&self, cpu: CpuId) -> HctxId {
        self.cpu_map.hctx_of(cpu, QueueType::Default)
    }

    /// The hardware queue that an I/O takes which is submitted on this CPU.
    #[inline]
    #[must_use]
    pub fn hctx_for(&self, cpu: CpuId, bio: &Bio) -> HctxId {
        self.cpu_map.hctx_of(cpu, QueueType::of(bio.op, bio.flags))
    }

    /// Its number among the queues that share its driver tags.
    #[must_use]
    pub fn tag_user(&self) -> QueueId {
        self.driver_tags.id()
    }

    /// Requests that exist now.
    #[must_use]
    pub fn requests_in_use(&self) -> usize {
        self.pool.in_use()
    }

    /// Driver tags that it has taken.
    #[must_use]
    pub fn driver_tags_in_use(&self) -> u32 {
        self.driver_tags.in_use()
    }

    /// Writes a tunable of the scheduler, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, effects: &mut Effects) -> Result<(), StoreError> {
        effects.call(now, |cx| self.elevator.set_tunable(&NoMeter, cx, name, text))
    }

    /// Tells the scheduler of something.
    pub fn tell(&self, now: Now, effects: &mut Effects, news: News) {
        effects.call(now, |cx| self.elevator.tell(&NoMeter, cx, news));
    }

    /// The scheduler's timer has come.
    pub fn timer<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.elevator.timer(cx.meter, &mut cx.elevator());
        cx.take_wishes();
    }

    /// Stops or allows all dispatching; insertion and completion go on. After allowing it again the caller runs all
    /// hardware queues.
    pub fn set_quiesced(&self, quiesced: bool) {
        self.quiesced.store(u64::from(quiesced));
    }

    #[inline]
    fn is_quiesced(&self) -> bool {
        self.quiesced.load() != 0
    }

    /// The scheduler tags of a hardware queue, if there is a scheduler.
    #[inline]
    fn scheduler_tags_of(&self, hctx: HctxId) -> Option<&Tags<Sh>> {
        self.scheduler_tags.get(if self.slots_per_hctx == 0 { 0 } else { hctx.index() })
    }

    #[inline]
    fn slot(&self, hctx: HctxId, tag: u32) -> RqId {
        RqId(u32::from(hctx.0) * self.slots_per_hctx + tag)
    }

    /// The tag, within its hardware queue, that a slot belongs to.
    #[inline]
    fn tag_of_slot(&self, rq: &Rq) -> u32 {
        rq.id().0 - u32::from(rq.hctx.0) * self.slots_per_hctx
    }
}
