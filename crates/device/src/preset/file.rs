//! The preset file as data, exactly as written.

use hoistway_blk::ground::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

use super::{Calibration, Middleware, Parameters, Preset, PresetError};
use crate::flash::FlashParameters;
use crate::hdd::HddParameters;
use crate::middleware::{FaultParameters, ThrottleParameters, TracerParameters};
use crate::model::Shape;
use crate::null::NullParameters;
use crate::optane::OptaneParameters;
use crate::raid::RaidParameters;
use crate::service::ServiceParameters;
use crate::ssd::SsdParameters;
use crate::transport::TransportParameters;

/// A preset file: fill it in and serialize it in order to write one. It is unchecked until it becomes a [`Preset`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetFile {
    /// Its name on the command line.
    pub name: String,
    /// The device, for users.
    pub title: String,
    /// The model; the section with its name contains the model's parameters.
    pub model: Model,
    /// The properties that the block layer needs.
    pub shape: ShapeSection,
    /// Parameters of [`Model::Flash`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashParameters>,
    /// Parameters of [`Model::Hdd`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdd: Option<HddParameters>,
    /// Parameters of [`Model::Null`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null: Option<NullParameters>,
    /// Parameters of [`Model::Optane`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optane: Option<OptaneParameters>,
    /// Parameters of [`Model::Raid`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidParameters>,
    /// Parameters of [`Model::Service`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceParameters>,
    /// Parameters of [`Model::Ssd`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssd: Option<SsdParameters>,
    /// The throttle, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleParameters>,
    /// The faults, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultParameters>,
    /// The tracer, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<TracerParameters>,
    /// The transport between the host and it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportParameters>,
    /// The sources of the numbers.
    pub calibration: Calibration,
}

/// The device models by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// [`Flash`](crate::Flash).
    Flash,
    /// [`Hdd`](crate::Hdd).
    Hdd,
    /// [`Null`](crate::Null).
    Null,
    /// [`Optane`](crate::Optane).
    Optane,
    /// [`Raid`](crate::Raid).
    Raid,
    /// [`Service`](crate::Service).
    Service,
    /// [`Ssd`](crate::Ssd).
    Ssd,
}

/// The `[shape]` section: [`Shape`] in common units.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeSection {
    /// Size in gigabytes (10^9 bytes); must be a whole number of logical blocks.
    pub capacity_gb: f64,
    /// Logical block size, bytes.
    pub logical_block_bytes: u32,
    /// Physical block size, bytes.
    pub physical_block_bytes: u32,
    /// Hardware queues.
    pub hw_queues: u16,
    /// Commands per hardware queue, or in total with host-wide tags.
    pub queue_depth: u32,
    /// Whether all hardware queues share their driver tags, as those of many RAID cards do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_wide_tags: bool,
    /// Whether its driver asks for no scheduler by default, as null_blk does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_no_scheduler: bool,
    /// Whether it is driven as a SCSI (or SATA) disk.
    pub scsi: bool,
    /// Whether it is a SATA drive, whose flushes and discards are not queued commands: each waits until nothing is in the
    /// drive, and nothing else starts before it ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sata: bool,
    /// Whether it is a rotating disk.
    pub rotational: bool,
    /// Whether it has a volatile write cache.
    pub write_cache: bool,
    /// Whether it supports FUA writes.
    pub fua: bool,
    /// Maximum transfer, sectors of 512 bytes.
    pub max_sectors: u32,
    /// Maximum physical segments of a command.
    pub max_segments: u16,
}

/// Converts gigabytes to bytes. Exact up to 9 million GB (2^53 bytes) if they are given to the byte.
pub(super) fn bytes_from_gb(gb: f64) -> u64 {
    (gb * 1e9).round() as u64
}

impl ShapeSection {
    pub(super) fn to_shape(&self) -> Shape {
        Shape {
            capacity_sectors: bytes_from_gb(self.capacity_gb) / SECTOR_BYTES,
            logical_block_bytes: self.logical_block_bytes,
            physical_block_bytes: self.physical_block_bytes,
            hw_queues: self.hw_queues,
            queue_depth: self.queue_depth,
            host_wide_tags: self.host_wide_tags,
            wants_no_scheduler: self.wants_no_scheduler,
            scsi: self.scsi,
            rotational: self.rotational,
            write_cache: self.write_cache,
            fua: self.fua,
            max_sectors: self.max_sectors,
            max_segments: self.max_segments,
            arbitration: None,
            transport: None,
        }
    }
}

impl PresetFile {
    /// As TOML text.
    ///
    /// # Errors
    /// If a number cannot be represented in TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }

    /// The preset of a checked file; `None` if the section of its model is missing.
    pub(super) fn into_checked_preset(self) -> Option<Preset> {
        let parameters = match self.model {
            Model::Flash => Parameters::Flash(Box::new(self.flash?)),
            Model::Hdd => Parameters::Hdd(self.hdd?),
            Model::Null => Parameters::Null(self.null?),
            Model::Optane => Parameters::Optane(self.optane?),
            Model::Raid => {
                let parameters = self.raid?;
                let inner = Box::new(Preset::builtin(&parameters.inner).ok()?);
                Parameters::Raid(parameters, inner)
            }
            Model::Service => Parameters::Service(self.service?),
            Model::Ssd => Parameters::Ssd(self.ssd?),
        };
        Some(Preset {
            name: self.name,
            title: self.title,
            shape: self.shape,
            parameters,
            transport: self.transport,
            middleware: Middleware { throttle: self.throttle, faults: self.faults, tracer: self.tracer },
            calibration: self.calibration,
            stands_in_for: None,
        })
    }
}

/// Checks a file that a program has filled in. Lines in errors refer to [`PresetFile::to_toml`].
impl TryFrom<PresetFile> for Preset {
    type Error = PresetError;

    fn try_from(file: PresetFile) -> Result<Preset, PresetError> {
        let file_name = format!("preset {:?}", file.name);
        match file.to_toml() {
            Ok(text) => Preset::from_toml(&text, &file_name),
            Err(e) => Err(PresetError::Text { file: file_name, line: 1, problem: e.to_string() }),
        }
    }
}

impl From<Preset> for PresetFile {
    fn from(preset: Preset) -> PresetFile {
        let mut file = PresetFile {
            name: preset.name,
            title: preset.title,
            model: preset.parameters.model(),
            shape: preset.shape,
            flash: None,
            hdd: None,
            null: None,
            optane: None,
            raid: None,
            service: None,
            ssd: None,
            throttle: preset.middleware.throttle,
            faults: preset.middleware.faults,
            tracer: preset.middleware.tracer,
            transport: preset.transport,
            calibration: preset.calibration,
        };
        match preset.parameters {
            Parameters::Flash(parameters) => file.flash = Some(*parameters),
            Parameters::Hdd(parameters) => file.hdd = Some(parameters),
            Parameters::Null(parameters) => file.null = Some(parameters),
            Parameters::Optane(parameters) => file.optane = Some(parameters),
            Parameters::Raid(parameters, _) => file.raid = Some(parameters),
            Parameters::Service(parameters) => file.service = Some(parameters),
            Parameters::Ssd(parameters) => file.ssd = Some(parameters),
        }
        file
    }
}
