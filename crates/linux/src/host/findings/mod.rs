//! What is wrong on a host: each finding with its evidence and what to run.

mod configuration;
mod devices;
mod shares;

use serde::Serialize;

use super::{Class, Device, Host};

/// How much harm something does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// I/O is slower, or shared otherwise, than it should be.
    High,
    /// A setting does nothing, or will not last.
    Medium,
    /// Worth knowing.
    Low,
}

/// A rule that finds something. Each is explained in `docs/host.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A path of a multipath device has bfq.
    BfqOnMultipathPart,
    /// A device that completes more than 100,000 I/Os a second has bfq.
    BfqOnFastDevice,
    /// A configuration sets something else than what is active.
    SettingNotActive,
    /// A scheduler is set on a device whose requests it never sees.
    SchedulerOnStackedDevice,
    /// Weights of cgroups that nothing honours.
    WeightsWithoutEffect,
    /// I/O priorities that the schedulers ignore.
    PrioritiesIgnored,
    /// `elevator=` on the kernel's command line.
    ElevatorParameter,
    /// bfq has switched write-back throttling off.
    WbtOffUnderBfq,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: Rule,
    /// How much harm it does.
    pub severity: Severity,
    /// The devices that it is about; none if it is about the host.
    pub devices: Vec<String>,
    /// What is wrong, a sentence or two.
    pub what: String,
    /// Where it can be seen: files with what they hold.
    pub evidence: Vec<String>,
    /// What to run, as root, to change it; of several, each by itself unless one is a comment on the next.
    pub commands: Vec<String>,
}

/// Everything that is found, worst first.
pub(super) fn find(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(devices::bfq_on_multipath_parts(host));
    findings.extend(devices::bfq_on_fast_devices(host));
    findings.extend(devices::wbt_off_under_bfq(host));
    findings.extend(configuration::settings_not_active(host));
    findings.extend(configuration::schedulers_on_stacked_devices(host));
    findings.extend(configuration::elevator_parameter(host));
    findings.extend(shares::weights_without_effect(host));
    findings.extend(shares::priorities_ignored(host));
    findings.sort_by_key(|finding| (finding.severity, finding.rule));
    findings
}

/// Disks that processes share: with a queue, in use, and not those that are files or memory.
fn disks(host: &Host) -> impl Iterator<Item = &Device> {
    host.devices.iter().filter(|device| {
        let is_other = matches!(device.class, Class::Loop | Class::Memory | Class::Removable);
        device.hardware.is_some() && device.scheduler.is_some() && !device.is_empty() && !is_other
    })
}

/// The line of evidence for a scheduler.
fn shown_scheduler(device: &Device) -> String {
    let Some(scheduler) = &device.scheduler else { return format!("/sys/block/{}: no scheduler", device.name) };
    let shown = |name: &String| if *name == scheduler.active { format!("[{name}]") } else { name.clone() };
    let names: Vec<String> = scheduler.available.iter().map(shown).collect();
    format!("/sys/block/{}/queue/scheduler: {}", device.name, names.join(" "))
}

/// The command that writes a file of `queue/`.
fn write(device: &str, file: &str, value: &str) -> String {
    format!("echo {value} > /sys/block/{device}/queue/{file}")
}

/// Names for a sentence: `a`, `a and b`, `a, b and 5 others`.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const NAMED_MAX: usize = 4;
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        names if names.len() > NAMED_MAX => {
            format!("{} and {} others", names[..NAMED_MAX - 1].join(", "), names.len() - NAMED_MAX + 1)
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `is` or `are`, as many as there are.
fn verb<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}
