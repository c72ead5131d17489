//! Configurations that are not in effect.

use std::collections::BTreeMap;

use super::{Finding, Rule, Severity, disks, listed, shown_scheduler, verb, write};
use crate::host::queue::written_scheduler;
use crate::host::{Certainty, Class, Device, Host, Setting};

pub(super) fn settings_not_active(host: &Host) -> Vec<Finding> {
    // For udev and tuned, the last certain setting of each file of a device, and possible later ones.
    let mut by_file: BTreeMap<(&str, &str, &str), Vec<&Setting>> = BTreeMap::new();
    for setting in &host.settings {
        by_file.entry((&setting.device, &setting.file, setting.by)).or_default().push(setting);
    }
    // One finding for each line of a configuration, whatever the number of devices.
    let mut by_line: BTreeMap<(&str, usize), Vec<(&Setting, &Device)>> = BTreeMap::new();
    for ((name, file, _), settings) in &by_file {
        let Some(device) = host.device(name).filter(|device| !device.is_empty()) else { continue };
        let Some(active) = active(device, file) else { continue };
        let last_certain = settings.iter().rposition(|setting| setting.certainty == Certainty::Certain);
        let is_active = |setting: &&&Setting| is_same(file, &setting.value, active);
        if settings[last_certain.unwrap_or(0)..].iter().any(|setting| is_active(&setting)) {
            continue;
        }
        let setting = last_certain.map_or_else(|| settings.last(), |at| settings.get(at));
        if let Some(setting) = setting {
            by_line.entry((&setting.source, setting.line)).or_default().push((setting, device));
        }
    }
    // A line may set several files, each with a separate finding.
    let mut findings = Vec::new();
    for of_line in by_line.into_values() {
        let mut files: Vec<&str> = of_line.iter().map(|(setting, _)| setting.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            let of_file: Vec<_> = of_line.iter().copied().filter(|(setting, _)| setting.file == file).collect();
            findings.extend(setting_not_active(host, &of_file));
        }
    }
    findings
}

fn setting_not_active(host: &Host, settings: &[(&Setting, &Device)]) -> Option<Finding> {
    let &(setting, device) = settings.first()?;
    let names: Vec<&str> = settings.iter().map(|(_, device)| device.name.as_str()).collect();
    let is_certain = setting.certainty == Certainty::Certain;
    let mut evidence =
        vec![format!("{}:{}: sets queue/{} to {}", setting.source, setting.line, setting.file, setting.value)];
    evidence.extend(settings.iter().map(|(setting, device)| match setting.file.as_str() {
        "scheduler" => shown_scheduler(device),
        file => format!("/sys/block/{}/queue/{file}: {}", device.name, active(device, file).unwrap_or_default()),
    }));
    let is_offered = setting.file != "scheduler" || {
        let written = written_scheduler(&setting.value);
        device.scheduler.as_ref().is_some_and(|scheduler| scheduler.available.contains(&written))
    };
    if !is_offered {
        evidence.push(format!(
            "{} is not in the list of /sys/block/{}/queue/scheduler: its module is missing, or this kernel does not have it",
            setting.value, device.name
        ));
    }
    let commands = match (setting.by, is_offered) {
        (_, false) => vec![format!("# correct line {} of {}", setting.line, setting.source)],
        ("udev", _) => names
            .iter()
            .map(|name| format!("udevadm trigger --action=change --subsystem-match=block --sysname-match={name}"))
            .collect(),
        _ => vec!["tuned-adm verify".to_owned(), "systemctl restart tuned".to_owned()],
    };
    let what = match setting.by {
        "udev" => "A udev rule",
        _ => "The active tuned profile",
    };
    Some(Finding {
        rule: Rule::SettingNotActive,
        severity: if is_certain { Severity::Medium } else { Severity::Low },
        devices: names.iter().map(|&name| name.to_owned()).collect(),
        what: format!(
            "{what} {} {} of {} to {}, and {} is active{}.",
            if is_certain { "sets" } else { "may set" },
            setting.file,
            listed(names.iter().copied()),
            setting.value,
            listed(settings.iter().take(1).filter_map(|(setting, device)| active(device, &setting.file))),
            if is_offered && host.settings.iter().any(|other| is_other(other, setting)) {
                "; another configuration sets it, too, and the last one that writes wins"
            } else {
                ""
            }
        ),
        evidence,
        commands,
    })
}

