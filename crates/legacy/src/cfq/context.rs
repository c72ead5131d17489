//! cfq's state of a process on this device.
//!
//! Rules: CFQ-7, CFQ-70 to CFQ-74.

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::CgroupId;
use hoistway_blk::kit::process_queue::{self, ThinkTime};

use super::class::Priority;
use super::queue::QueueId;

pub(super) use hoistway_blk::kit::process_queue::ContextId;

/// All processes.
pub(super) type Contexts = process_queue::Contexts<Context>;

/// The state of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// The async queue (0) and the sync queue (1) that it uses.
    pub(super) queues: [Option<QueueId>; 2],
    /// Its think time. Processes that share a queue have separate records.
    pub(super) think: ThinkTime,
    /// The last priority set for the process, for requests without their own.
    pub(super) ioprio: IoPriority,
    /// Its priority at its last allocation.
    pub(super) priority: Option<Priority>,
    /// Its cgroup at its last allocation.
    pub(super) cgroup: Option<CgroupId>,
}

impl Context {
    /// The state of a new process.
    pub(super) fn new(now: i64) -> Self {
        Context {
            queues: [None; 2],
            think: ThinkTime::new(now),
            ioprio: IoPriority::UNSET,
            priority: None,
            cgroup: None,
        }
    }
}
