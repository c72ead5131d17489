//! Findings: problems of a host, each with its evidence and the commands that fix it.
//!
//! Used by: `host`; crate `hoistway`.
//! Tests: `crates/linux/tests/host.rs`.

mod configuration;
mod devices;
mod latency;
mod shares;

use serde::Serialize;

use super::{Class, Device, Host};

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// I/O is slower, or shared differently, than it should be.
    High,
    /// A setting has no effect, or will not survive a reboot.
    Medium,
    /// For information.
    Low,
}

impl Severity {
    /// All, worst first.
    pub const ALL: [Severity; 3] = [Severity::High, Severity::Medium, Severity::Low];

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }
}

/// The rules for findings. Each is explained in `docs/host.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A path of a multipath device has bfq.
    BfqOnMultipathPart,
    /// A device that completes more than 100,000 I/Os per second has bfq.
    BfqOnFastDevice,
    /// A configuration sets a value, but another one is active.
    SettingNotActive,
    /// A scheduler is set on a device that has no requests.
    SchedulerOnStackedDevice,
    /// Cgroup weights without effect.
    WeightsWithoutEffect,
    /// I/O priorities without effect under the active schedulers.
    PrioritiesIgnored,
    /// `elevator=` on the kernel's command line.
    ElevatorParameter,
    /// bfq has turned write-back throttling off.
    WbtOffUnderBfq,
    /// A latency target of a cgroup below one without a target.
    LatencyTargetWithoutEffect,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 9] = [
        Rule::BfqOnMultipathPart,
        Rule::BfqOnFastDevice,
        Rule::SettingNotActive,
        Rule::SchedulerOnStackedDevice,
        Rule::WeightsWithoutEffect,
        Rule::PrioritiesIgnored,
        Rule::ElevatorParameter,
        Rule::WbtOffUnderBfq,
        Rule::LatencyTargetWithoutEffect,
    ];

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::BfqOnMultipathPart => "bfq-on-multipath-part",
            Rule::BfqOnFastDevice => "bfq-on-fast-device",
            Rule::SettingNotActive => "setting-not-active",
            Rule::SchedulerOnStackedDevice => "scheduler-on-stacked-device",
            Rule::WeightsWithoutEffect => "weights-without-effect",
            Rule::PrioritiesIgnored => "priorities-ignored",
            Rule::ElevatorParameter => "elevator-parameter",
            Rule::WbtOffUnderBfq => "wbt-off-under-bfq",
            Rule::LatencyTargetWithoutEffect => "latency-target-without-effect",
        }
    }
}

/// A problem.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: Rule,
    /// How harmful it is.
    pub severity: Severity,
    /// The devices concerned; empty if it concerns the host.
    pub devices: Vec<String>,
    /// The problem, in one or two sentences.
    pub what: String,
    /// The evidence: files with their contents.
    pub evidence: Vec<String>,
    /// Commands to run as root to fix it: alternatives, except that a comment belongs to the next command.
    pub commands: Vec<String>,
}

/// All findings, worst first.
pub(super) fn find(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(devices::bfq_on_multipath_parts(host));
    findings.extend(devices::bfq_on_fast_devices(host));
    findings.extend(devices::wbt_off_under_bfq(host));
    findings.extend(configuration::settings_not_active(host));
    findings.extend(configuration::schedulers_on_stacked_devices(host));
    findings.extend(configuration::elevator_parameter(host));
    findings.extend(shares::weights_without_effect(host));
    findings.extend(latency::targets_without_effect(host));
    findings.extend(shares::priorities_ignored(host));
    findings.sort_by_key(|finding| (finding.severity, finding.rule));
    findings
}

/// Disks in use that have a request queue, except loop devices, RAM disks and removable media.
fn disks(host: &Host) -> impl Iterator<Item = &Device> {
    host.devices.iter().filter(|device| {
        let is_excluded = matches!(device.class, Class::Loop | Class::Memory | Class::Removable);
        device.hardware.is_some() && device.scheduler.is_some() && !device.is_empty() && !is_excluded
    })
}

/// The line of evidence for a scheduler.
fn shown_scheduler(device: &Device) -> String {
    let Some(scheduler) = &device.scheduler else { return format!("/sys/block/{}: no scheduler", device.name) };
    let bracket_active = |name: &String| if *name == scheduler.active { format!("[{name}]") } else { name.clone() };
    let names: Vec<String> = scheduler.available.iter().map(bracket_active).collect();
    format!("/sys/block/{}/queue/scheduler: {}", device.name, names.join(" "))
}

/// The command that writes a file of `queue/`.
fn write_command(device: &str, file: &str, value: &str) -> String {
    format!("echo {value} > /sys/block/{device}/queue/{file}")
}

/// Joins names for a sentence: `a`, `a and b`, `a, b and 5 others`.
fn join_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const NAMED_MAX: usize = 4;
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [name] => (*name).to_owned(),
        names if names.len() > NAMED_MAX => {
            format!("{} and {} others", names[..NAMED_MAX - 1].join(", "), names.len() - NAMED_MAX + 1)
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The singular or plural form, depending on the count.
fn by_count<'a>(count: usize, singular: &'a str, plural: &'a str) -> &'a str {
    if count == 1 { singular } else { plural }
}

#[cfg(test)]
mod tests {
    use super::{Rule, Severity};

    #[test]
    fn names_are_those_of_the_document() {
        for rule in Rule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        }
        for severity in Severity::ALL {
            assert_eq!(serde_json::to_value(severity).unwrap(), severity.name());
        }
    }
}
