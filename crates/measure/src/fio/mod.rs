//! fio's own JSON output (3.33), so that whatever reads fio's results reads ours.
//!
//! [`Output`] is the whole document, in both directions; [`Output::from_processes`] makes one from what was measured.
//!
//! Where the numbers differ in kind from those of a real fio:
//! - `iops` and `bw_bytes` come from the runtime in ns; `runtime` is the same rounded up to ms, as in fio. For runs
//!   of seconds this is the same; for a run of a few simulated ms fio's own rule would be off by percents.
//! - `latency_ns`, `latency_us` and `latency_ms` come from the bins of the completion latencies: a value within 1/64
//!   of a limit may be counted on its other side.
//! - `short_ios` and `drop_ios` are 0, and nothing is written of `continue_on_error` and `steadystate`.

mod build;
mod calendar;
mod distribution;
mod log;
mod schema;

pub use crate::steady_state::{SteadyState, SteadyStateData};
pub use build::{OutputParameters, PERCENTILES, PercentileChoice};
pub use log::{LogKind, write_histograms};
pub use schema::{AggregateDiskUtil, DirectionStats, DiskUtil, Job, LatencyStats, Output, PriorityStats, SyncStats};
