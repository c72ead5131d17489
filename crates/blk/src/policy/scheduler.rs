//! The scheduler interface: a policy as a single-threaded state machine.
//!
//! This is the trait to implement for a new scheduler. Four functions are required: [`insert`](Scheduler::insert),
//! [`dispatch`](Scheduler::dispatch), [`finish`](Scheduler::finish) and [`has_work`](Scheduler::has_work); everything else has a default.
//! Functions that begin with `on_` are notifications, all others queries or commands. Hooks that only the legacy single queue calls are in
//! [`LegacyHooks`], and those for replays in [`Replayable`](super::Replayable). A policy does not deal with locks, tags, hardware or
//! threads: it has one caller at a time, which passes the time, and it works on request ids; the requests themselves are in [`Requests`].

use crate::bio::Bio;
use crate::bio::ioprio::IoPriority;
use crate::ground::ids::{CgroupId, CpuId, HctxId, IoContextId, RqId};
use crate::ground::time::{Instant, Now};
use crate::ground::tunables::{StoreError, Tunable};
use crate::request::merge::Edge;
use crate::request::{Request, Rq};

pub(super) mod legacy_hooks;

use super::woken::WokenHctxs;
use crate::watch::reason::Reason;
use legacy_hooks::LegacyHooks;

/// The requests that an elevator holds, by id.
#[derive(Default)]
pub struct Requests {
    held: Vec<Option<Rq>>,
    count: u32,
}

impl Requests {
    /// An empty table for the ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Requests { held: (0..capacity).map(|_| None).collect(), count: 0 }
    }

    /// Makes room for the ids below `capacity`.
    pub fn grow(&mut self, capacity: u32) {
        if capacity as usize > self.held.len() {
            self.held.resize_with(capacity as usize, || None);
        }
    }

    /// The request `id`.
    ///
    /// # Panics
    /// If it is not held here.
    #[inline]
    #[must_use]
    pub fn get(&self, id: RqId) -> &Request {
        self.held[id.index()].as_deref().expect("the request is held by this elevator")
    }

    /// The request `id`, for modification.
    ///
    /// # Panics
    /// If it is not held here.
    #[inline]
    pub fn get_mut(&mut self, id: RqId) -> &mut Request {
        self.held[id.index()].as_deref_mut().expect("the request is held by this elevator")
    }

    /// Whether the request `id` is held here.
    #[inline]
    #[must_use]
    pub fn holds(&self, id: RqId) -> bool {
        self.held[id.index()].is_some()
    }

    /// Adds a request.
    #[inline]
    pub fn hold(&mut self, rq: Rq) {
        let id = rq.id();
        let before = self.held[id.index()].replace(rq);
        debug_assert!(before.is_none(), "a request has one place");
        self.count += 1;
    }

    /// Whether no request is held.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes a request.
    ///
    /// # Panics
    /// If it is not held here.
    #[inline]
    pub fn release(&mut self, id: RqId) -> Rq {
        let rq = self.held[id.index()].take().expect("the request is held by this elevator");
        self.count -= 1;
        rq
    }

    /// Removes `second` and passes both requests to `join`.
    ///
    /// # Panics
    /// If one of them is not held here.
    pub fn join(&mut self, first: RqId, second: RqId, join: impl FnOnce(&mut Request, &mut Rq)) -> Rq {
        let mut absorbed = self.release(second);
        join(self.get_mut(first), &mut absorbed);
        absorbed
    }
}

/// The actions that a policy requests of its caller during a call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestedActions {
    /// Set the policy's timer to this time, replacing an earlier setting.
    pub set_timer: Option<Instant>,
    /// Cancel the timer. Ignored if `set_timer` is also given.
    pub cancel_timer: bool,
    /// Run the hardware queues soon: something has become ready without an insertion.
    pub run_queues: bool,
    /// Run these hardware queues soon: a resource that they wait for is available.
    pub run_hctxs: WokenHctxs,
    /// Set the weights of the drive's classes high, medium and low; only a [steering](super::Steering) policy requests it.
    pub arbitrate: Option<[u16; 3]>,
    /// Have this process run on this CPU from its next wake-up on; only a [steering](super::Steering) policy requests it.
    pub move_submitter: Option<(IoContextId, CpuId)>,
}

/// The context of a call into an elevator.
pub struct ElevatorCx<'a> {
    /// The time. Under a plug the nanosecond clock may stand still.
    pub now: Now,
    /// The CPU that the call runs on.
    pub cpu: CpuId,
    /// Actions that the policy requests.
    pub requested: &'a mut RequestedActions,
    /// Requests that were merged into others, to be released by the caller.
    pub freed: &'a mut Vec<Rq>,
}

