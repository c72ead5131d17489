//! Typed events of a recording.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{CgroupId, CpuId, HctxId, Instant, Sector, Tick};

use super::bfq::BfqState;
use super::io::{BioNumber, Io, MqContext, QueueName, RqNumber};

/// One line of a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Line number in the file, counted from 1. The header is line 1, so the first event is on line 2.
    pub line: u64,
    /// Time since the first event, ns.
    pub t: Instant,
    /// The CPU. `None` for [`EventKind::Bfq`] and [`EventKind::Msg`].
    pub cpu: Option<CpuId>,
    /// Pid of the task in whose context it happened; 0 for the idle task or an interrupt. `None` like `cpu`, and for
    /// dispatches and request merges of legacy kernels.
    pub pid: Option<u32>,
    /// What happened.
    pub kind: EventKind,
}

/// The kind of an event. Names are those of the file, except for case.
#[derive(Clone, PartialEq, Debug)]
pub enum EventKind {
    /// A bio enters the block layer, after splitting.
    Queue(Submitted),
    /// A bio was split: this is the front part; the remainder is queued again.
    Split {
        /// The bio and its front part.
        bio: Submitted,
        /// First sector of the remainder.
        at: Sector,
    },
    /// A request was allocated for the bio.
    Getrq {
        /// The bio.
        bio: Submitted,
        /// The request, on legacy kernels. On multi-queue kernels the first event with both a request and this bio (an
        /// insert or an issue) identifies it.
        rq: Option<RqNumber>,
    },
    /// Legacy: the submitter has to wait for a free request; its [`EventKind::Getrq`] comes later.
    Sleeprq(Submitted),
    /// The plug list of a task gets its first request.
    Plug,
    /// The plug list of a task is flushed.
    Unplug {
        /// Number of requests on the list.
        nr: u32,
        /// `false` if flushed because the task goes to sleep or the list is full.
        explicit: bool,
    },
    /// A bio was appended to a request, which may still be on its submitter's plug list.
    Backmerge(Merge),
    /// A bio was prepended to a request, which may still be on its submitter's plug list.
    Frontmerge(Merge),
    /// A request enters a queue.
    Insert(Insert),
    /// A request was absorbed by its neighbour inside the scheduler.
    Rqmerge(RqMerge),
    /// A hardware-queue run begins on this CPU and pid.
    Run {
        /// The hardware queue.
        hctx: HctxId,
    },
    /// The run on this CPU and pid ends; the hardware queue is not recorded.
    RunEnd,
    /// A dispatch decision of the scheduler.
    Dispatch(Dispatch),
    /// The driver started a request.
    Issue(Issue),
    /// The driver refused or returned a request.
    Requeue {
        /// The request.
        rq: RqNumber,
        /// Sector, size, flags and priority at this point.
        io: Io,
    },
    /// The device completed a request.
    Complete(Complete),
    /// kyber: the completed request enters the latency histograms.
    Sample {
        /// The request.
        rq: RqNumber,
    },
    /// kyber, bfq: the scheduler is notified that the request is released.
    Finish {
        /// The request.
        rq: RqNumber,
    },
    /// A request is released; its tags become available.
    Free(Free),
    /// kyber: a latency percentile was computed.
    KyberLatency(KyberLatency),
    /// kyber: the depth of a domain changed.
    KyberAdjust {
        /// The domain.
        domain: KyberDomain,
        /// The new depth in tokens.
        depth: u32,
    },
    /// kyber: a domain had requests but no token.
    KyberThrottled {
        /// The domain.
        domain: KyberDomain,
    },
    /// bfq: a line about its internal state.
    Bfq(BfqState),
    /// bfq: the idling timer fired.
    BfqIdleTimer,
    /// An external action on the queue.
    Mark(Mark),
    /// Legacy: a process exits, and its I/O context is torn down.
    Exit,
    /// Legacy: a line of the scheduler's own trace output.
    Msg {
        /// The text.
        text: Box<str>,
        /// The cgroup of the queue concerned; `None` for the root.
        cg: Option<CgroupId>,
    },
    /// An unknown kind, with its name. Not an error: count and skip it.
    Unknown(Box<str>),
}

/// A bio that enters the block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submitted {
    /// The bio.
    pub bio: BioNumber,
    /// Sector, size, flags and priority at this point.
    pub io: Io,
}

/// A bio that was merged into a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Merge {
    /// The bio.
    pub bio: BioNumber,
    /// The request that it was merged into.
    pub rq: RqNumber,
    /// Sector, size, flags and priority of the bio, not of the request.
    pub io: Io,
}

/// A request that enters a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Insert {
    /// The request.
    pub rq: RqNumber,
    /// Its first bio.
    pub bio: BioNumber,
    /// Sector, size, flags and priority, including merges on the plug list. `j` is always present.
    pub io: Io,
    /// Who took the request.
    pub by: InsertedBy,
    /// Multi-queue: number of the insertion call, shared by all requests of that call.
    pub batch: Option<u32>,
    /// Whether it was inserted at the head.
    pub head: bool,
    /// cfq: the queue that received it.
    pub queue: Option<QueueName>,
}

/// The receiver of an inserted request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertedBy {
    /// The scheduler.
    Scheduler,
    /// The block layer itself: a software queue or hardware dispatch list (no scheduler), the flush machinery, or a
    /// re-insertion that bypasses the scheduler.
    Core,
}

