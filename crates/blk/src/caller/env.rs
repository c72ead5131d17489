//! The context of a call into the block layer: time, CPU, driver, probe, lock meter and effects.

use std::collections::VecDeque;

use crate::drive::driver::Driver;
use crate::drive::effects::{Effect, Effects};
use crate::ground::ids::CpuId;
use crate::ground::meter::{Meter, NoMeter};
use crate::ground::time::Now;
use crate::policy::{ElevatorCx, RequestedActions};
use crate::request::Rq;
use crate::watch::probe::{Event, Probe};

/// The types that the block layer calls, as one parameter instead of three. A pair of driver and probe is an environment
/// without a lock meter.
pub trait Env {
    /// The driver.
    type Driver: Driver;
    /// The probe that observes events.
    type Probe: Probe;
    /// The meter that charges for locks.
    type Meter: Meter;
}

impl<D: Driver, P: Probe> Env for (D, P) {
    type Driver = D;
    type Probe = P;
    type Meter = NoMeter;
}

impl<D: Driver, P: Probe, M: Meter> Env for (D, P, M) {
    type Driver = D;
    type Probe = P;
    type Meter = M;
}

/// The context of every call; a [`Caller`](crate::caller::Caller) makes it.
pub struct Cx<'a, E: Env> {
    /// The time as the block layer and its policies see it: a [plug](crate::request::Plug) may have stopped their clock.
    pub now: Now,
    /// The real time, for driver and probe.
    pub real: Now,
    /// The CPU that the call runs on.
    pub cpu: CpuId,
    /// The driver, as seen from this CPU.
    pub driver: &'a mut E::Driver,
    /// Effects of the call, to be carried out afterwards.
    pub effects: &'a mut Effects,
    /// Reusable memory.
    pub scratch: &'a mut Scratch,
    /// The probe that observes events.
    pub probe: &'a mut E::Probe,
    /// The meter that charges for locks of the call.
    pub meter: &'a E::Meter,
}

impl<E: Env> Cx<'_, E> {
    /// Reports an event to the probe.
    #[inline(always)]
    pub fn event(&mut self, event: Event<'_>) {
        self.probe.event(self.real, self.cpu, event);
    }

    /// The context of a call into the elevator. The actions that it requests become [effects](Self::take_requested).
    #[inline]
    pub fn elevator(&mut self) -> ElevatorCx<'_> {
        self.scratch.elevator(self.now, self.cpu)
    }

    /// Converts the actions that a policy requested during a call into effects.
    #[inline]
    pub fn take_requested(&mut self) {
        let RequestedActions { set_timer, cancel_timer, run_queues, run_hctxs, .. } = &self.scratch.requested;
        if set_timer.is_some() || *cancel_timer | *run_queues | !run_hctxs.is_empty() {
            let requested = std::mem::take(&mut self.scratch.requested);
            self.effects.push_requested_actions(requested);
        }
    }

    /// The same after a call into a policy that steers, which may also change the weights of the drive and move processes.
    pub fn take_requested_by_steering(&mut self) {
        if let Some(weights) = self.scratch.requested.arbitrate.take() {
            self.effects.push(Effect::Arbitrate(Some(weights)));
        }
        if let Some((io_context, cpu)) = self.scratch.requested.move_submitter.take() {
            self.effects.push(Effect::MoveSubmitter { io_context, cpu });
        }
        self.take_requested();
    }
}

/// Memory that calls reuse; empty between calls.
#[derive(Default)]
pub struct Scratch {
    /// Boxed, so that taking one moves a pointer instead of the list.
    #[expect(clippy::vec_box)]
    lists: Vec<Box<VecDeque<Rq>>>,
    /// Requests that were merged into others during a call.
    pub freed: Vec<Rq>,
    /// Actions that a policy requests during a call; reused, because creating and moving it costs more than the call.
    pub requested: RequestedActions,
}

impl Scratch {
    /// The context of a call into an elevator. The actions that it requests become [effects](Cx::take_requested).
    #[inline]
    pub fn elevator(&mut self, now: Now, cpu: CpuId) -> ElevatorCx<'_> {
        ElevatorCx { now, cpu, requested: &mut self.requested, freed: &mut self.freed }
    }

    /// An empty list of requests that keeps its memory between uses.
    #[inline]
    pub fn take_list(&mut self) -> Box<VecDeque<Rq>> {
        self.lists.pop().unwrap_or_default()
    }

    /// Gives an emptied list back.
    #[inline]
    pub fn give_list(&mut self, list: Box<VecDeque<Rq>>) {
        debug_assert!(list.is_empty(), "no request is left behind");
        self.lists.push(list);
    }
}
