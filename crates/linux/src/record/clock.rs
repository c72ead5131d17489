//! Clock readings for a recording.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The current time of CLOCK_MONOTONIC, ns: the clock of recorded events.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CPU time of this process so far.
pub(crate) fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
