//! Results of hoistway's runs: data first, no clock, no I/O.
//!
//! What is measured of a process ([`ProcessResult`]) becomes fio's own JSON ([`fio`]), and with everything needed to
//! repeat the run the result document ([`document`]) from which tables and plots are made.

pub mod advice;
mod check;
pub mod comparison;
pub mod diff;
mod direction;
pub mod document;
mod figure;
mod figure_name;
pub mod fio;
mod focus;
pub mod histogram;
pub mod io_log;
pub mod measurement;
mod objective;
mod operation;
pub mod ordered_map;
mod rate;
pub mod rows;
pub mod samples;
pub mod series;
pub mod settling;
pub mod stats;
mod steady_state;
mod threshold;
pub mod tuning;
pub mod verdict;

pub use check::Contradiction;
pub use comparison::Comparison;
pub use direction::Direction;
pub use document::ResultsDocument;
pub use figure::Figure;
pub use figure_name::{FigureName, FigureNameError, quoted};
pub use focus::WeightedFigure;
pub use histogram::LatencyHistogram;
pub use io_log::IoLog;
pub use measurement::{
    BatchLevels, CpuUsage, DepthLevels, DirectionResult, LatencySearchResult, PriorityLatency, ProcessResult,
    SyncResult,
};
pub use objective::{Condition, Goal, Limit, Objective, ObjectiveError};
pub use operation::Operation;
pub use ordered_map::OrderedMap;
pub use samples::{SAMPLE_INTERVAL_NS, SampleStats};
pub use series::Series;
pub use settling::Settling;
pub use threshold::{Relation, Threshold, ThresholdError};
