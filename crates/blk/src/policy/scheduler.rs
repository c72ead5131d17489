//! The policy: what an I/O scheduler decides, as a single-threaded state machine.
//!
//! This is the trait to implement for trying an idea. Four functions are required: [`insert`](Scheduler::insert),
//! [`dispatch`](Scheduler::dispatch), [`finish`](Scheduler::finish) and [`has_work`](Scheduler::has_work);
//! everything else has a default. Functions that begin with `on_` are notifications, all others questions or commands.
//! What only a single queue calls is in [`LegacyHooks`], and what a replay needs in [`Replayable`](super::Replayable).
//! A policy knows nothing of locks, tags, hardware or threads: one caller at a time calls it and passes it the time, and it
//! works on request *ids*; the requests themselves stay where [`Requests`] holds them.

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
    /// Room for the ids below `capacity`.
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

    /// The request `id`, to be changed.
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

    /// Takes a request in.
    #[inline]
    pub fn hold(&mut self, rq: Rq) {
        let id = rq.id();
        let before = self.held[id.index()].replace(rq);
        debug_assert!(before.is_none(), "a request has one place");
        self.count += 1;
    }

    /// Whether none is held here.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Gives a request out.
    ///
    /// # Panics
    /// If it is not held here.
    #[inline]
    pub fn release(&mut self, id: RqId) -> Rq {
        let rq = self.held[id.index()].take().expect("the request is held by this elevator");
        self.count -= 1;
        rq
    }

    /// Takes `second` out and hands both requests to `join`.
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
    /// Set the policy's one timer to this moment; it replaces an earlier setting.
    pub set_timer: Option<Instant>,
    /// Switch the timer off. Ignored if `set_timer` is given too.
    pub cancel_timer: bool,
    /// Run the hardware queues soon: something has become ready without an insertion.
    pub run_queues: bool,
    /// Run these hardware queues soon: what they waited for has come back.
    pub run_hctxs: WokenHctxs,
}

/// The context of a call into an elevator.
pub struct ElevatorCx<'a> {
    /// The time. Under a plug the nanosecond clock may stand still.
    pub now: Now,
    /// The CPU that the call runs on.
    pub cpu: CpuId,
    /// What the policy asks for.
    pub requested: &'a mut RequestedActions,
    /// Requests that others have absorbed: the caller releases them.
    pub freed: &'a mut Vec<Rq>,
}

impl ElevatorCx<'_> {
    /// For a call on CPU 0 whose requested actions are dropped: of a replay, a test, or when there are none.
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
    /// What it asks for.
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
    /// The request, or nothing although there may be work.
    pub rq: Option<RqId>,
    /// Why this one, or why nothing.
    pub reason: Reason,
}

/// How a policy learns that a request has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completions {
    /// At once, under the policy's lock.
    AtOnce,
    /// With the next call, in any order: completion then takes no lock.
    Deferred,
}

/// What a policy needs from its caller, asked once when it is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// How it learns of completions.
    pub completions: Completions,
    /// Whether [`Scheduler::on_bio`] and [`Scheduler::allow_merge`] must be called.
    pub bios: bool,
    /// Whether [`Scheduler::prepare`] must be called.
    pub preparation: bool,
    /// Whether [`Scheduler::allow_join`] must be asked of requests that are both on their way in.
    pub joins: bool,
    /// Whether the tag limit depends on more than the kind of I/O, so that [`Scheduler::limit_depth`] is asked for
    /// every allocation, under the lock, instead of being published.
    pub depth_by_context: bool,
    /// The smallest shallow depth it will ask for, if it limits tags at all.
    pub min_shallow: Option<u32>,
    /// What it sets `queue/async_depth` to as it is attached, in percent of `nr_requests`.
    pub async_percent: u32,
    /// Whether "run all" may run a single hardware queue, because any of them is given any request.
    pub single_dispatch: bool,
    /// Whether it holds write-back up itself, so that the queue should not (`queue/wbt_lat_usec`).
    pub disables_wbt: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Needs {
            completions: Completions::AtOnce,
            bios: false,
            preparation: false,
            joins: false,
            depth_by_context: false,
            min_shallow: None,
            async_percent: 100,
            single_dispatch: true,
            disables_wbt: false,
        }
    }
}

