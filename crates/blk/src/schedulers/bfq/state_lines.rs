//! A log of the changes of the internal state, line by line, as the kernel's bfq writes it into a block trace. It is
//! for comparison with recordings; while it is off it costs a test of a flag. Rules: BFQ-51.

use crate::ground::ids::IoContextId;

/// The name of a queue in state lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLabel {
    /// The I/O context that owns it, or first used it; `None` for a queue that several share after a merge.
    pub io_context: Option<IoContextId>,
    /// Synchronous or not.
    pub sync: bool,
}

/// Why a service slot ended (BFQ-51).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiration {
    /// The idle timer fired and the queue was still empty.
    TooIdle,
    /// The slot took too long.
    BudgetTimeout,
    /// The next request did not fit in the budget.
    BudgetExhausted,
    /// The queue was empty, and it is not waited for.
    NoMoreRequests,
    /// Another queue took the device.
    Preempted,
}

impl Expiration {
    /// The reason in a word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Expiration::TooIdle => "too_idle",
            Expiration::BudgetTimeout => "budget_timeout",
            Expiration::BudgetExhausted => "budget_exhausted",
            Expiration::NoMoreRequests => "no_more_requests",
            Expiration::Preempted => "preempted",
        }
    }
}

/// One line. Budgets and service are in sectors, times as named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateLine {
    /// The queue it is about; `None` for the whole device.
    pub queue: Option<QueueLabel>,
    /// What happened.
    pub what: StateChange,
}

/// What a line says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateChange {
    /// A queue was created.
    New,
    /// A queue entered the set of those with work.
    Busy,
    /// A queue left the set of those with work.
    Idle,
    /// A queue was put in service.
    Serve {
        /// Its budget.
        budget: u64,
    },
    /// A slot ended.
    Expire {
        /// Why.
        reason: Expiration,
        /// Whether the queue was slow.
        slow: bool,
        /// Requests of the queue in flight.
        in_driver: u32,
        /// Whether its think time is short.
        short_think: bool,
    },
    /// Timestamps were computed.
    Vtime {
        /// Start time.
        start: u64,
        /// Finish time.
        finish: u64,
        /// Their difference.
        delta: u64,
        /// The service it follows from, sectors.
        service: u64,
        /// The weight it follows from.
        weight: u64,
    },
    /// The inputs of a new budget.
    BudgetInputs {
        /// Whether the queue is synchronous.
        sync: bool,
        /// Whether it is seeky.
        seeky: bool,
        /// The last budget.
        last: u64,
        /// What is left of it.
        left: i64,
        /// The learned budget.
        queue_max: u64,
        /// The smallest budget.
        min: u64,
    },
    /// A new budget was given.
    Budget {
        /// Length of the next request, 0 without one.
        head_n: u32,
        /// The budget.
        budget: u64,
    },
    /// The budget of a waiting queue follows its next request.
    Rebudget {
        /// The budget.
        budget: u64,
    },
    /// A request of a raised queue is dispatched.
    Raised {
        /// For how long it has been raised.
        since_ms: i64,
        /// For how long it may be raised.
        max_ms: i64,
        /// The factor.
        coeff: u64,
        /// The weight with it.
        weight: u64,
        /// The weight without it.
        base_weight: u64,
    },
    /// A merge was decided.
    MergePlanned {
        /// The owner of the other queue.
        with: IoContextId,
    },
    /// A queue was merged into another.
    Merge,
    /// A process leaves a shared queue.
    SplitQueue,
    /// A waker is suspected.
    WakerCandidate {
        /// The owner of the waker.
        io_context: Option<IoContextId>,
    },
    /// A waker is known.
    Waker {
        /// The owner of the waker.
        io_context: Option<IoContextId>,
    },
    /// The estimator of the peak rate starts anew.
    RateReset {
        /// Samples in the window now.
        samples: u32,
        /// Sequential ones.
        sequential: u32,
        /// Their sectors.
        sectors: u64,
    },
    /// The device's largest budget changed.
    MaxBudget {
        /// The budget.
        budget: u64,
    },
    /// An expired request was taken.
    Fifo,
    /// A tag limit was given.
    Limit {
        /// Whether raised queues have work.
        raised_busy: u32,
        /// Whether the allocation is synchronous.
        sync: bool,
        /// The limit, in tags.
        depth: u32,
    },
    /// A queue has more than its share of the tags.
    OverLimit {
        /// Requests that it, or a group above it, has.
        allocated: u32,
        /// The number that it may have.
        limit: u32,
        /// Levels below the topmost.
        level: u32,
    },
    /// The hardware queues are to be run.
    Kick,
}

/// Collects the lines while it is on.
#[derive(Clone, Debug, Default)]
pub(super) struct StateLog {
    on: bool,
    lines: Vec<StateLine>,
}

impl StateLog {
    /// Switches the log on or off.
    pub fn set_on(&mut self, on: bool) {
        self.on = on;
    }

    /// Adds a line about a queue.
    #[inline]
    pub fn queue(&mut self, queue: Option<QueueLabel>, what: impl FnOnce() -> StateChange) {
        if self.on {
            self.lines.push(StateLine { queue, what: what() });
        }
    }

    /// Adds a line about the device.
    #[inline]
    pub fn device(&mut self, what: impl FnOnce() -> StateChange) {
        self.queue(None, what);
    }

    /// Takes the collected lines.
    pub fn take(&mut self) -> Vec<StateLine> {
        std::mem::take(&mut self.lines)
    }
}
