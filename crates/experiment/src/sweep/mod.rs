//! Sweeps: products of loads, devices, kernels, hosts, schedulers, settings and seeds, of any number of runs.
//!
//! Used by: `store`, `tune`; crate `hoistway`.
//! Tests: `crates/experiment/src/sweep/axes.rs`, `crates/experiment/src/sweep/shard.rs`, `crates/experiment/tests/sweep.rs`.
//!
//! A [`Space`] defines the axes and the constants. A [`Sweep`] is a checked space with all inputs of its runs: it can be
//! serialized, sent to another machine and read again, and its runs need no environment. Its points are numbered and never held
//! in memory together. A point is one run, a pure function of experiment and seed: on any machine and in any order its
//! [`RunRecord`] is bit-identical. Its [`Key`] identifies the run, so that a finished run can be found again.
//!
//! Files are read when a sweep is [made](Sweep::of), and kept in it, including those that job files include.
//!
//! Modules: `space` (the axes and constants; `named`: short forms), `axes` (numbering of points), `inputs` (files and variables
//! that runs read), `check` (tries all values before any run), `key`, `shard` (parts of a sweep), `record` (the result of a run),
//! `runs` (a checked space with its runs).

mod axes;
mod check;
mod inputs;
mod key;
mod named;
mod record;
mod runs;
mod shard;
mod space;

/// Version of Hoistway, with a fingerprint of its sources: runs of different versions may differ.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("HOISTWAY_SOURCES"));

/// The format of a serialized sweep. The number grows when old readers would misread it.
const FORMAT: &str = "hoistway-sweep/1";

pub use inputs::Inputs;
pub use key::Key;
pub use record::RunRecord;
pub use runs::{Sweep, SweepError};
pub use shard::Shard;
pub use space::{Seeds, Space, Value};
