//! A policy that steers: it chooses the hardware queue of each request before the request has a tag, and holds nothing back.
//!
//! A queue with such a policy has no elevator: its requests take the path of a queue without a scheduler. The policy is asked
//! before a tag is taken, and again after each sleep for one. Many CPUs call it at once, with `&self`.

use std::any::Any;

use crate::bio::Bio;
use crate::ground::ids::HctxId;
use crate::ground::sharing::{Local, Objects, Sharing, Threads};
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::scheduler::{ElevatorCx, SchedulerEvent};
use crate::request::Request;
use crate::request::cpu_map::CpuMap;
use crate::watch::reason::Reason;

/// Chooses the hardware queues of requests.
pub trait Steering<Sh: Sharing>: Any {
    /// The hardware queue for a bio that is submitted on the CPU of `cx`, and the reason. `home` is the queue that it takes without a
    /// policy. The request does not exist yet, and there may be none: a submission that sleeps for a tag is placed anew.
    fn place(&self, cx: &mut ElevatorCx<'_>, bio: &Bio, home: HctxId) -> (HctxId, Reason);

    /// The weights of the drive's classes high, medium and low that it needs, if it uses classes.
    fn weights(&self) -> Option<[u16; 3]> {
        None
    }

    /// A request was created on the hardware queue that was chosen for it.
    fn on_issued(&self, cx: &mut ElevatorCx<'_>, rq: &Request);

    /// A request that was [issued](Self::on_issued) has ended.
    fn on_ended(&self, cx: &mut ElevatorCx<'_>, rq: &Request);

    /// Handles a rare event.
    fn on_event(&self, _cx: &mut ElevatorCx<'_>, _event: SchedulerEvent) {}

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

/// A steering policy as a trait object, as the CPUs of a queue share it.
pub type SteeringObject<Sh> =
    <<Sh as Sharing>::Objects as Objects>::Of<dyn Steering<Sh>, dyn Steering<Sh> + Send + Sync>;

/// Makes a steering policy for each kind of sharing from the same code. A [`Row`](crate::schedulers::Row) of such a policy provides one.
pub trait SteeringFamily: Send {
    /// The policy.
    type Of<Sh: Sharing>: Steering<Sh>;

    /// A fresh one. `map` names the hardware queues, their CPUs and their classes.
    fn make<Sh: Sharing>(&self, map: &CpuMap) -> Self::Of<Sh>;
}

/// A [`SteeringFamily`] as a trait object.
pub trait AnySteeringFamily: Send {
    /// Makes the policy for one thread.
    fn local(&self, map: &CpuMap) -> Box<SteeringObject<Local>>;

    /// Makes the policy for many threads.
    fn threads(&self, map: &CpuMap) -> Box<SteeringObject<Threads>>;
}

impl<F: SteeringFamily> AnySteeringFamily for F
where
    F::Of<Threads>: Send + Sync,
{
    fn local(&self, map: &CpuMap) -> Box<SteeringObject<Local>> {
        Box::new(self.make::<Local>(map))
    }

    fn threads(&self, map: &CpuMap) -> Box<SteeringObject<Threads>> {
        Box::new(self.make::<Threads>(map))
    }
}

impl dyn AnySteeringFamily {
    /// Makes the policy for a kind of sharing; `None` unless that is [`Local`] or [`Threads`].
    pub(crate) fn of<Sh: Sharing>(&self, map: &CpuMap) -> Option<Box<SteeringObject<Sh>>> {
        let mut policy: Option<Box<SteeringObject<Sh>>> = None;
        let slot: &mut dyn Any = &mut policy;
        if let Some(slot) = slot.downcast_mut::<Option<Box<SteeringObject<Local>>>>() {
            *slot = Some(self.local(map));
        } else if let Some(slot) = slot.downcast_mut::<Option<Box<SteeringObject<Threads>>>>() {
            *slot = Some(self.threads(map));
        }
        policy
    }
}
