//! Presets: a device model with its parameters and their calibration.
//!
//! Used by: crates `experiment`, `calibrate`, `hoistway`, `evidence`, `sim` and others.
//! Tests: `crates/device/src/preset/calibration.rs`, `crates/device/src/preset/names.rs`, `crates/device/tests/presets.rs`.
//!
//! A preset is a TOML file ([`PresetFile`]); the built-in ones are compiled in, and a user's own file is handled by the
//! same code:
//! 1. [`check`] compares the parsed document with the [`schema`]: each key that is missing, unknown, of the wrong type
//!    or not physically possible gives one error with file, line, key and the expected value.
//! 2. serde turns the document into a [`PresetFile`].
//! 3. The `Preset` keeps only the section of its model, so building a device cannot fail.

mod calibration;
mod check;
mod coarse;
mod describe;
mod error;
mod file;
mod names;
mod schema;

use hoistway_blk::ground::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

pub use calibration::{CalibratedRange, Calibration, Residual};
pub use error::PresetError;
pub use file::{Model, PresetFile, ShapeSection};

use crate::fill::Fill;
use crate::flash::{ArbitrationParameters, Flash, FlashParameters};
use crate::hdd::{Hdd, HddParameters};
use crate::middleware::{FaultInjector, FaultParameters, Ncq, Throttle, ThrottleParameters, Tracer, TracerParameters};
use crate::model::{Device, Shape};
use crate::null::{Null, NullParameters};
use crate::optane::{Optane, OptaneParameters};
use crate::raid::{Raid, RaidParameters};
use crate::service::{Service, ServiceParameters};
use crate::ssd::{Ssd, SsdParameters};
use crate::transport::TransportParameters;

/// The built-in presets with a file: name and text. The name is also that of the file. Others are generated from a table
/// ([`coarse`]).
const BUILTIN: [(&str, &str); 14] = [
    ("emmc", include_str!("../../presets/emmc.toml")),
    ("hgst-he10-8tb", include_str!("../../presets/hgst-he10-8tb.toml")),
    ("intel-p4800x-375gb", include_str!("../../presets/intel-p4800x-375gb.toml")),
    ("intel-s3520-1600gb", include_str!("../../presets/intel-s3520-1600gb.toml")),
    ("laptop-hdd", include_str!("../../presets/laptop-hdd.toml")),
    ("micron-9100-1600gb", include_str!("../../presets/micron-9100-1600gb.toml")),
    ("null", include_str!("../../presets/null.toml")),
    ("nvme-over-tcp", include_str!("../../presets/nvme-over-tcp.toml")),
    ("nvme-wrr", include_str!("../../presets/nvme-wrr.toml")),
    ("raid-64-queues", include_str!("../../presets/raid-64-queues.toml")),
    ("samsung-980pro-1tb", include_str!("../../presets/samsung-980pro-1tb.toml")),
    ("sd-card", include_str!("../../presets/sd-card.toml")),
    ("throttled-cloud-volume", include_str!("../../presets/throttled-cloud-volume.toml")),
    ("usb-stick", include_str!("../../presets/usb-stick.toml")),
];

/// A device model with checked parameters.
///
/// It serializes as the [`PresetFile`] that it came from, so that a result contains the device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "PresetFile", try_from = "PresetFile")]
pub struct Preset {
    /// Its name on the command line.
    pub name: String,
    /// The device, for users.
    pub title: String,
    shape: ShapeSection,
    parameters: Parameters,
    middleware: Middleware,
    transport: Option<TransportParameters>,
    calibration: Calibration,
    /// The drive that was asked for, if only its class is known.
    stands_in_for: Option<String>,
}

/// The wrappers around the model of a preset.
#[derive(Clone, PartialEq, Debug, Default)]
struct Middleware {
    throttle: Option<ThrottleParameters>,
    faults: Option<FaultParameters>,
    tracer: Option<TracerParameters>,
}

/// The model of a preset with its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum Parameters {
    /// [`Flash`].
    Flash(Box<FlashParameters>),
    /// [`Hdd`].
    Hdd(HddParameters),
    /// [`Null`].
    Null(NullParameters),
    /// [`Optane`].
    Optane(OptaneParameters),
    /// [`Raid`], and the preset of the device behind it.
    Raid(RaidParameters, Box<Preset>),
    /// [`Service`].
    Service(ServiceParameters),
    /// [`Ssd`].
    Ssd(SsdParameters),
}

impl Parameters {
    /// The model that they belong to.
    fn model(&self) -> Model {
        match self {
            Parameters::Flash(_) => Model::Flash,
            Parameters::Hdd(_) => Model::Hdd,
            Parameters::Null(_) => Model::Null,
            Parameters::Optane(_) => Model::Optane,
            Parameters::Raid(..) => Model::Raid,
            Parameters::Service(_) => Model::Service,
            Parameters::Ssd(_) => Model::Ssd,
        }
    }

