//! The findings of many hosts, by class of machine, kind of device and kernel.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/linux/src/fleet/` (in its files), `crates/linux/tests/fleet.rs`, `crates/hoistway/tests/cli/fleet.rs`.
//!
//! [`Fleet::read`] reads dumps one after another on each CPU and keeps only what is reported of each, so that memory does not grow with
//! the size of dumps. A [`Fleet`] serializes as the JSON document `hoistway-fleet/1`.

mod changes;
mod condition;
mod kinds;
mod members;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Serialize;

pub use changes::{FindingChange, FleetChanges, SettingChange};
use changes::{HostChanges, merged};
pub use condition::{HostCondition, Met};
use kinds::Kinds;
pub use members::{FleetMember, FleetMembers};

use crate::dump::System;
use crate::host::{Host, Rule, Severity};

/// The name and version of the document format: fields may be added within a version; none is removed or changes its meaning.
pub const FORMAT: &str = "hoistway-fleet/1";

/// Why the dumps of a fleet cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no such place.
    #[error(
        "{place}: no such folder or dump (expected a folder of dumps, a pattern of their names, or - for a list of paths)"
    )]
    NoPlace {
        /// What was given.
        place: String,
    },
    /// A place cannot be read.
    #[error("{place}: {error} (expected a folder of dumps, or a list of their paths)")]
    Unlisted {
        /// What was given.
        place: String,
        /// The system's error.
        error: io::Error,
    },
    /// There are no dumps.
    #[error("{places}: no dumps (expected a folder or an archive .tar, .tar.gz or .tar.zst for each host)")]
    Empty {
        /// What was given.
        places: String,
    },
}

/// A fleet.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fleet {
    /// [`FORMAT`].
    pub format: &'static str,
    /// The hosts by name.
    pub hosts: Vec<FleetHost>,
    /// The findings by class, worst first.
    pub findings: Vec<ClassFinding>,
    /// What has changed since an earlier day, if that was asked for.
    pub changes: Option<FleetChanges>,
    /// Dumps that cannot be read.
    pub damaged: Vec<DamagedDump>,
    /// The conditions that are met.
    pub conditions_met: Vec<Met>,
}

/// A host of a fleet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FleetHost {
    /// Its name.
    pub name: String,
    /// The model of the machine.
    pub machine: Option<String>,
    /// The kernel's release.
    pub kernel: String,
    /// Devices in use.
    pub devices: usize,
    /// Findings of high severity.
    pub high: usize,
    /// Findings of medium severity.
    pub medium: usize,
    /// Findings of low severity.
    pub low: usize,
    /// The rules of its findings, worst first.
    pub rules: Vec<Rule>,
}

impl FleetHost {
    /// The number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        match severity {
            Severity::High => self.high,
            Severity::Medium => self.medium,
            Severity::Low => self.low,
        }
    }
}

/// A dump that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DamagedDump {
    /// The host.
    pub name: String,
    /// The error, which names the file.
    pub error: String,
}

/// A finding of a class: the hosts with the same machine and kernel, and devices of the same kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClassFinding {
    /// The rule.
    pub rule: Rule,
    /// The severity.
    pub severity: Severity,
    /// The model of the machine.
    pub machine: Option<String>,
    /// The kind of devices; none: the host.
    pub device: Option<String>,
    /// The kernel's release without patch level.
    pub kernel: String,
    /// The hosts that have it.
    pub hosts: Vec<String>,
    /// Hosts of this class.
    pub hosts_of_class: usize,
    /// Devices that have it.
    pub devices: usize,
    /// Devices of this kind on the hosts of this class.
    pub devices_of_class: usize,
    /// The problem, as on the first of the hosts that the first advice is for.
    pub what: String,
    /// The commands to run as root; those for most hosts first.
    pub advice: Vec<ClassAdvice>,
}

/// Commands and the hosts that they are for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClassAdvice {
    /// Commands to run as root to fix it: alternatives, except that a comment belongs to the next command.
    pub commands: Vec<String>,
    /// The hosts.
    pub hosts: Vec<String>,
}

/// A rule with the kinds of devices.
type Key = (Severity, Rule, Kinds);

/// What is kept of a host.
struct Digest {
    host: FleetHost,
    /// Devices in use, by kind.
    kinds: BTreeMap<String, usize>,
    findings: BTreeMap<Key, Found>,
    /// Why it meets each of the conditions.
    reasons: Vec<Vec<String>>,
    changes: Option<HostChanges>,
    /// Its earlier dump, if that cannot be read.
    damaged: Option<DamagedDump>,
}

