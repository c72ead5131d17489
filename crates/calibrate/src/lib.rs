//! Calibration: [`host`] measures what I/O costs on this machine, [`device`] measures a device, and [`fit`] fits a device model to
//! measurements of one. [`fio`] runs fio.

pub mod device;
pub mod fio;
pub mod fit;
pub mod host;