    /// The model in one line.
    fn summary(&self) -> &'static str {
        match self {
            Parameters::Flash(_) => "flash: submission queues, front end, write buffer, dies, garbage collection",
            Parameters::Hdd(_) => "hdd: seek curve, turning platters, command queue, write cache, read-ahead, pauses",
            Parameters::Null(_) => "null: completes after a delay, without a queue",
            Parameters::Optane(_) => "optane: a serial front end and channels, no garbage collection",
            Parameters::Raid(..) => "raid: many hardware queues, host-wide tags, one device behind them",
            Parameters::Service(_) => {
                "service: measured service times of each kind of command, and how many are served at a time"
            }
            Parameters::Ssd(_) => {
                "ssd: one serial stage, overlapping flash reads, pauses driven by garbage-collection debt"
            }
        }
    }
}

/// The built-in preset that a user means.
fn resolve(name: &str) -> Result<names::Meant, PresetError> {
    let (known, sold_as): (Vec<_>, Vec<_>) = (Preset::builtin_names().collect(), coarse::sold_as().collect());
    names::resolve(name, &known, &sold_as).ok_or_else(|| {
        let nearest = names::of_another_capacity(name, &known, &sold_as);
        no_such_preset(name, nearest.or_else(|| names::nearest(name).map(str::to_owned)))
    })
}

fn no_such_preset(name: &str, nearest: Option<String>) -> PresetError {
    PresetError::NoSuchPreset {
        name: name.to_owned(),
        known: BUILTIN.iter().map(|(name, _)| *name).collect(),
        coarse: coarse::names().count(),
        nearest,
    }
}

