//! A disk: a device with its driver and its queue, and what is due on that.

use std::sync::Arc;

use hoistway_blk::bio::{CgroupPriority, Limits};
use hoistway_blk::caller::{Agenda, BlockQueue};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Kernel, Local, PlugUse, Sector};
use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::queue::{ConfigError, QueueConfig};
use hoistway_blk::request::NoMerges;
use hoistway_blk::schedulers::Registry;
use hoistway_blk::tags::TagSet;
use hoistway_cgroup::IoMax;
use hoistway_device::Shape;
use hoistway_legacy::{AnyQueue, all_schedulers};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::administration::{Administration, Write};
use crate::driver::{Backing, DiskDriver};
use crate::incidental::hint_seed;
use crate::locks::SectionCost;
use crate::span::Span;
use crate::throttling::Throttling;

/// One device under test.
pub(crate) struct SimulatedDisk {
    pub(crate) front: AnyQueue<Local>,
    /// Which system calls plug, on the kernel that the front is of.
    pub(crate) plug_use: PlugUse,
    pub(crate) driver: DiskDriver,
    /// What a section of its scheduler takes.
    pub(crate) section: SectionCost,
    /// Processes run the hardware queues themselves that the kernel leaves to workers.
    pub(crate) submitter_dispatches: bool,
    /// What is written to its files.
    pub(crate) administration: Administration,
    /// Limits of cgroups, if there are any.
    pub(crate) throttling: Option<Box<Throttling>>,
    /// The CPU that each hardware queue interrupts.
    pub(crate) interrupts: Vec<CpuId>,
    /// Whether processes use it: not if it is the host's, below virtual disks. That one interrupts no CPU of theirs.
    pub(crate) is_used_by_tasks: bool,
    /// How long its workers take if they run on CPUs of the host below guests.
    pub(crate) host_worker: Option<Span>,
    /// What is due on its queue.
    pub(crate) agenda: Agenda,
    /// When the CPU that asks its scheduler for requests continues with what others have left, if that is set.
    pub(crate) next_round: Instant,
    /// The CPUs of the workers that run its hardware queues next.
    pub(crate) runs_on: Box<[CpuId]>,
    /// How long its workers take to come.
    pub(crate) worker_random: Xoshiro256PlusPlus,
}

/// Keeps the random stream of a disk's workers apart from all others of the seed.
const WORKER_STREAM: u64 = 0x776f_726b_6572_7300;

/// How the queue of a device is made.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// The kernel whose behaviour is wanted. Legacy schedulers, if it has none, get the last one that had them.
    pub kernel: Kernel,
    /// CPUs of the host.
    pub cpus: u16,
    /// This many of a device's hardware queues are for reads alone.
    pub read_queues: u16,
    /// This many of them are for I/O whose submitter polls.
    pub poll_queues: u16,
    /// Whether all devices are behind one controller and share its tags; they are alike then.
    pub shared_tags: bool,
    /// Scheduler tags; `None` for the kernel's default.
    pub nr_requests: Option<u32>,
    /// `io.max` of cgroups, by their paths, for every device.
    pub io_max: Vec<(String, IoMax)>,
    /// `io.prio.class` of cgroups, by their paths. Kernels before 5.14 have no such file.
    pub io_prio_class: Vec<(String, CgroupPriority)>,
    /// Files of `queue/` that are written while the load runs.
    pub writes: Vec<Write>,
    /// Whether processes run the hardware queues themselves that the kernel leaves to workers: some patch it so to measure.
    pub submitter_dispatches: bool,
    /// What the queues do against contention for a scheduler's lock: nothing, as Linux does.
    pub techniques: ContentionOptions,
    /// The schedulers that there are.
    pub schedulers: Registry,
    /// Files of `queue/` and what is written to them before the run, `nr_requests` and `scheduler` apart.
    pub attributes: Vec<(String, String)>,
}

impl QueueSettings {
    /// Everything as the kernel sets it by default, on a host with this many CPUs.
    #[must_use]
    pub fn new(kernel: Kernel, cpus: u16) -> Self {
        QueueSettings {
            kernel,
            cpus,
            read_queues: 0,
            poll_queues: 0,
            shared_tags: false,
            submitter_dispatches: false,
            techniques: ContentionOptions::default(),
            nr_requests: None,
            io_prio_class: Vec::new(),
            io_max: Vec::new(),
            schedulers: all_schedulers(),
            attributes: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// The configuration of a queue over a device of this shape.
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
            host_wide_tags: shape.host_wide_tags,
            nr_requests: self.nr_requests,
            nomerges: NoMerges::All,
            schedulers: self.schedulers.clone(),
            techniques: self.techniques,
            hint_seed: None,
            limits: Limits {
                capacity: Sector(shape.capacity_sectors),
                write_cache: shape.write_cache,
                fua: shape.fua,
                // Of SCSI disks there are only SATA ones here, and NCQ knows no flush.
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
}

impl SimulatedDisk {
    /// The device of this `number` among the host's; its interrupts are spread from there on. `tags` are those that the devices share, if they do: the first one makes
    /// them.
    pub(crate) fn new(
        backing: Backing,
        settings: &QueueSettings,
        scheduler: &str,
        (number, seed): (usize, u64),
        tags: &mut Option<Arc<TagSet<Local>>>,
    ) -> Result<Self, ConfigError> {
        let kernel = settings.schedulers.kernel_under(settings.kernel, scheduler);
        let config = QueueSettings { kernel, ..settings.clone() }.config(backing.shape());
        let config = QueueConfig { hint_seed: Some(hint_seed(seed)), ..config };
        let front = if settings.shared_tags {
            AnyQueue::in_set(&config, scheduler, tags.get_or_insert_with(|| TagSet::shared(config.tag_layout())))?
        } else {
            AnyQueue::new(&config, scheduler)?
        };
        let interrupts = interrupts(&front, config.cpus, number);
        Ok(SimulatedDisk {
            driver: DiskDriver::new(backing),
            interrupts,
            plug_use: front.generation().plug_use,
            agenda: Agenda::new(front.hw_queues()),
            runs_on: vec![CpuId(0); usize::from(front.hw_queues())].into(),
            next_round: Instant::ZERO,
            worker_random: Xoshiro256PlusPlus::seed_from_u64(seed ^ WORKER_STREAM),
            section: SectionCost::default(),
            submitter_dispatches: settings.submitter_dispatches,
            throttling: None,
            is_used_by_tasks: true,
            host_worker: None,
            administration: Administration::default(),
            front,
        })
    }
}

/// Where the kernel puts the interrupts of a device: each on the CPU, of those that its hardware queue serves, that has the fewest
/// yet. Devices that are alike so take turns. Which one is the first depends on what else the host has, and is drawn.
fn interrupts(front: &AnyQueue<Local>, cpus: u16, number: usize) -> Vec<CpuId> {
    let turn = |cpus: &[CpuId]| cpus[number % cpus.len()];
    match front {
        AnyQueue::Mq(queue) => (0..queue.hw_queues()).map(|hctx| turn(queue.hctx(HctxId(hctx)).cpus())).collect(),
        AnyQueue::Legacy(_) => vec![CpuId((number % usize::from(cpus)) as u32)],
    }
}
