//! Calibration: [`host`] measures what I/O costs on this machine.

pub mod host;
