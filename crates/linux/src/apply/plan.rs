//! What will be written.

use super::snapshot::shown;
use crate::host::{Device, Host, written_scheduler};
use crate::root::Root;

/// What makes a change last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Persist {
    /// Nothing: until the next boot, or until the device is gone.
    No,
    /// A udev rule that matches the device by its serial number.
    Udev,
    /// A udev rule that matches the device by its name, which may be another's after the next boot.
    UdevByName,
}

/// A file that will be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Below `queue/`.
    pub file: String,
    /// What it shows.
    pub before: String,
    /// What is written.
    pub value: String,
}

impl Write {
    /// Whether the file shows what was written.
    pub(super) fn is_shown_as(&self, shown: &str) -> bool {
        // The word for the default, whatever that is.
        let is_default = self.file == "wbt_lat_usec" && self.value == "-1";
        is_default || shown == self.value || shown.parse::<u64>().is_ok_and(|number| self.value.parse() == Ok(number))
    }
}

/// A rule of udev.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleFile {
    /// Where it will be, without a leading slash.
    pub path: String,
    /// What it will hold.
    pub content: String,
}

/// All that will be written for a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The device.
    pub device: String,
    /// The files of its queue, in order.
    pub writes: Vec<Write>,
    /// The rule that makes it last.
    pub rule: Option<RuleFile>,
    /// What might overrule it.
    pub overruled_by: Vec<String>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// No request reaches it.
    #[error("{0}: has no queue of requests, so that no scheduler acts there (expected one of the disks below it: {1})")]
    NoQueue(String, String),
    /// The kernel does not have the scheduler.
    #[error("{device}: the kernel offers {offered} (expected {scheduler} among them: load its module)")]
    NoScheduler {
        /// The device.
        device: String,
        /// The scheduler that is wanted.
        scheduler: String,
        /// Those that there are.
        offered: String,
    },
    /// A name is none.
    #[error("\"{0}\" is no file of queue/ (expected one such as nr_requests or iosched/read_expire)")]
    NoFile(String),
    /// The device cannot be told from others.
    #[error("{0}: udev's database has no serial number of it (expected --by-name, or --persist none)")]
    NoSerial(String),
}

impl Plan {
    /// What has to be written for these files of a device, the scheduler first.
    ///
    /// # Errors
    /// The device has no queue, the scheduler is not there, or nothing tells the device from others.
    pub fn make(
        system: &Root,
        host: &Host,
        device: &Device,
        files: &[(String, String)],
        persist: Persist,
    ) -> Result<Plan, PlanError> {
        let name = &device.name;
        let scheduler = device.scheduler.as_ref().filter(|_| device.hardware.is_some());
        let scheduler = scheduler.ok_or_else(|| PlanError::NoQueue(name.clone(), device.below.join(", ")))?;
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
            if file == "scheduler" && !scheduler.available.contains(&value) {
                let offered = scheduler.available.join(", ");
                return Err(PlanError::NoScheduler { device: name.clone(), scheduler: value, offered });
            }
            let before = shown(system, name, file).unwrap_or_else(|| "-".to_owned());
            writes.push(Write { file: file.clone(), before, value });
        }
        let rule = match persist {
            Persist::No => None,
            Persist::Udev => Some(rule(name, &by_serial(system, device)?, &writes)),
            Persist::UdevByName => Some(rule(name, &format!("KERNEL==\"{name}\""), &writes)),
        };
        let overruled_by = overruled_by(host, name, &writes, rule.as_ref());
        Ok(Plan { device: name.clone(), writes, rule, overruled_by })
    }

    /// Whether the device is already so, and no rule is to be made.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.rule.is_none() && self.writes.iter().all(|write| write.is_shown_as(&write.before))
    }
}

fn rule(device: &str, matches: &str, writes: &[Write]) -> RuleFile {
    let mut content = "# Made by hoistway apply; hoistway apply --undo removes it.\n".to_owned();
    for write in writes {
        content += &format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {matches}, ATTR{{queue/{}}}=\"{}\"\n",
            write.file, write.value
        );
    }
    RuleFile { path: format!("etc/udev/rules.d/90-hoistway-{device}.rules"), content }
}

/// What of a rule matches this device alone.
fn by_serial(system: &Root, device: &Device) -> Result<String, PlanError> {
    let record = system.read(&format!("run/udev/data/b{}", device.number)).unwrap_or_default();
    let property = |name: &str| {
        let of_name = |line: &str| line.strip_prefix("E:")?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        record.lines().find_map(of_name).filter(|value| !value.is_empty())
    };
    let found = ["ID_WWN", "ID_SERIAL"].into_iter().find_map(|name| Some((name, property(name)?)));
    let (name, value) = found.ok_or_else(|| PlanError::NoSerial(device.name.clone()))?;
    // What has a meaning in patterns, or ends the value, stands for any character.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:+/=, ".contains(c);
    let value: String = value.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
    Ok(format!("ENV{{{name}}}==\"{value}\""))
}

/// Configurations that set one of the files otherwise, and do so after the rule or at another time.
fn overruled_by(host: &Host, device: &str, writes: &[Write], rule: Option<&RuleFile>) -> Vec<String> {
    let name_of = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let own = rule.map(|rule| name_of(&rule.path));
    let may_overrule = |source: &str, by: &str| match (&own, by) {
        (Some(own), "udev") => name_of(source) > *own,
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
