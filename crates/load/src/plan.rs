//! The I/Os of a process: everything about them except the sizes of the devices.
//!
//! Used by: `description`, `generator`; crate `fio`.
//! Tests: `crates/load/tests/files.rs`, `crates/load/tests/replays.rs`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::check::{Checked, ensure, whole_sectors};
use crate::limits::{FILES, REGION_BYTES};
use crate::{Amount, Direction, Distribution, Extent, LoadError, Origin, Pattern, Replay, Sizes};

/// The I/Os of a process. It becomes a [`Generator`](crate::Generator) once the sizes of the devices are known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IoPlan {
    /// The pattern of generated I/Os; clones of a job share it.
    pub pattern: Arc<Pattern>,
    /// The number of times that `offset_increment` is added to `offset`.
    pub increments: u32,
    /// Its files in the order of use: at least one, except for a replay.
    pub files: Arc<[PlacedFile]>,
    /// A recording that is replayed instead. Then only the priorities of the pattern apply.
    #[serde(skip)]
    pub replay: Option<Arc<Replay>>,
    /// Where the fields of the process come from.
    #[serde(skip)]
    pub origin: Option<Origin>,
}

impl Default for IoPlan {
    fn default() -> Self {
        IoPlan::new(Pattern::default())
    }
}

/// A file of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlacedFile {
    /// Index of the device among the process's devices.
    pub device: u8,
    /// Its position there, if it is not the whole device.
    pub own: Option<OwnFile>,
}

/// The position on a device of a file that is not the whole device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFile {
    /// Its first byte.
    pub start_bytes: u64,
    /// Its length.
    pub bytes: u64,
}

/// The part of a file that a process uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    /// First byte on the device.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Size of the whole file that contains the region, and the region's start in it.
    pub(crate) file_bytes: u64,
    pub(crate) offset: u64,
    /// From the start of the region to the end of its file or device.
    pub(crate) room_bytes: u64,
    /// Index of the device among the process's devices.
    pub(crate) device: u8,
}

impl IoPlan {
    /// On the whole first device of the process.
    #[must_use]
    pub fn new(pattern: Pattern) -> IoPlan {
        let files = Arc::new([PlacedFile::default()]);
        IoPlan { pattern: Arc::new(pattern), increments: 0, files, replay: None, origin: None }
    }

    /// The pattern, for modification.
    pub fn pattern_mut(&mut self) -> &mut Pattern {
        Arc::make_mut(&mut self.pattern)
    }

    /// Checks what a generator relies on.
    pub(crate) fn check(&self) -> Checked {
        if self.replay.is_none() {
            let files = self.files.len();
            ensure(
                (1..=FILES).contains(&files),
                "plan.files",
                format_args!("{files} files"),
                format_args!("expected 1 to {FILES}"),
            )?;
        }
        for own in self.files.iter().filter_map(|file| file.own) {
            let fits_any_device = own.start_bytes <= REGION_BYTES && own.bytes <= REGION_BYTES;
            ensure(fits_any_device, "plan.files", "larger than any device", "expected at most 1 EiB")?;
            whole_sectors("plan.files", own.start_bytes)?;
            whole_sectors("plan.files", own.bytes)?;
        }
        self.pattern.check(self.files.len() as u64)
    }

