//! The single-queue block layer that Linux had until 4.20, with its schedulers noop, deadline and cfq, over the
//! [kit](hoistway_blk::kit) of the multi-queue one; and [`Front`], the choice between the two.
//!
//! A [`LegacyQueue`] has one lock, counts requests by class instead of tagging them, and a dispatch queue that the driver
//! empties. Bios, requests, plugs, merge rules, drivers, effects and policies are those of [`hoistway_blk`]: noop and deadline,
//! which is mq-deadline's first generation, come from there, [`Cfq`] is here.
//!
//! A [`Front`] is a queue of either kind, by the scheduler's name. Whoever drives a device in either way drives a front.

mod cfq;
mod change;
mod default_scheduler;
mod front;
mod queue;

pub use cfq::{Cfq, CfqConfig, CfqEvent, CfqLog, CfqMessage, CfqQueueName, CgroupVersion, NoCfqLog};
pub use change::Change;
pub use default_scheduler::default_legacy_scheduler;
pub use front::{ALL_SCHEDULERS, Front, FrontSubmission, all_schedulers};
pub use queue::{
    CFQ, DEADLINE, IoClass, LEGACY_SCHEDULERS, LegacyConfig, LegacyElevator, LegacyQueue, LegacySubmission, NOOP,
    SWITCH_POLL, Tagging, legacy_kernel,
};
