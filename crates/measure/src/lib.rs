//! Measurements of processes: latency histograms, time series, logs, results ([`ProcessResult`]) and fio's JSON ([`fio`]). The crate
//! reads no clock and does no I/O.
//!
//! Used by: crates `answer`, `render`, `experiment`, `evidence`, `load` and others.
//! Tests: `crates/measure/src/` (in its files), `crates/measure/tests/`.
//!
//! ```
//! use hoistway_measure::LatencyHistogram;
//!
//! let mut latencies = LatencyHistogram::new();
//! for ns in [80_000, 90_000, 2_000_000] {
//!     latencies.record(ns);
//! }
//! assert_eq!((latencies.count(), latencies.max()), (3, Some(2_000_000)));
//! // A percentile is the midpoint of a bin, and off by at most 1/128.
//! let p50_ns = latencies.percentile(50.0).unwrap();
//! assert!(p50_ns.abs_diff(90_000) <= 90_000 / 128);
//! ```

mod beta;
mod direction;
mod disk;
pub mod fio;
pub mod histogram;
mod io_cost;
mod io_latency;
pub mod io_log;
pub mod measurement;
mod operation;
mod page_cache;
pub mod rate;
pub mod samples;
pub mod series;
mod setting;
pub mod settling;
pub mod stats;
mod steady_state;
pub mod units;

pub use direction::Direction;
pub use disk::{CgroupIoSummary, DiskIos, DiskSummary, DiskTimes};
pub use histogram::LatencyHistogram;
pub use io_cost::{IoCostGroup, IoCostSummary};
pub use io_latency::{IoLatencyGroup, IoLatencySummary};
pub use io_log::IoLog;
pub use measurement::{
    BatchLevels, CpuUsage, DepthLevels, DirectionResult, LatencySearchResult, PriorityLatency, ProcessResult,
    Reporting, SyncResult,
};
pub use operation::Operation;
pub use page_cache::PageCacheSummary;
pub use samples::{SAMPLE_INTERVAL_NS, SampleStats};
pub use series::Series;
pub use setting::Setting;
pub use settling::Settling;
pub use units::size_in_words;
