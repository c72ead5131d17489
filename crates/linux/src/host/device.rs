//! A block device of `/sys/block`.

use serde::Serialize;

use super::Unreadable;
use super::class::Class;
use super::defaults::Defaults;
use super::mounts::Mounts;
use super::nearest::{self, NearestPreset};
use super::queue::{self, Hardware, SchedulerFacts, TunableFact};
use super::stack;
use crate::root::Root;

/// Bytes of a sector in sysfs `size` and `start`, independent of the device's block size.
const SECTOR_BYTES: u64 = 512;

/// A partition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Partition {
    /// What the kernel calls it, such as `sda1`.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// A block device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Device {
    /// Its name in `/sys/block`.
    pub name: String,
    /// Its device number, such as `8:0`.
    pub number: String,
    /// Its name in `/dev/mapper`, if it has one.
    pub mapped_name: Option<String>,
    /// Its class.
    pub class: Class,
    /// Its kind of stacked device: `crypt`, `lvm`, `multipath`, `raid1`, ...
    pub layer: Option<String>,
    /// The devices below it; a partition is represented by its disk.
    pub below: Vec<String>,
    /// The devices on top of it or its partitions.
    pub above: Vec<String>,
    /// Its partitions.
    pub partitions: Vec<Partition>,
    /// Its model, as it reports it.
    pub model: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes of a logical block.
    pub logical_block_bytes: Option<u32>,
    /// Bytes of a physical block.
    pub physical_block_bytes: Option<u32>,
    /// Whether it reports to be rotational. Virtual disks may report this wrongly.
    pub rotational: Option<bool>,
    /// Whether its medium can be removed.
    pub removable: bool,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Its hardware queues; `None` for a bio-based device without requests, such as most stacked ones.
    pub hardware: Option<Hardware>,
    /// Its scheduler; `None` without a request queue.
    pub scheduler: Option<SchedulerFacts>,
    /// The writable files of its `queue/`.
    pub tunables: Vec<TunableFact>,
    /// The mode of its write cache: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The latency target of write-back throttling, us; 0 if it is off, `None` if the device has no such file.
    pub wbt_lat_us: Option<u64>,
    /// The closest device model.
    pub preset: Option<NearestPreset>,
    /// Its folder in sysfs, without a leading slash.
    #[serde(skip)]
    pub(crate) path: String,
}

impl Device {
    /// Reads the device with this name; `None` if it no longer exists.
    pub(super) fn read(
        root: &Root,
        name: &str,
        mounts: &Mounts,
        defaults: &mut Defaults,
        unreadable: &mut Unreadable,
    ) -> Option<Device> {
        let sysfs_path = format!("sys/block/{name}");
        let path = root.resolved(&sysfs_path).ok()?;
        let folder = root.below(&path).ok()?;
        // A device that is being removed may lack some files. The hidden paths of a multipath NVMe drive cannot be opened
        // and have no number.
        let is_hidden = folder.read("hidden").is_ok_and(|text| text.trim() == "1");
        let number = unreadable.read(&folder, &sysfs_path, "dev").or_else(|| is_hidden.then(|| "0:0".to_owned()))?;
        let size = unreadable.read(&folder, &sysfs_path, "size")?.parse::<u64>().ok()?;
        let number_in = |file: &str| folder.read(file).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let is_set = |file: &str| number_in(file).map(|number| number != 0);
        let rotational = is_set("queue/rotational");
        let class = Class::detect(name, &path, rotational == Some(true));
        let queue = queue::read(&folder, (name, &sysfs_path), class, defaults, unreadable);
        let value =
            |file: &str| queue.tunables.iter().find(|tunable| tunable.file == file).map(|found| found.value.clone());
        let removable = is_set("removable").unwrap_or(false);
        let model = model(root, &path);
        let preset = nearest::nearest(class, model.as_deref(), removable || is_card(root, &path));
        let (mapped_name, layer) = stack::layer(&folder, class);
        Some(Device {
            name: name.to_owned(),
            number,
            mapped_name,
            class,
            layer,
            below: stack::below(root, &folder, mounts),
            above: Vec::new(),
            partitions: partitions(&folder, name),
            model,
            size_bytes: size.saturating_mul(SECTOR_BYTES),
            logical_block_bytes: number_in("queue/logical_block_size"),
            physical_block_bytes: number_in("queue/physical_block_size"),
            rotational,
            removable,
            read_only: is_set("ro").unwrap_or(false),
            hardware: queue.hardware,
            write_cache: value("write_cache"),
            wbt_lat_us: value("wbt_lat_usec").and_then(|text| text.parse().ok()),
            scheduler: queue.scheduler,
            tunables: queue.tunables,
            preset,
            path,
        })
    }

    /// Whether `given` names this device: by its name, a partition's name or its mapped name, with or without the folder.
    #[must_use]
    pub fn is_called(&self, given: &str) -> bool {
        let name = given.strip_prefix("/dev/").unwrap_or(given);
        let mapped = name.strip_prefix("mapper/").unwrap_or(name);
        self.name == name
            || self.mapped_name.as_deref() == Some(mapped)
            || self.partitions.iter().any(|partition| partition.name == name)
    }

    /// The active scheduler; `None` without a request queue.
    #[must_use]
    pub fn active_scheduler(&self) -> Option<&str> {
        self.scheduler.as_ref().map(|scheduler| scheduler.active.as_str())
    }

    /// Whether it exists but is unused, like the loop devices that the kernel creates in advance.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.size_bytes == 0
    }
}

fn model(root: &Root, path: &str) -> Option<String> {
    let text = |file: &str| {
        let text = root.read(&format!("{path}/{file}")).ok()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    };
    // A multipath NVMe drive is below its subsystem instead of a controller; both have a model.
    let model = text("device/model").or_else(|| text("device/name").filter(|_| path.contains("/mmc_host/")))?;
    Some(match text("device/vendor").filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x")) {
        Some(vendor) => format!("{vendor} {model}"),
        None => model,
    })
}

/// Whether it is a removable card.
fn is_card(root: &Root, path: &str) -> bool {
    root.read(&format!("{path}/device/type")).is_ok_and(|kind| kind.trim() == "SD")
}

fn partitions(folder: &Root, disk: &str) -> Vec<Partition> {
    let names = folder.names("").unwrap_or_default();
    let candidates = names.into_iter().filter(|name| name.starts_with(disk));
    let mut partitions: Vec<Partition> = candidates
        .filter_map(|name| {
            folder.read(&format!("{name}/partition")).ok()?;
            let sectors: u64 = folder.read(&format!("{name}/size")).ok()?.trim().parse().ok()?;
            Some(Partition { name, size_bytes: sectors.saturating_mul(SECTOR_BYTES) })
        })
        .collect();
    partitions.sort_by_key(|partition| (partition.name.len(), partition.name.clone()));
    partitions
}
