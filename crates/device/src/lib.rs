//! Device models in virtual time: each accepts commands and says when they complete.
//!
//! * [`Device`] is the interface and [`Schedule`] what a model answers into.
//! * [`Null`] completes after a delay: the block layer above it is all that costs time.
//! * [`Ssd`] is a SATA SSD: one serial stage, overlapping flash reads, pauses for garbage collection.
//! * A [`Preset`] is a model with its parameters, read from a TOML file: the built-in ones or a user's own. It
//!   says on what it was calibrated and how far off it is.
//!
//! ```
//! use hoistway_blk::{Instant, Op, Sector};
//! use hoistway_device::{Command, Preset, Schedule};
//!
//! let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
//! let mut device = preset.build(1);
//! let mut schedule = Schedule::default();
//! let command = Command { tag: 0, queue: 0, op: Op::Write, sector: Sector(0), sectors: 8, fua: false };
//! device.submit(Instant::ZERO, command, &mut schedule).unwrap();
//! assert_eq!(schedule.completions[0].at, Instant(35_900));
//! ```
//!
//! Models are deterministic: everything random comes from the seed that a model is built with, and nothing
//! depends on the machine or on other models beside it.

mod model;
mod null;
mod preset;
mod random;
mod ssd;

pub use model::{Command, Completion, Device, Refusal, Schedule, Shape};
pub use null::{Null, NullParameters};
pub use preset::{Calibration, Model, Parameters, Preset, PresetError, PresetFile, Residual, ShapeSection};
pub use ssd::{GarbageCollection, Ssd, SsdParameters};
