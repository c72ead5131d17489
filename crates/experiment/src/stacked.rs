//! Files of a load whose names say that they lie on other devices: what is simulated is one disk under them.

use hoistway_load::Load;

/// A half sentence about files that are no disks. In guests the names are those of virtual disks.
pub(crate) fn doubt(workload: &Load, in_guests: bool) -> Option<String> {
    if in_guests {
        return None;
    }
    let layers = workload.files.iter().filter_map(|file| Some((file.as_str(), layer(file)?)));
    let named: Vec<String> = layers.map(|(file, layer)| format!("{file} ({layer})")).collect();
    (!named.is_empty()).then(|| {
        format!(
            "{} was simulated as a single disk with a scheduler of its own; in the kernel the schedulers of the disks below it act, and \
             what the layer does (splitting, parity, copies, caching, the network) is not in the figures",
            named.join(", ")
        )
    })
}

/// What a device of this name is made by, if that is another layer.
fn layer(file: &str) -> Option<&'static str> {
    let name = file.strip_prefix("/dev/")?;
    let is_numbered = |beginning: &str| {
        name.strip_prefix(beginning).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match () {
        () if name.starts_with("mapper/mpath") => Some("multipath"),
        () if name.starts_with("mapper/") || is_numbered("dm-") => Some("device mapper: LVM, dm-crypt or the like"),
        () if is_numbered("md") || name.starts_with("md/") || name.starts_with("md_d") => Some("md RAID"),
        () if name.starts_with("zvol/") || is_numbered("zd") => Some("ZFS volume"),
        () if is_numbered("bcache") => Some("bcache"),
        () if is_numbered("drbd") => Some("DRBD"),
        () if is_numbered("loop") => Some("loop device over a file"),
        () if is_numbered("nbd") || is_numbered("rbd") => Some("network block device"),
        // LVM names volumes after their group: /dev/GROUP/VOLUME.
        () if name.contains('/')
            && !["disk/", "block/", "shm/", "fd/", "char/", "cciss/"].iter().any(|own| name.starts_with(own)) =>
        {
            Some("logical volume")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_layers_are_known_and_those_of_disks_are_none() {
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
}