    /// The bytes of a device, by its index in [`Process::files`](crate::Process::files), that the plan's unnamed files
    /// occupy; `None` if it uses the device itself.
    #[must_use]
    pub fn own_bytes(&self, device: usize) -> Option<std::ops::Range<u64>> {
        let on_device = self.files.iter().filter(|file| usize::from(file.device) == device);
        let own = on_device.filter_map(|file| file.own).map(|own| (own.start_bytes, own.start_bytes + own.bytes));
        own.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).map(|(start, end)| start..end)
    }

    /// The smallest block that it reads, writes or trims, in bytes.
    #[must_use]
    pub fn block_bytes_min(&self) -> u32 {
        match &self.replay {
            Some(replay) => replay.summary.sizes.map_or(0, |sizes| sizes.0),
            None => self.pattern.active_sizes().map(Sizes::min).min().unwrap_or(0),
        }
    }

    /// The largest block that it reads, writes or trims, in bytes.
    #[must_use]
    pub fn block_bytes_max(&self) -> u32 {
        match &self.replay {
            Some(replay) => replay.summary.sizes.map_or(0, |sizes| sizes.1),
            None => self.pattern.active_sizes().map(Sizes::max).max().unwrap_or(0),
        }
    }

    /// Whether it writes or trims.
    #[must_use]
    pub fn modifies(&self) -> bool {
        match &self.replay {
            Some(replay) => replay.summary.modifies,
            None => self.pattern.direction != Direction::Read,
        }
    }

    /// Whether its offsets are random.
    #[must_use]
    pub fn is_random(&self) -> bool {
        match &self.replay {
            Some(replay) => replay.summary.is_random(),
            None => self.pattern.random_offsets().is_some(),
        }
    }

    /// Whether some of its I/Os have their own priority.
    #[must_use]
    pub fn has_priorities(&self) -> bool {
        !self.pattern.priorities.is_empty()
    }

    /// Whether its I/Os come from a recording.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether it issues flushes.
    #[must_use]
    pub fn flushes(&self) -> bool {
        match &self.replay {
            Some(replay) => replay.summary.flushes,
            None => self.pattern.sync_every.iter().any(|every| *every > 0),
        }
    }

    pub(crate) fn ranges(&self, device_bytes: u64) -> Result<Vec<(u64, u64)>, LoadError> {
        let range =
            |file: &PlacedFile| self.region(*file, &|_| device_bytes).map(|region| (region.start, region.bytes));
        self.files.iter().map(range).collect()
    }

    pub(crate) fn region(&self, file: PlacedFile, device_bytes: &dyn Fn(usize) -> u64) -> Result<Region, LoadError> {
        let (pattern, volume) = (&*self.pattern, &self.pattern.volume);
        let device_bytes = device_bytes(usize::from(file.device));
        let (base, whole) = match (file.own, volume.file_bytes) {
            (Some(own), _) => (own.start_bytes, own.bytes),
            (None, Some((_, most))) => (0, most),
            (None, None) => (0, device_bytes),
        };
        let wrong_size = |message, hint| Err(LoadError::new("plan.pattern.volume.size", message, hint));
        if base.saturating_add(whole) > device_bytes {
            let message = format!("the files of the jobs need {} bytes, the device has {device_bytes}", base + whole);
            return wrong_size(message, "use a larger device, or a smaller size");
        }
        let increment = volume.offset_increment.of(whole).checked_mul(u64::from(self.increments));
        let offset = increment.and_then(|i| i.checked_add(volume.offset.of(whole)));
        let offset = offset.and_then(|offset| pattern.aligned(offset)).filter(|&offset| offset < whole);
        let Some(offset) = offset else {
            let message = format!("the job starts beyond the end of the device, which has {device_bytes} bytes");
            return Err(LoadError::new(
                "plan.pattern.volume.offset",
                message,
                "use a larger device, or a smaller offset",
            ));
        };
        let room = whole - offset;
        // With a file size, a size in bytes is only the amount of I/O; without one it is divided among the files.
        let limits_region = |size: &Amount| volume.file_bytes.is_none() || matches!(size, Amount::Percent(_));
        let size = volume.size.filter(limits_region).map(|size| size.part_of(self.files.len() as u64));
        let bytes = match size {
            None => room,
            // Tried with fio 3.33: rounded to whole blocks of the smallest size of all directions.
            Some(Amount::Percent(percent)) => {
                let block = pattern.sizes.iter().map(Sizes::min).min().map_or(1, u64::from).max(1);
                Amount::Percent(percent).of(whole).min(room) / block * block
            }
            Some(Amount::Bytes(bytes)) if bytes <= room => bytes,
            Some(Amount::Bytes(bytes)) => {
                let end = offset.saturating_add(bytes);
                let message = format!("the job ends at byte {end}, but the device has {device_bytes}");
                return wrong_size(message, "use size=100%, or a larger device");
            }
        };
        // A block of every direction fits.
        let block = pattern.active_sizes().map(Sizes::min).max().unwrap_or(0);
        if bytes < u64::from(block) {
            let message = format!("the region of {bytes} bytes is smaller than a block of {block}");
            return wrong_size(message, "use a larger device or size, or a smaller block (bs)");
        }
        self.zones_fit(bytes)?;
        let end = if file.own.is_some() { base + whole } else { device_bytes };
        let room_bytes = end - base - offset;
        Ok(Region { start: base + offset, bytes, file_bytes: whole, offset, room_bytes, device: file.device })
    }

    /// Checks that zones given in bytes lie in the region.
    fn zones_fit(&self, region_bytes: u64) -> Result<(), LoadError> {
        let random = self.pattern.random_offsets();
        let Some(Distribution::Zoned(zones)) = random.map(|random| &random.distribution) else { return Ok(()) };
        for &lane in self.pattern.direction.lanes() {
            let bytes = zones[lane].iter().fold(0, |sum: u64, zone| match zone.extent {
                Extent::Bytes(bytes) => sum.saturating_add(bytes),
                Extent::Percent(_) => sum,
            });
            if bytes > region_bytes {
                let message = format!("the zones end at byte {bytes}, the region has {region_bytes}");
                let hint = "use smaller zones, or a larger device or size";
                return Err(LoadError::new("plan.pattern.offsets.distribution", message, hint));
            }
        }
        Ok(())
    }
}

impl Pattern {
    /// The start of a region with `offset` and `offset_increment`. Tried with fio 3.33: if one of them is a percentage,
    /// the sum is rounded up to the smallest block of all directions, including unused ones.
    fn aligned(&self, offset: u64) -> Option<u64> {
        let is_percent = |amount: &Amount| matches!(amount, Amount::Percent(_));
        if !is_percent(&self.volume.offset) && !is_percent(&self.volume.offset_increment) {
            return Some(offset & !511);
        }
        let block = self.sizes.iter().map(Sizes::min).min().unwrap_or(0);
        offset.checked_next_multiple_of(u64::from(block).max(512))
    }
}