impl ElevatorCx<'_> {
    /// Makes a call on CPU 0 whose requested actions are dropped: for replays, tests, and calls that request none.
    pub fn alone<R>(now: Now, body: impl FnOnce(&mut ElevatorCx<'_>) -> R) -> R {
        body(&mut ElevatorCx {
            now,
            cpu: CpuId(0),
            requested: &mut RequestedActions::default(),
            freed: &mut Vec::new(),
        })
    }
}

/// The context of a call into a policy.
pub struct PolicyCx<'a> {
    /// The time. Under a plug the nanosecond clock may stand still.
    pub now: Now,
    /// The requests that it holds.
    pub requests: &'a Requests,
    /// Actions that it requests.
    pub requested: &'a mut RequestedActions,
}

impl PolicyCx<'_> {
    /// The request `id`, which the policy holds.
    #[inline]
    #[must_use]
    pub fn rq(&self, id: RqId) -> &Request {
        self.requests.get(id)
    }
}

/// Where a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Among the others, by the policy's rules.
    Sorted,
    /// Before all others: a requeued request, or the rest of a flush sequence.
    Head,
}

/// What [`dispatch`](Scheduler::dispatch) returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The request; `None` although there may be work.
    pub rq: Option<RqId>,
    /// The reason for the request, or for none.
    pub reason: Reason,
}

/// How a policy is notified of completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completions {
    /// Immediately, under the policy's lock.
    AtOnce,
    /// With the next call, in any order: completion then takes no lock.
    Deferred,
}

/// A policy's requirements, queried once when it is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// How it is notified of completions.
    pub completions: Completions,
    /// Whether [`Scheduler::on_bio`] and [`Scheduler::allow_merge`] must be called.
    pub bios: bool,
    /// Whether [`Scheduler::prepare`] must be called.
    pub preparation: bool,
    /// Whether [`Scheduler::allow_request_merge`] must be called for two requests that are not inserted yet.
    pub request_merges: bool,
    /// Whether the tag limit depends on more than the kind of I/O, so that [`Scheduler::limit_depth`] is asked for
    /// every allocation, under the lock, instead of being published.
    pub depth_by_context: bool,
    /// The smallest shallow depth that it uses, if it limits tags.
    pub min_shallow: Option<u32>,
    /// The value of `queue/async_depth` that it sets when attached, in percent of `nr_requests`.
    pub async_percent: u32,
    /// Whether "run all" may run a single hardware queue, because any hardware queue can dispatch any request.
    pub single_dispatch: bool,
    /// Whether it throttles write-back itself, so that the queue should not (`queue/wbt_lat_usec`).
    pub disables_wbt: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Needs {
            completions: Completions::AtOnce,
            bios: false,
            preparation: false,
            request_merges: false,
            depth_by_context: false,
            min_shallow: None,
            async_percent: 100,
            single_dispatch: true,
            disables_wbt: false,
        }
    }
}

/// A rare notification that is not about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulerEvent {
    /// `nr_requests` or `async_depth` has changed.
    Depths {
        /// Tags per hardware queue.
        nr_requests: u32,
        /// `queue/async_depth`; `None` if queues have no such file.
        async_depth: Option<u32>,
    },
    /// `queue/rotational` was written: whether to treat the device as rotational.
    Rotational(bool),
    /// An I/O context, normally a process, has ended.
    IoContextExited(IoContextId),
    /// An I/O context got another priority.
    Priority {
        /// The I/O context.
        io_context: IoContextId,
        /// The new one.
        ioprio: IoPriority,
    },
    /// An I/O context moved to another cgroup.
    Moved {
        /// The I/O context.
        io_context: IoContextId,
        /// The new cgroup.
        cgroup: CgroupId,
    },
    /// A new cgroup and its parent. Sent before its first I/O; a cgroup without this event is a child of the root.
    CgroupAdded {
        /// The new one.
        cgroup: CgroupId,
        /// Its parent.
        parent: CgroupId,
    },
    /// A cgroup was removed. I/O that is still charged to it belongs to its nearest remaining ancestor.
    CgroupRemoved(CgroupId),
    /// The weight of a cgroup relative to its siblings has changed.
    Weight {
        /// The cgroup.
        cgroup: CgroupId,
        /// The weight, as in the policy's weight file.
        weight: u16,
    },
    /// The weight of a cgroup's own tasks relative to its child groups has changed (cgroup v1's `leaf_weight`).
    LeafWeight {
        /// The cgroup.
        cgroup: CgroupId,
        /// The weight, as in the file.
        weight: u16,
    },
}

