//! Calibration: [`host`] measures the costs of I/O on this machine, [`device`] measures a device, and [`fit`] fits a device model
//! to such measurements. [`fio`] runs fio.

pub mod device;
pub mod fio;
pub mod fit;
pub mod host;
