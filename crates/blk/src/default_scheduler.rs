//! Which scheduler a device has while nobody has chosen one (`block-layer.md` 22.1, `legacy-queue.md` 11).

use crate::legacy::{CFQ, NOOP};
use crate::queue::QueueConfig;
use crate::schedulers::{Layer, MQ_DEADLINE, NONE};

/// The scheduler of a multi-queue device: mq-deadline where one hardware queue, or one space of tags, serves all CPUs; none
/// where every CPU may have its own. The boot parameter `elevator=` never mattered to these devices.
#[must_use]
pub fn default_scheduler(config: &QueueConfig) -> &'static str {
    let one_tag_space = config.host_wide_tags && config.kernel.generation().one_scheduler_map;
    if config.hw_queues.min(config.cpus) == 1 || one_tag_space { MQ_DEADLINE.name } else { NONE.name }
}

/// The scheduler of a single-queue device, with what `elevator=` says if the host was booted with it: cfq, as the mainline
/// kernel is configured, or noop if there is none of the name. `None` if the kernel has no such devices.
#[must_use]
pub fn default_legacy_scheduler(config: &QueueConfig, elevator_parameter: Option<&str>) -> Option<&'static str> {
    if config.kernel.is_from(5, 0) {
        return None;
    }
    let wanted = elevator_parameter.unwrap_or(CFQ.name).trim();
    let mut known = config.schedulers.of(Layer::SingleQueue);
    Some(known.find(|row| row.name == wanted).map_or(NOOP.name, |row| row.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::all_schedulers;
    use crate::kernel::Kernel;

    fn mq(kernel: Kernel, hw_queues: u16, host_wide_tags: bool) -> &'static str {
        default_scheduler(&QueueConfig { cpus: 8, hw_queues, host_wide_tags, ..QueueConfig::new(kernel) })
    }

    #[test]
    fn item_90_one_hardware_queue_or_from_5_14_on_host_wide_tags_mean_mq_deadline_and_all_else_none() {
        for kernel in Kernel::EXAMPLES {
            assert_eq!((mq(kernel, 1, false), mq(kernel, 8, false)), ("mq-deadline", "none"), "{kernel}");
        }
        assert_eq!((mq(Kernel::V5_10, 8, true), mq(Kernel::V6_18, 8, true)), ("none", "mq-deadline"));
    }

    #[test]
    fn legacy_item_28_the_boot_parameter_is_the_default_of_every_single_queue_device_and_of_no_other() {
        let config = |kernel| QueueConfig { schedulers: all_schedulers(), ..QueueConfig::new(kernel) };
        let legacy = |parameter| default_legacy_scheduler(&config(Kernel::V4_12), parameter);
        assert_eq!(legacy(None), Some("cfq"));
        assert_eq!(legacy(Some("deadline")), Some("deadline"));
        assert_eq!(legacy(Some("mq-deadline")), Some("noop"), "not one of theirs");
        assert_eq!(default_legacy_scheduler(&config(Kernel::V6_18), Some("deadline")), None);
    }
}