/// The policy of an I/O scheduler: a single-threaded state machine. Locking and storage of requests are up to the caller.
pub trait Scheduler {
    /// Its requirements.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    // --- the required part ---

    /// Inserts the request `id`, which is already in [`Requests`]. [`on_arrived`](Self::on_arrived) may have been called for it before.
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place);

    /// Chooses the next request for `hctx` and forgets it, or returns the reason for none. Any hardware queue may get any request.
    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId) -> Choice;

    /// An inserted request has been released: it has completed or was merged into another. It is no longer in [`Requests`].
    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId);

    /// Whether [`dispatch`](Self::dispatch) should be called. May be true even if that returns no request.
    fn has_work(&self) -> bool;

    // --- merging ---

    /// A bio has arrived, and is about to be tried for merging.
    fn on_bio(&mut self, _cx: &mut PolicyCx<'_>, _bio: &Bio) {}

    /// Whether `bio` may be merged into the request `id`.
    fn allow_merge(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId, _bio: &Bio) -> bool {
        true
    }

    /// A request that starts where `bio` ends, if the policy keeps an index by sector and wants front merges.
    fn front_candidate(&self, _cx: &PolicyCx<'_>, _bio: &Bio) -> Option<RqId> {
        None
    }

    /// The request before `id` in the policy's order by sector.
    fn previous(&self, _id: RqId) -> Option<RqId> {
        None
    }

    /// The request after `id` in the policy's order by sector.
    fn next(&self, _id: RqId) -> Option<RqId> {
        None
    }

    /// The request `id` has grown at `edge`; if that was the front, its sector has changed.
    fn on_grown(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId, _edge: Edge) {}

    /// The inserted request `absorbed` is about to be merged into `survivor` and leaves the policy now. Both are still in [`Requests`],
    /// unchanged. A [`finish`](Self::finish) of `absorbed` follows.
    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, _survivor: RqId, _absorbed: RqId) {}

    /// Whether `second` may be merged into `first`, which ends where it starts. `second` need not be inserted yet. Not called if neither
    /// is, unless the policy needs [`request_merges`](Needs::request_merges), [`bios`](Needs::bios) or [`preparation`](Needs::preparation).
    fn allow_request_merge(&self, _first: RqId, _second: RqId) -> bool {
        true
    }

    // --- other stages of a request ---

    /// A request is about to be inserted. It is not in [`Requests`] yet: if it is merged into a queued one,
    /// [`on_dropped`](Self::on_dropped) follows instead of [`insert`](Self::insert).
    fn on_arrived(&mut self, _cx: &mut PolicyCx<'_>, _rq: &Request) {}

    /// A request that had [arrived](Self::on_arrived) was merged into a queued one and is never inserted. No [`finish`](Self::finish)
    /// follows.
    fn on_dropped(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId) {}

    /// Number of scheduler tags that an allocation may use; `None` for all.
    fn limit_depth(&mut self, _cx: &mut PolicyCx<'_>, _bio: &Bio) -> Option<u32> {
        None
    }

    /// A request was allocated; it is not inserted yet and may never be.
    fn prepare(&mut self, _cx: &mut PolicyCx<'_>, _rq: &Request) {}

    /// A dispatched request comes back; an insertion at the head follows, except in a single queue.
    fn on_requeued(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId) {}

    // --- other notifications ---

    /// The policy's timer has expired.
    fn on_timer(&mut self, _cx: &mut PolicyCx<'_>) {}

    /// Grows tables indexed by request id to `capacity`. The policy has no requests when this is called.
    fn grow(&mut self, _capacity: u32) {}

    /// Handles a rare event.
    fn on_event(&mut self, _cx: &mut PolicyCx<'_>, _event: SchedulerEvent) {}

    // --- tunables ---

    /// Its tunables, in the order of their files, with their current values; see [`Tunables`](crate::ground::Tunables).
    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        Vec::new()
    }

    /// Writes a tunable.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    fn set_tunable(&mut self, _cx: &mut PolicyCx<'_>, _name: &str, _text: &str) -> Result<(), StoreError> {
        Err(StoreError::Unknown)
    }

    // --- the single queue ---

    /// Its hooks for the single queue of Linux up to 4.20: returns itself if it implements them.
    fn legacy_hooks(&mut self) -> Option<&mut dyn LegacyHooks> {
        None
    }
}
