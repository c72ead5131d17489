//! Processes as bfq sees them: each with its queues, and the state saved for it while it shares a queue. Rules: BFQ-10,
//! BFQ-108.

use super::super::process_queue::{self, ThinkTime};
use super::entity::QueueId;
use super::io_bound::IoBound;
use super::queue::{Injection, Raising};
use crate::bio::ioprio::IoPriority;
use crate::ground::ids::CgroupId;

pub(super) use super::super::process_queue::ContextId;

/// All processes. A record is in use while the process has allocated requests, queued or in flight.
pub(super) type Contexts = process_queue::Contexts<Context>;

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// Its queues for each actuator.
    pub queues: Vec<ContextQueues>,
    /// The priority last set for it, used for requests that do not carry one.
    pub reported_ioprio: IoPriority,
    /// Its priority according to its last request.
    pub ioprio: IoPriority,
    /// Its cgroup according to its last sync I/O.
    pub cgroup: CgroupId,
}

/// A process's queues for one actuator.
#[derive(Clone, Debug, Default)]
pub(super) struct ContextQueues {
    /// Its sync queue, which may be shared.
    pub sync: Option<QueueId>,
    /// The async queue that it uses.
    pub async_: Option<QueueId>,
    /// The state of its own sync queue at the time when that was merged.
    pub saved: Option<Saved>,
    /// The queue that it is to be merged with permanently, later.
    pub stable_merge: Option<QueueId>,
    /// It was merged permanently, or its queue has absorbed one permanently.
    pub stably_merged: bool,
}

/// The state of a queue that was merged away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub think: ThinkTime,
    pub short_think: bool,
    pub idle_window: bool,
    pub io_bound: IoBound,
    pub injection: Injection,
    /// Base weight.
    pub weight: u64,
    pub raise: u64,
    pub raising: Raising,
    pub service_since_backlogged: u64,
    pub in_large_burst: bool,
    pub in_burst_list: bool,
}
