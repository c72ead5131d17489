//! The schedulers of the legacy queue, one row each, and the list of all schedulers of Linux.
//!
//! Used by: crates `experiment`, `linux`, `hoistway`, `sim`.
//! Tests: below.

use hoistway_blk::ground::DeadlineGeneration;
use hoistway_blk::queue::{QueueConfig, SCHEDULERS};
use hoistway_blk::schedulers::{
    Attachment, BFQ, KYBER, Layer, MQ_DEADLINE, MqDeadlineConfig, NONE, Noop, OUTSIDE_LINUX, Policy, Priorities,
    Registry, Row,
};

use crate::cfq::{Cfq, CfqConfig};
use crate::queue::LAST_KERNEL;

/// noop.
pub const NOOP: Row = legacy("noop", |queue| Policy::boxed(Noop::new(queue.capacity)));

/// deadline: implemented by mq-deadline's first generation.
pub const DEADLINE: Row = legacy("deadline", |queue| {
    let config = MqDeadlineConfig::new(queue.generation, queue.nr_requests);
    Policy::MqDeadline(MqDeadlineConfig { generation: DeadlineGeneration::A, ..config })
});

/// cfq.
pub const CFQ: Row = Row {
    priorities: |_| Priorities::ClassAndLevel,
    weights: true,
    section_percent: CFQ_SECTION_PERCENT,
    ..legacy("cfq", |queue| {
        let config = CfqConfig::new(queue.generation, queue.limits.rotational);
        let policy: Cfq = Cfq::new(config, queue.now, queue.capacity);
        Policy::boxed(policy)
    })
};

/// A section under the one lock of a legacy queue, in percent of mq-deadline's: it holds request lists and dispatch queue, too. An I/O goes
/// through seven of them. Fitted to one published pair, I/Os per second of one process over null_blk: 120 thousand on a legacy queue, 241
/// thousand on a multi-queue one.
const LEGACY_SECTION_PERCENT: u32 = 270;
/// The same with cfq. Fitted to four published rates of cfq over noop's (IOSpeed: 0.80, 0.52, 0.82, 0.58), to their geometric mean.
const CFQ_SECTION_PERCENT: u32 = 645;

const fn legacy(name: &'static str, make: fn(&Attachment<'_>) -> Policy) -> Row {
    Row {
        layer: Layer::SingleQueue,
        until: Some(LAST_KERNEL),
        section_percent: LEGACY_SECTION_PERCENT,
        ..Row::new(name, make)
    }
}

/// The schedulers of a legacy queue, in the order in which `queue/scheduler` lists them.
pub const LEGACY_SCHEDULERS: [&str; 3] = [NOOP.name, DEADLINE.name, CFQ.name];

/// The schedulers of both block layers of Linux: the multi-queue ones, then the legacy ones.
pub const ALL_SCHEDULERS: [&str; SCHEDULERS.len() + LEGACY_SCHEDULERS.len()] =
    [NONE.name, MQ_DEADLINE.name, KYBER.name, BFQ.name, NOOP.name, DEADLINE.name, CFQ.name];

/// The registry with all of them, followed by those that no release of Linux has.
#[must_use]
pub fn all_schedulers() -> Registry {
    Registry::multi_queue().with(&[NOOP, DEADLINE, CFQ]).with(&OUTSIDE_LINUX)
}

/// The default scheduler of a single-queue device: the value of `elevator=` if the host was booted with it, otherwise
/// cfq, as mainline kernels are configured; noop if there is no scheduler with that name (LQ-32 to LQ-34). `None` if
/// the kernel has no such devices.
#[must_use]
pub fn default_legacy_scheduler(config: &QueueConfig, elevator_parameter: Option<&str>) -> Option<&'static str> {
    if config.kernel > LAST_KERNEL {
        return None;
    }
    let requested = elevator_parameter.unwrap_or(CFQ.name).trim();
    let mut rows = config.schedulers.of(Layer::SingleQueue);
    Some(rows.find(|row| row.name == requested).map_or(NOOP.name, |row| row.name))
}

#[cfg(test)]
mod tests {
    use hoistway_blk::ground::Kernel;

    use super::*;

    #[test]
    fn the_registry_has_every_scheduler_of_linux_and_behind_them_those_that_linux_does_not_have() {
        assert_eq!(all_schedulers().names(), [&ALL_SCHEDULERS[..], &OUTSIDE_LINUX.map(|row| row.name)].concat());
    }

    #[test]
    fn the_boot_parameter_is_the_default_of_every_single_queue_device_and_of_no_other() {
        let config = |kernel| QueueConfig { schedulers: all_schedulers(), ..QueueConfig::new(kernel) };
        let legacy = |parameter| default_legacy_scheduler(&config(Kernel::V4_12), parameter);
        assert_eq!(legacy(None), Some("cfq"));
        assert_eq!(legacy(Some("deadline")), Some("deadline"));
        assert_eq!(legacy(Some("mq-deadline")), Some("noop"), "not one of theirs");
        assert_eq!(default_legacy_scheduler(&config(Kernel::V6_18), Some("deadline")), None);
    }
}
