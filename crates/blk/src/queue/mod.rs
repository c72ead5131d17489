//! The queue of a device: the way of a request from `submit` to its end.
//!
//! The files in the order of the way: `submit` (split, merge, allocate), `unplug`, `insert`, `run` (which
//! request next), `send` (to the driver), `complete` (end, tags, restart), `requeue`; beside it `flush`, the sequence of
//! what must be durable, `freeze`, the gate in front, and `reconfigure`, what can be changed behind it; `attributes`, its files in sysfs.
//!
//! **Steps, not stories.** A path is a small state machine (`Submission`, `PlugFlush`, `HctxRun`) whose
//! `step` touches at most one lock and never blocks. What must wait is parked and comes back through an
//! [`Effect`](crate::Effect). Real time runs the steps back to back; virtual time may charge CPU time and grant
//! virtual locks between them.

mod affinity;
mod attributes;
mod complete;
mod flush;
mod freeze;
mod insert;
mod reconfigure;
mod requeue;
mod run;
mod send;
mod submit;
mod unplug;

#[cfg(test)]
mod tests;

pub use affinity::{Affinity, CompletionPlace};
pub use reconfigure::ChangeError;
pub(crate) use run::HctxRun;
pub use submit::{Submission, Submitted};
pub use unplug::PlugFlush;

use crate::effects::Effects;
use crate::elevator::{Elevator, PolicyCx, Scheduler};
use crate::flush_queue::FlushQueue;
use crate::hardware_queue::HardwareQueue;
use crate::ids::{CpuId, HctxId, RqId};
use crate::kernel::{Generation, Kernel};
use crate::limits::Limits;
use crate::merge::{MergeRules, NoMerges};
use crate::request::{RequestPool, Rq};
use crate::schedulers::{Bfq, BfqConfig, Kyber, KyberConfig, MqDeadline, MqDeadlineConfig};
use crate::sharing::{Lock, Sharing, Word};
use crate::tags::Tags;
use crate::time::Now;
use crate::tunables::StoreError;
use freeze::Gate;

/// What every call on the way of a request takes.
pub struct Cx<'a, D, P> {
    /// The time.
    pub now: Now,
    /// The CPU that the call runs on.
    pub cpu: CpuId,
    /// The driver, as seen from this CPU.
    pub driver: &'a mut D,
    /// What is to be done afterwards.
    pub effects: &'a mut Effects,
    /// Who watches.
    pub probe: &'a mut P,
}

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
    /// Driver tags of each hardware queue, at least 1.
    pub queue_depth: u32,
    /// Scheduler tags of each hardware queue; `None` for the kernel's default. Without a scheduler it bounds the
    /// driver tags in use.
    pub nr_requests: Option<u32>,
    /// How much merging is switched off.
    pub nomerges: NoMerges,
    /// What a request may span.
    pub limits: Limits,
}

/// Most hardware queues.
pub const HW_QUEUES_MAX: u16 = 2048;
/// Most driver tags of a hardware queue.
pub const QUEUE_DEPTH_MAX: u32 = 10_240;
/// Most scheduler tags of a hardware queue.
pub const NR_REQUESTS_MAX: u32 = 2048;
/// Fewest: smaller values are raised to it.
pub const NR_REQUESTS_MIN: u32 = 4;

/// The multi-queue schedulers that a queue can be made with, "none" first.
pub const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

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
    /// How it was made; its limits are those of the device.
    config: QueueConfig,
    gate: Gate<Sh>,
    generation: &'static Generation,
    rules: MergeRules,
    elevator: Elevator<Sh>,
    pool: RequestPool<Sh>,
    /// Request slots of each hardware queue: scheduler tags with a scheduler, else driver tags.
    slots_per_hctx: u32,
    driver_tags: Vec<Tags<Sh>>,
    /// Empty without a scheduler.
    scheduler_tags: Vec<Tags<Sh>>,
    hctxs: Vec<HardwareQueue<Sh>>,
    hctx_of_cpu: Vec<HctxId>,
    requeued: Sh::Lock<Vec<Rq>>,
    /// For each hardware queue.
    flush_queues: Vec<Sh::Lock<FlushQueue>>,
    /// Flush commands on their way to the dispatch lists.
    flush_commands: Sh::Lock<Vec<Rq>>,
    quiesced: Sh::Word,
    affinity: Affinity,
}

