//! Write-back throttling (BL-119 to BL-125): buffered writes wait before they get a request, so that few enough of them
//! are at the device for reads to come through. Direct writes and reads never wait.
//!
//! A pure state machine: it is passed the time and what it cannot know (whether reads are going on, whether the device has
//! a write cache), and its user puts a lock around it and sets its timer. `depths` is how many may be in flight at
//! a step, `control` moves the step by the latency of reads, `throttle` counts, and lines up what has to wait.

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
