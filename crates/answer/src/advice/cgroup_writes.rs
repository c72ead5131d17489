//! What one run has in files of cgroups and another has not, as shell commands.

use serde::{Deserialize, Serialize};

use super::UNNAMED;
use super::block_device::BlockDevice;
use super::io_cost::{self, IoCost};
use super::io_latency::{self, IoLatency};
use crate::document::Run;

/// Commands for root that write files of cgroups for one device, until the next boot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CgroupWrites {
    /// The device, as in `/sys/block`; `DEVICE` if the load names none.
    pub device: String,
    /// The commands that make the change.
    pub now: Vec<String>,
    /// The commands that undo it.
    pub back: Vec<String>,
}

/// The commands that change io.cost and io.latency from those of a run to those of another, for each device of its load.
#[must_use]
pub fn cgroup_writes(from: &Run, to: &Run) -> Vec<CgroupWrites> {
    let files = to.disks.iter().map(|disk| disk.file.as_str()).filter(|file| file.starts_with("/dev/"));
    let mut devices: Vec<BlockDevice> = files.filter_map(BlockDevice::named).collect();
    if devices.is_empty() {
        devices.extend(BlockDevice::named(UNNAMED));
    }
    let writes = devices.iter().map(|device| {
        let name = device.name.as_str();
        let mut writes = CgroupWrites { device: name.to_owned(), now: Vec::new(), back: Vec::new() };
        let [cost_from, cost_to] = [from, to].map(|run| IoCost::of(run, device));
        if cost_from != cost_to {
            writes.now.extend(io_cost::lines(cost_to.as_ref(), name));
            writes.back.extend(io_cost::lines(cost_from.as_ref(), name));
        }
        let [targets_from, targets_to] = [from, to].map(|run| IoLatency::of(run, device));
        let line = |(group, us): (&str, u32)| io_latency::write(name, group, us);
        writes.now.extend(targets_to.changes(&targets_from).into_iter().map(line));
        writes.back.extend(targets_from.changes(&targets_to).into_iter().map(line));
        writes
    });
    writes.filter(|writes| !writes.now.is_empty()).collect()
}
