//! Findings about schedulers that do not suit their devices.

use super::{Finding, Rule, Severity, by_count, join_names, shown_scheduler, write_command};
use crate::host::{Device, Host, NearestBy};

/// Above this IOPS, bfq reduces the throughput of a device, because its lock is shared by the whole device. Source:
/// `docs/internals/performance.md`, and the published figures of bfq.
const BFQ_IOPS_MAX: u32 = 100_000;

fn is_under_bfq(device: &&Device) -> bool {
    device.active_scheduler() == Some("bfq")
}

pub(super) fn bfq_on_multipath_parts(host: &Host) -> Vec<Finding> {
    let is_multipath = |device: &&Device| device.layer.as_deref() == Some("multipath");
    let finding_for = |map: &Device| {
        let paths: Vec<&Device> = map.below.iter().filter_map(|name| host.device(name)).filter(is_under_bfq).collect();
        (!paths.is_empty()).then(|| Finding {
            rule: Rule::BfqOnMultipathPart,
            severity: Severity::High,
            devices: paths.iter().map(|path| path.name.clone()).collect(),
            what: format!(
                "bfq runs on {}, {} of the multipath device {}. Each instance sees only the requests of its own path, so \
                 shares, idling and merges are wrong for the device as a whole.",
                join_names(paths.iter().map(|path| path.name.as_str())),
                by_count(paths.len(), "a path", "paths"),
                map.mapped_name.as_deref().unwrap_or(&map.name),
            ),
            evidence: paths.iter().map(|path| shown_scheduler(path)).collect(),
            commands: paths.iter().map(|path| write_command(&path.name, "scheduler", "none")).collect(),
        })
    };
    host.devices.iter().filter(is_multipath).filter_map(finding_for).collect()
}

pub(super) fn bfq_on_fast_devices(host: &Host) -> Vec<Finding> {
    let finding_for = |device: &Device| {
        let preset = device.preset.as_ref()?;
        let reads_per_s = preset.random_reads_per_s.filter(|&reads_per_s| reads_per_s > BFQ_IOPS_MAX)?;
        let basis = match preset.by {
            NearestBy::Model => "its model",
            NearestBy::Class => "a model of its class",
        };
        Some(Finding {
            rule: Rule::BfqOnFastDevice,
            severity: Severity::High,
            devices: vec![device.name.clone()],
            what: format!(
                "bfq runs on {}, which completes about {} thousand I/Os per second. bfq has one lock for the whole device and takes the \
                 most CPU time of all schedulers, so it limits such a device.",
                device.name,
                reads_per_s / 1000
            ),
            evidence: vec![
                shown_scheduler(device),
                format!("{basis}, {}: about {reads_per_s} random reads of 4 KiB per second", preset.name),
            ],
            commands: vec![
                write_command(
                    &device.name,
                    "scheduler",
                    device.scheduler.as_ref()?.by_default.as_deref().unwrap_or("none"),
                ),
                format!("hoistway compare LOAD --device {} --advice {}", preset.name, device.name),
            ],
        })
    };
    host.devices.iter().filter(is_under_bfq).filter_map(finding_for).collect()
}

pub(super) fn wbt_off_under_bfq(host: &Host) -> Vec<Finding> {
    let devices: Vec<&Device> =
        host.devices.iter().filter(is_under_bfq).filter(|device| device.wbt_lat_us == Some(0)).collect();
    if devices.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        rule: Rule::WbtOffUnderBfq,
        severity: Severity::Low,
        devices: devices.iter().map(|device| device.name.clone()).collect(),
        what: format!(
            "Write-back throttling is off on {}: bfq switches it off while it is active. Buffered writes of one process are then \
             held back by bfq's shares alone.",
            join_names(devices.iter().map(|device| device.name.as_str()))
        ),
        evidence: devices.iter().map(|device| format!("/sys/block/{}/queue/wbt_lat_usec: 0", device.name)).collect(),
        // A value that was written explicitly, including -1 for the default, stays in force under bfq.
        commands: devices.iter().map(|device| write_command(&device.name, "wbt_lat_usec", "-1")).collect(),
    }]
}
