//! The multi-queue block layer of Linux and its I/O schedulers as a pure state machine.
//!
//! No clock, no I/O, no threads, no randomness: every call is told the time and answers with [effects](Effect), which an
//! [`Agenda`] takes and carries out in time.
//! The same code runs in virtual time over device models and in real time over disks; the difference is the type
//! parameter [`Sharing`].
//!
//! # Embedding it
//! Whoever owns threads, a clock and a device needs four things: a [`Queue`] (a [`BlockQueue`]), a [`Driver`] for each thread,
//! an [`Agenda`] of what is due, and a [`Submitter`] for whoever submits. A [`Caller`] is what a thread keeps between its
//! calls. This is a whole program:
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! # The way of a request
//! A [`Bio`] goes in through [`Queue::submit`]. It is split if it is longer than the [`Limits`] allow, merged into a
//! request of the task's [`Plug`], of the scheduler or of its software queue if it fits, and otherwise given a
//! [request](Rq), whose slot comes with a [tag](Tags). The request passes the plug, goes into the [`Elevator`] (or,
//! without a scheduler, into a software queue of its [`HardwareQueue`], or past it), is drawn by a run of a hardware
//! queue, gets a driver tag, and goes to the [`Driver`]. At its end, [`Queue::complete`], its bios end, the scheduler
//! is told, and the tags are free for whoever waits.
//!
//! # Trying a scheduler of one's own
//! Implement [`Scheduler`] (five functions are required), give it a [`Row`], and hand a [`Registry`] with that row to a queue.
//!
//! # The kit for another queue
//! A block layer of another shape, a [`BlockQueue`] of one's own, takes the parts that do not depend on the shape from
//! [`kit`]. The single queue of Linux up to 4.20 is one, with cfq on it: the crate `hoistway-legacy`.

mod agenda;
mod attributes;
mod bio;
mod block_queue;
mod caller;
mod check;
mod cpu_map;
mod default_scheduler;
mod disk_stats;
mod driver;
mod effects;
mod elevator;
mod env;
mod flights;
mod flush_queue;
mod hardware_queue;
mod id_list;
mod ids;
mod ioprio;
mod kernel;
pub mod kit;
mod limits;
mod lost;
mod merge;
mod meter;
mod plug;
mod probe;
mod queue;
mod request;
mod schedulers;
mod sector_order;
mod sharing;
mod sorted_tree;
mod split;
mod submitter;
mod tags;
mod time;
mod timeouts;
mod tunables;
mod wbt;

pub use agenda::{Agenda, Due, Errand, Workers};
pub use attributes::{AttributeError, READ_ONLY as READ_ONLY_ATTRIBUTES, WRITABLE as WRITABLE_ATTRIBUTES};
pub use bio::{Bio, BioFlags, Direction, Op, Status, is_sync};
pub use block_queue::BlockQueue;
pub use caller::{Caller, Scratch};
pub use cpu_map::{CpuMap, QueueType};
pub use default_scheduler::default_scheduler;
pub use disk_stats::{DiskStats, IoCounts};
pub use driver::{Answer, Driver, Expired, Refusal};
pub use effects::{Effect, Effects, RESOURCE_DELAY};
pub use elevator::{
    BoxedScheduler, Choice, Completions, Elevator, ElevatorCx, MayQueue, Needs, News, OwnedPolicy, Place, PolicyCx,
    Reason, Requests, Scheduler, Serialized, Wishes, WokenHctxs,
};
pub use env::{Cx, Env};
pub use flush_queue::FlushSteps;
pub use hardware_queue::{HardwareQueue, SoftwareQueue};
pub use id_list::{IdList, Links};
pub use ids::{CgroupId, CpuId, HctxId, IoContextId, QueueId, RqId, SECTOR_BYTES, Sector, Waiter};
pub use ioprio::{CgroupPriority, IoPriority, PriorityClass};
pub use kernel::{
    AfterLeftovers, CfqGeneration, DeadlineGeneration, DirectIssue, Fetch, Generation, Kernel, KyberGeneration,
    PlugOrder, PlugUse, ShallowRule, SysfsGeneration,
};
pub use limits::Limits;
pub use merge::{Edge, Merge, MergeRules, NoMerges};
pub use meter::{Held, Meter, NoMeter, Site};
pub use plug::Plug;
pub use probe::{Event, NoProbe, Probe};
pub use queue::{
    Affinity, ChangeError, CompletionPlace, ConfigError, HW_QUEUES_MAX, NR_REQUESTS_MAX, NR_REQUESTS_MIN, PlugFlush,
    QUEUE_DEPTH_MAX, Queue, QueueConfig, SCHEDULERS, Step, Submission, Submitted,
};
pub use request::{Marks, Request, RequestPool, Rq};
pub use schedulers::{Attachment, BFQ, KYBER, Layer, MQ_DEADLINE, NONE, Policy, Priorities, Registry, Row};
pub use schedulers::{
    Bfq, BfqConfig, BfqExpiration, BfqGroup, BfqQueueLabel, BfqStateChange, BfqStateLine, BfqVariant,
};
pub use schedulers::{
    ControllerRound, Domain, Kyber, KyberChoice, KyberConfig, KyberTurn, LatencyReading, MqDeadline, MqDeadlineConfig,
    Noop,
};
pub use sharing::{CpuLocks, Lent, Local, Lock, MeteredCell, Padded, ReadMostly, Sharing, Threads, Word};
pub use sorted_tree::{Augment, Nodes, Plain, SortedTree};
pub use submitter::{Parts, Submitter};
pub use tags::{Depth, Sleeper, TagBitmap, TagLayout, TagSet, Tags, WaitQueues};
pub use time::{Hz, Instant, Nanos, Now, Tick};
pub use tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
