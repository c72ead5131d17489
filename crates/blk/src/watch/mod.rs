//! Observation: events, the reasons for the choices of schedulers, a disk's statistics.

pub(crate) mod disk_stats;
pub(crate) mod probe;
pub(crate) mod reason;

pub use disk_stats::{DiskStats, IoCounts};
pub use probe::{Event, NoProbe, Probe};
pub use reason::Reason;