/// The findings of a host with the same rule and kinds.
#[derive(Default)]
struct Found {
    devices: usize,
    what: String,
    commands: Vec<String>,
}

impl Fleet {
    /// Reads the dumps of a fleet, and those of an earlier day for comparison. Dumps that cannot be read are
    /// [listed](Self::damaged), and the others are read.
    #[must_use]
    pub fn read(now: &FleetMembers, since: Option<&FleetMembers>, conditions: &[HostCondition]) -> Fleet {
        let earlier = since.map(|since| since.members.iter().map(|member| (member.name.as_str(), member)).collect());
        let earlier: Option<BTreeMap<&str, &FleetMember>> = earlier;
        let read_member = |member: &FleetMember| {
            let then = earlier.as_ref().and_then(|earlier| earlier.get(member.name.as_str()));
            read_digest(member, then.copied(), conditions)
        };
        let digests: Vec<Result<Digest, DamagedDump>> = hoistway_parallel::map(&now.members, read_member);
        let (mut hosts, mut damaged) = (Vec::new(), Vec::new());
        for digest in digests {
            match digest {
                Ok(mut digest) => {
                    damaged.extend(digest.damaged.take());
                    hosts.push(digest);
                }
                Err(dump) => damaged.push(dump),
            }
        }
        let changes = earlier.as_ref().map(|earlier| {
            let is_now = |name: &str| now.members.binary_search_by(|member| member.name.as_str().cmp(name)).is_ok();
            let changed = hosts.iter().filter_map(|digest| Some((digest.host.name.as_str(), digest.changes.as_ref()?)));
            let (findings, settings) = merged(changed);
            let added = now.members.iter().filter(|member| !earlier.contains_key(member.name.as_str()));
            FleetChanges {
                hosts_added: added.map(|member| member.name.clone()).collect(),
                hosts_gone: earlier.keys().filter(|name| !is_now(name)).map(|&name| name.to_owned()).collect(),
                findings,
                settings,
            }
        });
        Fleet::of(hosts, changes, damaged, conditions)
    }

    /// A fleet of one host.
    #[must_use]
    pub fn of_one(name: &str, host: &Host, conditions: &[HostCondition]) -> Fleet {
        Fleet::of(vec![digest(name, host, conditions)], None, Vec::new(), conditions)
    }

    fn of(
        mut digests: Vec<Digest>,
        changes: Option<FleetChanges>,
        damaged: Vec<DamagedDump>,
        conditions: &[HostCondition],
    ) -> Fleet {
        let mut reasons: Vec<Vec<String>> = vec![Vec::new(); conditions.len()];
        for digest in &mut digests {
            for (all, of_host) in reasons.iter_mut().zip(digest.reasons.drain(..)) {
                all.extend((!of_host.is_empty()).then(|| format!("{} ({})", digest.host.name, of_host.join(", "))));
            }
        }
        let findings = by_class(&digests);
        let hosts = digests.into_iter().map(|digest| digest.host).collect();
        let mut fleet = Fleet { format: FORMAT, hosts, findings, changes, damaged, conditions_met: Vec::new() };
        let met = conditions.iter().zip(reasons).filter_map(|(condition, reasons)| condition.met(&fleet, reasons));
        fleet.conditions_met = met.collect();
        fleet
    }

    /// The hosts with findings, worst first.
    #[must_use]
    pub fn worst(&self) -> Vec<&FleetHost> {
        let mut hosts: Vec<&FleetHost> = self.hosts.iter().filter(|host| !host.rules.is_empty()).collect();
        hosts.sort_by_key(|host| std::cmp::Reverse((host.high, host.medium, host.low)));
        hosts
    }
}

fn read(path: &Path) -> Result<Host, String> {
    let system = System::open(Some(path), false).map_err(|error| error.to_string())?;
    system.host().map_err(|error| error.to_string())
}

fn read_digest(
    member: &FleetMember,
    then: Option<&FleetMember>,
    conditions: &[HostCondition],
) -> Result<Digest, DamagedDump> {
    let damaged = |error| DamagedDump { name: member.name.clone(), error };
    let host = read(&member.path).map_err(damaged)?;
    let digest = digest(&member.name, &host, conditions);
    Ok(match then.map(|then| read(&then.path)) {
        None => digest,
        Some(Ok(then)) => Digest { changes: Some(HostChanges::between(&then, &host)), ..digest },
        Some(Err(error)) => Digest { damaged: Some(damaged(error)), ..digest },
    })
}