impl QueueConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let fail = |text: String| Err(ConfigError(text));
        if self.cpus == 0 {
            return fail("a queue needs at least 1 CPU".into());
        }
        if !(1..=HW_QUEUES_MAX).contains(&self.hw_queues) {
            return fail(format!("{} hardware queues: expected 1 to {HW_QUEUES_MAX}", self.hw_queues));
        }
        if !(1..=QUEUE_DEPTH_MAX).contains(&self.queue_depth) {
            return fail(format!("queue depth {}: expected 1 to {QUEUE_DEPTH_MAX}", self.queue_depth));
        }
        if self.nr_requests.is_some_and(|nr| nr > NR_REQUESTS_MAX) {
            return fail(format!("nr_requests is at most {NR_REQUESTS_MAX}"));
        }
        Ok(())
    }

    /// Scheduler tags of each hardware queue with a scheduler (`block-layer.md` 11.1).
    #[must_use]
    pub fn scheduler_depth(&self) -> u32 {
        self.nr_requests.map_or(2 * self.queue_depth.min(128), |nr| nr.max(NR_REQUESTS_MIN))
    }

    /// The hardware queue of each CPU: each serves a run of neighbouring CPUs (`block-layer.md` 10).
    #[must_use]
    pub fn hctx_of_cpu(&self) -> Vec<HctxId> {
        let (cpus, queues) = (u32::from(self.cpus), u32::from(self.hw_queues.min(self.cpus)));
        (0..cpus).map(|cpu| HctxId((cpu * queues / cpus) as u16)).collect()
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Makes a queue with the scheduler of this name, one of [`SCHEDULERS`].
    ///
    /// # Errors
    /// If the name is unknown or the configuration contradicts itself.
    pub fn new(config: &QueueConfig, scheduler: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let elevator = Queue::make_elevator(config, scheduler)?;
        Queue::with_elevator(config, elevator)
    }

    /// The scheduler of this name for a queue of this kind.
    fn make_elevator(config: &QueueConfig, scheduler: &str) -> Result<Elevator<Sh>, ConfigError> {
        let depth = config.scheduler_depth();
        let capacity = depth * u32::from(config.hw_queues.min(config.cpus));
        Ok(match scheduler {
            "none" => Elevator::None,
            "mq-deadline" => {
                let policy = MqDeadlineConfig::new(config.kernel.generation(), depth);
                Elevator::mq_deadline(MqDeadline::new(policy, capacity), capacity)
            }
            "kyber" => {
                let policy = KyberConfig::new(config.kernel.generation(), depth, config.queue_depth);
                Elevator::kyber(Kyber::new(policy, &config.hctx_of_cpu(), capacity))
            }
            "bfq" => {
                let policy = BfqConfig::new(config.kernel.generation(), depth, config.limits.rotational);
                Elevator::bfq(Bfq::new(policy, capacity), capacity)
            }
            unknown => {
                return Err(ConfigError(format!(
                    "unknown scheduler \"{unknown}\" (expected one of {})",
                    SCHEDULERS.join(", ")
                )));
            }
        })
    }

    /// Makes a queue with an elevator that was made for [`QueueConfig::scheduler_depth`] requests for each hardware
    /// queue.
    ///
    /// # Errors
    /// If the configuration contradicts itself.
    pub fn with_elevator(config: &QueueConfig, elevator: Elevator<Sh>) -> Result<Self, ConfigError> {
        config.check()?;
        let generation = config.kernel.generation();
        let hw_queues = config.hw_queues.min(config.cpus);
        let hctx_of_cpu = config.hctx_of_cpu();
        let hctxs = (0..hw_queues).map(HctxId).map(|id| {
            let served = (0..config.cpus).map(CpuId).filter(|cpu| hctx_of_cpu[cpu.index()] == id);
            HardwareQueue::new(id, served.collect())
        });
        let hctxs = hctxs.collect();
        let driver_depth = match (elevator.is_none(), config.nr_requests) {
            (true, Some(nr)) if nr.max(NR_REQUESTS_MIN) > config.queue_depth => {
                return Err(ConfigError(format!(
                    "nr_requests {nr} without a scheduler: the device has {} tags",
                    config.queue_depth
                )));
            }
            (true, Some(nr)) => nr.max(NR_REQUESTS_MIN),
            _ => config.queue_depth,
        };
        let flush_queue = |index: u16| {
            // Behind the ids that tags name.
            Sh::Lock::new(FlushQueue::new(RqId(u32::MAX - u32::from(index))))
        };
        let tags = |depth, min_shallow| -> Vec<Tags<Sh>> {
            let one = |_| Tags::new(depth, usize::from(config.cpus), generation.shallow, min_shallow);
            (0..hw_queues).map(one).collect()
        };
        let (slots_per_hctx, scheduler_tags) = if elevator.is_none() {
            (driver_depth, Vec::new())
        } else {
            (config.scheduler_depth(), tags(config.scheduler_depth(), elevator.min_shallow()))
        };
        Ok(Queue {
            config: config.clone(),
            gate: Gate::new(config.cpus),
            generation,
            rules: MergeRules::new(generation, config.limits.clone(), config.nomerges),
            elevator,
            pool: RequestPool::new(slots_per_hctx * u32::from(hw_queues)),
            slots_per_hctx,
            driver_tags: tags(driver_depth, None),
            scheduler_tags,
            hctxs,
            hctx_of_cpu,
            requeued: Sh::Lock::new(Vec::new()),
            flush_queues: (0..hw_queues).map(flush_queue).collect(),
            flush_commands: Sh::Lock::new(Vec::new()),
            quiesced: Sh::Word::new(0),
            affinity: Affinity::default(),
        })
    }

    /// The kernel whose behaviour the queue has.
    #[must_use]
    pub fn generation(&self) -> &'static Generation {
        self.generation
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
        self.slots_per_hctx
    }

    /// A hardware queue.
    #[must_use]
    pub fn hctx(&self, id: HctxId) -> &HardwareQueue<Sh> {
        &self.hctxs[id.index()]
    }

    /// The hardware queue of a CPU.
    #[inline]
    #[must_use]
    pub fn hctx_of(&self, cpu: CpuId) -> HctxId {
        self.hctx_of_cpu[cpu.index()]
    }

    /// Requests that exist now.
    #[must_use]
    pub fn requests_in_use(&self) -> usize {
        self.pool.in_use()
    }

    /// Driver tags that are taken now.
    #[must_use]
    pub fn driver_tags_in_use(&self) -> u32 {
        self.driver_tags.iter().map(Tags::in_use).sum()
    }

    /// Writes a tunable of the scheduler, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, effects: &mut Effects) -> Result<(), StoreError> {
        let answer = self.elevator.set_tunable(now, name, text, &mut effects.calls);
        effects.take_calls();
        answer
    }

    /// Tells the scheduler of something that happened to a process or cgroup.
    pub fn tell(&self, now: Now, effects: &mut Effects, what: impl FnOnce(&mut dyn Scheduler, &mut PolicyCx<'_>)) {
        self.elevator.tell(now, &mut effects.calls, what);
        effects.take_calls();
    }

    /// The scheduler's timer has come.
    pub fn timer(&self, now: Now, effects: &mut Effects) {
        self.elevator.timer(now, &mut effects.calls);
        effects.take_calls();
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
