//! Calibration: [`host`] measures the costs of I/O on this machine, [`device`] measures a device with fio, and [`fit`]
//! fits a device model to measurements. [`fio`] runs fio.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/calibrate/src/` (in its files), `crates/hoistway/tests/machine/calibrate.rs`.

pub mod device;
pub mod fio;
pub mod fit;
pub mod host;
