//! Upper bounds for the values in a recording, from the types and limits of Linux; for times, from the duration of a
//! few million events. Within them, readers can compute with values and size tables by them safely.

use std::fmt;
use std::ops::RangeInclusive;

use super::error::Problem;

/// The longest recording: an hour, ns. The longest existing one takes ten seconds.
pub const TIME_NS_MAX: u64 = 3_600_000_000_000;
/// The end of the largest device: positions in bytes are signed 64-bit numbers.
pub const SECTOR_MAX: u64 = 1 << 54;
/// The longest request: lengths in bytes are unsigned 32-bit numbers.
pub const SECTORS_MAX: u32 = u32::MAX >> 9;
/// The largest pid (`pid_max` in proc(5)).
pub const PID_MAX: u32 = 1 << 22;
/// The largest number of CPUs that Linux can be built for.
pub const CPUS_MAX: u16 = 8192;
/// Ticks per second: 100, 250 and 1000 are common; lower and higher rates are rare.
pub const HZ: RangeInclusive<u32> = 24..=10_000;
/// The largest `nr_requests`. Legacy kernels have no limit of their own; multi-queue ones allow at most 10240.
pub const NR_REQUESTS_MAX: u32 = 1 << 20;
/// The largest number of cgroups of a recording: lookups are linear.
pub const CGROUPS_MAX: usize = 1024;
/// The longest path of a cgroup (`PATH_MAX`).
pub const PATH_BYTES_MAX: usize = 4096;
/// The largest weight of a cgroup (`io.weight`; bfq's and cfq's maximum is 1000).
pub const WEIGHT_MAX: u32 = 10_000;

/// Returns `value` if it is in `range`.
pub(super) fn within<T: PartialOrd + fmt::Display>(
    field: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<T, Problem> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Problem::bad_field(field, format!("{} to {}", range.start(), range.end()), value))
}
