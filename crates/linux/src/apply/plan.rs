//! The plan of a change: which files of `queue/` and of configurations are written.

use super::persist::{Persist, PersistedFile};
use super::snapshot::shown;
use super::write::{PlanError, Write};
use crate::host::{Device, Host, written_scheduler};
use crate::root::Root;

/// Everything that will be written for a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The device.
    pub device: String,
    /// The files of its queue, in the order of writing.
    pub writes: Vec<Write>,
    /// The files that make the change persistent.
    pub persisted: Vec<PersistedFile>,
    /// Text for the user to paste into a configuration, to make the change persistent.
    pub to_paste: Option<String>,
    /// Other configurations that may override the change.
    pub overruled_by: Vec<String>,
}

impl Plan {
    /// Plans to write these values to files of a device's `queue/`, in this order.
    ///
    /// # Errors
    /// If the device has no queue, or the scheduler is not available.
    pub fn make(
        system: &Root,
        host: &Host,
        device: &Device,
        files: &[(String, String)],
        persist: Persist,
    ) -> Result<Plan, PlanError> {
        let name = &device.name;
        let scheduler = device.scheduler.as_ref().filter(|_| device.hardware.is_some());
        let disks = || match device.below.as_slice() {
            [] => "a disk".to_owned(),
            below => format!("one of the disks below it: {}", below.join(", ")),
        };
        let scheduler = scheduler.ok_or_else(|| PlanError::NoQueue(name.clone(), disks()))?;
        let mut writes = Vec::new();
        for (file, value) in files {
            let is_name = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
            let is_plain = |value: &str| {
                !value.is_empty() && value.bytes().all(|c| c.is_ascii_graphic() && !b"\"\\$%".contains(&c) || c == b' ')
            };
            if !is_name(file.strip_prefix("iosched/").unwrap_or(file)) || !is_plain(value) {
                return Err(PlanError::NoFile(format!("{file}={value}")));
            }
            let value = if file == "scheduler" { written_scheduler(value) } else { value.clone() };
            if file == "scheduler"
                && !scheduler.available.contains(&value)
                && !is_loadable(system, &host.kernel.release, &value)
            {
                let offered = scheduler.available.join(", ");
                return Err(PlanError::NoScheduler { device: name.clone(), scheduler: value, offered });
            }
            let before = shown(system, name, file).unwrap_or_else(|| "-".to_owned());
            writes.push(Write { file: file.clone(), before, value });
        }
        let persisted = persist.files(system, device, &writes)?;
        let to_paste = persist.text(system, device, &writes)?;
        let overruled_by = overruled_by(host, name, &writes, persist, &persisted);
        Ok(Plan { device: name.clone(), writes, persisted, to_paste, overruled_by })
    }

    /// Whether the device already has these values, and the files below `etc` that make them persistent exist.
    #[must_use]
    pub fn is_done(&self, etc: &Root) -> bool {
        self.persisted.iter().all(|file| etc.read(&file.path).is_ok_and(|now| now == file.content))
            && self.to_paste.is_none()
            && self.writes.iter().all(|write| write.is_shown_as(&write.before))
    }
}

/// Whether the kernel would load a module for this scheduler when its name is written: it requests NAME-iosched, which is
/// the module's file name or an alias.
fn is_loadable(system: &Root, release: &str, scheduler: &str) -> bool {
    let read = |file: &str| system.read(&format!("lib/modules/{release}/{file}")).unwrap_or_default();
    let file = format!("/{scheduler}-iosched.ko");
    let (alias, alias_with_underscore) = (format!("{scheduler}-iosched"), format!("{scheduler}_iosched"));
    let is_alias = |line: &str| {
        let name = line.strip_prefix("alias ").and_then(|rest| rest.split(' ').next());
        name.is_some_and(|name| name == alias || name == alias_with_underscore)
    };
    read("modules.dep").lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&file)))
        || read("modules.alias").lines().any(is_alias)
}

/// Configurations that set one of the files to another value, after our rule or at another time.
fn overruled_by(
    host: &Host,
    device: &str,
    writes: &[Write],
    persist: Persist,
    persisted: &[PersistedFile],
) -> Vec<String> {
    let name_of = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let own = persisted.first().map(|file| name_of(&file.path));
    let may_overrule = |source: &str, by: &str| match (persist, &own, by) {
        (Persist::Udev(_), Some(own), "udev") => name_of(source) > *own,
        // The profile that ours includes is applied before it.
        (Persist::Tuned, _, "tuned") => false,
        _ => true,
    };
    host.settings
        .iter()
        .filter(|setting| setting.device == device && may_overrule(&setting.source, setting.by))
        .filter(|setting| {
            writes.iter().any(|write| {
                let value =
                    if write.file == "scheduler" { written_scheduler(&setting.value) } else { setting.value.clone() };
                write.file == setting.file && value != write.value
            })
        })
        .map(|setting| {
            format!("{}:{} ({}) sets {} to {}", setting.source, setting.line, setting.by, setting.file, setting.value)
        })
        .collect()
}
