//! Which class of device a recording looks like: by the number of its driver, and by how fast it was.

use hoistway_program::Program;
use hoistway_trace::block::Interval;

/// Major numbers of drivers.
const SD: u16 = 8;
const MMC: u16 = 179;
/// Partitions beyond the sixteenth, and NVMe.
const BLOCK_EXTENDED: u16 = 259;

/// A mean time of requests above this is that of a hard disk.
const HDD_NS: f64 = 1.5e6;
/// One below this is that of NVMe.
const NVME_NS: f64 = 1.5e5;

/// The class of the device, as `--device` takes it.
pub(super) fn fitting(program: &Program) -> &'static str {
    let device_ns = program
        .intervals
        .as_ref()
        .and_then(|intervals| {
            intervals
                .devices()
                .iter()
                .find(|(device, _)| *device == program.device)
                .map(|(_, its)| its.get(Interval::D2C).mean_ns())
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
