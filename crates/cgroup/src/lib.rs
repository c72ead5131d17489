//! Policies of cgroups that stand between a submitter and a queue. The block layer knows nothing of them.
//!
//! - [`Throttle`] is `io.max`: it keeps a bio before a queue has seen it, and gives it back when its group may send it.
//! - [`CgroupStats`] is `io.stat`: a [probe](hoistway_blk::watch::Probe) that counts what groups submit.
//!
//! Shares by weight are a scheduler's: a queue is [notified](hoistway_blk::policy::SchedulerEvent) of cgroups and their weights.

mod io_max;
mod stats;

pub use io_max::{Charge, IoMax, IoMaxError, THROTTLE_ROUND, THROTTLE_SLICE, THROTTLE_SLICE_WITH_LOW_LIMIT, Throttle};
pub use stats::{CgroupIo, CgroupStats};
