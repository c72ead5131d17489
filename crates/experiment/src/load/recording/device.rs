//! Guesses the device class of a recording from its major number and its latency.

use hoistway_program::Program;
use hoistway_trace::block::Interval;

/// Major numbers of block devices.
const SD: u16 = 8;
const MMC: u16 = 179;
/// Partitions above the fifteenth, and NVMe.
const BLOCK_EXTENDED: u16 = 259;

/// A mean request time above this indicates a hard disk.
const HDD_NS: f64 = 1.5e6;
/// A mean request time below this indicates NVMe.
const NVME_NS: f64 = 1.5e5;

/// The class of the device, as a value of `--device`.
pub(super) fn device_class(program: &Program) -> &'static str {
    let device_ns = program
        .intervals
        .as_ref()
        .and_then(|intervals| {
            intervals
                .devices()
                .iter()
                .find(|(device, _)| *device == program.device)
                .map(|(_, intervals)| intervals.get(Interval::D2C).mean_ns())
        })
        .flatten();
    match (program.device.major, device_ns) {
        (BLOCK_EXTENDED, _) => "nvme",
        (MMC, _) => "emmc",
        (_, Some(ns)) if ns > HDD_NS => "hdd",
        (SD, _) | (_, None) => "sata-ssd",
        (_, Some(ns)) if ns < NVME_NS => "nvme",
        _ => "sata-ssd",
    }
}
