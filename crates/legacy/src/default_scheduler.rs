//! Which scheduler a single-queue device has while nobody has chosen one (`legacy-queue.md` 11).

use hoistway_blk::{Layer, QueueConfig};

use crate::queue::{CFQ, NOOP};

/// What `elevator=` says if the host was booted with it, otherwise cfq, as the mainline kernel is configured; noop if there is
/// none of the name. `None` if the kernel has no such devices.
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
    use hoistway_blk::Kernel;

    use super::*;
    use crate::front::all_schedulers;

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
