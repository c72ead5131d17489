//! Latency targets of cgroups on a device, and the shell commands that write them.

use super::block_device::BlockDevice;
use super::io_cost::{MOUNT_POINT, number};
use crate::document::Run;

/// The targets of the groups on a device, those above before those below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IoLatency {
    /// Paths, and microseconds.
    targets: Vec<(String, u32)>,
}

impl IoLatency {
    /// The targets of a run on a device. A device that the load does not name may be its only one.
    pub(super) fn of(run: &Run, device: &BlockDevice) -> IoLatency {
        let is_named = |disk: &str| BlockDevice::named(disk).is_some_and(|disk| disk == *device);
        let named = run.io_latency.iter().find(|latency| is_named(&latency.disk));
        let latency = named.or(if let [only] = &run.io_latency[..] { Some(only) } else { None });
        let groups = latency.iter().flat_map(|latency| &latency.groups).filter(|group| group.target_us > 0);
        IoLatency {
            targets: groups.map(|group| (group.cgroup.trim_matches('/').to_owned(), group.target_us)).collect(),
        }
    }

    /// The target of a group, us; 0 for none.
    fn target(&self, group: &str) -> u32 {
        self.targets.iter().find(|(other, _)| other == group).map_or(0, |&(_, us)| us)
    }

    /// The groups whose targets differ from others, with the targets here.
    pub(super) fn changes<'a>(&'a self, others: &'a IoLatency) -> Vec<(&'a str, u32)> {
        let removed = others.targets.iter().filter(|(group, _)| self.target(group) == 0);
        let groups = self.targets.iter().chain(removed).map(|(group, _)| group.as_str());
        groups.map(|group| (group, self.target(group))).filter(|&(group, us)| us != others.target(group)).collect()
    }
}

/// The command that writes the target of a group.
pub(super) fn write(device: &str, group: &str, us: u32) -> String {
    format!("echo \"{} target={us}\" > {}", number(device), file(group))
}

/// A command that shows the target of a group, and what it shows.
pub(super) fn check(device: &str, group: &str, us: u32) -> (String, String) {
    let shown = if us > 0 { format!("{} target={us}", number(device)) } else { "no line".to_owned() };
    (format!("grep \"^{} \" {}", number(device), file(group)), shown)
}

/// The property of a systemd unit that sets a target at every boot.
pub(super) fn systemd_property(device: &str, us: u32) -> String {
    let us = if us > 0 { format!("{us}us") } else { "0".to_owned() };
    format!("IODeviceLatencyTargetSec=/dev/{device} {us}")
}

fn file(group: &str) -> String {
    format!("{MOUNT_POINT}/{group}/io.latency")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(texts: &[(&str, u32)]) -> IoLatency {
        IoLatency { targets: texts.iter().map(|&(group, us)| (group.to_owned(), us)).collect() }
    }

    #[test]
    fn changes_are_new_targets_other_targets_and_targets_that_end() {
        let before = targets(&[("pods", 1000), ("pods/db", 500), ("batch", 9)]);
        let after = targets(&[("pods", 1000), ("pods/db", 700), ("web", 3)]);
        assert_eq!(after.changes(&before), [("pods/db", 700), ("web", 3), ("batch", 0)]);
        assert_eq!(before.changes(&after), [("pods/db", 500), ("batch", 9), ("web", 0)]);
        assert!(before.changes(&before.clone()).is_empty());
    }

    #[test]
    fn a_target_that_ends_is_written_as_0() {
        let number = "$(cat /sys/block/sda/dev)";
        assert_eq!(write("sda", "a/b", 0), format!("echo \"{number} target=0\" > /sys/fs/cgroup/a/b/io.latency"));
        assert_eq!(check("sda", "a/b", 0).1, "no line");
        assert_eq!(systemd_property("sda", 0), "IODeviceLatencyTargetSec=/dev/sda 0");
        assert_eq!(systemd_property("sda", 5), "IODeviceLatencyTargetSec=/dev/sda 5us");
    }
}
