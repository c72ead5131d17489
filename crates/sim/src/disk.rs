//! A simulated disk: device, driver, queue, workers, and the queue's pending work.
//!
//! Used by: `simulation`, `page_cache`, `scenario`, `workers`, `cgroups`; crates `experiment`, `calibrate`, `evidence`.
//! Tests: `crates/sim/tests/several_disks.rs`.

use std::sync::Arc;

use hoistway_blk::bio::{CgroupPriority, Limits};
use hoistway_blk::caller::{Agenda, BlockQueue};
use hoistway_blk::drive::Driver;
use hoistway_blk::ground::{CpuId, HctxId, Instant, Kernel, Local, PlugUse, Sector};
use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::queue::{ConfigError, QueueConfig};
use hoistway_blk::request::Merging;
use hoistway_blk::schedulers::Registry;
use hoistway_blk::tags::TagSet;
use hoistway_cgroup::{CostModel, IoCostQos, IoLatencyTarget, IoMax};
use hoistway_device::Shape;
use hoistway_legacy::{AnyQueue, all_schedulers};
use hoistway_measure::Setting;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::administration::{Administration, Write};
use crate::driver::{Backing, DiskDriver};
use crate::incidental::hint_seed;
use crate::locks::SectionCost;
use crate::span::Span;
use crate::stacked_device::StackedDevice;
use crate::throttling::Throttling;

/// One device under test.
pub(crate) struct SimulatedDisk {
    pub(crate) queue: AnyQueue<Local>,
    /// Which system calls plug, on the simulated kernel.
    pub(crate) plug_use: PlugUse,
    pub(crate) driver: DiskDriver,
    /// Cost of a section under its scheduler's lock.
    pub(crate) section: SectionCost,
    /// Whether submitters run hardware queues that the kernel would leave to workers.
    pub(crate) submitter_dispatches: bool,
    /// Pending writes to its files in `queue/`.
    pub(crate) administration: Administration,
    /// `io.max` and `io.cost` of its cgroups, if it has either.
    pub(crate) throttling: Option<Box<Throttling>>,
    /// The CPU that each hardware queue interrupts.
    pub(crate) interrupts: Vec<CpuId>,
    /// Whether processes use it directly. `false` for the host's device below virtual disks, which interrupts none of the guests' CPUs.
    pub(crate) is_used_by_tasks: bool,
    /// Start latency of its workers if they run on the host below guests.
    pub(crate) host_worker: Option<Span>,
    /// Timers and pending runs of its queue.
    pub(crate) agenda: Agenda,
    /// When the dispatching CPU continues with work that other CPUs left to it; zero if that is not scheduled.
    pub(crate) next_round: Instant,
    /// For each hardware queue, the CPU of the worker that runs it next.
    pub(crate) runs_on: Box<[CpuId]>,
    /// Random stream of its workers' start latencies.
    pub(crate) worker_random: Xoshiro256PlusPlus,
}

/// Separates the random stream of a disk's workers from all others of the seed.
const WORKER_STREAM: u64 = 0x776f_726b_6572_7300;

/// Configuration of the queues of a run.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// The kernel to simulate. For a legacy scheduler that it no longer has, the last kernel that had it is simulated.
    pub kernel: Kernel,
    /// CPUs of the host.
    pub cpus: u16,
    /// Number of a device's hardware queues that are reserved for reads.
    pub read_queues: u16,
    /// Number of a device's hardware queues that are reserved for polled I/O.
    pub poll_queues: u16,
    /// Whether all devices are behind one controller and share its tags; they must be identical then.
    pub shared_tags: bool,
    /// `io.max` of cgroups, by their paths, for every device.
    pub io_max: Vec<(String, IoMax)>,
    /// `io.cost` of each of the load's files, in their order; empty if no device has it. It does not reach the host below guests.
    pub io_cost: Vec<Option<DiskIoCost>>,
    /// `io.weight` of cgroups, by their paths; others have the weight that the load gives them.
    pub io_weight: Vec<(String, u32)>,
    /// `io.latency` of each of the load's files, in their order: targets of cgroups, by their paths; empty if no group has one. It does not
    /// reach the host below guests.
    pub io_latency: Vec<Vec<(String, IoLatencyTarget)>>,
    /// `io.prio.class` of cgroups, by their paths. Ignored on kernels before 5.14, which lack that file.
    pub io_prio_class: Vec<(String, CgroupPriority)>,
    /// Writes to files of `queue/` during the run.
    pub writes: Vec<Write>,
    /// Whether submitters run hardware queues that the kernel would leave to workers, as some patched kernels do for measurements.
    pub submitter_dispatches: bool,
    /// Stacked devices over the devices, each after those that it lies on. The load's files are the devices and then those stacked
    /// devices that no other lies on. A load in guests has none.
    pub stacks: Vec<StackedDevice>,
    /// Options that reduce contention for a scheduler's lock; none by default, as in Linux.
    pub contention_options: ContentionOptions,
    /// The available schedulers.
    pub schedulers: Registry,
}

/// `io.cost` of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskIoCost {
    /// `io.cost.qos`.
    pub qos: IoCostQos,
    /// The figures that costs are computed from.
    pub model: CostModel,
}