fn digest(name: &str, host: &Host, conditions: &[HostCondition]) -> Digest {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for device in host.devices.iter().filter(|device| !device.is_empty()) {
        *kinds.entry(kinds::of_device(device)).or_default() += 1;
    }
    let mut findings: BTreeMap<Key, Found> = BTreeMap::new();
    for finding in &host.findings {
        let key = (finding.severity, finding.rule, kinds::of_finding(host, finding));
        let found = findings.entry(key).or_default();
        found.devices += finding.devices.len();
        if found.what.is_empty() {
            found.what.clone_from(&finding.what);
        }
        let new: Vec<String> =
            finding.commands.iter().filter(|command| !found.commands.contains(command)).cloned().collect();
        found.commands.extend(new);
    }
    let count = |severity: Severity| host.findings.iter().filter(|finding| finding.severity == severity).count();
    let mut rules: Vec<Rule> = host.findings.iter().map(|finding| finding.rule).collect();
    rules.dedup();
    Digest {
        host: FleetHost {
            name: name.to_owned(),
            machine: host.machine.clone(),
            kernel: host.kernel.release.clone(),
            devices: kinds.values().sum(),
            high: count(Severity::High),
            medium: count(Severity::Medium),
            low: count(Severity::Low),
            rules,
        },
        kinds,
        findings,
        reasons: conditions.iter().map(|condition| condition.reasons(host)).collect(),
        changes: None,
        damaged: None,
    }
}

/// A class of hosts: machine and kernel.
type HostClass = (Option<String>, String);

fn class_of(host: &FleetHost) -> HostClass {
    (host.machine.clone(), kinds::kernel(&host.kernel))
}

fn by_class(digests: &[Digest]) -> Vec<ClassFinding> {
    let mut groups: BTreeMap<(&Key, HostClass), Vec<(&str, &Found)>> = BTreeMap::new();
    let mut classes: BTreeMap<HostClass, Vec<&Digest>> = BTreeMap::new();
    for digest in digests {
        for (key, found) in &digest.findings {
            groups.entry((key, class_of(&digest.host))).or_default().push((&digest.host.name, found));
        }
        classes.entry(class_of(&digest.host)).or_default().push(digest);
    }
    let finding = |((key, class), found): ((&Key, HostClass), Vec<(&str, &Found)>)| {
        let (severity, rule, kinds) = key;
        let has_kinds = |digest: &&&Digest| kinds.iter().all(|kind| digest.kinds.contains_key(kind));
        let of_class: Vec<&&Digest> = classes[&class].iter().filter(has_kinds).collect();
        let devices_of = |digest: &&&Digest| kinds.iter().map(|kind| digest.kinds[kind]).sum::<usize>();
        let mut advice: Vec<(ClassAdvice, &str)> = Vec::new();
        let mut known: BTreeMap<&[String], usize> = BTreeMap::new();
        for (name, found) in &found {
            let index = *known.entry(&found.commands).or_insert(advice.len());
            if index == advice.len() {
                advice.push((ClassAdvice { commands: found.commands.clone(), hosts: Vec::new() }, &found.what));
            }
            advice[index].0.hosts.push((*name).to_owned());
        }
        advice.sort_by_key(|(advice, _)| std::cmp::Reverse(advice.hosts.len()));
        ClassFinding {
            rule: *rule,
            severity: *severity,
            machine: class.0.clone(),
            device: kinds::name(kinds),
            kernel: class.1.clone(),
            hosts: found.iter().map(|(name, _)| (*name).to_owned()).collect(),
            hosts_of_class: of_class.len(),
            devices: found.iter().map(|(_, found)| found.devices).sum(),
            devices_of_class: of_class.iter().map(devices_of).sum(),
            what: advice.first().map(|(_, what)| (*what).to_owned()).unwrap_or_default(),
            advice: advice.into_iter().map(|(advice, _)| advice).collect(),
        }
    };
    let mut findings: Vec<ClassFinding> = groups.into_iter().map(finding).collect();
    findings.sort_by_key(|finding| (finding.severity, std::cmp::Reverse(finding.hosts.len())));
    findings
}
