//! The table of schedulers, with a row for each.
//!
//! A [`Registry`] is a value that a queue is [handed](crate::queue::QueueConfig::schedulers), so that other crates, and users,
//! add theirs: an `impl Scheduler`, or an `impl Concurrent`, in a file, and one [`Row`].

use std::fmt;
use std::sync::Arc;

use crate::bio::limits::Limits;
use crate::ground::kernel::{DeadlineGeneration, Generation, Kernel};
use crate::ground::sharing::Threads;
use crate::ground::time::Now;
use crate::policy::{AnyFamily, AnySteeringFamily, BoxedScheduler, Family, Scheduler, SteeringFamily};
use crate::request::cpu_map::{Arbitration, Transport};

use super::{ASYNC_PERCENT, BfqConfig, KyberConfig, MqDeadlineConfig};

/// The block layer that a scheduler belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// Multi-queue.
    MultiQueue,
    /// The single queue until 4.20.
    SingleQueue,
}

/// Which part of an I/O priority a scheduler respects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priorities {
    /// None.
    No,
    /// The class and not the level.
    Class,
    /// Class and level.
    ClassAndLevel,
}

/// Where a scheduler comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Linux, or the user's own.
    Linux,
    /// Not in mainline Linux, but in kernels of some distributions; the text says which.
    OutOfTree(&'static str),
    /// From research, in no kernel; the text says where it was published.
    Research(&'static str),
}

/// The properties of the queue that a scheduler is created for and attached to.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The kernel whose behaviour is wanted.
    pub generation: &'a Generation,
    /// The limits of the device.
    pub limits: &'a Limits,
    /// Requests of each hardware queue; on a legacy queue, of each class, sync and async.
    pub nr_requests: u32,
    /// The default of `nr_requests`.
    pub default_nr_requests: u32,
    /// The value of `queue/async_depth` before it is attached.
    pub async_depth: u32,
    /// Driver tags of each hardware queue.
    pub queue_depth: u32,
    /// Request ids are below this.
    pub capacity: u32,
    /// The drive's weighted round robin between classes of hardware queues, if it has that.
    pub arbitration: Option<Arbitration>,
    /// The transport between the block layer and the device, if there is one.
    pub transport: Option<Transport>,
    /// The seed of the scheduler's random draws.
    pub seed: u64,
    /// When it is attached, on a legacy queue. A multi-queue one passes the time only with calls.
    pub now: Now,
}

/// The new `async_depth` after `nr_requests` has changed from `old_nr_requests`: the ratio is kept, rounded down each time.
pub(crate) fn scaled(async_depth: u32, nr_requests: u32, old_nr_requests: u32) -> u32 {
    let scaled = u64::from(async_depth) * u64::from(nr_requests) / u64::from(old_nr_requests.max(1));
    u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
}

impl Attachment<'_> {
    /// `queue/async_depth` under a scheduler that sets it to `percent` when it is attached; an explicit number of requests is
    /// written after that.
    fn async_depth_of(&self, percent: u32) -> u32 {
        scaled(self.default_nr_requests * percent / 100, self.nr_requests, self.default_nr_requests)
    }
}

/// What a row creates: a policy that the queue puts behind a lock, or a scheduler with its own locks. A queue stores some of them
/// without a box; of these a row gives the configuration, and the queue creates them.
pub enum Policy {
    /// No scheduler.
    None,
    /// mq-deadline.
    MqDeadline(MqDeadlineConfig),
    /// kyber.
    Kyber(KyberConfig),
    /// bfq.
    Bfq(BfqConfig),
    /// Any other behind one lock.
    Boxed(BoxedScheduler),
    /// Any other with locks of its own.
    Concurrent(Box<dyn AnyFamily>),
    /// No scheduler, but a policy that chooses the hardware queues of requests.
    Steered(Box<dyn AnySteeringFamily>),
}

impl Policy {
    /// Any policy.
    #[must_use]
    pub fn boxed(policy: impl Scheduler + Send + 'static) -> Self {
        Policy::Boxed(Box::new(policy))
    }

    /// Any scheduler that many CPUs call at once.
    #[must_use]
    pub fn concurrent<F: Family + 'static>(family: F) -> Self
    where
        F::Of<Threads>: Send + Sync,
    {
        Policy::Concurrent(Box::new(family))
    }

    /// Any policy that chooses the hardware queues of requests.
    #[must_use]
    pub fn steered<F: SteeringFamily + 'static>(family: F) -> Self
    where
        F::Of<Threads>: Send + Sync,
    {
        Policy::Steered(Box::new(family))
    }
}

