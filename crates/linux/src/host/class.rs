//! Classes of devices.

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
    /// Its name in the document.
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

    /// Whether its driver leaves the choice of the scheduler to the block layer.
    pub(super) fn takes_usual_default(self, name: &str) -> bool {
        match self {
            Class::Nvme | Class::Ssd | Class::Hdd | Class::Usb | Class::Virtio => true,
            Class::Mmc => !name.contains("boot"),
            _ => false,
        }
    }

    pub(super) fn of(name: &str, path: &str, is_rotational: bool) -> Self {
        let begins = |beginnings: &[&str]| {
            let rest = beginnings.iter().find_map(|beginning| name.strip_prefix(beginning));
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
        };
        let on = |bus: &str| path.split('/').any(|part| part.starts_with(bus));
        match () {
            () if begins(&["dm-", "md", "bcache", "drbd"]) => Class::Stacked,
            () if begins(&["loop"]) => Class::Loop,
            () if begins(&["nbd", "rbd"]) => Class::Network,
            () if begins(&["zram", "ram", "pmem"]) => Class::Memory,
            () if begins(&["sr", "fd"]) => Class::Removable,
            () if begins(&["nvme"]) => Class::Nvme,
            () if begins(&["mmcblk"]) => Class::Mmc,
            () if name.starts_with("xvd") => Class::Paravirtual,
            () if name.starts_with("vd") => Class::Virtio,
            () if name.starts_with("sd") && on("usb") => Class::Usb,
            () if name.starts_with("sd") && is_rotational => Class::Hdd,
            () if name.starts_with("sd") => Class::Ssd,
            () => Class::Other,
        }
    }
}
