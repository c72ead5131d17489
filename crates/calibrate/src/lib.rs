//! Calibration: [`host`] measures what I/O costs on this machine, [`fit`] fits a device model to measurements of a device.

pub mod fit;
pub mod host;
