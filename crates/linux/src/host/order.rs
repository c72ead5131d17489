//! Orders devices: underlying devices come before those on top of them.

use std::collections::HashMap;

use super::class::Class;
use super::device::Device;

/// Replaces partitions by their disks in the stacking relation, and sorts devices after those below them.
pub(super) fn sort(devices: &mut Vec<Device>) {
    let mut disks: HashMap<String, String> = HashMap::new();
    for device in devices.iter() {
        disks.extend(device.partitions.iter().map(|partition| (partition.name.clone(), device.name.clone())));
    }
    let mut above: HashMap<String, Vec<String>> = HashMap::new();
    let paths: Vec<(String, String)> =
        devices.iter().filter_map(|device| Some((nvme_head(&device.name)?, device.name.clone()))).collect();
    for device in devices.iter_mut() {
        let multipath_paths = paths.iter().filter(|(head, _)| *head == device.name).map(|(_, path)| path.clone());
        device.below.extend(multipath_paths);
        for name in &mut device.below {
            if let Some(disk) = disks.get(name) {
                name.clone_from(disk);
            }
        }
        device.below.sort();
        device.below.dedup();
        for name in &device.below {
            above.entry(name.clone()).or_default().push(device.name.clone());
        }
    }
    for device in devices.iter_mut() {
        device.above = above.remove(&device.name).unwrap_or_default();
    }
    let mut keyed: Vec<(usize, Device)> = depths(devices).into_iter().zip(devices.drain(..)).collect();
    keyed.sort_by(|(depth, device), (other_depth, other)| {
        let natural = |device: &Device| (device.name.len(), device.name.clone());
        let key = |depth: &usize, device: &Device| (*depth, device.class == Class::Stacked);
        (key(depth, device), name_prefix(device), natural(device)).cmp(&(
            key(other_depth, other),
            name_prefix(other),
            natural(other),
        ))
    });
    devices.extend(keyed.into_iter().map(|(_, device)| device));
}

/// The letters that begin a name, the first key when sorting by name.
fn name_prefix(device: &Device) -> &str {
    let end = device.name.find(|c: char| c.is_ascii_digit()).unwrap_or(device.name.len());
    &device.name[..end.min(4)]
}

/// Number of layers below each device. A cycle, which no kernel has but a dump may contain, is cut off.
fn depths(devices: &[Device]) -> Vec<usize> {
    const LAYERS_MAX: usize = 16;
    let indexes: HashMap<&str, usize> =
        devices.iter().enumerate().map(|(index, device)| (device.name.as_str(), index)).collect();
    let mut depths = vec![0; devices.len()];
    for _ in 0..LAYERS_MAX {
        let depth_of = |device: &Device| {
            let below = device.below.iter().filter_map(|name| indexes.get(name.as_str()));
            below.map(|&index| 1 + depths[index]).max().unwrap_or(0)
        };
        let next: Vec<usize> = devices.iter().map(depth_of).collect();
        if next == depths {
            break;
        }
        depths = next;
    }
    depths
}

/// The multipath NVMe drive of a path: `nvme0n1` for `nvme0c1n1`.
fn nvme_head(path: &str) -> Option<String> {
    let (subsystem, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let is_path = [subsystem, controller, namespace].into_iter().all(is_number);
    is_path.then(|| format!("nvme{subsystem}n{namespace}"))
}
