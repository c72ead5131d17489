//! Cgroup policies between a submitter and a queue. The block layer is independent of them.
//!
//! Used by: crates `sim`, `serve`, `experiment`.
//! Tests: `crates/cgroup/src/` (in its files).
//!
//! - [`Throttle`] is `io.max`: it holds a bio before a queue sees it, and releases it when its group may send it.
//! - [`IoCost`] is `io.cost`: it holds a bio until its group may spend the device time that the bio costs.
//! - [`IoLatency`] is `io.latency`: it holds a bio while its group has as many outstanding as a sibling's latency target allows.
//! - [`CgroupStats`] is `io.stat`: a [probe](hoistway_blk::watch::Probe) that counts what groups submit.
//!
//! Shares by the weights of bfq and cfq are the scheduler's task: a queue is
//! [notified](hoistway_blk::policy::SchedulerEvent) of cgroups and their weights.

mod io_cost;
mod io_latency;
mod io_max;
mod stats;

pub use io_cost::{CostModel, GroupCost, IoCost, IoCostError, IoCostModel, IoCostQos, IoCostSettings, Percent};
pub use io_latency::{GroupLatency, IoLatency, IoLatencyError, IoLatencyTarget};
pub use io_max::{Charge, IoMax, IoMaxError, THROTTLE_ROUND, THROTTLE_SLICE, THROTTLE_SLICE_WITH_LOW_LIMIT, Throttle};
pub use stats::{CgroupIo, CgroupStats};
