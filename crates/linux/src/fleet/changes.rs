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

/// A changed setting, without its hosts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ChangedSetting {
    what: String,
    device: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

/// The changes of one host.
#[derive(Debug, Default)]
pub(super) struct HostChanges {
    appeared: BTreeSet<(Rule, Kinds)>,
    gone: BTreeSet<(Rule, Kinds)>,
    settings: BTreeSet<ChangedSetting>,
}

impl HostChanges {
    pub(super) fn between(then: &Host, now: &Host) -> HostChanges {
        let [findings_then, findings_now] = [then, now].map(findings);
        let [mut values_then, values_now] = [then, now].map(values);
        let [devices_then, devices_now] = [&values_then, &values_now].map(devices);
        // The files of a device come and go with it, and those of a scheduler with the scheduler.
        let is_told_by_another = |(device, name, what): &Place, is_one_absent: bool| {
            let has = |devices: &BTreeSet<(Option<String>, String)>| devices.contains(&(device.clone(), name.clone()));
            let is_device_new = device.is_some() && what != DEVICE && !(has(&devices_then) && has(&devices_now));
            is_device_new || (is_one_absent && what.starts_with("iosched/"))
        };
        let mut settings = BTreeSet::new();
        let mut change = |place: Place, from: Option<String>, to: Option<String>| {
            if from != to && !is_told_by_another(&place, from.is_none() || to.is_none()) {
                let (device, _, what) = place;
                settings.insert(ChangedSetting { what, device, from, to });
            }
        };
        for (place, to) in values_now {
            let from = values_then.remove(&place);
            change(place, from, Some(to));
        }
        for (place, from) in values_then {
            change(place, Some(from), None);
        }
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

/// The name of the value that a device has while it exists.
const DEVICE: &str = "device";

/// The devices that exist, with their kinds.
fn devices(values: &BTreeMap<Place, String>) -> BTreeSet<(Option<String>, String)> {
    let devices = values.keys().filter(|(kind, _, what)| kind.is_some() && what == DEVICE);
    devices.map(|(kind, name, _)| (kind.clone(), name.clone())).collect()
}

/// All values that are compared.
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
        of_device(DEVICE, "present");
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
    let mut settings: BTreeMap<&ChangedSetting, Vec<String>> = BTreeMap::new();
    for (name, changes) in hosts {
        for (side, keys) in [&changes.appeared, &changes.gone].into_iter().enumerate() {
            for key in keys {
                findings.entry(key.clone()).or_default()[side].push(name.to_owned());
            }
        }
        for key in &changes.settings {
            settings.entry(key).or_default().push(name.to_owned());
        }
    }
    let findings = findings.into_iter().map(|((rule, kinds), [appeared, gone])| FindingChange {
        rule,
        device: kinds::name(&kinds),
        appeared,
        gone,
    });
    let settings = settings.into_iter().map(|(changed, hosts)| {
        let ChangedSetting { what, device, from, to } = changed.clone();
        SettingChange { what, device, from, to, hosts }
    });
    let mut settings: Vec<SettingChange> = settings.collect();
    settings.sort_by_key(|change| std::cmp::Reverse(change.hosts.len()));
    (findings.collect(), settings)
}
