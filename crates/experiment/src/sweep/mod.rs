//! Sweeps: products of loads, devices, kernels, hosts, schedulers, settings and seeds, of as many runs as one likes.
//!
//! A [`Space`] says what is varied, and what is the same everywhere. A [`Sweep`] is a space that was checked, with all that its
//! runs read: it can be written down, sent elsewhere and read again, and no run of it asks its environment for anything.
//! Its points are numbered and never stand in memory together. A point is one run, a pure function of the experiment and the
//! seed: it gives, on any machine and in any order, the same [`RunRecord`] to the bit, and its [`Key`] says which
//! experiment that is, so that what was run once can be found again.
//!
//! Files are read while a sweep is [made](Sweep::of), and kept in it, those that job files include as well.
//!
//! The way: `space` (what is asked for; `named`: in short), `axes` (the points' numbers), `inputs` (what runs read), `check` (all
//! of it before any run), `key`, `shard` (which points are whose), `record` (what a run leaves), `runs` (all together).

mod axes;
mod check;
mod inputs;
mod key;
mod named;
mod record;
mod runs;
mod shard;
mod space;

/// Version of Hoistway, with a fingerprint of its sources: runs of different ones may differ.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("HOISTWAY_SOURCES"));

/// What a sweep that is written down begins with. The number grows when a reader of the old form would be misled.
const FORMAT: &str = "hoistway-sweep/1";

pub use axes::Setting;
pub use inputs::Inputs;
pub use key::Key;
pub use record::RunRecord;
pub use runs::{Sweep, SweepError};
pub use shard::Shard;
pub use space::{Seeds, Space, Value};
