//! Device models in virtual time: each accepts commands and reports when they complete.
//!
//! Used by: crates `sim`, `experiment`, `calibrate`, `hoistway`, `evidence` and others.
//! Tests: `crates/device/src/` (in its files), `crates/device/tests/`.
//!
//! * [`Device`] is the interface; a model reports its completions in a [`Schedule`].
//! * [`Flash`] is a detailed SSD, SATA or NVMe: submission queues, front end, write buffer, dies, garbage collection.
//! * [`Hdd`] is a rotating disk: platters, one head, and the drive's own reordering.
//! * [`Null`] completes after a delay: only the block layer above it costs time.
//! * [`Ssd`] is the smallest model of a SATA SSD: one serial stage, overlapping flash reads, pauses for garbage collection.
//! * [`Optane`] has low, symmetric latency and no garbage collection; [`Raid`] puts many hardware queues with common tags
//!   before another device.
//! * [`Service`] has the service times that a device was seen to have: [`estimate`] makes it, and [`trial`] compares a model with a device.
//! * [`Fill`] is how full a flash drive is, which decides what garbage collection costs.
//! * [`Throttle`], [`FaultInjector`] and [`Tracer`] are wrappers around devices.
//! * A [`Preset`] is a model with its parameters, read from a TOML file: a built-in one or a user's own. It describes
//!   its calibration and its errors.
//!
//! Models are deterministic: everything random comes from the seed that a model is built with, and nothing depends on
//! the machine or on other models.
#![doc = include_str!("../README.md")]

mod fill;
mod flash;
mod hdd;
mod middleware;
mod model;
mod null;
mod optane;
mod preset;
mod raid;
mod random;
mod service;
mod ssd;
mod streams;
mod transport;

pub use fill::Fill;
pub use flash::{
    ArbitrationParameters, CollectionParameters, Flash, FlashParameters, Placement, SlcCacheParameters,
    StallParameters, StripingParameters, TranslationParameters,
};
pub use hdd::{Hdd, HddParameters, PauseParameters, WriteCacheParameters};
pub use middleware::{
    FaultInjector, FaultParameters, Throttle, ThrottleBurst, ThrottleParameters, Tracer, TracerParameters,
};
pub use model::{Command, Completion, Device, Refusal, Schedule, Shape, TraceEvent};
pub use null::{Null, NullParameters};
pub use optane::{Optane, OptaneParameters};
pub use preset::{
    CalibratedRange, Calibration, Model, Parameters, Preset, PresetError, PresetFile, Residual, ShapeSection,
};
pub use raid::{Raid, RaidParameters};
pub use service::{
    DeviceTrial, Estimated, ServedCommand, ServedOperation, Service, ServiceKind, ServiceParameters, TriedOperation,
    estimate, trial,
};
pub use ssd::{GarbageCollection, Ssd, SsdParameters};
pub use transport::TransportParameters;
