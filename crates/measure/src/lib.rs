//! Measurements of processes: latency histograms, time series, logs, results ([`ProcessResult`]) and fio's JSON ([`fio`]). The crate
//! reads no clock and does no I/O.

mod direction;
mod disk;
pub mod fio;
pub mod histogram;
mod io_cost;
pub mod io_log;
pub mod measurement;
mod operation;
mod page_cache;
pub mod rate;
pub mod samples;
pub mod series;
pub mod settling;
pub mod stats;
mod steady_state;
pub mod units;

pub use direction::Direction;
pub use disk::{CgroupIoSummary, DiskIos, DiskSummary, DiskTimes};
pub use histogram::LatencyHistogram;
pub use io_cost::{IoCostGroup, IoCostSummary};
pub use io_log::IoLog;
pub use measurement::{
    BatchLevels, CpuUsage, DepthLevels, DirectionResult, LatencySearchResult, PriorityLatency, ProcessResult,
    Reporting, SyncResult,
};
pub use operation::Operation;
pub use page_cache::PageCacheSummary;
pub use samples::{SAMPLE_INTERVAL_NS, SampleStats};
pub use series::Series;
pub use settling::Settling;
pub use units::size_in_words;
