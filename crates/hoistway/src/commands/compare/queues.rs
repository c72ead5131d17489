//! `--hw-queues`, `--read-queues`, `--poll-queues` and `--shared-tags`: the hardware queues and tags of the devices.

use anyhow::{Result, anyhow, bail};
use hoistway_blk::{Layer, TagLayout};
use hoistway_device::{Preset, PresetFile};
use hoistway_load::Load;
use hoistway_sim::QueueSettings;

use super::arguments::Arguments;

/// Gives the devices the hardware queues that were asked for, and `queue` those of a type.
pub(super) fn choose(arguments: &Arguments, devices: Vec<Preset>, queue: &mut QueueSettings) -> Result<Vec<Preset>> {
    for (option, count) in [("--read-queues", arguments.read_queues), ("--poll-queues", arguments.poll_queues)] {
        if count > 0 && !queue.kernel.generation().queue_types {
            bail!(
                "{option} {count}: Linux {} has no hardware queues for reads or polling (expected --kernel 5.10 or later)",
                queue.kernel
            );
        }
    }
    // More than CPUs are never used.
    queue.read_queues = arguments.read_queues.min(queue.cpus);
    queue.poll_queues = arguments.poll_queues.min(queue.cpus);
    let of_types = queue.read_queues + queue.poll_queues;
    if arguments.hw_queues.is_none() && of_types == 0 {
        return Ok(devices);
    }
    let with_queues = |preset: Preset| {
        let of_default = arguments.hw_queues.unwrap_or(preset.shape().hw_queues);
        let count = if of_types == 0 { of_default } else { of_default.min(queue.cpus) + of_types };
        with_hw_queues(preset, count)
    };
    devices.into_iter().map(with_queues).collect()
}

fn with_hw_queues(preset: Preset, count: u16) -> Result<Preset> {
    let name = preset.name.clone();
    let mut file = PresetFile::from(preset);
    file.shape.hw_queues = count;
    Preset::try_from(file).map_err(|error| anyhow!("{count} hardware queues with {name}: {error}"))
}

/// Whether devices can share their tags as `--shared-tags` asks for.
pub(super) fn check_shared_tags(queue: &QueueSettings, devices: &[Preset], schedulers: &[String]) -> Result<()> {
    if !queue.shared_tags {
        return Ok(());
    }
    let [first, others @ ..] = devices else { return Ok(()) };
    if others.is_empty() {
        bail!("--shared-tags: the job file uses one device (expected several, such as filename=/dev/sda:/dev/sdb)");
    }
    let layout = |preset: &Preset| queue.config(&preset.shape()).tag_layout();
    let told = |preset: &Preset| {
        let TagLayout { hctxs, depth, host_wide, .. } = layout(preset);
        let common = if host_wide { " in common" } else { "" };
        format!("{} has {depth} tags{common} for each of {hctxs} hardware queues", preset.name)
    };
    if let Some(other) = others.iter().find(|other| layout(other) != layout(first)) {
        bail!("--shared-tags: {}, {} (expected devices that are alike in this)", told(first), told(other));
    }
    if let Some(legacy) = schedulers.iter().find(|name| queue.schedulers.is_legacy(name)) {
        let others: Vec<&str> = queue.schedulers.of(Layer::MultiQueue).map(|row| row.name).collect();
        bail!(
            "--shared-tags: with {legacy} a device shares no tags (expected --schedulers with some of {})",
            others.join(", ")
        );
    }
    Ok(())
}

/// What must be said of polling.
pub(super) fn polling_notice(workload: &Load, queue: &QueueSettings, schedulers: &[String]) -> Option<String> {
    if !workload.processes.iter().any(|process| process.issue.polls) {
        return None;
    }
    if queue.poll_queues == 0 {
        return Some(
            "hipri: completions come by interrupt, because no device has hardware queues for polling (--poll-queues 1 gives \
             them one)."
                .to_owned(),
        );
    }
    let legacy: Vec<&str> =
        schedulers.iter().map(String::as_str).filter(|name| queue.schedulers.is_legacy(name)).collect();
    (!legacy.is_empty()).then(|| {
        format!("hipri: with {} completions come by interrupt; the legacy queue cannot be polled.", legacy.join(", "))
    })
}
