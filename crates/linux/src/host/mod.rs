//! The block layer of a Linux host: devices, settings and findings.
//!
//! Used by: `apply`, `dump`, `record`; crate `hoistway`.
//! Tests: `crates/linux/src/host/` (in its files), `crates/linux/tests/host.rs`.
//!
//! [`Host::read`] reads a host below a [`Root`]; a [`Host`] serializes as the JSON document `hoistway-host/1`.

mod cgroups;
mod class;
mod defaults;
mod device;
mod findings;
mod glob;
mod kernel;
mod machine;
mod mounts;
mod nearest;
mod order;
mod priorities;
mod queue;
mod setting;
mod stack;
mod tuned;
mod udev;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use cgroups::IoHierarchy;
pub use cgroups::{CgroupSetting, Cgroups, Hierarchy};
pub use class::Class;
pub use device::{Device, Partition};
pub use findings::{Finding, Rule, Severity};
pub(crate) use glob::matches as matches_glob;
pub use kernel::KernelFacts;
pub(crate) use kernel::parameters as kernel_parameters;
pub use nearest::{NearestBy, NearestPreset};
pub use priorities::{PRIORITIES_FILE, TaskPriority, live_priorities};
pub(crate) use queue::written_scheduler;
pub use queue::{Hardware, SchedulerFacts, TunableFact};
pub use setting::{Certainty, Setting};

use crate::root::Root;

/// The name and version of the document format: fields may be added within a version; none is removed or changes its meaning.
pub const FORMAT: &str = "hoistway-host/1";

/// A host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Host {
    /// [`FORMAT`].
    pub format: &'static str,
    /// The model of the machine, as its firmware names it.
    pub machine: Option<String>,
    /// The kernel and its boot parameters.
    pub kernel: KernelFacts,
    /// The block devices; stacked devices come after those below them.
    pub devices: Vec<Device>,
    /// How cgroups control block I/O.
    pub cgroups: Cgroups,
    /// Tasks with their own I/O priority.
    pub priorities: Vec<TaskPriority>,
    /// Settings of udev rules and tuned profiles for `queue/`, in the order of writing.
    pub settings: Vec<Setting>,
    /// The findings, worst first.
    pub findings: Vec<Finding>,
    /// Existing files that could not be read.
    pub unreadable: Vec<String>,
}

/// Why a host or device cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The root has no sysfs.
    #[error("{0}: has no sys/block (expected sysfs mounted on /sys, or the folder or archive of a dump)")]
    NoSysfs(String),
    /// The root has no kernel version.
    #[error(
        "{0}: has no proc/sys/kernel/osrelease (expected procfs mounted on /proc, or the folder or archive of a dump)"
    )]
    NoProcfs(String),
    /// There is no device with this name.
    #[error("{name}: no such block device (expected {expected})")]
    NoDevice {
        /// The name as given.
        name: String,
        /// The existing devices.
        expected: String,
    },
}

impl Host {
    /// Reads the host below `root`, which errors call `name`. `priorities` are the I/O priorities of its tasks:
    /// [`live_priorities`], or `None` to read them from a dump.
    ///
    /// A device that disappears during the reading is left out. A file that cannot be read is left out and listed in
    /// [`unreadable`](Self::unreadable).
    ///
    /// # Errors
    /// If there is neither sysfs nor procfs.
    pub fn read(root: &Root, name: &str, priorities: Option<Vec<TaskPriority>>) -> Result<Host, HostError> {
        let kernel = KernelFacts::read(root).ok_or_else(|| HostError::NoProcfs(name.to_owned()))?;
        let names = root.names("sys/block").map_err(|_| HostError::NoSysfs(name.to_owned()))?;
        let mounts = mounts::Mounts::read(root);
        let mut unreadable = Unreadable::default();
        let mut defaults = defaults::Defaults::new(kernel.block_layer());
        let mut devices: Vec<Device> =
            names.iter().filter_map(|name| Device::read(root, name, &mounts, &mut defaults, &mut unreadable)).collect();
        order::sort(&mut devices);
        let cgroups = Cgroups::read(root, &mounts, &mut unreadable);
        let priorities = priorities.unwrap_or_else(|| priorities::from_dump(root));
        let mut settings = udev::settings(root, &devices, &mut unreadable);
        settings.extend(tuned::settings(root, &devices));
        let mut host = Host {
            format: FORMAT,
            machine: machine::read(root),
            kernel,
            devices,
            cgroups,
            priorities,
            settings,
            findings: Vec::new(),
            unreadable: unreadable.lines(),
        };
        host.findings = findings::find(&host);
        Ok(host)
    }

