//! Block device names: the disk, its kind and the partition that a name stands for.

use crate::document::Stack;

/// A whole block device, as parsed from a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockDevice {
    /// The device's name as in `/sys/block`.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The partition that the user named; `None` if the user named the whole device.
    pub(super) partition: Option<String>,
}

/// The kind of a device, as far as its name shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A disk of the SCSI layer: SCSI, SATA, USB.
    Scsi,
    Nvme,
    OnOthers(Stack),
    InMemory,
    InFile,
    Other,
}

/// Prefixes of disk names that end with a number, so their partitions add `p` and a number: `nvme0n1p2`.
const NUMBERED: [&str; 5] = ["nvme", "mmcblk", "nbd", "loop", "md"];
/// Prefixes of disk names that end with letters, so their partitions add just a number: `sda2`.
const LETTERED: [&str; 4] = ["sd", "vd", "xvd", "hd"];

impl BlockDevice {
    /// Parses a device name, with or without `/dev/`. `None` if no block device can have this name.
    pub(super) fn named(text: &str) -> Option<Self> {
        let name = text.strip_prefix("/dev/").unwrap_or(text);
        let (name, is_mapped) = match name.strip_prefix("mapper/") {
            Some(mapped) => (mapped, true),
            None => (name, false),
        };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(is_allowed) {
            return None;
        }
        let disk = if is_mapped { None } else { disk_of(name) };
        let partition = disk.is_some().then(|| name.to_owned());
        let name = disk.unwrap_or(name).to_owned();
        let kind = kind(&name, is_mapped);
        Some(Self { name, kind, partition })
    }
}

/// The disk that a partition belongs to; `None` if the name is not a partition's.
fn disk_of(name: &str) -> Option<&str> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if disk.len() == name.len() {
        return None;
    }
    let has_prefix = |beginnings: &[&str]| beginnings.iter().any(|beginning| disk.starts_with(beginning));
    let is_lettered = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase());
    if LETTERED.iter().any(|beginning| disk.strip_prefix(beginning).is_some_and(is_lettered)) {
        return Some(disk);
    }
    let disk = disk.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()))?;
    has_prefix(&NUMBERED).then_some(disk)
}

fn kind(name: &str, is_mapped: bool) -> Kind {
    let is_numbered = |beginning: &str| {
        name.strip_prefix(beginning).is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
    };
    // Multipath devices are mapped, too, so their prefix is tried first.
    if name.starts_with("mpath") {
        Kind::OnOthers(Stack::Multipath)
    } else if is_mapped || is_numbered("dm-") {
        Kind::OnOthers(Stack::DeviceMapper)
    } else if is_numbered("md") || name.starts_with("md_") {
        // Both md127 and the older md_d0.
        Kind::OnOthers(Stack::Md)
    } else if is_numbered("bcache") || is_numbered("drbd") {
        Kind::OnOthers(Stack::Other)
    } else if ["zram", "ram", "pmem"].into_iter().any(is_numbered) {
        Kind::InMemory
    } else if is_numbered("loop") {
        Kind::InFile
    } else if name.starts_with("nvme") {
        Kind::Nvme
    } else if name.strip_prefix("sd").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase())) {
        Kind::Scsi
    } else {
        Kind::Other
    }
}

