//! Findings about configurations that are not in effect.

use std::collections::BTreeMap;

use super::{Finding, Rule, Severity, by_count, disks, join_names, shown_scheduler, write_command};
use crate::host::queue::written_scheduler;
use crate::host::{Certainty, Class, Device, Host, Setting};

pub(super) fn settings_not_active(host: &Host) -> Vec<Finding> {
    // Per device, file and program (udev or tuned): the last certain setting and later possible ones decide.
    let mut by_file: BTreeMap<(&str, &str, &str), Vec<&Setting>> = BTreeMap::new();
    for setting in &host.settings {
        by_file.entry((&setting.device, &setting.file, setting.by)).or_default().push(setting);
    }
    // One finding per line of a configuration, even if it concerns several devices.
    let mut by_line: BTreeMap<(&str, usize), Vec<(&Setting, &Device)>> = BTreeMap::new();
    for ((name, file, _), settings) in &by_file {
        let Some(device) = host.device(name).filter(|device| !device.is_empty()) else { continue };
        // tuned leaves memory cards alone, so its profile says nothing about them.
        if settings.iter().all(|setting| setting.by == "tuned") && device.name.starts_with("mmcblk") {
            continue;
        }
        let Some(active) = active(device, file) else { continue };
        let last_certain = settings.iter().rposition(|setting| setting.certainty == Certainty::Certain);
        let is_active = |setting: &&&Setting| is_in_effect(file, &setting.value, active);
        if settings[last_certain.unwrap_or(0)..].iter().any(|setting| is_active(&setting)) {
            continue;
        }
        let setting = last_certain.map_or_else(|| settings.last(), |index| settings.get(index));
        if let Some(setting) = setting {
            by_line.entry((&setting.source, setting.line)).or_default().push((setting, device));
        }
    }
    // A line may set several files; each gets a separate finding.
    let mut findings = Vec::new();
    for line_settings in by_line.into_values() {
        let mut files: Vec<&str> = line_settings.iter().map(|(setting, _)| setting.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            let file_settings: Vec<_> =
                line_settings.iter().copied().filter(|(setting, _)| setting.file == file).collect();
            findings.extend(setting_not_active(host, &file_settings));
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
    let configuration = match setting.by {
        "udev" => "A udev rule",
        _ => "The active tuned profile",
    };
    Some(Finding {
        rule: Rule::SettingNotActive,
        severity: if is_certain { Severity::Medium } else { Severity::Low },
        devices: names.iter().map(|&name| name.to_owned()).collect(),
        what: format!(
            "{configuration} {} {} of {} to {}, and {} is active{}.",
            if is_certain { "sets" } else { "may set" },
            setting.file,
            join_names(names.iter().copied()),
            setting.value,
            join_names(settings.iter().take(1).filter_map(|(setting, device)| active(device, &setting.file))),
            if is_offered && host.settings.iter().any(|other| is_set_elsewhere(other, setting)) {
                "; another configuration also sets it, and the last writer wins"
            } else {
                ""
            }
        ),
        evidence,
        commands,
    })
}

/// Whether another configuration sets the same file.
fn is_set_elsewhere(other: &Setting, setting: &Setting) -> bool {
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

fn is_in_effect(file: &str, written: &str, active: &str) -> bool {
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
    /// The configuration lines that set it; empty if only the file shows the scheduler.
    set_by: Vec<&'a Setting>,
}

pub(super) fn schedulers_on_stacked_devices(host: &Host) -> Vec<Finding> {
    let mut entries: Vec<SchedulerWithoutEffect<'_>> = host
        .devices
        .iter()
        .filter(|device| has_no_requests(device))
        .filter_map(|device| scheduler_without_effect(host, device))
        .collect();
    // One finding for all devices that the same lines set.
    let lines = |entry: &SchedulerWithoutEffect<'_>| {
        entry.set_by.iter().map(|setting| (setting.source.clone(), setting.line)).collect::<Vec<_>>()
    };
    entries.sort_by_key(lines);
    entries
        .chunk_by(|entry, next| lines(entry) == lines(next))
        .map(|group| stacked_scheduler_finding(host, group))
        .collect()
}

/// The scheduler set on this device.
fn scheduler_without_effect<'a>(host: &'a Host, device: &'a Device) -> Option<SchedulerWithoutEffect<'a>> {
    let set_by = host.settings.iter().filter(|setting| {
        let is_scheduler = setting.file == "scheduler" && setting.value != "none";
        setting.device == device.name && is_scheduler && setting.certainty == Certainty::Certain
    });
    let set_by: Vec<&Setting> = set_by.collect();
    let active = device.active_scheduler().filter(|active| *active != "none");
    let scheduler = active.or_else(|| set_by.last().map(|setting| setting.value.as_str()))?;
    Some(SchedulerWithoutEffect { device, scheduler, set_by })
}

fn stacked_scheduler_finding(host: &Host, entries: &[SchedulerWithoutEffect<'_>]) -> Finding {
    let mut below: Vec<&Device> = Vec::new();
    for disk in entries.iter().flat_map(|entry| disks_below(host, entry.device)) {
        if !below.iter().any(|known| known.name == disk.name) {
            below.push(disk);
        }
    }
    let (first, scheduler) = (&entries[0], entries[0].scheduler);
    let is_shown =
        |entry: &&SchedulerWithoutEffect<'_>| entry.device.active_scheduler().is_some_and(|active| active != "none");
    let mut evidence: Vec<String> =
        entries.iter().filter(is_shown).map(|entry| shown_scheduler(entry.device)).collect();
    let line = |setting: &&Setting| {
        format!("{}:{}: sets queue/{} to {}", setting.source, setting.line, setting.file, setting.value)
    };
    evidence.extend(first.set_by.iter().map(line));
    evidence.extend(below.iter().map(|disk| shown_scheduler(disk)));
    let others = below.iter().filter(|disk| disk.active_scheduler() != Some(scheduler));
    let mut commands: Vec<String> = others.map(|disk| write_command(&disk.name, "scheduler", scheduler)).collect();
    commands.extend(
        first
            .set_by
            .iter()
            .map(|setting| format!("# leave dm-* and md* out of line {} of {}", setting.line, setting.source)),
    );
    if commands.is_empty() {
        commands.extend(entries.iter().map(|entry| write_command(&entry.device.name, "scheduler", "none")));
    }
    let name = |device: &'_ Device| device.mapped_name.clone().unwrap_or_else(|| device.name.clone());
    let layers = |entry: &SchedulerWithoutEffect<'_>| {
        format!("{} ({})", name(entry.device), entry.device.layer.as_deref().unwrap_or("stacked"))
    };
    let named: Vec<String> = entries.iter().map(layers).collect();
    Finding {
        rule: Rule::SchedulerOnStackedDevice,
        severity: Severity::Medium,
        devices: entries.iter().map(|entry| entry.device.name.clone()).collect(),
        what: format!(
            "{scheduler} is set on {}, which {} bios through without a scheduler. Set it on {} instead.",
            join_names(named.iter().map(String::as_str)),
            by_count(entries.len(), "passes", "pass"),
            if below.is_empty() {
                "the devices below".to_owned()
            } else {
                join_names(below.iter().map(|disk| disk.name.as_str()))
            },
        ),
        evidence,
        commands,
    }
}

/// The request-based devices below a device, through all layers.
fn disks_below<'a>(host: &'a Host, device: &'a Device) -> Vec<&'a Device> {
    let mut seen: Vec<&Device> = vec![device];
    let mut next = 0;
    while let Some(upper) = seen.get(next) {
        for below in upper.below.iter().filter_map(|name| host.device(name)) {
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
    // Before 5.0, `elevator=` set the scheduler of every device of the single-queue layer.
    let has_single_queue = host.kernel.block_layer().is_some_and(|kernel| !kernel.is_from(5, 0));
    let name = written_scheduler(elevator);
    let others: Vec<&Device> =
        disks(host).filter(|device| device.active_scheduler().is_some_and(|active| active != name)).collect();
    if has_single_queue && others.is_empty() {
        return None;
    }
    let mut evidence = vec![format!("/proc/cmdline: elevator={elevator}"), format!("Linux {}", host.kernel.release)];
    evidence.extend(others.iter().take(4).map(|device| shown_scheduler(device)));
    let mut commands = vec![host.kernel.removal_of("elevator")];
    if let Some(device) = others.first() {
        commands.push(write_command(&device.name, "scheduler", &name));
    }
    let why = if has_single_queue {
        "blk-mq devices have always ignored it"
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
                let names = join_names(others.iter().map(|device| device.name.as_str()));
                format!("{names} {}", by_count(others.len(), "has", "have"))
            },
            if others.is_empty() { ", but by coincidence" } else { "; a udev rule can set it" },
        ),
        evidence,
        commands,
    })
}
