//! What to write where for a verdict, as data.

use serde::{Deserialize, Serialize};

use super::Decision;

/// What to write for the verdict on a place, for one block device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The place: index into [`setups`](super::ResultsDocument::setups); 0 if there are none.
    pub setup: u32,
    /// The device, as in `/sys/block`; `DEVICE` if none was named.
    pub device: String,
    /// The verdict's decision.
    pub decision: Decision,
    /// What to use, by its label.
    pub recommended: String,
    /// The scheduler that virtual disks get in their guests, if the load ran in guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_scheduler: Option<String>,
    /// Commands for root that make the change, until the next boot; none if there is nothing to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<String>,
    /// Commands for root that undo `now`; none if only a boot does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<String>,
    /// What makes it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<UdevRule>,
    /// Commands that show what is set, each with what it should print.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check: Vec<Check>,
    /// What to mind, or why there is nothing to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<Caution>,
}

/// A file of udev's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdevRule {
    /// Its path.
    pub file: String,
    /// Its content.
    pub lines: Vec<String>,
    /// Commands for root that make it act at once.
    pub load: Vec<String>,
    /// Commands for root that remove it; what it has set is undone as [`back`](Advice::back) says.
    pub remove: Vec<String>,
}

/// A command that shows a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The command.
    pub command: String,
    /// What it should print, or what is printed somewhere in its line.
    pub expected: String,
}

/// Something that name, kernel and document tell about a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Caution {
    /// The device was not named.
    Unnamed,
    /// The name is that of a partition, and its disk has the scheduler.
    Partition {
        /// The partition.
        partition: String,
    },
    /// The device lies on others, whose schedulers act: device mapper, multipath, RAID, a cache. Nothing is to be written to it.
    OnOthers {
        /// What it is.
        what: Stack,
    },
    /// The device has no scheduler, as it lies in memory. Nothing is to be written to it.
    InMemory,
    /// The device is a file of another device, whose scheduler acts. Nothing is to be written to it.
    InFile,
    /// Linux gives such a device what is recommended by itself.
    IsDefault,
    /// Linux gives NVMe drives `none` by itself, and not the default that others were compared with here.
    OtherDefault {
        /// That default.
        compared_with: String,
    },
    /// What the kernel gives the device by itself was not among what was compared: to have what is recommended takes a write in any case.
    NotCompared {
        /// What the kernel gives it.
        default: String,
    },
    /// The kernel that was simulated does not have what is recommended. Nothing is to be written.
    NotInKernel {
        /// The kernel.
        kernel: String,
        /// The scheduler.
        scheduler: String,
    },
    /// NVMe drives never had the queue that the scheduler is for. Nothing is to be written.
    SingleQueue {
        /// The scheduler.
        scheduler: String,
    },
    /// SCSI and ATA disks of this kernel have the scheduler only if it was booted with a parameter, or is built so.
    Boot {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
        /// Whether what it was compared with needs the opposite: then there is no way from one to the other without a boot.
        is_other_queue: bool,
    },
    /// Most distributions have the scheduler as a module.
    Module {
        /// The scheduler.
        scheduler: String,
        /// What `modprobe` calls it.
        module: String,
    },
    /// The name may be another disk's after the next boot.
    MayBeRenumbered,
    /// It is not known what a file of the queue held before.
    HeldBefore {
        /// Its path.
        file: String,
    },
}

/// What a device that lies on others is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    /// LVM, dm-crypt and the like.
    DeviceMapper,
    /// Several paths to one disk.
    Multipath,
    /// A RAID of the md driver.
    Md,
    /// bcache or drbd.
    Other,
}
