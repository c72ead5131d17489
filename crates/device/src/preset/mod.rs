//! Presets: a device model together with its parameters, and on what they are calibrated.
//!
//! A preset is a TOML file ([`PresetFile`]); the built-in ones are compiled in, and a user's own file goes through
//! the same code:
//! 1. [`check`] compares the parsed document with the [`schema`]: each key that is missing, unknown, of the wrong
//!    kind or outside physics gives one error with file, line, key and what was expected.
//! 2. serde turns the document into a [`PresetFile`].
//! 3. The `Preset` keeps exactly the section of its model, so that building a device cannot fail.

mod calibration;
mod check;
mod describe;
mod error;
mod file;
mod schema;

use serde::{Deserialize, Serialize};

pub use calibration::{Calibration, Residual};
pub use error::PresetError;
pub use file::{Model, PresetFile, ShapeSection};

use crate::model::{Device, Shape};
use crate::null::{Null, NullParameters};
use crate::ssd::{Ssd, SsdParameters};

/// The built-in presets: name and text. The name is also that of the file.
const BUILTIN: [(&str, &str); 2] = [
    ("intel-s3520-1600gb", include_str!("../../presets/intel-s3520-1600gb.toml")),
    ("null", include_str!("../../presets/null.toml")),
];

/// A device model with its parameters, all of them checked.
///
/// It serialises as the [`PresetFile`] that it came from, so that a result can tell which device it is about.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "PresetFile", try_from = "PresetFile")]
pub struct Preset {
    /// What it is called on a command line.
    pub name: String,
    /// What device it is, for people.
    pub title: String,
    shape: ShapeSection,
    parameters: Parameters,
    calibration: Calibration,
}

/// The model of a preset and what it is made of.
#[derive(Clone, PartialEq, Debug)]
pub enum Parameters {
    /// [`Null`].
    Null(NullParameters),
    /// [`Ssd`].
    Ssd(SsdParameters),
}

impl Parameters {
    /// The model in one line.
    fn summary(&self) -> &'static str {
        match self {
            Parameters::Null(_) => "null: completes after a delay, without a queue",
            Parameters::Ssd(_) => {
                "ssd: one serial stage, overlapping flash reads, pauses driven by garbage-collection debt"
            }
        }
    }
}

impl Preset {
    /// Reads a preset. `file_name` is only for the error.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Preset, PresetError> {
        check::document(text).map_err(|problem| problem.in_text(text, file_name))?;
        let file: PresetFile =
            toml::from_str(text).map_err(|e| error::Problem::from_toml(&e).in_text(text, file_name))?;
        file.into_checked_preset().ok_or_else(|| error::Problem::without_section().in_text(text, file_name))
    }

    /// The built-in preset of this name.
    ///
    /// # Errors
    /// [`PresetError::NoSuchPreset`] if there is none; the error lists those that exist.
    pub fn builtin(name: &str) -> Result<Preset, PresetError> {
        match BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            Some((_, text)) => Preset::from_toml(text, &format!("{name}.toml (built in)")),
            None => Err(PresetError::NoSuchPreset { name: name.to_owned(), known: Preset::builtin_names().collect() }),
        }
    }

    /// The names of the built-in presets, in alphabetical order.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// A device as the preset describes it. Everything random in it is drawn from `seed`.
    #[must_use]
    pub fn build(&self, seed: u64) -> Box<dyn Device> {
        match &self.parameters {
            Parameters::Null(parameters) => Box::new(Null::new(self.shape(), parameters, seed)),
            Parameters::Ssd(parameters) => Box::new(Ssd::new(self.shape(), parameters, seed)),
        }
    }

    /// What the block layer needs to know about the device.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape.to_shape()
    }

    /// The model and what it is made of.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// On what it is calibrated, and how far off it is.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// What it is, what it is calibrated on and where each number comes from: several lines for people.
    #[must_use]
    pub fn describe(&self) -> String {
        describe::describe(self)
    }
}