impl QueueSettings {
    /// The kernel's defaults, on a host with this many CPUs.
    #[must_use]
    pub fn new(kernel: Kernel, cpus: u16) -> Self {
        QueueSettings {
            kernel,
            cpus,
            read_queues: 0,
            poll_queues: 0,
            shared_tags: false,
            submitter_dispatches: false,
            stacks: Vec::new(),
            contention_options: ContentionOptions::default(),
            io_prio_class: Vec::new(),
            io_max: Vec::new(),
            io_cost: Vec::new(),
            io_weight: Vec::new(),
            io_latency: Vec::new(),
            schedulers: all_schedulers(),
            writes: Vec::new(),
        }
    }

    /// The configuration of a queue over a device of this shape, with the kernel's default settings.
    #[must_use]
    pub fn config(&self, shape: &Shape) -> QueueConfig {
        let sectors = |bytes: u32| (bytes / 512).max(1);
        QueueConfig {
            kernel: self.kernel,
            cpus: self.cpus,
            hw_queues: shape.hw_queues.saturating_sub(self.read_queues.saturating_add(self.poll_queues)),
            read_queues: self.read_queues,
            poll_queues: self.poll_queues,
            hctx_of_cpu: None,
            queue_depth: shape.queue_depth,
            arbitration: shape.arbitration,
            transport: shape.transport,
            host_wide_tags: shape.host_wide_tags,
            wants_no_scheduler: shape.wants_no_scheduler,
            nr_requests: None,
            merging: Merging::Full,
            schedulers: self.schedulers.clone(),
            contention_options: self.contention_options,
            hint_seed: None,
            limits: Limits {
                capacity: Sector(shape.capacity_sectors),
                write_cache: shape.write_cache,
                fua: shape.fua,
                // All SCSI disks here are SATA, and flushes cannot be queued under NCQ.
                flush_queueable: !shape.scsi,
                rotational: shape.rotational,
                ..Limits::new(
                    sectors(shape.logical_block_bytes),
                    sectors(shape.physical_block_bytes),
                    shape.max_sectors,
                    self.kernel.generation().max_sectors_cap,
                    shape.max_segments,
                )
            },
        }
    }

    /// The configuration of a queue over a device of this shape, with the requests of a setting, as they are allocated with the queue.
    #[must_use]
    pub fn config_with(&self, shape: &Shape, setting: &Setting) -> QueueConfig {
        QueueConfig { nr_requests: setting.nr_requests(), ..self.config(shape) }
    }
}

impl SimulatedDisk {
    /// Creates the host's device with this `number`, which also determines where its interrupts start. `tags` are the tags that devices
    /// share, if they do; the first device creates them.
    pub(crate) fn new(
        backing: Backing,
        settings: &QueueSettings,
        setting: &Setting,
        (number, seed): (usize, u64),
        tags: &mut Option<Arc<TagSet<Local>>>,
    ) -> Result<Self, ConfigError> {
        let scheduler = setting.scheduler.as_str();
        let kernel = settings.schedulers.kernel_under(settings.kernel, scheduler);
        let config = QueueSettings { kernel, ..settings.clone() }.config_with(backing.shape(), setting);
        let config = QueueConfig { hint_seed: Some(hint_seed(seed)), ..config };
        let queue = if settings.shared_tags {
            AnyQueue::with_shared_tags(
                &config,
                scheduler,
                tags.get_or_insert_with(|| TagSet::shared(config.tag_layout())),
            )?
        } else {
            AnyQueue::new(&config, scheduler)?
        };
        let interrupts = interrupts(&queue, config.cpus, number);
        let mut driver = DiskDriver::new(backing, &config.cpu_map());
        if let AnyQueue::Mq(queue) = &queue
            && let Some(weights) = queue.arbitration()
        {
            driver.arbitrate(Some(weights));
        }
        Ok(SimulatedDisk {
            driver,
            interrupts,
            plug_use: queue.generation().plug_use,
            agenda: Agenda::new(queue.hw_queues()),
            runs_on: vec![CpuId(0); usize::from(queue.hw_queues())].into(),
            next_round: Instant::ZERO,
            worker_random: Xoshiro256PlusPlus::seed_from_u64(seed ^ WORKER_STREAM),
            section: SectionCost::default(),
            submitter_dispatches: settings.submitter_dispatches,
            throttling: None,
            is_used_by_tasks: true,
            host_worker: None,
            administration: Administration::default(),
            queue,
        })
    }
}

/// Interrupt affinity as the kernel chooses it: each interrupt goes to the CPU with the fewest interrupts among those that its hardware
/// queue serves. So identical devices are spread over CPUs. The first CPU depends on other devices of the host, and is drawn.
fn interrupts(queue: &AnyQueue<Local>, cpus: u16, number: usize) -> Vec<CpuId> {
    let turn = |cpus: &[CpuId]| cpus[number % cpus.len()];
    match queue {
        AnyQueue::Mq(queue) => (0..queue.hw_queues()).map(|hctx| turn(queue.hctx(HctxId(hctx)).cpus())).collect(),
        AnyQueue::Legacy(_) => vec![CpuId((number % usize::from(cpus)) as u32)],
    }
}
