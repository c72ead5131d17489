//! The Linux block layer, multi-queue and legacy, and its I/O schedulers as a pure state machine.
//!
//! No clock, no I/O, no threads, no randomness: every call is told the time and answers with [effects](Effect).
//! The same code runs in virtual time over device models and in real time over disks; the difference is the type
//! parameter [`Sharing`].
//!
//! # The way of a request
//! A [`Bio`] goes in through [`Queue::submit`]. It is split if it is longer than the [`Limits`] allow, merged into a
//! request of the task's [`Plug`], of the scheduler or of its software queue if it fits, and otherwise given a
//! [request](Rq), whose slot comes with a [tag](Tags). The request passes the plug, goes into the [`Elevator`] (or,
//! without a scheduler, into a software queue of its [`HardwareQueue`], or past it), is drawn by a run of a hardware
//! queue, gets a driver tag, and goes to the [`Driver`]. At its end, [`Queue::complete`], its bios end, the scheduler
//! is told, and the tags are free for whoever waits.
//!
//! # The other way
//! [`LegacyQueue`] is the single queue that Linux had until 4.20, with noop, deadline and cfq: one lock, requests counted
//! by class instead of tagged, and a dispatch queue that the driver empties. A [`Front`] is either of the two, by the
//! scheduler's name.
//!
//! # Trying a scheduler of one's own
//! Implement [`Scheduler`] (four functions are required) and make a queue with [`Elevator::custom`].

mod agenda;
mod attributes;
mod bio;
mod block_queue;
mod caller;
mod change;
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
mod front;
mod hardware_queue;
mod id_list;
mod ids;
mod ioprio;
mod kernel;
mod legacy;
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
pub use change::Change;
pub use cpu_map::{CpuMap, QueueType};
pub use default_scheduler::{default_legacy_scheduler, default_scheduler};
pub use disk_stats::{DiskStats, IoCounts};
pub use driver::{Answer, Driver, Expired, Refusal};
pub use effects::{Effect, Effects, RESOURCE_DELAY};
pub use elevator::{
    BoxedScheduler, Choice, Completions, Elevator, ElevatorCx, MayQueue, Needs, News, OwnedPolicy, Place, PolicyCx,
    Reason, Requests, Scheduler, Serialized, Wishes, WokenHctxs,
};
pub use env::{Cx, Env};
pub use flush_queue::FlushSteps;
pub use front::{ALL_SCHEDULERS, Front, FrontSubmission, all_schedulers};
pub use hardware_queue::{HardwareQueue, SoftwareQueue};
pub use id_list::{IdList, Links};
pub use ids::{CgroupId, CpuId, HctxId, IoContextId, QueueId, RqId, SECTOR_BYTES, Sector, Waiter};
pub use ioprio::{CgroupPriority, IoPriority, PriorityClass};
pub use kernel::{
    AfterLeftovers, CfqGeneration, DeadlineGeneration, DirectIssue, Fetch, Generation, Kernel, KyberGeneration,
    PlugOrder, PlugUse, ShallowRule, SysfsGeneration,
};
pub use legacy::{
    CFQ, DEADLINE, IoClass, LEGACY_SCHEDULERS, LegacyConfig, LegacyElevator, LegacyQueue, LegacySubmission, NOOP,
    SWITCH_POLL, Tagging, legacy_kernel,
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
pub use schedulers::{BFQ, KYBER, Layer, MQ_DEADLINE, NONE, Policy, Priorities, Registry, Row, Surroundings};
pub use schedulers::{
    Bfq, BfqConfig, BfqExpiration, BfqGroup, BfqQueueLabel, BfqStateChange, BfqStateLine, BfqVariant,
};
pub use schedulers::{Cfq, CfqConfig, CfqEvent, CfqLog, CfqMessage, CfqQueueName, CgroupVersion, NoCfqLog};
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
