//! Device classes: NVMe, SSD, HDD, virtual disks and so on.

use serde::Serialize;

/// The class of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// NVMe.
    Nvme,
    /// A disk of the SCSI layer (SATA, SAS, a RAID controller) that reports that it does not rotate.
    Ssd,
    /// A disk of the SCSI layer that reports that it rotates.
    Hdd,
    /// A disk of the SCSI layer on USB.
    Usb,
    /// An SD card or eMMC.
    Mmc,
    /// A virtual disk of virtio.
    Virtio,
    /// A virtual disk of Xen, or of another hypervisor.
    Paravirtual,
    /// A loop device.
    Loop,
    /// A network disk: nbd, rbd.
    Network,
    /// A RAM disk: zram, brd, pmem.
    Memory,
    /// An optical drive, or a floppy.
    Removable,
    /// A device without hardware on top of other devices: device mapper, md, bcache, drbd.
    Stacked,
    /// Any other device.
    Other,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 13] = [
        Class::Nvme,
        Class::Ssd,
        Class::Hdd,
        Class::Usb,
        Class::Mmc,
        Class::Virtio,
        Class::Paravirtual,
        Class::Loop,
        Class::Network,
        Class::Memory,
        Class::Removable,
        Class::Stacked,
        Class::Other,
    ];

    /// The name in the JSON document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Nvme => "nvme",
            Class::Ssd => "ssd",
            Class::Hdd => "hdd",
            Class::Usb => "usb",
            Class::Mmc => "mmc",
            Class::Virtio => "virtio",
            Class::Paravirtual => "paravirtual",
            Class::Loop => "loop",
            Class::Network => "network",
            Class::Memory => "memory",
            Class::Removable => "removable",
            Class::Stacked => "stacked",
            Class::Other => "other",
        }
    }

    /// Whether the driver leaves the choice of the default scheduler to the block layer.
    pub(super) fn uses_block_layer_default(self, name: &str) -> bool {
        match self {
            Class::Nvme | Class::Ssd | Class::Hdd | Class::Usb | Class::Virtio => true,
            Class::Mmc => !name.contains("boot"),
            _ => false,
        }
    }

    pub(super) fn detect(name: &str, path: &str, is_rotational: bool) -> Self {
        let has_prefix = |prefixes: &[&str]| {
            let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
        };
        let is_on_bus = |bus: &str| path.split('/').any(|part| part.starts_with(bus));
        if has_prefix(&["dm-", "md", "bcache", "drbd"]) {
            Class::Stacked
        } else if has_prefix(&["loop"]) {
            Class::Loop
        } else if has_prefix(&["nbd", "rbd"]) {
            Class::Network
        } else if has_prefix(&["zram", "ram", "pmem"]) {
            Class::Memory
        } else if has_prefix(&["sr", "fd"]) {
            Class::Removable
        } else if has_prefix(&["nvme"]) {
            Class::Nvme
        } else if has_prefix(&["mmcblk"]) {
            Class::Mmc
        } else if name.starts_with("xvd") {
            Class::Paravirtual
        } else if name.starts_with("vd") {
            Class::Virtio
        } else if name.starts_with("sd") && is_on_bus("usb") {
            Class::Usb
        } else if name.starts_with("sd") && is_rotational {
            Class::Hdd
        } else if name.starts_with("sd") {
            Class::Ssd
        } else {
            Class::Other
        }
    }
}