/// Whether another configuration sets the same file.
fn is_other(other: &Setting, setting: &Setting) -> bool {
    (&other.device, &other.file) == (&setting.device, &setting.file) && other.by != setting.by
}

/// The current value of a file of `queue/`.
fn active<'a>(device: &'a Device, file: &str) -> Option<&'a str> {
    match file {
        "scheduler" if has_no_requests(device) => None,
        "scheduler" => device.active_scheduler(),
        _ => device.tunables.iter().find(|tunable| tunable.file == file).map(|tunable| tunable.value.as_str()),
    }
}

fn is_same(file: &str, written: &str, active: &str) -> bool {
    match file {
        "scheduler" => written_scheduler(written) == active,
        // -1 stands for the default.
        "wbt_lat_usec" if written == "-1" => true,
        _ => written.trim() == active || written.trim().parse::<u64>().is_ok_and(|number| active.parse() == Ok(number)),
    }
}

/// Whether the device itself has no requests: bios pass through it to the devices below.
fn has_no_requests(device: &Device) -> bool {
    device.hardware.is_none() && device.class == Class::Stacked
}

/// A scheduler set on a device without requests, by its file or by lines of configurations.
struct SchedulerWithoutEffect<'a> {
    device: &'a Device,
    scheduler: &'a str,
    /// The lines; none if the file itself shows the scheduler.
    sets: Vec<&'a Setting>,
}

pub(super) fn schedulers_on_stacked_devices(host: &Host) -> Vec<Finding> {
    let mut all: Vec<SchedulerWithoutEffect<'_>> = host
        .devices
        .iter()
        .filter(|device| has_no_requests(device))
        .filter_map(|device| scheduler_without_effect(host, device))
        .collect();
    // One finding for all devices that the same lines set.
    let lines = |one: &SchedulerWithoutEffect<'_>| {
        one.sets.iter().map(|set| (set.source.clone(), set.line)).collect::<Vec<_>>()
    };
    all.sort_by_key(lines);
    all.chunk_by(|one, other| lines(one) == lines(other)).map(|of_lines| scheduler_in_vain(host, of_lines)).collect()
}

/// The scheduler set on this device.
fn scheduler_without_effect<'a>(host: &'a Host, device: &'a Device) -> Option<SchedulerWithoutEffect<'a>> {
    let sets = host.settings.iter().filter(|setting| {
        let is_scheduler = setting.file == "scheduler" && setting.value != "none";
        setting.device == device.name && is_scheduler && setting.certainty == Certainty::Certain
    });
    let sets: Vec<&Setting> = sets.collect();
    let active = device.active_scheduler().filter(|active| *active != "none");
    let scheduler = active.or_else(|| sets.last().map(|set| set.value.as_str()))?;
    Some(SchedulerWithoutEffect { device, scheduler, sets })
}

