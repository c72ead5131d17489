//! The load model: the I/Os of processes, their depth, timing and rate, and when processes start and end.
//!
//! Used by: crates `fio`, `experiment`, `sim`, `program`, `engine` and others.
//! Tests: `crates/load/src/` (in its files), `crates/load/tests/`.
//!
//! A [`Load`] is data: [`Process`]es and the files that they use. Every field has a default, so a program sets only what
//! differs. [`Load::check`] names the field that is wrong; every runner of loads calls it. Once the sizes of the devices
//! are known, a process becomes a [`Generator`], which yields its I/Os in order.
//!
//! Recorded I/Os come from an iterator: see [`Replay`]. The module [`process`] contains the state machine of a process.
//!
//! This crate reads no clock, no file and no environment variable: each call gets the time as an argument. All types except replays support
//! serde.
#![doc = include_str!("../README.md")]

mod check;
mod description;
mod error;
mod fsync;
mod generator;
mod io;
mod load;
mod pace;
mod pattern;
mod plan;
pub mod process;
mod replay;
mod stream;

pub use description::{
    Caching, Ends, Engine, Issue, Latency, LatencyTarget, LogSettings, Process, Schedule, Standing, Steadiness,
    SteadyFigure, SteadyState, WriteSync,
};
pub use error::{LoadError, Origin};
pub use fsync::Fsync;
pub use generator::Generator;
pub use hoistway_measure::Reporting;
pub use io::Io;
pub use load::Load;
pub use pace::{Flow, Pace, Pacer, Rate, RateLimits, RateProcess, Think, ThinkBlocks};
pub use pattern::{
    Amount, Direction, Distribution, Extent, FileService, Offsets, Pattern, Popularity, PriorityRule, Random,
    RandomGenerator, Sequencer, Share, Sizes, Strided, Volume, Zone,
};
pub use plan::{IoPlan, OwnFile, PlacedFile};
pub use replay::{Pause, ProgramStep, Record, RecordError, Records, Replay, Summary, WAITS_MAX, When};
pub use stream::{Purpose, Stream};

/// The limits of a load.
pub mod limits {
    /// Larger than any device: below it, sums of sizes cannot overflow.
    pub const REGION_BYTES: u64 = 1 << 60;
    /// The largest block.
    pub const BLOCK_BYTES: u64 = 1 << 30;
    /// Processes of a load.
    pub const PROCESSES: usize = 10_000;
    /// Deeper than any queue: a larger depth is a mistake and would waste memory.
    pub const DEPTH: u32 = 1 << 20;
    /// Devices of a process.
    pub const DEVICES: usize = 255;
    /// Files of a process.
    pub const FILES: usize = 1 << 16;
    /// Sizes of a direction, and priority rules; as in fio.
    pub const SHARES: usize = 64;
    /// Zones of a distribution; as in fio.
    pub const ZONES: usize = 256;
}
