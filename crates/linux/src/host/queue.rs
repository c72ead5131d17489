//! The request queue of a device: hardware queues, scheduler and writable files.

use hoistway_blk::queue::QUEUE_DEPTH_MAX;
use hoistway_blk::sysfs::WRITABLE_ATTRIBUTES;
use hoistway_legacy::{LEGACY_SCHEDULERS, all_schedulers};
use serde::Serialize;

use super::Unreadable;
use super::class::Class;
use super::defaults::{Defaults, QueueShape};
use crate::root::Root;

/// The hardware queues of a device, as its driver reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Hardware {
    /// Hardware queues.
    pub queues: u16,
    /// Maximum in-flight requests per hardware queue; several queues may share this depth.
    pub depth: u32,
    /// Driver tags per hardware queue: more than the depth if several devices share a host adapter.
    pub tags: u32,
}

/// The scheduler of a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SchedulerFacts {
    /// The active one.
    pub active: String,
    /// The schedulers that can be set now, in the order of `queue/scheduler`. Modules that are not loaded may provide more.
    pub available: Vec<String>,
    /// The kernel's default for such a device, if known.
    #[serde(rename = "default")]
    pub by_default: Option<String>,
}

/// A writable file of `queue/`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TunableFact {
    /// Its name, such as `nr_requests` or `iosched/read_expire`.
    pub file: String,
    /// Its value.
    pub value: String,
    /// Its default, if known.
    #[serde(rename = "default")]
    pub by_default: Option<String>,
    /// Whether the value differs from the default.
    pub changed: bool,
}

/// The properties of a queue.
pub(super) struct QueueFacts {
    pub(super) hardware: Option<Hardware>,
    pub(super) scheduler: Option<SchedulerFacts>,
    pub(super) tunables: Vec<TunableFact>,
}

/// Files whose default depends on the driver, so that changes cannot be detected.
const DRIVER_DEPENDENT: [&str; 7] =
    ["rotational", "write_cache", "max_sectors_kb", "discard_max_bytes", "io_timeout", "rq_affinity", "read_ahead_kb"];

/// An eighth of a second in whole ticks, in milliseconds: the default of bfq's timeout_sync and cfq's fifo_expire_sync on a kernel of 250
/// ticks a second, as ours is, and on those of 100, 300 and 1000. No file says how many a kernel has.
const DEFAULT_AT_250_HZ: &str = "124";
const DEFAULTS_AT_OTHER_RATES: [&str; 3] = ["120", "123", "125"];

/// Reads `queue/`, `mq/` and the driver's depth for the device in `folder`.
pub(super) fn read(
    folder: &Root,
    (name, device_path): (&str, &str),
    class: Class,
    defaults: &mut Defaults,
    unreadable: &mut Unreadable,
) -> QueueFacts {
    let hardware = hardware(folder, device_path, unreadable);
    let Ok(queue) = folder.below("queue") else {
        return QueueFacts { hardware, scheduler: None, tunables: Vec::new() };
    };
    let queue_path = format!("{device_path}/queue");
    let scheduler = unreadable.read(&queue, &queue_path, "scheduler").and_then(|text| scheduler(&text));
    let is_rotational = queue.read("rotational").is_ok_and(|text| text.trim() == "1");
    let is_legacy = scheduler.as_ref().is_some_and(|found| LEGACY_SCHEDULERS.contains(&found.active.as_str()));
    let shape = scheduler.as_ref().filter(|_| hardware.is_some() || is_legacy).map(|scheduler| QueueShape {
        scheduler: scheduler.active.clone(),
        rotational: is_rotational,
        hardware_queues: hardware.map_or(1, |hardware| hardware.queues),
        tags: hardware.map_or(1, |hardware| hardware.tags).clamp(1, QUEUE_DEPTH_MAX),
        // Host adapters with several hardware queues share their tags.
        host_wide_tags: matches!(class, Class::Hdd | Class::Ssd),
    });
    let mut files: Vec<String> =
        WRITABLE_ATTRIBUTES.iter().filter(|&&file| file != "scheduler").map(|&file| file.to_owned()).collect();
    files.extend(queue.names("iosched").unwrap_or_default().into_iter().map(|file| format!("iosched/{file}")));
    let tunables = files.into_iter().filter_map(|file| {
        let value = unreadable.read(&queue, &queue_path, &file)?;
        let shape = shape.as_ref().filter(|_| !DRIVER_DEPENDENT.contains(&file.as_str()));
        let by_default = shape.and_then(|shape| {
            let default_value = defaults.of(shape, &file);
            if default_value.as_deref() == Some(DEFAULT_AT_250_HZ) && DEFAULTS_AT_OTHER_RATES.contains(&&*value) {
                return Some(value.clone());
            }
            if class != Class::Loop || file != "wbt_lat_usec" || default_value.as_ref() == Some(&value) {
                return default_value;
            }
            // A loop device is rotational until it gets its backing file, and keeps the latency target from then.
            let default_when_created = defaults.of(&QueueShape { rotational: true, ..shape.clone() }, &file);
            default_when_created.filter(|value_when_created| *value_when_created == value).or(default_value)
        });
        let changed = by_default.as_ref().is_some_and(|by_default| *by_default != value);
        Some(TunableFact { file, value, by_default, changed })
    });
    let tunables = tunables.collect();
    let scheduler = scheduler.map(|scheduler| {
        let shape = shape.filter(|_| class.uses_block_layer_default(name));
        let by_default = shape.and_then(|shape| defaults.scheduler(&shape)).filter(|_| !is_legacy);
        SchedulerFacts { by_default: by_default.map(str::to_owned), ..scheduler }
    });
    QueueFacts { hardware, scheduler, tunables }
}

/// The hardware queues, which only request-based devices of blk-mq have.
fn hardware(folder: &Root, device_path: &str, unreadable: &mut Unreadable) -> Option<Hardware> {
    let queues = folder.names("mq").ok()?;
    let queues: Vec<&String> = queues.iter().filter(|name| name.parse::<u32>().is_ok()).collect();
    let first = queues.first()?;
    let tags: u32 = unreadable.read(folder, device_path, &format!("mq/{first}/nr_tags"))?.parse().ok()?;
    let lun_depth = folder.read("device/queue_depth").ok().and_then(|text| text.trim().parse().ok());
    // A disk behind a host adapter may accept fewer requests than the adapter.
    let depth = lun_depth.map_or(tags, |lun_depth: u32| lun_depth.min(tags)).max(1);
    Some(Hardware { queues: u16::try_from(queues.len()).unwrap_or(u16::MAX), depth, tags })
}

/// Parses `queue/scheduler`.
fn scheduler(text: &str) -> Option<SchedulerFacts> {
    let mut available: Vec<String> = Vec::new();
    let mut active = None;
    for word in text.split_whitespace() {
        let name = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        if name.is_some() {
            active = name.map(str::to_owned);
        }
        available.push(name.unwrap_or(word).to_owned());
    }
    // A bio-based device shows only `none`, without brackets.
    let active = active.or_else(|| (available == ["none"]).then(|| "none".to_owned()))?;
    Some(SchedulerFacts { active, available, by_default: None })
}

/// The name that the kernel shows after `text` is written to `queue/scheduler`.
pub(crate) fn written_scheduler(text: &str) -> String {
    let schedulers = all_schedulers();
    let row = schedulers.rows().iter().find(|row| row.name == text || row.aliases.contains(&text));
    row.map_or_else(|| text.to_owned(), |row| row.name.to_owned())
}
