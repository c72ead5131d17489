//! The single-queue block layer of Linux up to 4.20, with its schedulers noop, deadline and cfq, built on the
//! [kit](hoistway_blk::kit) of the multi-queue one; and [`AnyQueue`], a queue of either kind.
//!
//! Used by: crates `sim`, `experiment`, `linux`, `evidence`, `hoistway`.
//! Tests: `crates/legacy/src/` (in its files), `crates/legacy/tests/`.
//!
//! A [`LegacyQueue`] has one lock, counts requests by class instead of tagging them, and has a dispatch queue that the driver
//! empties. Bios, requests, plugs, merge rules, drivers, effects, callers and policies are those of [`hoistway_blk`]; so are
//! noop and mq-deadline, whose first generation is deadline. [`Cfq`] is here.
//!
//! An [`AnyQueue`] is a queue of either kind, depending on the scheduler's [row](hoistway_blk::schedulers::Row), for callers that
//! support both. [`all_schedulers`] is the registry with the schedulers of both.
//!
//! ```
//! use hoistway_blk::caller::BlockQueue;
//! use hoistway_blk::ground::{Kernel, Local};
//! use hoistway_blk::queue::QueueConfig;
//! use hoistway_legacy::{AnyQueue, all_schedulers};
//!
//! let config = QueueConfig { hw_queues: 4, schedulers: all_schedulers(), ..QueueConfig::new(Kernel::V4_19) };
//! let queue: AnyQueue<Local> = AnyQueue::new(&config, "cfq")?;
//! assert_eq!((queue.is_legacy(), queue.hw_queues()), (true, 1));
//! assert_eq!(queue.attribute("scheduler").as_deref(), Ok("noop deadline [cfq] \n"));
//! # Ok::<(), hoistway_blk::queue::ConfigError>(())
//! ```

mod any_queue;
mod cfq;
mod change;
mod queue;
mod schedulers;

pub use any_queue::{AnyQueue, AnySubmission};
pub use cfq::{Cfq, CfqConfig, CfqEvent, CfqLog, CfqMessage, CfqQueueName, CgroupVersion, NoCfqLog};
pub use change::PendingWrite;
pub use queue::{LegacyConfig, LegacyElevator, LegacyQueue, LegacySubmission, SWITCH_POLL, SyncClass, Tagging};
pub use schedulers::{
    ALL_SCHEDULERS, CFQ, DEADLINE, LEGACY_SCHEDULERS, NOOP, all_schedulers, default_legacy_scheduler,
};
