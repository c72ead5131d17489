//! Calibration: [`host`] measures the costs of I/O on this machine, [`device`] measures a device with fio, and [`fit`]
//! fits a device model to measurements. [`fio`] runs fio.

pub mod device;
pub mod fio;
pub mod fit;
pub mod host;
