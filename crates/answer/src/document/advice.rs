//! Advice in the result document: the commands and the udev rule that apply a verdict.

use serde::{Deserialize, Serialize};

use super::Decision;

/// How to apply the verdict on one setup to one block device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Index into [`setups`](super::ResultsDocument::setups); 0 if there are none.
    pub setup: u32,
    /// The device, as in `/sys/block`; `DEVICE` if none was named.
    pub device: String,
    /// The verdict's decision.
    pub decision: Decision,
    /// The label of the recommended variant.
    pub recommended: String,
    /// The scheduler that virtual disks get in their guests, if the load ran in guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_scheduler: Option<String>,
    /// Commands for root that make the change until the next boot; empty if there is nothing to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<String>,
    /// Commands for root that undo `now`; empty if only a reboot does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<String>,
    /// The rule that makes the change persistent, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<UdevRule>,
    /// Commands that verify the settings, each with its expected output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check: Vec<Check>,
    /// Warnings, and reasons why there is nothing to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<Caution>,
}

/// A udev rules file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdevRule {
    /// The file's path.
    pub file: String,
    /// The file's content.
    pub lines: Vec<String>,
    /// Commands for root that apply the rule without a reboot.
    pub load: Vec<String>,
    /// Commands for root that remove the rule; [`back`](Advice::back) undoes its effect.
    pub remove: Vec<String>,
}

/// A command that shows a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The command.
    pub command: String,
    /// The text that the output should contain.
    pub expected: String,
}

/// A warning about a change, from the device's name, the kernel and the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Caution {
    /// The device was not named.
    Unnamed,
    /// The user named a partition; only the whole disk has a scheduler.
    Partition {
        /// The partition.
        partition: String,
    },
    /// The device is stacked on others, whose schedulers apply: device mapper, multipath, RAID, a cache. Nothing is to be written to it.
    OnOthers {
        /// The layer that stacks it.
        what: Stack,
    },
    /// The device is in memory and has no scheduler. Nothing is to be written to it.
    InMemory,
    /// The device is backed by a file on another device, whose scheduler applies. Nothing is to be written to it.
    InFile,
    /// The recommended scheduler is already the Linux default for such a device.
    IsDefault,
    /// Linux gives NVMe drives `none` by default, not the default that others were compared with here.
    OtherDefault {
        /// The default in the comparison.
        compared_with: String,
    },
    /// The kernel's default for the device was not compared, so the recommendation needs a write in any case.
    NotCompared {
        /// The kernel's default.
        default: String,
    },
    /// The simulated kernel does not have the recommended scheduler. Nothing is to be written.
    NotInKernel {
        /// The kernel.
        kernel: String,
        /// The scheduler.
        scheduler: String,
    },
    /// The scheduler belongs to the legacy queue, which NVMe drives never had. Nothing is to be written.
    SingleQueue {
        /// The scheduler.
        scheduler: String,
    },
    /// SCSI and ATA disks of this kernel have the scheduler only if the kernel was booted with a parameter or configured that way.
    Boot {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
        /// Whether the reference needs the opposite value, so that switching takes a reboot.
        is_other_queue: bool,
    },
    /// Most distributions have the scheduler as a module.
    Module {
        /// The scheduler.
        scheduler: String,
        /// The module's name for `modprobe`.
        module: String,
    },
    /// The name may belong to another disk after a reboot.
    MayBeRenumbered,
    /// Files of io.cost are written, which nothing writes again at the next boot.
    UntilBoot,
    /// Targets of io.latency are written, which nothing writes again at the next boot, unless a unit of systemd does.
    TargetsUntilBoot {
        /// Each group, and the property that sets its target if it is a unit of systemd.
        properties: Vec<String>,
    },
    /// The previous value of a file of `queue/` or of a cgroup is unknown.
    HeldBefore {
        /// The file's path.
        file: String,
    },
}

/// The layer of a stacked device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    /// LVM, dm-crypt and the like.
    DeviceMapper,
    /// Several paths to one disk.
    Multipath,
    /// An md RAID.
    Md,
    /// bcache or drbd.
    Other,
}
