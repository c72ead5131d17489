//! Calibration: [`host`] measures the costs of I/O on this machine, [`device`] measures a device with fio, and [`fit`]
//! fits a device model to measurements.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/calibrate/src/` (in its files), `crates/hoistway/tests/machine/calibrate.rs`.
//!
//! ```
//! use hoistway_calibrate::fit::{FigureKind, from_csv};
//!
//! let rows = from_csv("rw,bs,iodepth,iops\nrandread,4k,1,11200\nrandread,4k,32,210000\n", "mine.csv").unwrap();
//! assert_eq!((rows[1].block_bytes, rows[1].outstanding()), (4096, 32));
//! assert_eq!((rows[1].figures[0].what, rows[1].figures[0].value), (FigureKind::Iops, 210_000.0));
//! let error = from_csv("rw,bs,iops\n", "mine.csv").unwrap_err();
//! assert!(error.to_string().starts_with("mine.csv:1: the column `iodepth` is missing"));
//! ```

pub mod device;
mod fio;
pub mod fit;
pub mod host;
