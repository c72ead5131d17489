//! What a caller of the block layer keeps between its calls: the effects that they leave, and memory that they reuse.

use std::collections::VecDeque;

use crate::effects::Effects;
use crate::elevator::{ElevatorCx, Wishes};
use crate::env::{Cx, Env};
use crate::ids::CpuId;
use crate::request::Rq;
use crate::time::Now;

/// A caller: a thread, or a machine in virtual time. It makes one call at a time.
#[derive(Default)]
pub struct Caller {
    /// What its calls have led to and nobody has [taken](crate::Agenda) yet.
    pub effects: Effects,
    scratch: Scratch,
}

impl Caller {
    /// One that has not called yet.
    #[must_use]
    pub fn new() -> Self {
        Caller::default()
    }

    /// What surrounds its next call.
    #[inline]
    pub fn cx<'a, E: Env>(
        &'a mut self,
        now: Now,
        cpu: CpuId,
        driver: &'a mut E::Driver,
        probe: &'a mut E::Probe,
        meter: &'a E::Meter,
    ) -> Cx<'a, E> {
        Cx { now, cpu, driver, effects: &mut self.effects, scratch: &mut self.scratch, probe, meter }
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
    pub wishes: Wishes,
}

impl Scratch {
    /// What a call into an elevator takes. Its wishes become [effects](Cx::take_wishes) after it.
    #[inline]
    pub fn elevator(&mut self, now: Now, cpu: CpuId) -> ElevatorCx<'_> {
        ElevatorCx { now, cpu, wishes: &mut self.wishes, freed: &mut self.freed }
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
