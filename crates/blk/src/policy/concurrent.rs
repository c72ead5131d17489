//! A scheduler with locks of its own: many CPUs call it at once, with `&self`.
//!
//! Where a [`Scheduler`](super::Scheduler) is a single-threaded policy behind one lock, which the block layer takes for it, this one
//! decides by itself what its CPUs share. It owns the requests that wait in it. Four functions are required, as there; all others
//! have a default. Its locks are [`Sharing::Lock`]s taken at [`Site::HardwareQueue`] and [`Site::SoftwareQueue`], so that
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

    /// Takes requests in, in order, and [marks](crate::request::Marks::INSERTED) them. A run has to follow.
    fn insert(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, list: &mut dyn Iterator<Item = Rq>, place: Place);

    /// Gives out the next request for `hctx`, [marked](crate::request::Marks::STARTED), or says why there is none. May give any hardware
    /// queue any request.
    fn dispatch(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason);

    /// Whether [`dispatch`](Self::dispatch) for `hctx` is worth a call. May be true although that returns nothing.
    fn has_work(&self, hctx: HctxId) -> bool;

    /// A request that was inserted has been released.
    fn finish(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, id: RqId);

    // --- what it needs from its caller ---

    /// Whether "run all" may run a single hardware queue, because any of them is given any request.
    fn is_single_dispatch(&self) -> bool {
        false
    }

    /// What it sets `queue/async_depth` to as it is attached, in percent of `nr_requests`.
    fn async_percent(&self) -> u32 {
        100
    }

    /// The smallest shallow depth it will ask for, if it limits tags at all.
    fn min_shallow(&self) -> Option<u32> {
        None
    }

    // --- the life of a request around the required part ---

    /// Tries to merge a bio into a request that waits. It is taken out of its option exactly when that succeeded.
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

    /// A request that was given out comes back; an insertion at the head follows.
    fn on_requeued(&self, _meter: &dyn Meter, _cx: &mut ElevatorCx<'_>, _id: RqId) {}

    // --- everything else that can happen ---

    /// Its timer has come.
    fn on_timer(&self, _meter: &dyn Meter, _cx: &mut ElevatorCx<'_>) {}

    /// Something rare has happened.
    fn on_event(&self, _meter: &dyn Meter, _cx: &mut ElevatorCx<'_>, _event: SchedulerEvent) {}

    /// Request ids below `capacity` will come from now on. It holds none.
    fn grow(&mut self, _capacity: u32) {}

    // --- tunables ---

    /// Its tunables, in the order of their files, and what each shows now.
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

/// Any of them, as the CPUs of a queue share it.
pub type ConcurrentObject<Sh> =
    <<Sh as Sharing>::Objects as Objects>::Of<dyn Concurrent<Sh>, dyn Concurrent<Sh> + Send + Sync>;

/// Makes a scheduler for each kind of sharing from the same code. This is what a [`Row`](crate::schedulers::Row) of one gives.
pub trait Family: Send {
    /// The scheduler.
    type Of<Sh: Sharing>: Concurrent<Sh>;

    /// A fresh one. `map` names the hardware queues and their CPUs.
    fn make<Sh: Sharing>(&self, map: &CpuMap) -> Self::Of<Sh>;
}

/// A [`Family`] as a trait object.
pub trait AnyFamily: Send {
    /// For one thread.
    fn local(&self, map: &CpuMap) -> Box<ConcurrentObject<Local>>;

    /// For many.
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
    /// The scheduler for a kind of sharing: that of one thread or of [`Threads`]. `None` for any other, which has to name the
    /// scheduler's type.
    pub(crate) fn of<Sh: Sharing>(&self, map: &CpuMap) -> Option<Box<ConcurrentObject<Sh>>> {
        let mut made: Option<Box<ConcurrentObject<Sh>>> = None;
        let place: &mut dyn Any = &mut made;
        if let Some(place) = place.downcast_mut::<Option<Box<ConcurrentObject<Local>>>>() {
            *place = Some(self.local(map));
        } else if let Some(place) = place.downcast_mut::<Option<Box<ConcurrentObject<Threads>>>>() {
            *place = Some(self.threads(map));
        }
        made
    }
}