/// What other code needs to know about a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in `queue/scheduler`, at most 15 characters.
    pub name: &'static str,
    /// Other names that a write to `queue/scheduler` may use for it.
    pub aliases: &'static [&'static str],
    /// The block layer that it belongs to.
    pub layer: Layer,
    /// Where it comes from.
    pub origin: Origin,
    /// The first kernel of the table that has it; if none has it, the first whose block layer it runs on.
    pub since: Kernel,
    /// The last kernel that had it; `None` if it still exists.
    pub until: Option<Kernel>,
    /// Which part of I/O priorities it respects.
    pub priorities: fn(&Generation) -> Priorities,
    /// Whether it respects weights of cgroups.
    pub weights: bool,
    /// Whether it favours for seconds what has just started, so that short runs are unlike long ones.
    pub favours_starts: bool,
    /// Whether it needs a drive with weighted round robin between [classes](crate::request::QueueClass) of hardware queues.
    pub needs_arbitration: bool,
    /// Whether it needs a [transport](Transport) between the block layer and the device, with a worker on each of several CPUs.
    pub needs_transport: bool,
    /// The duration of a section under its lock, in percent of mq-deadline's, if the host's profile does not list it.
    pub section_percent: u32,
    /// Creates it for a queue, unless the [registry](Registry::with_row_and_maker) has another maker for it.
    pub make: fn(&Attachment<'_>) -> Policy,
}

impl Row {
    /// A multi-queue scheduler that every kernel has, without priorities and weights.
    #[must_use]
    pub const fn new(name: &'static str, make: fn(&Attachment<'_>) -> Policy) -> Self {
        Row {
            name,
            aliases: &[],
            layer: Layer::MultiQueue,
            origin: Origin::Linux,
            since: Kernel::V4_4,
            until: None,
            priorities: |_| Priorities::No,
            weights: false,
            favours_starts: false,
            needs_arbitration: false,
            needs_transport: false,
            section_percent: 100,
            make,
        }
    }

    /// Whether a kernel has it.
    #[must_use]
    pub fn exists_in(&self, kernel: Kernel) -> bool {
        self.origin == Origin::Linux
            && kernel >= self.since.first_of_series()
            && self.until.is_none_or(|last| kernel <= last)
    }

    /// Where it was published or who ships it, if no release of Linux has it.
    #[must_use]
    pub fn outside_linux(&self) -> Option<&'static str> {
        match self.origin {
            Origin::Linux => None,
            Origin::OutOfTree(source) | Origin::Research(source) => Some(source),
        }
    }

    /// The kernel whose block layer it runs on if this one is requested: the last one that had it, if it was removed.
    #[must_use]
    pub fn kernel(&self, requested: Kernel) -> Kernel {
        self.until.map_or(requested, |last| requested.min(last))
    }
}

/// No scheduler.
pub const NONE: Row = Row::new("none", |_| Policy::None);

/// mq-deadline.
pub const MQ_DEADLINE: Row = Row {
    aliases: &["deadline"],
    since: Kernel::series(4, 11),
    priorities: |generation| match generation.deadline {
        DeadlineGeneration::A => Priorities::No,
        _ => Priorities::Class,
    },
    ..Row::new("mq-deadline", |queue| Policy::MqDeadline(MqDeadlineConfig::new(queue.generation, queue.nr_requests)))
};

/// kyber.
pub const KYBER: Row = Row {
    since: Kernel::V4_12,
    ..Row::new("kyber", |queue| {
        let config = KyberConfig::new(queue.generation, queue.nr_requests, queue.queue_depth);
        let async_depth = config.async_depth.map(|_| queue.async_depth_of(ASYNC_PERCENT));
        Policy::Kyber(KyberConfig { async_depth, ..config })
    })
};

/// bfq.
pub const BFQ: Row = Row {
    since: Kernel::V4_12,
    priorities: |_| Priorities::ClassAndLevel,
    weights: true,
    favours_starts: true,
    ..Row::new("bfq", |queue| {
        let config = BfqConfig::new(queue.generation, queue.nr_requests, queue.limits.rotational);
        // It computes its limits before it sets its default, and again only when something is written.
        let has_default_requests = queue.nr_requests == queue.default_nr_requests;
        let initial_depth = if has_default_requests { queue.async_depth } else { queue.async_depth_of(ASYNC_PERCENT) };
        let async_depth = config.async_depth.map(|_| initial_depth);
        Policy::Bfq(BfqConfig { actuators: queue.limits.actuators.clone(), async_depth, ..config })
    })
};

