//! The kernel's default values of `queue/` files, from our block layer of that release.

use std::collections::HashMap;

use hoistway_blk::bio::Limits;
use hoistway_blk::ground::{Kernel, Local};
use hoistway_blk::queue::{QueueConfig, default_scheduler};
use hoistway_legacy::{AnyQueue, all_schedulers};

/// Properties of a queue that defaults depend on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct QueueShape {
    pub(super) scheduler: String,
    pub(super) rotational: bool,
    pub(super) hardware_queues: u16,
    /// Driver tags of each hardware queue.
    pub(super) tags: u32,
    /// Whether all hardware queues share their tags.
    pub(super) host_wide_tags: bool,
}

/// The defaults of a kernel, with one cached queue per shape.
pub(super) struct Defaults {
    kernel: Option<Kernel>,
    queues: HashMap<QueueShape, Option<AnyQueue<Local>>>,
}

impl Defaults {
    /// The defaults of a kernel; with `None` (unknown kernel) all defaults are unknown.
    pub(super) fn new(kernel: Option<Kernel>) -> Self {
        Self { kernel, queues: HashMap::new() }
    }

    /// The default of a file of `queue/`; `None` if unknown.
    pub(super) fn of(&mut self, shape: &QueueShape, file: &str) -> Option<String> {
        let kernel = self.kernel?;
        let queue = self
            .queues
            .entry(shape.clone())
            .or_insert_with(|| AnyQueue::new(&config(kernel, shape), &shape.scheduler).ok());
        Some(queue.as_ref()?.attribute(file).ok()?.trim().to_owned())
    }

    /// The default scheduler for a queue of this shape; `None` if the kernel is unknown.
    pub(super) fn scheduler(&self, shape: &QueueShape) -> Option<&'static str> {
        Some(default_scheduler(&config(self.kernel?, shape)))
    }
}

fn config(kernel: Kernel, shape: &QueueShape) -> QueueConfig {
    // Defaults depend on whether there are several hardware queues, not on their number.
    let hardware_queues = shape.hardware_queues.clamp(1, 2);
    QueueConfig {
        cpus: hardware_queues,
        hw_queues: hardware_queues,
        queue_depth: shape.tags,
        host_wide_tags: shape.host_wide_tags,
        limits: Limits { rotational: shape.rotational, ..Limits::default() },
        schedulers: all_schedulers(),
        ..QueueConfig::new(kernel)
    }
}