/// A notification that is not about a request: rare, and of interest to few policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulerEvent {
    /// `nr_requests` is this now: tags per hardware queue, and bits in a word of the tag bitmap.
    Depths {
        /// Tags per hardware queue.
        nr_requests: u32,
        /// `queue/async_depth`; none where queues have no such file.
        async_depth: Option<u32>,
    },
    /// `queue/rotational` was written: the device is to be taken for one that seeks, or not.
    Rotational(bool),
    /// An I/O context, normally a process, has ended.
    IoContextExited(IoContextId),
    /// An I/O context got another priority.
    Priority {
        /// Who.
        io_context: IoContextId,
        /// The new one.
        ioprio: IoPriority,
    },
    /// An I/O context moved to another cgroup.
    Moved {
        /// Who.
        io_context: IoContextId,
        /// Where to.
        cgroup: CgroupId,
    },
    /// A cgroup exists: where it stands in the hierarchy. Comes before its first I/O; a cgroup without this event is a child of
    /// the root.
    CgroupAdded {
        /// The new one.
        cgroup: CgroupId,
        /// The one above.
        parent: CgroupId,
    },
    /// A cgroup was removed. What is still charged to it belongs to the nearest living one above.
    CgroupRemoved(CgroupId),
    /// A cgroup got another weight against its siblings.
    Weight {
        /// Which.
        cgroup: CgroupId,
        /// As in the policy's weight file.
        weight: u16,
    },
    /// The own tasks of a cgroup got another weight against its child groups (cgroup v1's `leaf_weight`).
    LeafWeight {
        /// Which.
        cgroup: CgroupId,
        /// As in the file.
        weight: u16,
    },
}

/// An I/O scheduler's policy. It is a single-threaded state machine; locking and the storage of requests are its caller's.
pub trait Scheduler {
    /// What it needs from its caller.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    // --- the required part ---

    /// Takes the request `id`, which is already held. [`on_arrived`](Self::on_arrived) may have been called for it before.
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place);

    /// Chooses the next request for `hctx` and forgets it, or says why there is none. May give any hardware queue
    /// any request.
    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId) -> Choice;

    /// A request that was inserted has been released: it completed, or it was absorbed by another.
    /// The request itself is no longer here.
    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId);

    /// Whether [`dispatch`](Self::dispatch) is worth a call. May be true although that returns nothing.
    fn has_work(&self) -> bool;

    // --- merging ---

    /// A bio has arrived and is about to look for a request to join.
    fn on_bio(&mut self, _cx: &mut PolicyCx<'_>, _bio: &Bio) {}

    /// Whether `bio` may join the request `id`.
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

    /// The request `id` has grown at `edge`: if that was the front its sector has changed.
    fn on_grown(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId, _edge: Edge) {}

    /// `survivor` is about to absorb the request `absorbed`, which was inserted and leaves the policy now. Both are
    /// still held and unchanged. A [`finish`](Self::finish) of `absorbed` follows.
    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, _survivor: RqId, _absorbed: RqId) {}

    /// Whether the request `first` may absorb `second`, which begins where it ends. `second` may be on its way in. Not asked while
    /// both are, unless the policy wants to be asked of these [joins](Needs::joins), to know of [bios](Needs::bios), or [prepares](Needs::preparation).
    fn allow_join(&self, _first: RqId, _second: RqId) -> bool {
        true
    }

    // --- the life of a request around the required part ---

    /// A request is about to be inserted. It is not held yet: it may still be absorbed by a queued one, and then
    /// [`on_dropped`](Self::on_dropped) follows instead of [`insert`](Self::insert).
    fn on_arrived(&mut self, _cx: &mut PolicyCx<'_>, _rq: &Request) {}

    /// A request that had [arrived](Self::on_arrived) was absorbed by a queued one, so that it is never inserted. No
    /// [`finish`](Self::finish) follows.
    fn on_dropped(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId) {}

    /// How many scheduler tags an allocation may use, if not all.
    fn limit_depth(&mut self, _cx: &mut PolicyCx<'_>, _bio: &Bio) -> Option<u32> {
        None
    }

    /// A request was allocated; it is not inserted yet and may never be.
    fn prepare(&mut self, _cx: &mut PolicyCx<'_>, _rq: &Request) {}

    /// A dispatched request comes back; an insertion at the head follows.
    fn on_requeued(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId) {}

    // --- everything else that can happen ---

    /// The policy's timer has come.
    fn on_timer(&mut self, _cx: &mut PolicyCx<'_>) {}

    /// Request ids below `capacity` will come from now on: a policy that keeps tables by id makes room. It has no request
    /// when this is called.
    fn grow(&mut self, _capacity: u32) {}

    /// Something rare has happened.
    fn on_event(&mut self, _cx: &mut PolicyCx<'_>, _event: SchedulerEvent) {}

    // --- tunables ---

    /// Its tunables, in the order of their files, and what each shows now; see [`Tunables`](crate::ground::Tunables).
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

    /// Its hooks for the single queue of Linux up to 4.20, if it has any: then it returns itself.
    fn legacy_hooks(&mut self) -> Option<&mut dyn LegacyHooks> {
        None
    }
}
