//! The submitter type of tasks, workers of limits, and I/O threads of virtual disks.

use hoistway_blk::ground::Local;
use hoistway_legacy::AnyQueue;

/// Submits to a disk's queue.
pub(crate) type Submitter = hoistway_blk::caller::Submitter<AnyQueue<Local>>;