fn scheduler_in_vain(host: &Host, all: &[SchedulerWithoutEffect<'_>]) -> Finding {
    let mut below: Vec<&Device> = Vec::new();
    for disk in all.iter().flat_map(|one| disks_below(host, one.device)) {
        if !below.iter().any(|known| known.name == disk.name) {
            below.push(disk);
        }
    }
    let (first, scheduler) = (&all[0], all[0].scheduler);
    let is_shown =
        |one: &&SchedulerWithoutEffect<'_>| one.device.active_scheduler().is_some_and(|active| active != "none");
    let mut evidence: Vec<String> = all.iter().filter(is_shown).map(|one| shown_scheduler(one.device)).collect();
    let line = |set: &&Setting| format!("{}:{}: sets queue/{} to {}", set.source, set.line, set.file, set.value);
    evidence.extend(first.sets.iter().map(line));
    evidence.extend(below.iter().map(|disk| shown_scheduler(disk)));
    let others = below.iter().filter(|disk| disk.active_scheduler() != Some(scheduler));
    let mut commands: Vec<String> = others.map(|disk| write(&disk.name, "scheduler", scheduler)).collect();
    commands.extend(
        first.sets.iter().map(|set| format!("# leave dm-* and md* out of line {} of {}", set.line, set.source)),
    );
    if commands.is_empty() {
        commands.extend(all.iter().map(|one| write(&one.device.name, "scheduler", "none")));
    }
    let name = |device: &'_ Device| device.mapped_name.clone().unwrap_or_else(|| device.name.clone());
    let layers = |one: &SchedulerWithoutEffect<'_>| {
        format!("{} ({})", name(one.device), one.device.layer.as_deref().unwrap_or("stacked"))
    };
    let named: Vec<String> = all.iter().map(layers).collect();
    Finding {
        rule: Rule::SchedulerOnStackedDevice,
        severity: Severity::Medium,
        devices: all.iter().map(|one| one.device.name.clone()).collect(),
        what: format!(
            "{scheduler} is set on {}, which {} bios on as they come: no scheduler acts there. One acts on {}.",
            listed(named.iter().map(String::as_str)),
            verb(all.len(), "passes", "pass"),
            if below.is_empty() {
                "the devices below".to_owned()
            } else {
                listed(below.iter().map(|disk| disk.name.as_str()))
            },
        ),
        evidence,
        commands,
    }
}

/// The devices with requests below a device, through all layers.
fn disks_below<'a>(host: &'a Host, device: &'a Device) -> Vec<&'a Device> {
    let mut seen: Vec<&Device> = vec![device];
    let mut next = 0;
    while let Some(at) = seen.get(next) {
        for below in at.below.iter().filter_map(|name| host.device(name)) {
            if !seen.iter().any(|known| known.name == below.name) {
                seen.push(below);
            }
        }
        next += 1;
    }
    seen.into_iter().skip(1).filter(|device| !has_no_requests(device) && device.scheduler.is_some()).collect()
}

pub(super) fn elevator_parameter(host: &Host) -> Option<Finding> {
    let elevator = host.kernel.elevator()?;
    // In earlier kernels, it is the scheduler of each device of the single-queue layer.
    let has_single_queue = host.kernel.block_layer().is_some_and(|kernel| !kernel.is_from(5, 0));
    let name = written_scheduler(elevator);
    let others: Vec<&Device> =
        disks(host).filter(|device| device.active_scheduler().is_some_and(|active| active != name)).collect();
    if has_single_queue && others.is_empty() {
        return None;
    }
    let mut evidence = vec![format!("/proc/cmdline: elevator={elevator}"), format!("Linux {}", host.kernel.release)];
    evidence.extend(others.iter().take(4).map(|device| shown_scheduler(device)));
    let mut commands = vec!["grubby --update-kernel=ALL --remove-args=elevator".to_owned()];
    if let Some(device) = others.first() {
        commands.push(write(&device.name, "scheduler", &name));
    }
    let why = if has_single_queue {
        "devices of the multi-queue layer never took it"
    } else {
        "the kernel ignores it since 5.0, when the single-queue layer was removed"
    };
    Some(Finding {
        rule: Rule::ElevatorParameter,
        severity: Severity::Medium,
        devices: Vec::new(),
        what: format!(
            "The kernel was booted with elevator={elevator}: {why}. {} another scheduler{}.",
            if others.is_empty() {
                "No device has".to_owned()
            } else {
                let names = listed(others.iter().map(|device| device.name.as_str()));
                format!("{names} {}", verb(others.len(), "has", "have"))
            },
            if others.is_empty() { ", by chance" } else { "; a udev rule can set it" },
        ),
        evidence,
        commands,
    })
}
