//! The multi-queue block layer of Linux and its I/O schedulers as a pure state machine.
//!
//! No clock, no I/O, no threads, no randomness: every call gets the time and returns [effects](Effect), which an
//! [`Agenda`] carries out in time.
//! The same code runs in virtual time over device models and in real time over disks; the difference is the type
//! parameter [`Sharing`].
//!
//! # Embedding it
//! The owner of threads, a clock and a device needs four things: a [`Queue`] (a [`BlockQueue`]), a [`Driver`] for each thread,
//! an [`Agenda`] of what is due, and a [`Submitter`] for each task that submits. A [`Caller`] is what a thread keeps between its
//! calls. This is a whole program:
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! # The way of a request
//! A [`Bio`] goes in through [`Queue::submit`]. It is split if it is longer than the [`Limits`] allow, merged into a
//! request of the task's [`Plug`], of the scheduler or of its software queue if it fits, and otherwise given a
//! [request](Rq), whose slot comes with a [tag](Tags). The request passes the plug, goes into the [`Elevator`] (or,
//! without a scheduler, into a software queue of its [`HardwareQueue`], or past it), is dispatched by a run of a hardware
//! queue, gets a driver tag, and goes to the [`Driver`]. At its end, [`Queue::complete`], its bios end, the scheduler
//! is notified, and the tags are free for the next waiter.
//!
//! # Trying a scheduler of one's own
//! Implement [`Scheduler`] (four functions are required), give it a [`Row`], and hand a [`Registry`] with that row to a queue.
//!
//! # The kit for another queue
//! A block layer of another shape, a [`BlockQueue`] of one's own, takes the parts that do not depend on the shape from
//! [`kit`]. The single queue of Linux up to 4.20 is one, with cfq on it: the crate `hoistway-legacy`.

// The folders in the order of the way: each names only those above it.

mod ground;

mod bio;

mod request;

mod tags;

mod wbt;

mod watch;

mod policy;

mod schedulers;

mod elevator;

mod drive;

mod caller;

mod sysfs;

mod queue;

pub mod kit;

pub use bio::ioprio::{CgroupPriority, IoPriority, PriorityClass};
pub use bio::limits::Limits;
pub use bio::{Bio, BioFlags, Direction, Op, Status, is_sync};
pub use caller::Caller;
pub use caller::agenda::{Action, Agenda, Due, Workers};
pub use caller::block_queue::{BlockQueue, Submission, Submitted};
pub use caller::env::{Cx, Env, Scratch};
pub use caller::submitter::{Parts, Submitter};
pub use drive::driver::{Answer, Driver, Expired, Refusal};
pub use drive::effects::{Effect, Effects, RESOURCE_DELAY};
pub use elevator::Elevator;
pub use ground::id_list::{IdList, Links};
pub use ground::ids::{CgroupId, CpuId, HctxId, IoContextId, QueueId, RqId, SECTOR_BYTES, Sector, Waiter};
pub use ground::kernel::{
    AfterDispatchList, CfqGeneration, DeadlineGeneration, DirectIssue, Fetch, Generation, Kernel, KyberGeneration,
    PlugOrder, PlugUse, ShallowRule, SysfsGeneration,
};
pub use ground::meter::{Held, Meter, NoMeter, Site};
pub use ground::sharing::{CpuLocks, Lent, Local, Lock, MeteredCell, Padded, ReadMostly, Sharing, Threads, Word};
pub use ground::sorted_tree::{Augment, Nodes, Plain, SortedTree};
pub use ground::time::{Hz, Instant, Nanos, Now, Tick};
pub use ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
pub use policy::{
    BoxedScheduler, Choice, Completions, ContentionOptions, DispatchBatch, ElevatorCx, Insertion, LegacyHooks,
    MayQueue, Needs, OwnedPolicy, Place, PolicyCx, Replayable, RequestedActions, Requests, Scheduler, SchedulerEvent,
    Serialized, WokenHctxs,
};
pub use queue::default_scheduler;
pub use queue::{
    Affinity, ChangeError, CompletionPlace, ConfigError, HW_QUEUES_MAX, NR_REQUESTS_MAX, NR_REQUESTS_MIN, PlugFlush,
    QUEUE_DEPTH_MAX, Queue, QueueConfig, QueueSubmission, SCHEDULERS, Step,
};
pub use queue::{HardwareQueue, SoftwareQueue};
pub use request::FlushSteps;
pub use request::cpu_map::{CpuMap, QueueType};
pub use request::merge::{Edge, Merge, MergeRules, NoMerges};
pub use request::plug::Plug;
pub use request::{Marks, Request, RequestPool, Rq};
pub use schedulers::{
    Attachment, BFQ, K2, KYBER, Layer, MQ_DEADLINE, Maker, NONE, Origin, Policy, Priorities, Registry, Row,
};
pub use schedulers::{
    Bfq, BfqConfig, BfqExpiration, BfqGroup, BfqQueueLabel, BfqStateChange, BfqStateLine, BfqVariant,
};
pub use schedulers::{
    ControllerRound, Domain, Kyber, KyberChoice, KyberConfig, KyberTurn, LatencyReading, MqDeadline, MqDeadlineConfig,
    Noop,
};
pub use sysfs::{AttributeError, READ_ONLY as READ_ONLY_ATTRIBUTES, WRITABLE as WRITABLE_ATTRIBUTES};
pub use tags::{Depth, Sleeper, TagBitmap, TagLayout, TagSet, Tags, WaitQueues};
pub use watch::disk_stats::{DiskStats, IoCounts};
pub use watch::probe::{Event, NoProbe, Probe};
pub use watch::reason::Reason;
