//! `io.max`: bandwidth and operation limits of cgroups, above the scheduler.
//!
//! A bio passes [`Throttle::submit`] before it is offered to a plug, a scheduler or a software queue, so one that is
//! kept here has no request and no scheduler has seen it. It comes back from [`Throttle::release`] when its group and
//! every group above may send it. Rules: CG-9 to CG-15.

mod limits;
mod lines;
mod meter;
#[cfg(test)]
mod tests;
mod throttle;

pub use limits::{IoMax, IoMaxError};
pub use meter::{THROTTLE_SLICE, THROTTLE_SLICE_WITH_LOW_LIMIT};
pub use throttle::{Charge, THROTTLE_ROUND, Throttle};