/// The layer that provides a load's file, if its name shows that the device is stacked on others: `/dev/md0`, `/dev/GROUP/VOLUME`.
#[must_use]
pub fn layer(file: &str) -> Option<&'static str> {
    let name = file.strip_prefix("/dev/")?;
    let is_numbered = |beginning: &str| {
        name.strip_prefix(beginning).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match BlockDevice::named(file).map(|device| device.kind) {
        Some(Kind::OnOthers(Stack::Multipath)) => return Some("multipath"),
        Some(Kind::OnOthers(Stack::DeviceMapper)) => return Some("device mapper: LVM, dm-crypt or the like"),
        Some(Kind::OnOthers(Stack::Md)) => return Some("md RAID"),
        Some(Kind::OnOthers(Stack::Other)) => return Some(if name.starts_with("drbd") { "DRBD" } else { "bcache" }),
        Some(Kind::InFile) => return Some("loop device over a file"),
        Some(Kind::Scsi | Kind::Nvme | Kind::InMemory | Kind::Other) | None => {}
    }
    // LVM names volumes after their group: /dev/GROUP/VOLUME.
    let is_device_directory =
        ["disk/", "block/", "shm/", "fd/", "char/", "cciss/"].iter().any(|directory| name.starts_with(directory));
    if name.starts_with("md/") {
        Some("md RAID")
    } else if name.starts_with("zvol/") || is_numbered("zd") {
        Some("ZFS volume")
    } else if is_numbered("nbd") || is_numbered("rbd") {
        Some("network block device")
    } else if name.contains('/') && !is_device_directory && !name.starts_with("mapper/") {
        Some("logical volume")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_names_are_recognised_and_disk_names_are_not_layers() {
        for (file, words) in [
            ("/dev/md0", "md RAID"),
            ("/dev/md127", "md RAID"),
            ("/dev/mapper/vg-root", "device mapper"),
            ("/dev/dm-3", "device mapper"),
            ("/dev/mapper/mpatha", "multipath"),
            ("/dev/zvol/tank/vm", "ZFS"),
            ("/dev/zd16", "ZFS"),
            ("/dev/bcache0", "bcache"),
            ("/dev/loop7", "loop"),
            ("/dev/rbd0", "network"),
            ("/dev/vg0/root", "logical volume"),
        ] {
            assert!(layer(file).is_some_and(|layer| layer.contains(words)), "{file}");
        }
        for file in [
            "/dev/sda",
            "/dev/nvme0n1",
            "/dev/disk/by-id/md0",
            "/dev/vda",
            "data",
            "/srv/md0",
            "/dev/mmcblk0",
            "/dev/nullb0",
        ] {
            assert_eq!(layer(file), None, "{file}");
        }
    }

    #[test]
    fn partitions_are_taken_for_their_disks_and_disks_for_themselves() {
        for (given, disk) in [
            ("sda1", "sda"),
            ("/dev/sdab12", "sdab"),
            ("nvme0n1p2", "nvme0n1"),
            ("mmcblk0p1", "mmcblk0"),
            ("vda3", "vda"),
            ("xvda1", "xvda"),
            ("md0p1", "md0"),
            ("nbd0p3", "nbd0"),
        ] {
            let device = BlockDevice::named(given).unwrap();
            let partition = Some(given.trim_start_matches("/dev/").to_owned());
            assert_eq!((device.name.as_str(), device.partition), (disk, partition));
        }
        for disk in
            ["sda", "nvme0n1", "nvme10n12", "mmcblk0", "md127", "loop7", "dm-0", "zram0", "sr0", "DEVICE", "mapper/x1"]
        {
            let device = BlockDevice::named(disk).unwrap();
            assert_eq!((device.name.as_str(), device.partition), (disk.trim_start_matches("mapper/"), None));
        }
    }

    #[test]
    fn stacked_devices_without_their_own_scheduler_are_recognised_by_name() {
        let kind = |name: &str| BlockDevice::named(name).unwrap().kind;
        assert_eq!(["dm-3", "/dev/mapper/vg-root"].map(kind), [Kind::OnOthers(Stack::DeviceMapper); 2]);
        assert_eq!(["mpatha", "mapper/mpathb"].map(kind), [Kind::OnOthers(Stack::Multipath); 2]);
        assert_eq!(["md0", "md_d1"].map(kind), [Kind::OnOthers(Stack::Md); 2]);
        assert_eq!(["bcache0", "drbd1"].map(kind), [Kind::OnOthers(Stack::Other); 2]);
        assert_eq!(["zram0", "ram1", "pmem0"].map(kind), [Kind::InMemory; 3]);
        assert_eq!(["loop0", "loop1p1"].map(kind), [Kind::InFile; 2]);
        assert_eq!(["nvme0n1", "nvme0n1p1"].map(kind), [Kind::Nvme; 2]);
        assert_eq!(["sda", "sdz9"].map(kind), [Kind::Scsi; 2]);
        assert_eq!(["vda", "mmcblk0", "rbd0", "mdx", "zramfoo", "DEVICE"].map(kind), [Kind::Other; 6]);
    }

    #[test]
    fn an_invalid_device_name_is_refused() {
        for given in ["", "/dev/", "disk/by-id/x", "a b", "sda;reboot", "-x", "..", "$(x)", "/sys/block/sda"] {
            assert_eq!(BlockDevice::named(given), None, "{given}");
        }
    }
}
