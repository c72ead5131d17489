//! What submits to a disk: a task, the worker of a limit, the thread behind a virtual disk.

use hoistway_blk::ground::Local;
use hoistway_legacy::AnyQueue;

/// One that submits to a disk's queue.
pub(crate) type Submitter = hoistway_blk::caller::Submitter<AnyQueue<Local>>;