/// k2.
pub const K2: Row = Row {
    origin: Origin::Research("RTSS 2019"),
    since: Kernel::series(4, 11),
    priorities: |_| Priorities::ClassAndLevel,
    ..Row::new("k2", |queue| Policy::boxed(super::k2::K2::new(queue.capacity)))
};

/// adios.
pub const ADIOS: Row = Row {
    origin: Origin::OutOfTree("CachyOS"),
    since: Kernel::series(6, 12),
    ..Row::new("adios", |queue| Policy::boxed(super::adios::Adios::new(queue.capacity, queue.limits.rotational)))
};

/// mqfq.
pub const MQFQ: Row = Row {
    origin: Origin::Research("USENIX ATC 2019"),
    since: Kernel::series(4, 11),
    priorities: |_| Priorities::ClassAndLevel,
    weights: true,
    ..Row::new("mqfq", |queue| Policy::concurrent(super::mqfq::MqfqFamily { capacity: queue.capacity }))
};

/// d2fq.
pub const D2FQ: Row = Row {
    origin: Origin::Research("USENIX FAST 2021"),
    since: Kernel::series(4, 11),
    priorities: |_| Priorities::ClassAndLevel,
    needs_arbitration: true,
    ..Row::new("d2fq", |queue| Policy::steered(super::d2fq::D2fqFamily { arbitration: queue.arbitration }))
};

/// blk-switch.
pub const BLK_SWITCH: Row = Row {
    origin: Origin::Research("USENIX OSDI 2021"),
    since: Kernel::series(4, 11),
    priorities: |_| Priorities::Class,
    needs_transport: true,
    ..Row::new("blk-switch", |queue| {
        let batch = queue.transport.map_or(1, |transport| transport.batch);
        Policy::steered(super::blk_switch::BlkSwitchFamily { batch, queue_depth: queue.queue_depth, seed: queue.seed })
    })
};

/// tabs.
pub const TABS: Row = Row {
    origin: Origin::Research("USENIX HotStorage 2022"),
    since: Kernel::series(4, 11),
    ..Row::new("tabs", |queue| Policy::boxed(super::tabs::Tabs::new(queue.capacity)))
};

/// vfair.
pub const VFAIR: Row = Row {
    origin: Origin::Research("ACM SoCC 2015"),
    since: Kernel::series(4, 11),
    priorities: |_| Priorities::ClassAndLevel,
    weights: true,
    ..Row::new("vfair", |queue| Policy::boxed(super::vfair::Vfair::new(queue.capacity)))
};

/// cffq.
pub const CFFQ: Row = Row {
    origin: Origin::Research("ACM IMCOM 2017"),
    since: Kernel::series(4, 11),
    priorities: |_| Priorities::ClassAndLevel,
    ..Row::new("cffq", |queue| Policy::boxed(super::cffq::Cffq::new(queue.capacity)))
};

/// The schedulers that no release of Linux has, in the order in which they are listed.
pub const OUTSIDE_LINUX: [Row; 8] = [K2, ADIOS, MQFQ, D2FQ, BLK_SWITCH, TABS, VFAIR, CFFQ];

