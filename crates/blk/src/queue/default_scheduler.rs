//! The default scheduler of a multi-queue device (BL-100).

use crate::queue::QueueConfig;
use crate::schedulers::{MQ_DEADLINE, NONE};

/// mq-deadline if one hardware queue, or one tag space, serves all CPUs; `none` with several hardware queues, if the driver
/// asks for it, and on kernels without multi-queue schedulers. blk-mq devices have always ignored the boot parameter `elevator=`.
#[must_use]
pub fn default_scheduler(config: &QueueConfig) -> &'static str {
    let has_one_tag_space = config.host_wide_tags && config.kernel.generation().one_scheduler_map;
    let serves_all_cpus = config.hw_queues.min(config.cpus) == 1 || has_one_tag_space;
    let gets_one = serves_all_cpus && !config.wants_no_scheduler;
    if gets_one && MQ_DEADLINE.exists_in(config.kernel) { MQ_DEADLINE.name } else { NONE.name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::kernel::Kernel;

    fn mq(kernel: Kernel, hw_queues: u16, host_wide_tags: bool) -> &'static str {
        default_scheduler(&QueueConfig { cpus: 8, hw_queues, host_wide_tags, ..QueueConfig::new(kernel) })
    }

    #[test]
    fn mq_deadline_is_the_default_for_one_queue_or_host_wide_tags_since_5_14() {
        assert_eq!(mq(Kernel::V4_4, 1, false), "none", "there is no other");
        for kernel in Kernel::EXAMPLES.into_iter().filter(|kernel| *kernel > Kernel::V4_4) {
            assert_eq!((mq(kernel, 1, false), mq(kernel, 8, false)), ("mq-deadline", "none"), "{kernel}");
        }
        assert_eq!((mq(Kernel::V5_10, 8, true), mq(Kernel::V6_18, 8, true)), ("none", "mq-deadline"));
    }

    #[test]
    fn a_driver_that_wants_no_scheduler_gets_none_with_one_queue() {
        for kernel in Kernel::EXAMPLES {
            let config = QueueConfig { wants_no_scheduler: true, host_wide_tags: true, ..QueueConfig::new(kernel) };
            assert_eq!(default_scheduler(&config), "none", "{kernel}");
        }
    }
}
