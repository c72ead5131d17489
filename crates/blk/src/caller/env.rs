//! What surrounds a call on the way of a request: the time, the CPU, and four parties outside of the block layer.

use std::collections::VecDeque;

use crate::drive::driver::Driver;
use crate::drive::effects::Effects;
use crate::ground::ids::CpuId;
use crate::ground::meter::{Meter, NoMeter};
use crate::ground::time::Now;
use crate::policy::{ElevatorCx, RequestedActions};
use crate::request::Rq;
use crate::watch::probe::{Event, Probe};

/// The types of what the block layer calls: one parameter instead of three. A pair of driver and probe is one whose
/// locks are not metered.
pub trait Env {
    /// Who carries requests out.
    type Driver: Driver;
    /// Who watches.
    type Probe: Probe;
    /// Who charges for locks.
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

/// What every call on the way of a request takes; a [`Caller`](crate::caller::Caller) makes it.
pub struct Cx<'a, E: Env> {
    /// The time as the block layer and its policies see it: a [plug](crate::request::Plug) may have stopped their clock.
    pub now: Now,
    /// The time outside, for driver and probe.
    pub real: Now,
    /// The CPU that the call runs on.
    pub cpu: CpuId,
    /// The driver, as seen from this CPU.
    pub driver: &'a mut E::Driver,
    /// What is to be done afterwards.
    pub effects: &'a mut Effects,
    /// Memory to work with.
    pub scratch: &'a mut Scratch,
    /// Who watches.
    pub probe: &'a mut E::Probe,
    /// Who charges for the locks that the call takes.
    pub meter: &'a E::Meter,
}

impl<E: Env> Cx<'_, E> {
    /// Tells the probe of something.
    #[inline(always)]
    pub fn event(&mut self, event: Event<'_>) {
        self.probe.event(self.real, self.cpu, event);
    }

    /// What a call into the elevator takes. The actions that it requests become [effects](Self::take_requested).
    #[inline]
    pub fn elevator(&mut self) -> ElevatorCx<'_> {
        self.scratch.elevator(self.now, self.cpu)
    }

    /// Turns what a policy asked for during a call into effects.
    #[inline]
    pub fn take_requested(&mut self) {
        let RequestedActions { set_timer, cancel_timer, run_queues, run_hctxs } = &self.scratch.requested;
        if set_timer.is_some() || *cancel_timer | *run_queues | !run_hctxs.is_empty() {
            let requested = std::mem::take(&mut self.scratch.requested);
            self.effects.push_requested_actions(requested);
        }
    }
}

/// Memory that calls reuse: between calls there is nothing in it.
#[derive(Default)]
pub struct Scratch {
    /// Boxed, so that lending one moves a pointer and not the list.
    #[expect(clippy::vec_box)]
    lists: Vec<Box<VecDeque<Rq>>>,
    /// Requests that were absorbed during a call.
    pub freed: Vec<Rq>,
    /// What a policy asks for during a call: reused, because making and moving one for every call costs more than the call.
    pub requested: RequestedActions,
}

impl Scratch {
    /// What a call into an elevator takes. The actions that it requests become [effects](Cx::take_requested).
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
