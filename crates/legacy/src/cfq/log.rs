//! cfq's messages, as in the kernel's trace output, as values. Without a log ([`NoCfqLog`]) no code for them is
//! compiled.

use std::fmt;

use hoistway_blk::ground::IoContextId;

/// Receives messages. A type parameter of [`Cfq`](super::Cfq), so that it costs nothing when absent.
pub trait CfqLog: Clone {
    /// Whether messages are wanted.
    const ENABLED: bool;

    /// Receives a message.
    fn message(&mut self, message: CfqMessage);
}

/// Discards messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCfqLog;

impl CfqLog for NoCfqLog {
    const ENABLED: bool = false;

    #[inline(always)]
    fn message(&mut self, _: CfqMessage) {}
}

/// Collects messages.
impl CfqLog for Vec<CfqMessage> {
    const ENABLED: bool = true;

    fn message(&mut self, message: CfqMessage) {
        self.push(message);
    }
}

/// The name of a queue in messages. Displays in the kernel's form: `cfq431SN`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CfqQueueName {
    /// Its owner; for an async queue, the process that created it.
    pub owner: IoContextId,
    /// Whether it holds sync requests.
    pub sync: bool,
    /// Whether it is currently of the sync-noidle kind.
    pub noidle: bool,
}

impl fmt::Display for CfqQueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, noidle) = (if self.sync { "S" } else { "A" }, if self.noidle { "N" } else { "" });
        write!(f, "cfq{}{kind}{noidle}", self.owner.0)
    }
}

/// A message: an event, and the queue concerned, if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CfqMessage {
    /// The queue concerned.
    pub queue: Option<CfqQueueName>,
    /// The event.
    pub event: CfqEvent,
}

/// An event. Times are in units of cfq's clock: nanoseconds since Linux 4.8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CfqEvent {
    /// A queue was made.
    Allocated,
    /// A queue's last reference is gone.
    Freed,
    /// A queue has become busy.
    AddToRoundRobin,
    /// A queue is no longer busy.
    DelFromRoundRobin,
    /// A group has no busy queues any more.
    GroupDelFromRoundRobin,
    /// A workload type was chosen; its share of the group's time.
    WorkloadSlice(i64),
    /// A queue was taken into service.
    SetActive {
        /// 0 best effort, 1 real time, 2 idle.
        class: u8,
        /// 0 async, 1 sync-noidle, 2 sync.
        workload: u8,
    },
    /// The first completion of a turn has started its slice with this length.
    SetSlice(i64),
    /// The idle timer was set.
    ArmIdle {
        /// Duration.
        period: i64,
        /// Whether it idles for the group.
        group: bool,
    },
    /// The idle timer has fired.
    TimerFired,
    /// A run of the queue was requested.
    ScheduleDispatch,
    /// A turn has ended.
    SliceExpired {
        /// Whether the rest of the slice is carried over.
        timed: bool,
    },
    /// The carried-over rest.
    Residual(i64),
    /// A group was charged.
    Served {
        /// Its virtual time afterwards.
        vdisktime: u64,
        /// The lower bound of all virtual times.
        min_vdisktime: u64,
    },
    /// The usage of a turn.
    SliceUsed {
        /// Time.
        used: i64,
        /// Dispatched requests.
        dispatched: u32,
        /// The charge to the group, before weighting.
        charge: i64,
        /// Whether requests are charged instead of time.
        iops: bool,
        /// Dispatched sectors.
        sectors: u64,
    },
    /// The idle-window flag has changed.
    IdleWindow(bool),
    /// There is no idling for a queue: the number of queues in its tree.
    NotIdling(u32),
    /// The think time of a queue's process exceeds the rest of the slice.
    NotIdlingThinks(i64),
    /// This queue preempted the active one.
    Preempt,
    /// The oldest request has expired and is dispatched first.
    Fifo,
    /// The driver has returned a request; the number of requests still there.
    Deactivate(u32),
    /// A process was moved to the queue that its own is being merged into.
    Merging,
    /// A process has left a shared queue.
    BreakingApart,
    /// A process has moved to another cgroup.
    ChangedCgroup,
    /// The slice of a group's only queue is over, but the queue is kept for its next request.
    WillBusyWait,
}

impl fmt::Display for CfqMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(queue) = self.queue {
            write!(f, "{queue} ")?;
        }
        match self.event {
            CfqEvent::Allocated => f.write_str("alloced"),
            CfqEvent::Freed => f.write_str("put_queue"),
            CfqEvent::AddToRoundRobin => f.write_str("add_to_rr"),
            CfqEvent::DelFromRoundRobin => f.write_str("del_from_rr"),
            CfqEvent::GroupDelFromRoundRobin => f.write_str("del_from_rr group"),
            CfqEvent::WorkloadSlice(slice) => write!(f, "cfq workload slice:{slice}"),
            CfqEvent::SetActive { class, workload } => write!(f, "set_active wl_class:{class} wl_type:{workload}"),
            CfqEvent::SetSlice(slice) => write!(f, "set_slice={slice}"),
            CfqEvent::ArmIdle { period, group } => write!(f, "arm_idle: {period} group_idle: {}", u8::from(group)),
            CfqEvent::TimerFired => f.write_str("cfq idle timer fired"),
            CfqEvent::ScheduleDispatch => f.write_str("cfq schedule dispatch"),
            CfqEvent::SliceExpired { timed } => write!(f, "slice expired t={}", u8::from(timed)),
            CfqEvent::Residual(residual) => write!(f, "resid={residual}"),
            CfqEvent::Served { vdisktime, min_vdisktime } => {
                write!(f, "served: vt={vdisktime} min_vt={min_vdisktime}")
            }
            CfqEvent::SliceUsed { used, dispatched, charge, iops, sectors } => {
                let iops = u8::from(iops);
                write!(f, "sl_used={used} disp={dispatched} charge={charge} iops={iops} sect={sectors}")
            }
            CfqEvent::IdleWindow(on) => write!(f, "idle={}", u8::from(on)),
            CfqEvent::NotIdling(count) => write!(f, "Not idling. st->count:{count}"),
            CfqEvent::NotIdlingThinks(mean) => write!(f, "Not idling. think_time:{mean}"),
            CfqEvent::Preempt => f.write_str("preempt"),
            CfqEvent::Fifo => f.write_str("fifo="),
            CfqEvent::Deactivate(in_driver) => write!(f, "deactivate rq, drv={in_driver}"),
            CfqEvent::Merging => f.write_str("merging with queue"),
            CfqEvent::BreakingApart => f.write_str("breaking apart cfqq"),
            CfqEvent::ChangedCgroup => f.write_str("changed cgroup"),
            CfqEvent::WillBusyWait => f.write_str("will busy wait"),
        }
    }
}
