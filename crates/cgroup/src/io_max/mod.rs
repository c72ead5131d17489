//! `io.max`: bandwidth and operation limits of cgroups, above the scheduler.
//!
//! Used by: crates `sim`, `serve`, `experiment`.
//! Tests: `crates/cgroup/src/io_max/limits.rs`, `crates/cgroup/src/io_max/tests.rs`.
//!
//! A bio passes [`Throttle::submit`] before it reaches a plug, a scheduler or a software queue, so a throttled bio has
//! no request and is unknown to schedulers. [`Throttle::release`] returns it when its group and every group above allow
//! it. Rules: CG-9 to CG-15.

mod limits;
mod meter;
mod service_queue;
#[cfg(test)]
mod tests;
mod throttle;

pub use limits::{IoMax, IoMaxError};
pub use meter::{THROTTLE_SLICE, THROTTLE_SLICE_WITH_LOW_LIMIT};
pub use throttle::{Charge, THROTTLE_ROUND, Throttle};
