//! What one run has in files of cgroups and another has not, as shell commands.

use serde::{Deserialize, Serialize};

use super::UNNAMED;
use super::block_device::BlockDevice;
use super::io_cost::{self, IoCost};
use super::io_latency::{self, IoLatency};
use crate::document::{Advice, Caution, Check, Run};

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
    devices.iter().map(|device| Change::of(from, to, device).writes).filter(|writes| !writes.now.is_empty()).collect()
}

/// Adds the writes, the checks and the cautions of a change of io.cost and io.latency.
pub(super) fn add(from: &Run, to: &Run, device: &BlockDevice, advice: &mut Advice) {
    let Change { writes, check, cautions } = Change::of(from, to, device);
    advice.now.extend(writes.now);
    advice.back.extend(writes.back);
    advice.check.extend(check);
    advice.cautions.extend(cautions);
}

/// What changes on one device.
struct Change {
    writes: CgroupWrites,
    check: Vec<Check>,
    cautions: Vec<Caution>,
}

impl Change {
    fn of(from: &Run, to: &Run, device: &BlockDevice) -> Change {
        let writes = CgroupWrites { device: device.name.clone(), now: Vec::new(), back: Vec::new() };
        let mut change = Change { writes, check: Vec::new(), cautions: Vec::new() };
        change.add_io_cost([from, to].map(|run| IoCost::of(run, device)));
        change.add_io_latency(&[from, to].map(|run| IoLatency::of(run, device)));
        change
    }

    fn add_io_cost(&mut self, [from, to]: [Option<IoCost>; 2]) {
        if from == to {
            return;
        }
        let device = &self.writes.device;
        self.writes.now.extend(io_cost::lines(to.as_ref(), device));
        self.writes.back.extend(io_cost::lines(from.as_ref(), device));
        if let Some(to) = &to {
            let (command, expected) = to.check(device);
            self.check.push(Check { command, expected });
            if from.is_none() {
                self.cautions.extend(to.weight_files().map(|file| Caution::HeldBefore { file }));
            }
        }
        self.cautions.push(Caution::UntilBoot);
    }

    fn add_io_latency(&mut self, [from, to]: &[IoLatency; 2]) {
        let (changes, device) = (to.changes(from), self.writes.device.as_str());
        if changes.is_empty() {
            return;
        }
        let line = |(group, us): (&str, u32)| io_latency::write(device, group, us);
        self.writes.now.extend(changes.iter().copied().map(line));
        self.writes.back.extend(from.changes(to).into_iter().map(line));
        self.check.extend(changes.iter().map(|&(group, us)| {
            let (command, expected) = io_latency::check(device, group, us);
            Check { command, expected }
        }));
        let property = |&(group, us): &(&str, u32)| format!("{group}: {}", io_latency::systemd_property(device, us));
        self.cautions.push(Caution::TargetsUntilBoot { properties: changes.iter().map(property).collect() });
    }
}