impl Preset {
    /// Reads a preset. `file_name` is only used in errors.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Preset, PresetError> {
        check::document(text).map_err(|problem| problem.in_text(text, file_name))?;
        let file: PresetFile =
            toml::from_str(text).map_err(|e| error::PresetProblem::from_toml(&e).in_text(text, file_name))?;
        file.into_checked_preset().ok_or_else(|| error::PresetProblem::without_section().in_text(text, file_name))
    }

    /// The built-in preset with this name, of this class of devices ([`classes`](Self::classes)), or the only one whose name
    /// contains this text.
    ///
    /// # Errors
    /// [`PresetError::NoSuchPreset`] if there is none; the error lists those that exist.
    pub fn builtin(asked: &str) -> Result<Preset, PresetError> {
        let names::Meant { preset: name, is_of_series } = resolve(asked)?;
        let preset = match BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            Some((_, text)) => Preset::from_toml(text, &format!("{name}.toml (built in)"))?,
            None => coarse::file(name).ok_or_else(|| no_such_preset(name, None))?.try_into()?,
        };
        let stands_in_for = is_of_series.then(|| asked.to_owned());
        Ok(Preset { stands_in_for, ..preset })
    }

    /// The drive that was asked for by its model, if this is the model of another drive of its class.
    #[must_use]
    pub fn stands_in_for(&self) -> Option<&str> {
        self.stands_in_for.as_deref()
    }

    /// The file of the built-in preset with this name, as a template.
    ///
    /// # Errors
    /// [`PresetError::NoSuchPreset`] if there is none.
    pub fn builtin_toml(name: &str) -> Result<String, PresetError> {
        let name = resolve(name)?.preset;
        if let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            return Ok((*text).to_owned());
        }
        coarse::file(name).and_then(|file| file.to_toml().ok()).ok_or_else(|| no_such_preset(name, None))
    }

    /// The names of the built-in presets: those with a file in alphabetical order, then the coarse ones.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name).chain(coarse::names())
    }

    /// Classes of devices, such as `hdd`, and the built-in preset that represents each.
    pub fn classes() -> impl Iterator<Item = (&'static str, &'static str)> {
        names::classes()
    }

    /// Removes the calibration of the built-in preset that this one is based on, if any number was changed: changed numbers are
    /// not calibrated.
    #[must_use]
    pub fn without_borrowed_claims(self) -> Preset {
        let is_changed = |original: &Preset| {
            (&original.shape, &original.parameters, &original.middleware, &original.transport)
                != (&self.shape, &self.parameters, &self.middleware, &self.transport)
        };
        let calibrated_on = |preset: &Preset| (preset.calibration.on.clone(), preset.calibration.residuals.clone());
        let mut originals = Preset::builtin_names().filter_map(|name| Preset::builtin(name).ok());
        let Some(original) = originals.find(|original| calibrated_on(original) == calibrated_on(&self)) else {
            return self;
        };
        if !is_changed(&original) {
            return self;
        }
        let calibration = Calibration {
            on: format!("nothing: its numbers differ from those of {}, on which it is based", original.name),
            valid_range: "it has not been compared with a device".to_owned(),
            host: None,
            kernel: None,
            assumed: true,
            range: None,
            residuals: Vec::new(),
            sources: self.calibration.sources,
        };
        Preset { calibration, ..self }
    }

    /// The device described by the preset. `seed` determines all its random numbers.
    #[must_use]
    pub fn build(&self, seed: u64) -> Box<dyn Device> {
        let mut device = self.build_model(seed);
        if let Some(parameters) = &self.middleware.throttle {
            device = Box::new(Throttle::new(device, parameters));
        }
        if let Some(parameters) = &self.middleware.faults {
            device = Box::new(FaultInjector::new(device, parameters, seed));
        }
        if let Some(parameters) = &self.middleware.tracer {
            device = Box::new(Tracer::new(device, parameters));
        }
        device
    }

    /// The same behind a card, which replaces a SATA link.
    fn build_behind_card(&self, seed: u64) -> Box<dyn Device> {
        let shape = ShapeSection { sata: false, ..self.shape.clone() };
        Preset { shape, ..self.clone() }.build(seed)
    }

    fn build_model(&self, seed: u64) -> Box<dyn Device> {
        match &self.parameters {
            Parameters::Flash(parameters) => self.linked(Flash::new(self.shape(), parameters, seed)),
            Parameters::Hdd(parameters) => self.linked(Hdd::new(self.shape(), parameters, seed)),
            Parameters::Null(parameters) => self.linked(Null::new(self.shape(), parameters, seed)),
            Parameters::Optane(parameters) => self.linked(Optane::new(self.shape(), parameters, seed)),
            Parameters::Raid(parameters, inner) => {
                // The card has its own cache for flushes, and does not wait for the drive's queue.
                self.linked(Raid::new(self.shape(), parameters, inner.build_behind_card(seed)))
            }
            Parameters::Service(parameters) => self.linked(Service::new(self.shape(), parameters, seed)),
            Parameters::Ssd(parameters) => self.linked(Ssd::new(self.shape(), parameters, seed)),
        }
    }

    /// A model at the end of its link.
    fn linked<D: Device + 'static>(&self, model: D) -> Box<dyn Device> {
        if self.shape.sata { Box::new(Ncq::new(model)) } else { Box::new(model) }
    }

    /// The same with a capacity of at least `bytes`.
    #[must_use]
    pub fn with_capacity_of(mut self, bytes: u64) -> Preset {
        let sectors = bytes.div_ceil(SECTOR_BYTES).max(self.shape().capacity_sectors);
        if sectors > self.shape().capacity_sectors {
            self.shape.capacity_gb = (sectors * SECTOR_BYTES) as f64 / 1e9;
        }
        self
    }

    /// The drive when it is so full; `None` if nothing of the model depends on it. Its name remains, the title says it.
    #[must_use]
    pub fn filled(&self, fill: Fill) -> Option<Preset> {
        let parameters = match &self.parameters {
            Parameters::Flash(flash) => Parameters::Flash(Box::new(fill.of_flash(flash, self.shape.capacity_gb)?)),
            Parameters::Ssd(ssd) => Parameters::Ssd(fill.of_ssd(ssd, self.shape.capacity_gb)?),
            Parameters::Hdd(_)
            | Parameters::Null(_)
            | Parameters::Optane(_)
            | Parameters::Raid(..)
            | Parameters::Service(_) => return None,
        };
        let trimmed = if fill.is_trimmed { ", the rest erased" } else { "" };
        let title = format!("{}, {:.0} % full{trimmed}", self.title, fill.share * 100.0);
        Some(Preset { title, parameters, ..self.clone() })
    }

    /// The properties that the block layer needs.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let arbitration = match &self.parameters {
            Parameters::Flash(parameters) => parameters.arbitration.as_ref().map(ArbitrationParameters::capability),
            _ => None,
        };
        let transport = self.transport.as_ref().map(TransportParameters::capability);
        Shape { arbitration, transport, ..self.shape.to_shape() }
    }

    /// The transport between the host and the device, which the host's side has to execute.
    #[must_use]
    pub fn transport(&self) -> Option<&TransportParameters> {
        self.transport.as_ref()
    }

    /// The model and its parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The wrappers around the model, by the names of their sections.
    fn middleware_names(&self) -> Vec<&'static str> {
        let Middleware { throttle, faults, tracer } = &self.middleware;
        [("throttle", throttle.is_some()), ("faults", faults.is_some()), ("tracer", tracer.is_some())]
            .into_iter()
            .filter_map(|(name, is_present)| is_present.then_some(name))
            .collect()
    }

    /// Its calibration and errors.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The six figures that io.cost needs, in the order of `io.cost.model`, if they were measured on this drive and the preset is the one
    /// made from them.
    #[must_use]
    pub fn io_cost_figures(&self) -> Option<[u64; 6]> {
        // They were measured of the drive as it was then, however full it is now.
        let without_fill = |preset: &Preset| match preset.parameters() {
            Parameters::Flash(flash) => {
                Some(FlashParameters { random_write_amplification: None, erased_gb: None, ..(**flash).clone() })
            }
            _ => None,
        };
        let is_unchanged =
            Preset::builtin(&self.name).is_ok_and(|builtin| without_fill(&builtin) == without_fill(self));
        coarse::io_cost_figures(&self.name).filter(|_| is_unchanged)
    }

    /// The device, its calibration and the source of each number: several lines of text.
    #[must_use]
    pub fn describe(&self) -> String {
        describe::describe(self)
    }
}
