//! Findings about weights and priorities without effect. Source of the rules: `docs/rules/cgroup.md`, CG-1, CG-2, CG-7, CG-8.

use hoistway_blk::schedulers::Priorities;
use hoistway_legacy::all_schedulers;

use super::{Finding, Rule, Severity, by_count, disks, join_names, shown_scheduler, write_command};
use crate::host::{CgroupSetting, Device, Host, TaskPriority};

/// The mechanism that honours the weights in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WeightMechanism {
    Bfq,
    Cfq,
    IoCost,
}

fn weight_mechanism(file: &str) -> Option<WeightMechanism> {
    match file {
        "io.bfq.weight" | "blkio.bfq.weight" | "blkio.bfq.weight_device" => Some(WeightMechanism::Bfq),
        "io.weight" => Some(WeightMechanism::IoCost),
        _ if file.starts_with("blkio.") && file.contains("weight") => Some(WeightMechanism::Cfq),
        _ => None,
    }
}

pub(super) fn weights_without_effect(host: &Host) -> Vec<Finding> {
    [WeightMechanism::Bfq, WeightMechanism::IoCost, WeightMechanism::Cfq]
        .into_iter()
        .filter_map(|by| weights_finding(host, by))
        .collect()
}

/// A finding about weights for this mechanism, if it is not active on their devices.
fn weights_finding(host: &Host, mechanism: WeightMechanism) -> Option<Finding> {
    let is_under = |device: &Device, scheduler: &str| device.active_scheduler() == Some(scheduler);
    let has_cost = |device: &Device| {
        let enabled = |setting: &CgroupSetting| setting.file == "io.cost.qos" && setting.value.contains("enable=1");
        host.cgroups.settings.iter().any(|set| enabled(set) && set.device.as_ref() == Some(&device.number))
    };
    let acts_on = |device: &Device| match mechanism {
        WeightMechanism::Bfq => is_under(device, "bfq"),
        WeightMechanism::Cfq => is_under(device, "cfq"),
        WeightMechanism::IoCost => has_cost(device) || is_under(device, "cfq"),
    };
    // systemd writes both io.weight and io.bfq.weight for one option; it is enough if bfq honours its own.
    let is_honoured_by_bfq = |setting: &CgroupSetting| {
        let is_bfq_weight_of_cgroup =
            |other: &CgroupSetting| other.cgroup == setting.cgroup && other.file == "io.bfq.weight";
        setting.file == "io.weight"
            && disks(host).any(|device| is_under(device, "bfq"))
            && host.cgroups.settings.iter().any(is_bfq_weight_of_cgroup)
    };
    let is_without_effect = |setting: &&CgroupSetting| {
        let mut target_disks =
            disks(host).filter(|device| setting.device.as_ref().is_none_or(|number| *number == device.number));
        weight_mechanism(&setting.file) == Some(mechanism) && !target_disks.any(acts_on) && !is_honoured_by_bfq(setting)
    };
    let settings: Vec<&CgroupSetting> = host.cgroups.settings.iter().filter(is_without_effect).collect();
    let first = settings.first()?;
    let disk = disks(host).find(|device| first.device.as_ref().is_none_or(|number| *number == device.number));
    let (what, commands) = match mechanism {
        WeightMechanism::Bfq => (
            "only bfq honours it, and bfq is not active there",
            disk.map(|disk| write_command(&disk.name, "scheduler", "bfq")),
        ),
        WeightMechanism::Cfq => ("only cfq honours it, which Linux 5.0 removed", None),
        WeightMechanism::IoCost => {
            let mount_point = host.cgroups.mounted_on.as_deref().unwrap_or("/sys/fs/cgroup");
            let enable =
                disk.map(|disk| format!("echo \"{} enable=1 ctrl=auto\" > {mount_point}/io.cost.qos", disk.number));
            ("only io.cost honours it, and io.cost is off", enable)
        }
    };
    const SHOWN_MAX: usize = 5;
    let describe = |setting: &CgroupSetting| {
        let mount_point = host.cgroups.mounted_on.as_deref().unwrap_or_default();
        let device = setting.device.as_ref().map(|number| format!("{number} ")).unwrap_or_default();
        format!("{mount_point}{}/{}: {device}{}", setting.cgroup.trim_end_matches('/'), setting.file, setting.value)
    };
    let mut evidence: Vec<String> = settings.iter().take(SHOWN_MAX).map(|setting| describe(setting)).collect();
    if settings.len() > SHOWN_MAX {
        evidence.push(format!("and {} others", settings.len() - SHOWN_MAX));
    }
    evidence.extend(disks(host).take(SHOWN_MAX).map(shown_scheduler));
    let mut cgroups: Vec<&str> = settings.iter().map(|setting| setting.cgroup.as_str()).collect();
    cgroups.dedup();
    Some(Finding {
        rule: Rule::WeightsWithoutEffect,
        severity: Severity::Medium,
        devices: Vec::new(),
        what: format!("{} is set in {} and has no effect: {what}.", first.file, join_names(cgroups.iter().copied()),),
        evidence,
        commands: commands.into_iter().collect(),
    })
}

pub(super) fn priorities_ignored(host: &Host) -> Option<Finding> {
    let generation = host.kernel.block_layer()?.generation();
    let schedulers = all_schedulers();
    let honours = |device: &Device| {
        let row = device.active_scheduler().and_then(|name| schedulers.find(name));
        row.map_or(Priorities::ClassAndLevel, |row| (row.priorities)(&generation))
    };
    let ignores = |device: &Device, task: &TaskPriority| match honours(device) {
        Priorities::No => true,
        Priorities::Class => task.class == "best-effort",
        Priorities::ClassAndLevel => false,
    };
    let devices: Vec<&Device> =
        disks(host).filter(|device| host.priorities.iter().any(|task| ignores(device, task))).collect();
    let tasks: Vec<&TaskPriority> =
        host.priorities.iter().filter(|task| devices.iter().any(|device| ignores(device, task))).collect();
    if tasks.is_empty() {
        return None;
    }
    const SHOWN_MAX: usize = 5;
    let shown = |task: &&TaskPriority| {
        let level = task.level.map(|level| format!(" {level}")).unwrap_or_default();
        format!("process {} ({}): {}{level}", task.pid, task.name, task.class)
    };
    let mut evidence: Vec<String> = tasks.iter().take(SHOWN_MAX).map(shown).collect();
    if tasks.len() > SHOWN_MAX {
        evidence.push(format!("and {} others", tasks.len() - SHOWN_MAX));
    }
    evidence.extend(devices.iter().take(SHOWN_MAX).map(|device| shown_scheduler(device)));
    let mut names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut active: Vec<&str> = devices.iter().filter_map(|device| device.active_scheduler()).collect();
    active.sort_unstable();
    active.dedup();
    Some(Finding {
        rule: Rule::PrioritiesIgnored,
        severity: Severity::Medium,
        devices: devices.iter().map(|device| device.name.clone()).collect(),
        what: format!(
            "{} {} an I/O priority, which has no effect on {}: {} {} {}.",
            join_names(names.iter().copied()),
            by_count(names.len(), "has", "have"),
            join_names(devices.iter().map(|device| device.name.as_str())),
            join_names(active.iter().copied()),
            by_count(active.len(), "ignores", "ignore"),
            if devices.iter().all(|device| honours(device) == Priorities::Class) { "levels of a class" } else { "it" },
        ),
        evidence,
        commands: devices.iter().take(1).map(|device| write_command(&device.name, "scheduler", "bfq")).collect(),
    })
}