    /// The device with this name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The device with this name, partition or mapped name, with or without the folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn device_called(&self, name: &str) -> Result<&Device, HostError> {
        let device = self.devices.iter().find(|device| device.is_called(name));
        device.ok_or_else(|| HostError::NoDevice { name: name.to_owned(), expected: self.expected_devices() })
    }

    /// Keeps only these devices, the devices below them, and the settings and findings about them or about the whole host. A device is
    /// named as in `/sys/block` or `/dev`, by a partition, or by a mapped name.
    ///
    /// # Errors
    /// If one of them does not exist.
    pub fn keep(&mut self, names: &[String]) -> Result<(), HostError> {
        let mut kept: Vec<String> = Vec::new();
        for name in names {
            kept.push(self.device_called(name)?.name.clone());
        }
        let mut next = 0;
        while let Some(name) = kept.get(next) {
            let below = self.device(name).map(|device| device.below.clone()).unwrap_or_default();
            for name in below {
                if !kept.contains(&name) {
                    kept.push(name);
                }
            }
            next += 1;
        }
        self.devices.retain(|device| kept.contains(&device.name));
        self.settings.retain(|setting| kept.contains(&setting.device));
        let numbers: Vec<&String> = self.devices.iter().map(|device| &device.number).collect();
        self.cgroups.settings.retain(|setting| setting.device.as_ref().is_none_or(|number| numbers.contains(&number)));
        self.findings.retain(|found| found.devices.is_empty() || found.devices.iter().any(|name| kept.contains(name)));
        Ok(())
    }

    fn expected_devices(&self) -> String {
        const SHOWN_MAX: usize = 12;
        let names: Vec<&str> = self.devices.iter().take(SHOWN_MAX).map(|device| device.name.as_str()).collect();
        match (names.len(), self.devices.len()) {
            (0, _) => "none, since there are no block devices".to_owned(),
            (shown, all) if shown < all => format!("one of {} and {} more", names.join(", "), all - shown),
            _ => format!("one of {}", names.join(", ")),
        }
    }
}

/// Existing files that could not be read, by the system's error.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    files: BTreeMap<String, Vec<String>>,
}

impl Unreadable {
    /// The text of a file at `path` in `folder`, without surrounding white space; `None` if it cannot be read. A file
    /// without read permission is recorded as `folder_path/path`.
    pub(crate) fn read(&mut self, folder: &Root, folder_path: &str, path: &str) -> Option<String> {
        match folder.read(path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) => {
                // Other errors only mean that the device lacks a feature.
                if error.kind() == std::io::ErrorKind::PermissionDenied {
                    self.files
                        .entry(error.to_string())
                        .or_default()
                        .push(format!("/{folder_path}/{path}").replace("//", "/"));
                }
                None
            }
        }
    }

    fn lines(self) -> Vec<String> {
        const NAMED_MAX: usize = 3;
        let line = |(why, files): (String, Vec<String>)| {
            let named = files.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            match files.len().saturating_sub(NAMED_MAX) {
                0 => format!("{named}: {why}"),
                others => format!("{named} and {others} more: {why}"),
            }
        };
        self.files.into_iter().map(line).collect()
    }
}
