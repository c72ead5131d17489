//! A scheduler with locks of its own: many CPUs call it at once, with `&self`.
//!
//! A [`Scheduler`](super::Scheduler) is a single-threaded policy, and the block layer locks around it. A [`Concurrent`] scheduler has its own
//! locks and owns its waiting requests. Both traits require four functions; all others have a default. Its locks are [`Sharing::Lock`]s taken at [`Site::HardwareQueue`] and [`Site::SoftwareQueue`], so that
//! virtual time charges for them, and its words [`Sharing::Word`]s.
//!
//! [`Site::HardwareQueue`]: crate::ground::Site::HardwareQueue
//! [`Site::SoftwareQueue`]: crate::ground::Site::SoftwareQueue

use std::any::Any;

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};
use crate::ground::meter::Meter;
use crate::ground::sharing::{Local, Objects, Sharing, Threads};
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::scheduler::{ElevatorCx, Place, SchedulerEvent};
use crate::request::cpu_map::CpuMap;
use crate::request::merge::{Edge, MergeRules};
use crate::request::{Request, Rq};
use crate::tags::Depth;
use crate::watch::reason::Reason;

/// A scheduler that many CPUs call at once.
pub trait Concurrent<Sh: Sharing>: Any {
    // --- the required part ---

    /// Inserts requests, in order, and [marks](crate::request::Marks::INSERTED) them. A run has to follow.
    fn insert(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, list: &mut dyn Iterator<Item = Rq>, place: Place);

    /// Dispatches the next request for `hctx`, [marked](crate::request::Marks::STARTED), or says why there is none. Any hardware queue
    /// may get any request.
    fn dispatch(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason);

    /// Whether [`dispatch`](Self::dispatch) for `hctx` is worth a call. May be true although that returns nothing.
    fn has_work(&self, hctx: HctxId) -> bool;

    /// A request that was inserted has been released.
    fn finish(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, id: RqId);

    // --- what it needs from its caller ---

    /// Whether "run all" may run a single hardware queue, because each of them may get any request.
    fn is_single_dispatch(&self) -> bool {
        false
    }

    /// The value to which `queue/async_depth` is set when it is attached, in percent of `nr_requests`.
    fn async_percent(&self) -> u32 {
        100
    }

    /// The smallest shallow depth that it uses, if it limits tags at all.
    fn min_shallow(&self) -> Option<u32> {
        None
    }

    // --- the life of a request around the required part ---

    /// Tries to merge a bio into a queued request; on success the bio is taken out of its option.
    fn merge_bio(
        &self,
        _meter: &dyn Meter,
        _cx: &mut ElevatorCx<'_>,
        _rules: &MergeRules,
        _bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        None
    }

    /// How many scheduler tags an allocation may use.
    fn limit_depth(&self, _bio: &Bio) -> Depth {
        Depth::Full
    }

    /// A request has completed. Its release follows.
    fn on_completed(&self, _cx: &mut ElevatorCx<'_>, _rq: &Request) {}

    /// A dispatched request comes back; an insertion at the head follows.
    fn on_requeued(&self, _meter: &dyn Meter, _cx: &mut ElevatorCx<'_>, _id: RqId) {}

    // --- everything else that can happen ---

    /// Its timer has expired.
    fn on_timer(&self, _meter: &dyn Meter, _cx: &mut ElevatorCx<'_>) {}

    /// Handles a rare event.
    fn on_event(&self, _meter: &dyn Meter, _cx: &mut ElevatorCx<'_>, _event: SchedulerEvent) {}

    /// Makes room for request ids below `capacity`. It holds no request.
    fn grow(&mut self, _capacity: u32) {}

    // --- tunables ---

    /// Its tunables, in the order of their files, with their current values.
    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        Vec::new()
    }

    /// Writes a tunable.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    fn set_tunable(&self, _cx: &mut ElevatorCx<'_>, _name: &str, _text: &str) -> Result<(), StoreError> {
        Err(StoreError::Unknown)
    }
}

/// A concurrent scheduler as a trait object, as the CPUs of a queue share it.
pub type ConcurrentObject<Sh> =
    <<Sh as Sharing>::Objects as Objects>::Of<dyn Concurrent<Sh>, dyn Concurrent<Sh> + Send + Sync>;

/// Makes a scheduler for each kind of sharing from the same code. A [`Row`](crate::schedulers::Row) of a concurrent scheduler provides one.
pub trait Family: Send {
    /// The scheduler.
    type Of<Sh: Sharing>: Concurrent<Sh>;

    /// A fresh one. `map` names the hardware queues and their CPUs.
    fn make<Sh: Sharing>(&self, map: &CpuMap) -> Self::Of<Sh>;
}

/// A [`Family`] as a trait object.
pub trait AnyFamily: Send {
    /// Makes the scheduler for one thread.
    fn local(&self, map: &CpuMap) -> Box<ConcurrentObject<Local>>;

    /// Makes the scheduler for many threads.
    fn threads(&self, map: &CpuMap) -> Box<ConcurrentObject<Threads>>;
}

impl<F: Family> AnyFamily for F
where
    F::Of<Threads>: Send + Sync,
{
    fn local(&self, map: &CpuMap) -> Box<ConcurrentObject<Local>> {
        Box::new(self.make::<Local>(map))
    }

    fn threads(&self, map: &CpuMap) -> Box<ConcurrentObject<Threads>> {
        Box::new(self.make::<Threads>(map))
    }
}

impl dyn AnyFamily {
    /// Makes the scheduler for a kind of sharing; `None` unless that is [`Local`] or [`Threads`]. Code with another kind has to name the
    /// scheduler's type.
    pub(crate) fn of<Sh: Sharing>(&self, map: &CpuMap) -> Option<Box<ConcurrentObject<Sh>>> {
        let mut scheduler: Option<Box<ConcurrentObject<Sh>>> = None;
        let slot: &mut dyn Any = &mut scheduler;
        if let Some(slot) = slot.downcast_mut::<Option<Box<ConcurrentObject<Local>>>>() {
            *slot = Some(self.local(map));
        } else if let Some(slot) = slot.downcast_mut::<Option<Box<ConcurrentObject<Threads>>>>() {
            *slot = Some(self.threads(map));
        }
        scheduler
    }
}
