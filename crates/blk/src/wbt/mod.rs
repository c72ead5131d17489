//! Write-back throttling (BL-119 to BL-125): limits the buffered writes in flight so that reads stay fast. Buffered writes above the
//! limit wait before they get a request; reads and direct writes never wait.
//!
//! Used by: `queue`.
//! Tests: `crates/blk/src/wbt/tests.rs`.
//!
//! A pure state machine: the caller passes it the time and what it cannot know (whether there are reads, whether the
//! device has a write cache), protects it with a lock and sets its timer. `depths` says how many I/Os may be in flight
//! at a step, `control` adjusts the step by the latency of reads, and `throttle` counts the I/Os and keeps those that
//! have to wait in order.

mod control;
mod depths;
mod throttle;

#[cfg(test)]
mod tests;

pub(crate) use throttle::{Admission, Kind, Throttle};

use crate::ground::time::Nanos;

/// The target of a device whose `queue/wbt_lat_usec` has not been written.
pub(crate) fn default_target(rotational: bool) -> Nanos {
    Nanos::from_micros(if rotational { 75_000 } else { 2_000 })
}
