//! io.cost of a device, and the shell commands that write it.

use super::block_device::BlockDevice;
use crate::document::Run;

/// Where cgroup v2 is mounted.
pub(super) const MOUNT_POINT: &str = "/sys/fs/cgroup";

/// `io.weight` without a write.
const DEFAULT_WEIGHT: u32 = 100;

/// The settings of io.cost on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IoCost {
    qos: String,
    model: String,
    /// Cgroups with another weight than the default.
    weights: Vec<(String, u32)>,
}

impl IoCost {
    /// The settings of a run on a device; `None` if io.cost was off. A device that the load does not name may be its only one.
    pub(super) fn of(run: &Run, device: &BlockDevice) -> Option<IoCost> {
        let named = run.io_cost.iter().find(|cost| BlockDevice::named(&cost.disk).is_some_and(|disk| disk == *device));
        let cost = named.or(if let [only] = &run.io_cost[..] { Some(only) } else { None })?;
        let weights = cost.groups.iter().filter(|group| group.weight != DEFAULT_WEIGHT);
        let weights = weights.map(|group| (group.cgroup.trim_matches('/').to_owned(), group.weight)).collect();
        Some(IoCost { qos: cost.qos.clone(), model: cost.model.clone(), weights })
    }

    /// The commands that turn it on. The model comes first, so that costs are right from the start.
    fn write(&self, device: &str) -> Vec<String> {
        let weights = self.weights.iter().map(|(group, weight)| format!("echo {weight} > {}", weight_file(group)));
        let mut lines: Vec<String> = weights.collect();
        lines.push(write(device, "io.cost.model", &self.model));
        lines.push(write(device, "io.cost.qos", &self.qos));
        lines
    }

    /// The commands that turn it off.
    fn turn_off(device: &str) -> Vec<String> {
        vec![write(device, "io.cost.qos", "enable=0"), write(device, "io.cost.model", "ctrl=auto")]
    }

    /// The files of weights, whose earlier content is unknown.
    pub(super) fn weight_files(&self) -> impl Iterator<Item = String> {
        self.weights.iter().map(|(group, _)| weight_file(group))
    }

    /// A command that shows the settings, and what it shows.
    pub(super) fn check(&self, device: &str) -> (String, String) {
        let command = format!("grep \"^{} \" {MOUNT_POINT}/io.cost.qos", number(device));
        (command, format!("{} {}", number(device), self.qos))
    }
}

/// The commands that write the settings; those that turn io.cost off without any.
pub(super) fn lines(cost: Option<&IoCost>, device: &str) -> Vec<String> {
    cost.map_or_else(|| IoCost::turn_off(device), |cost| cost.write(device))
}

fn weight_file(group: &str) -> String {
    format!("{MOUNT_POINT}/{group}/io.weight")
}

/// The device number, which the shell reads.
pub(super) fn number(device: &str) -> String {
    format!("$(cat /sys/block/{device}/dev)")
}

fn write(device: &str, file: &str, text: &str) -> String {
    format!("echo \"{} {text}\" > {MOUNT_POINT}/{file}", number(device))
}