/// A request that was merged into its neighbour; in multi-queue recordings its `free` follows. A request that was never
/// inserted was merged on insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RqMerge {
    /// The absorbed request.
    pub absorbed: RqNumber,
    /// Its first sector.
    pub sector: Sector,
    /// Its length in sectors, including earlier merges.
    pub sectors: u32,
    /// Multi-queue: full description of the absorbed request.
    pub io: Option<Io>,
    /// Legacy: the request that absorbed it. Not in multi-queue recordings: there it is the request of the same
    /// operation that ends where this one starts or, on insertion, the one already queued.
    pub survivor: Option<Survivor>,
}

/// The request that absorbed another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Survivor {
    /// The request.
    pub rq: RqNumber,
    /// Its first sector after the merge.
    pub sector: Sector,
    /// Its length in sectors after the merge.
    pub sectors: u32,
}

/// A dispatch call to the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// The hardware queue; 0 for a legacy queue.
    pub hctx: HctxId,
    /// When dispatch was called. The event's `t` is the time of its return; interrupts may come in between.
    pub called_at: Instant,
    /// The tick counter.
    pub j: Tick,
    /// The dispatched request; `None` if the scheduler returned none although it had work.
    pub chosen: Option<Chosen>,
    /// Legacy: requests in the scheduler before the call.
    pub queued: Option<u32>,
    /// kyber: token slot of the request.
    pub token: Option<u32>,
}

/// A dispatched request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// The request.
    pub rq: RqNumber,
    /// Its operation.
    pub op: Op,
    /// Its first sector.
    pub sector: Sector,
    /// Its length in sectors.
    pub sectors: u32,
}

/// A request issued to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issue {
    /// The request.
    pub rq: RqNumber,
    /// Its first bio; a flush command has none.
    pub bio: Option<BioNumber>,
    /// Sector, size, flags and priority. `j` is always present.
    pub io: Io,
    /// kyber: token slot of the request. Meaningless for a flush command, which holds none.
    pub token: Option<u32>,
    /// cfq: the queue that it came from.
    pub queue: Option<QueueName>,
    /// cfq: requests in the driver, including this one.
    pub in_driver: Option<u32>,
}

/// A completed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Complete {
    /// The request.
    pub rq: RqNumber,
    /// Sector, size, flags and priority at this point.
    pub io: Io,
    /// Multi-queue: the error number, 0 for success.
    pub err: Option<i32>,
    /// Multi-queue: sectors completed.
    pub done: Option<u32>,
    /// cfq: the queue that it came from.
    pub queue: Option<QueueName>,
    /// cfq: it was a sync write without the hint that more will follow.
    pub rq_noidle: Option<bool>,
}

/// A released request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Free {
    /// The request.
    pub rq: RqNumber,
    /// Its queues, and the tags that became available.
    pub context: MqContext,
}

/// kyber's evaluation of one latency histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KyberLatency {
    /// The domain.
    pub domain: KyberDomain,
    /// Which latency.
    pub kind: LatencyKind,
    /// The percentile, 90 or 99.
    pub percentile: u8,
    /// Bucket of the percentile, 1 to 8: its upper bound in quarters of the target, 8 for anything slower.
    pub bucket: u8,
    /// Number of buckets up to the target: 4.
    pub buckets: u8,
    /// Samples in the histogram.
    pub samples: u32,
}

/// Which latency kyber measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatencyKind {
    /// Since insertion or allocation.
    Total,
    /// In the device.
    Io,
}

/// A scheduling domain of kyber.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KyberDomain {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Discard,
    /// Everything else.
    Other,
}

/// An external action on the queue during the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    /// This scheduler is about to be written to `queue/scheduler`.
    SwitchBegin(Box<str>),
    /// The exact point of the change to this scheduler, recorded while the queue is frozen and empty.
    SwitchDone(Box<str>),
    /// The write of this scheduler has returned. The change was between the marks of its begin and end.
    SwitchEnd(Box<str>),
    /// A tunable is about to be written; the write follows within microseconds.
    Tunable {
        /// Its name in sysfs.
        name: Box<str>,
        /// The value written.
        value: Box<str>,
    },
    /// Any other mark, verbatim.
    Other(Box<str>),
}

impl EventKind {
    /// The kind's name in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            EventKind::Queue(_) => "queue",
            EventKind::Split { .. } => "split",
            EventKind::Getrq { .. } => "getrq",
            EventKind::Sleeprq(_) => "sleeprq",
            EventKind::Plug => "plug",
            EventKind::Unplug { .. } => "unplug",
            EventKind::Backmerge(_) => "backmerge",
            EventKind::Frontmerge(_) => "frontmerge",
            EventKind::Insert(_) => "insert",
            EventKind::Rqmerge(_) => "rqmerge",
            EventKind::Run { .. } => "run",
            EventKind::RunEnd => "runend",
            EventKind::Dispatch(_) => "dispatch",
            EventKind::Issue(_) => "issue",
            EventKind::Requeue { .. } => "requeue",
            EventKind::Complete(_) => "complete",
            EventKind::Sample { .. } => "sample",
            EventKind::Finish { .. } => "finish",
            EventKind::Free(_) => "free",
            EventKind::KyberLatency(_) => "kyber_latency",
            EventKind::KyberAdjust { .. } => "kyber_adjust",
            EventKind::KyberThrottled { .. } => "kyber_throttled",
            EventKind::Bfq(_) => "bfq",
            EventKind::BfqIdleTimer => "bfq_idle_timer",
            EventKind::Mark(_) => "mark",
            EventKind::Exit => "exit",
            EventKind::Msg { .. } => "msg",
            EventKind::Unknown(name) => name,
        }
    }
}
