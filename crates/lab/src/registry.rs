//! Where schedulers are looked up: who there is, as of which kernel each runs, and how its queue is made. Nothing else in
//! this crate asks the block layer for them by name.

use hoistway_blk::{ALL_SCHEDULERS, ConfigError, Front, Kernel, Local, QueueConfig};

pub(crate) use hoistway_blk::{default_legacy_scheduler, default_scheduler, is_legacy};

/// All schedulers, in the order of tables.
pub(crate) fn names() -> &'static [&'static str] {
    &ALL_SCHEDULERS
}

pub(crate) fn knows(scheduler: &str) -> bool {
    names().contains(&scheduler)
}

/// The kernel that a scheduler runs as: the last one that had it, if this one has not.
pub(crate) fn kernel_for(scheduler: &str, kernel: Kernel) -> Kernel {
    hoistway_blk::kernel_of_front(kernel, scheduler)
}

/// A queue with a scheduler, as of the kernel that it runs as.
pub(crate) fn queue(scheduler: &str, config: &QueueConfig) -> Result<Front<Local>, ConfigError> {
    let kernel = kernel_for(scheduler, config.kernel);
    Front::new(&QueueConfig { kernel, ..config.clone() }, scheduler)
}
