//! fio's JSON output (3.33), for programs that read fio's results.
//!
//! Used by: `disk`; crates `evidence`, `hoistway`, `experiment`, `load`.
//! Tests: `crates/measure/src/fio/calendar.rs`, `crates/measure/src/fio/distribution.rs`, `crates/measure/tests/fio_output.rs`.
//!
//! [`Output`] is the whole document, for reading and writing; [`Output::from_processes`] makes one from measurements, and
//! [`Output::processes`] returns them.
//!
//! Differences from a real fio:
//! - `iops` and `bw_bytes` are computed from the runtime in ns; `runtime` is rounded up to ms, as in fio. For runs of
//!   seconds there is no difference; for a run of a few simulated ms fio's own rule would be off by several percent.
//! - `latency_ns`, `latency_us` and `latency_ms` come from the bins of the completion latencies: a value within 1/64
//!   of a limit may be counted on its other side.
//! - `short_ios` and `drop_ios` are 0, and the keys of `continue_on_error` and `steadystate` are not written.

mod build;
mod calendar;
mod distribution;
mod log;
mod read;
mod schema;

pub use crate::steady_state::{SteadyState, SteadyStateData};
pub use build::{OutputParameters, PERCENTILES, PercentileChoice};
pub use log::{LogKind, write_histograms};
pub use schema::{AggregateDiskUtil, DirectionStats, DiskUtil, Job, LatencyStats, Output, PriorityStats, SyncStats};