/// Creates a scheduler from data that a plain function does not have: an interpreter's class, parameters of an experiment.
pub type Maker = Arc<dyn Fn(&Attachment<'_>) -> Policy + Send + Sync>;

/// Schedulers, in the order in which they are listed. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    rows: Arc<[Row]>,
    /// The makers of schedulers that are not created by their row's function, by name and layer.
    makers: Arc<[(&'static str, Layer, Maker)]>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&*self.rows).finish()
    }
}

impl Registry {
    /// The multi-queue schedulers: first those of Linux, then the others.
    #[must_use]
    pub fn multi_queue() -> Self {
        let rows = [NONE, MQ_DEADLINE, KYBER, BFQ].into_iter().chain(OUTSIDE_LINUX).collect();
        Registry { rows, makers: Arc::new([]) }
    }

    /// Adds schedulers. One of the same name and layer is replaced.
    #[must_use]
    pub fn with(&self, added: &[Row]) -> Self {
        let is_replaced = |row: &&Row| added.iter().any(|new| (new.name, new.layer) == (row.name, row.layer));
        let kept = self.rows.iter().filter(|row| !is_replaced(row));
        let is_kept = |name: &str, layer: Layer| !added.iter().any(|new| (new.name, new.layer) == (name, layer));
        let makers = self.makers.iter().filter(|(name, layer, _)| is_kept(name, *layer)).cloned().collect();
        Registry { rows: kept.chain(added).copied().collect(), makers }
    }

    /// Adds a scheduler that is created by `maker` instead of the row's function. One of the same name and layer is replaced.
    #[must_use]
    pub fn with_row_and_maker(&self, row: Row, maker: Maker) -> Self {
        let Registry { rows, makers } = self.with(&[row]);
        Registry { rows, makers: makers.iter().cloned().chain([(row.name, row.layer, maker)]).collect() }
    }

    /// Creates the scheduler of a row for a queue.
    #[must_use]
    pub fn make(&self, row: &Row, queue: &Attachment<'_>) -> Policy {
        match self.makers.iter().find(|(name, layer, _)| (*name, *layer) == (row.name, row.layer)) {
            Some((.., maker)) => maker(queue),
            None => (row.make)(queue),
        }
    }

    /// All of them.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Those of a block layer.
    pub fn of(&self, layer: Layer) -> impl Iterator<Item = &Row> + Clone {
        self.rows.iter().filter(move |row| row.layer == layer)
    }

    /// The one of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The names.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.rows.iter().map(|row| row.name).collect()
    }

    /// Whether this is a scheduler of the legacy block layer.
    #[must_use]
    pub fn is_legacy(&self, name: &str) -> bool {
        self.find(name).is_some_and(|row| row.layer == Layer::SingleQueue)
    }

    /// The kernel whose block layer a scheduler gets if this one is requested; see [`Row::kernel`].
    #[must_use]
    pub fn kernel_under(&self, kernel: Kernel, scheduler: &str) -> Kernel {
        self.find(scheduler).map_or(kernel, |row| row.kernel(kernel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_row_is_appended_or_replaces_the_one_of_its_name() {
        let mine = Row::new("mine", |_| Policy::None);
        let registry = Registry::multi_queue().with(&[mine]);
        assert_eq!(
            registry.names(),
            [
                "none",
                "mq-deadline",
                "kyber",
                "bfq",
                "k2",
                "adios",
                "mqfq",
                "d2fq",
                "blk-switch",
                "tabs",
                "vfair",
                "cffq",
                "mine"
            ]
        );
        let registry = registry.with(&[Row { weights: true, ..mine }]);
        assert_eq!((registry.names().len(), registry.find("mine").map(|row| row.weights)), (13, Some(true)));
        assert!(registry.find("yours").is_none());
    }

    #[test]
    fn a_custom_constructor_builds_its_scheduler_until_the_row_is_replaced() {
        let (limits, generation) = (Limits::default(), Kernel::DEFAULT.generation());
        let queue = Attachment {
            generation: &generation,
            limits: &limits,
            nr_requests: 1,
            default_nr_requests: 1,
            async_depth: 1,
            queue_depth: 1,
            capacity: 1,
            arbitration: None,
            transport: None,
            seed: 0,
            now: Now::default(),
        };
        let is_bfq = |registry: &Registry| {
            let row = registry.find("mine").expect("it was added");
            matches!(registry.make(row, &queue), Policy::Bfq(_))
        };
        let mine = Row::new("mine", |_| Policy::None);
        let config = BfqConfig::new(&generation, 1, false);
        let made = Registry::multi_queue().with_row_and_maker(mine, Arc::new(move |_| Policy::Bfq(config.clone())));
        assert_eq!((is_bfq(&made), is_bfq(&made.with(&[mine]))), (true, false));
    }

    #[test]
    fn rows_name_the_kernels_of_a_scheduler_and_its_fallback_block_layer() {
        let kernels = [Kernel::V4_4, Kernel::V4_12.first_of_series(), Kernel::V4_12, Kernel::V6_18];
        assert_eq!(kernels.map(|kernel| BFQ.exists_in(kernel)), [false, true, true, true], "from 4.12.0 on");
        for row in OUTSIDE_LINUX {
            assert!(!kernels.iter().any(|&kernel| row.exists_in(kernel)), "no release of Linux has it");
        }
        assert_eq!([K2, ADIOS, BFQ].map(|row| row.outside_linux()), [Some("RTSS 2019"), Some("CachyOS"), None]);
        let gone = Row { until: Some(Kernel::V4_19), ..NONE };
        assert_eq!((gone.exists_in(Kernel::V4_19), gone.exists_in(Kernel::V5_10)), (true, false));
        assert_eq!([Kernel::V4_4, Kernel::V6_3].map(|kernel| gone.kernel(kernel)), [Kernel::V4_4, Kernel::V4_19]);
    }
}
