//! Which scheduler a single-queue device has while nobody has chosen one (`legacy-queue.md` 11).

use hoistway_blk::Kernel;

use crate::queue::legacy_scheduler;

/// What `elevator=` says if the host was booted with it, otherwise cfq, as the mainline kernel is configured; noop if there is
/// none of the name. `None` if the kernel has no such devices.
#[must_use]
pub fn default_legacy_scheduler(kernel: Kernel, elevator_parameter: Option<&str>) -> Option<&'static str> {
    let has_legacy_queues = kernel <= Kernel::V4_19;
    has_legacy_queues.then(|| legacy_scheduler(elevator_parameter.unwrap_or("cfq")).unwrap_or("noop"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_item_28_the_boot_parameter_is_the_default_of_every_single_queue_device_and_of_no_other() {
        let legacy = |parameter| default_legacy_scheduler(Kernel::V4_12, parameter);
        assert_eq!(legacy(None), Some("cfq"));
        assert_eq!(legacy(Some("deadline")), Some("deadline"));
        assert_eq!(legacy(Some("mq-deadline")), Some("noop"), "not one of theirs");
        assert_eq!(default_legacy_scheduler(Kernel::V6_18, Some("deadline")), None);
    }
}
