//! What cfq knows of a process on this device.
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

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// The async queue (0) and the sync queue (1) that it uses.
    pub(super) queues: [Option<QueueId>; 2],
    /// How long it thinks. Its sharers of a queue keep records of their own.
    pub(super) think: ThinkTime,
    /// The priority that the process was last set to, for requests that do not carry one.
    pub(super) ioprio: IoPriority,
    /// Its priority as last seen at an allocation.
    pub(super) priority: Option<Priority>,
    /// Its cgroup as last seen at an allocation.
    pub(super) cgroup: Option<CgroupId>,
}

impl Context {
    /// A process that is met now.
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
