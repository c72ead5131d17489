//! What differs between two dumps of a host.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::kinds::{self, Kinds};
use crate::host::{Host, Rule};

/// The changes of a fleet since an earlier day.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FleetChanges {
    /// Hosts without an earlier dump.
    pub hosts_added: Vec<String>,
    /// Hosts with only an earlier dump.
    pub hosts_gone: Vec<String>,
    /// Findings that have appeared or gone.
    pub findings: Vec<FindingChange>,
    /// Settings and devices that have changed.
    pub settings: Vec<SettingChange>,
}

/// A finding that has appeared or gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FindingChange {
    /// The rule.
    pub rule: Rule,
    /// The kind of devices; none: the host.
    pub device: Option<String>,
    /// The hosts that have it now and had it not.
    pub appeared: Vec<String>,
    /// The hosts that had it and have it no more.
    pub gone: Vec<String>,
}

/// A setting with its earlier and its present value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SettingChange {
    /// What has changed: `kernel`, a file of `queue/`, a file of a cgroup, or `device`.
    pub what: String,
    /// The kind of device; none: the host.
    pub device: Option<String>,
    /// The earlier value; none: there was none.
    pub from: Option<String>,
    /// The present value; none: there is none.
    pub to: Option<String>,
    /// The hosts.
    pub hosts: Vec<String>,
}

/// A setting without its value: the kind of device, the device's name, and the file.
type Place = (Option<String>, String, String);

/// The changes of one host.
#[derive(Debug, Default)]
pub(super) struct HostChanges {
    appeared: BTreeSet<(Rule, Kinds)>,
    gone: BTreeSet<(Rule, Kinds)>,
    settings: BTreeSet<(String, Option<String>, Option<String>, Option<String>)>,
}

impl HostChanges {
    pub(super) fn between(then: &Host, now: &Host) -> HostChanges {
        let [findings_then, findings_now] = [then, now].map(findings);
        let [mut values_then, values_now] = [then, now].map(values);
        let mut settings = BTreeSet::new();
        for ((kind, name, file), to) in values_now {
            let from = values_then.remove(&(kind.clone(), name, file.clone()));
            if from.as_ref() != Some(&to) {
                settings.insert((file, kind, from, Some(to)));
            }
        }
        settings.extend(values_then.into_iter().map(|((kind, _, file), from)| (file, kind, Some(from), None)));
        HostChanges {
            appeared: findings_now.difference(&findings_then).cloned().collect(),
            gone: findings_then.difference(&findings_now).cloned().collect(),
            settings,
        }
    }
}

fn findings(host: &Host) -> BTreeSet<(Rule, Kinds)> {
    host.findings.iter().map(|finding| (finding.rule, kinds::of_finding(host, finding))).collect()
}

/// All values that somebody has set. A file of a device that appears or disappears is not counted: the device is.
fn values(host: &Host) -> BTreeMap<Place, String> {
    let mut values = BTreeMap::new();
    let mut of_host = |file: &str, value: String| {
        values.insert((None, String::new(), file.to_owned()), value);
    };
    of_host("kernel", host.kernel.release.clone());
    of_host("kernel parameters", host.kernel.parameters.join(" "));
    for setting in &host.cgroups.settings {
        let device = setting.device.as_ref().map(|number| format!(" for {number}")).unwrap_or_default();
        of_host(&format!("{} of {}{device}", setting.file, setting.cgroup), setting.value.clone());
    }
    for device in host.devices.iter().filter(|device| !device.is_empty()) {
        let kind = Some(kinds::of_device(device));
        let mut of_device = |file: &str, value: &str| {
            values.insert((kind.clone(), device.name.clone(), file.to_owned()), value.to_owned());
        };
        of_device("device", "present");
        if let Some(active) = device.active_scheduler() {
            of_device("scheduler", active);
        }
        for tunable in &device.tunables {
            of_device(&tunable.file, &tunable.value);
        }
    }
    values
}

/// The changes of all hosts, those of most hosts first.
pub(super) fn merged<'a>(
    hosts: impl Iterator<Item = (&'a str, &'a HostChanges)>,
) -> (Vec<FindingChange>, Vec<SettingChange>) {
    let mut findings: BTreeMap<(Rule, Kinds), [Vec<String>; 2]> = BTreeMap::new();
    let mut settings: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (name, changes) in hosts {
        for (side, keys) in [&changes.appeared, &changes.gone].into_iter().enumerate() {
            for key in keys {
                findings.entry(key.clone()).or_default()[side].push(name.to_owned());
            }
        }
        for key in &changes.settings {
            settings.entry(key.clone()).or_default().push(name.to_owned());
        }
    }
    let findings = findings.into_iter().map(|((rule, kinds), [appeared, gone])| FindingChange {
        rule,
        device: kinds::name(&kinds),
        appeared,
        gone,
    });
    let settings =
        settings.into_iter().map(|((what, device, from, to), hosts)| SettingChange { what, device, from, to, hosts });
    let mut settings: Vec<SettingChange> = settings.collect();
    settings.sort_by_key(|change| std::cmp::Reverse(change.hosts.len()));
    (findings.collect(), settings)
}
