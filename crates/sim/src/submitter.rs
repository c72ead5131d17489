//! The submitter type of tasks, workers of limits, and I/O threads of virtual disks.
//!
//! Used by: `task`, `page_cache`, `io_thread`, `throttling`, `simulation`.
//! Tests: `crates/sim/tests/loads.rs`, `crates/sim/tests/page_cache.rs`.

use hoistway_blk::ground::Local;
use hoistway_legacy::AnyQueue;

/// Submits to a disk's queue.
pub(crate) type Submitter = hoistway_blk::caller::Submitter<AnyQueue<Local>>;
