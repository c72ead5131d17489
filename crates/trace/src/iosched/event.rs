//! The events of a recording, typed.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{CgroupId, CpuId, HctxId, Instant, Sector, Tick};

use super::bfq::BfqState;
use super::io::{BioNumber, Io, Place, QueueName, RqNumber};

/// One line of a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// The line of the file it stands on, counted from 1. The header is line 1, so the first event is on line 2.
    pub line: u64,
    /// When it happened: ns since the first event.
    pub t: Instant,
    /// On which CPU. Absent on [`EventKind::Bfq`] and [`EventKind::Msg`].
    pub cpu: Option<CpuId>,
    /// In whose context; 0 is the idle task or an interrupt. Absent as `cpu`, and on the legacy kernels' dispatches
    /// and request merges.
    pub pid: Option<u32>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. Kinds are named as in the file, but for case.
#[derive(Clone, PartialEq, Debug)]
pub enum EventKind {
    /// A bio enters the block layer, after splitting.
    Queue(Submitted),
    /// A bio was cut: this is the front part, the remainder is queued again.
    Split {
        /// The bio and its front part.
        bio: Submitted,
        /// Where the remainder starts.
        at: Sector,
    },
    /// A request was allocated for the bio.
    Getrq {
        /// The bio.
        bio: Submitted,
        /// The request, on legacy kernels. On multi-queue kernels the first event with a request *and* this bio
        /// (an insert or an issue) tells.
        rq: Option<RqNumber>,
    },
    /// Legacy: the submitter has to wait for a free request; its [`EventKind::Getrq`] comes later.
    Sleeprq(Submitted),
    /// The plug list of a task gets its first request.
    Plug,
    /// The plug list of a task is flushed.
    Unplug {
        /// Requests on it.
        nr: u32,
        /// False: because the task goes to sleep or the list is full.
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
    /// A hardware queue run begins on this CPU and pid.
    Run {
        /// The hardware queue.
        hctx: HctxId,
    },
    /// The run on this CPU and pid ends. It does not say of which hardware queue.
    RunEnd,
    /// **The decision** of the scheduler.
    Dispatch(Dispatch),
    /// The driver started a request.
    Issue(Issue),
    /// The driver refused a request or gave it back.
    Requeue {
        /// The request.
        rq: RqNumber,
        /// Its description.
        io: Io,
    },
    /// The device finished a request.
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
    /// kyber: a percentile was taken.
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
    /// bfq: a line about its inner state.
    Bfq(BfqState),
    /// bfq: the idling timer fired.
    BfqIdleTimer,
    /// Something that was done to the queue from outside.
    Mark(Mark),
    /// Legacy: a process leaves, its I/O context is torn down.
    Exit,
    /// Legacy: a line of the scheduler's own trace output.
    Msg {
        /// The text.
        text: Box<str>,
        /// The cgroup of the queue it is about, if not the root.
        cg: Option<CgroupId>,
    },
    /// A kind that this reader does not know, with its name. Never an error: count and skip it.
    Unknown(Box<str>),
}

/// A bio on its way into the block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submitted {
    /// The bio.
    pub bio: BioNumber,
    /// Its description.
    pub io: Io,
}

/// A bio that joined a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Merge {
    /// The bio.
    pub bio: BioNumber,
    /// The request that grew.
    pub rq: RqNumber,
    /// Description *of the bio*: the request grows by its sectors.
    pub io: Io,
}

/// A request that enters a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Insert {
    /// The request.
    pub rq: RqNumber,
    /// Its first bio.
    pub bio: BioNumber,
    /// Its description, with what was merged on the plug list. `j` is always there.
    pub io: Io,
    /// Into whose hands.
    pub by: InsertedBy,
    /// Multi-queue: the same for all requests of one insertion call to the scheduler.
    pub batch: Option<u32>,
    /// At the head.
    pub head: bool,
    /// cfq: the queue that it was put in.
    pub queue: Option<QueueName>,
}

/// What took an inserted request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertedBy {
    /// The scheduler.
    Scheduler,
    /// The block layer itself: a software queue or hardware dispatch list (no scheduler), the flush machinery, or a
    /// re-insertion past the scheduler.
    Core,
}

/// A request that disappeared inside its neighbour; in multi-queue recordings its `free` follows. It may never have
/// been inserted: then it was absorbed on entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RqMerge {
    /// The request that disappeared.
    pub absorbed: RqNumber,
    /// Its first sector.
    pub sector: Sector,
    /// Its length in sectors, with all that had been merged into it.
    pub sectors: u32,
    /// Multi-queue: the whole description of the absorbed request.
    pub io: Option<Io>,
    /// Legacy: the request that absorbed it. Multi-queue recordings leave it open: it is the request of the same
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

/// The block layer asked the scheduler for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// For which hardware queue; a legacy queue counts as hardware queue 0.
    pub hctx: HctxId,
    /// When the question was put. The event's `t` is the time of the answer, and interrupts may lie in between.
    pub asked: Instant,
    /// The tick counter.
    pub j: Tick,
    /// The answer; `None`: it declined although it had work.
    pub chosen: Option<Chosen>,
    /// Legacy: requests inside before the question.
    pub queued: Option<u32>,
    /// kyber: number of the token slot that the request took.
    pub token: Option<u32>,
}

/// The request that a scheduler handed out.
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

/// A request that the driver started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issue {
    /// The request.
    pub rq: RqNumber,
    /// Its first bio; a flush command has none.
    pub bio: Option<BioNumber>,
    /// Its description. `j` is always there.
    pub io: Io,
    /// kyber: number of the token slot that it holds. On a flush command the value means nothing: flushes hold none.
    pub token: Option<u32>,
    /// cfq: the queue that it came from.
    pub queue: Option<QueueName>,
    /// cfq: requests in the driver, this one included.
    pub in_driver: Option<u32>,
}

/// A request that the device finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Complete {
    /// The request.
    pub rq: RqNumber,
    /// Its description.
    pub io: Io,
    /// Multi-queue: the error number, 0 for success.
    pub err: Option<i32>,
    /// Multi-queue: sectors done.
    pub done: Option<u32>,
    /// cfq: the queue that it came from.
    pub queue: Option<QueueName>,
    /// cfq: it was a sync write without the hint that more will follow.
    pub rq_noidle: Option<bool>,
}

/// A request that was released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Free {
    /// The request.
    pub rq: RqNumber,
    /// Where it was, with the tags that became available.
    pub place: Place,
}

/// kyber's reading of one latency histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KyberLatency {
    /// The domain.
    pub domain: KyberDomain,
    /// Which latency.
    pub kind: LatencyKind,
    /// The percentile, 90 or 99.
    pub percentile: u8,
    /// The bucket it lies in, 1 to 8: its upper bound in quarters of the target, 8 for anything slower.
    pub bucket: u8,
    /// How many buckets make the target: 4.
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

/// What was done to the queue while it was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    /// This scheduler is about to be written to `queue/scheduler`.
    SwitchBegin(Box<str>),
    /// The exact place of the change to this scheduler: the kernel says so while the queue is frozen and empty.
    SwitchDone(Box<str>),
    /// The writer of this scheduler continues. The change was between the marks of its begin and its end.
    SwitchEnd(Box<str>),
    /// A tunable is about to be written; the write follows within microseconds.
    Tunable {
        /// Its name in sysfs.
        name: Box<str>,
        /// What is written.
        value: Box<str>,
    },
    /// Anything else, as it stands.
    Other(Box<str>),
}

impl EventKind {
    /// The kind as the file names it.
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
