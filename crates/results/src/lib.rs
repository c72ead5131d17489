//! Results of hoistway's runs: data first, no clock, no I/O.
//!
//! What is measured of a process ([`ProcessResult`]) becomes fio's own JSON ([`fio`]), and with everything needed to
//! repeat the run the result document ([`document`]) from which tables and plots are made.

pub mod comparison;
pub mod document;
pub mod fio;
pub mod histogram;
pub mod histogram_log;
pub mod io_log;
pub mod measurement;
pub mod ordered_map;
mod rate;
pub mod samples;
pub mod series;
pub mod settling;
pub mod stats;

pub use comparison::{Comparison, Figure, FigureName};
pub use document::ResultsDocument;
pub use histogram::LatencyHistogram;
pub use io_log::IoLog;
pub use measurement::{
    BatchLevels, CpuUsage, DepthLevels, Direction, DirectionResult, LatencySearchResult, PriorityLatency,
    ProcessResult, SyncResult,
};
pub use ordered_map::OrderedMap;
pub use samples::{SAMPLE_INTERVAL_NS, SampleStats};
pub use series::Series;
pub use settling::Settling;
