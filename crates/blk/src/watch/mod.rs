//! Observation: events, the reasons for the choices of schedulers, a disk's statistics.
//!
//! Used by: `schedulers`, `queue`, `policy`, `caller`, `elevator`; crates `sim`, `legacy`, `trace`, `experiment`, `engine` and others.
//! Tests: `crates/blk/src/watch/probe.rs`, `crates/blk/src/watch/reason.rs`.

pub(crate) mod disk_stats;
pub(crate) mod probe;
pub(crate) mod reason;

pub use disk_stats::{DiskStats, IoCounts};
pub use probe::{Event, NoProbe, Probe};
pub use reason::Reason;
