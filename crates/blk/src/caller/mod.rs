//! What a caller of the block layer keeps between its calls: the effects that they leave, and memory that they reuse.

pub(crate) mod agenda;
pub(crate) mod block_queue;
pub(crate) mod env;
pub(crate) mod submitter;

pub use agenda::{Action, Agenda, Due, Workers};
pub use block_queue::{BlockQueue, Submission, Submitted};
pub use env::{Cx, Env, Scratch};
pub use submitter::{Parts, Submitter};

use crate::drive::effects::Effects;
use crate::ground::ids::CpuId;
use crate::ground::time::Now;

/// A caller: a thread, or a machine in virtual time. It makes one call at a time.
#[derive(Default)]
pub struct Caller {
    /// What its calls have led to and what has not been [taken](crate::caller::Agenda) yet.
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
        Cx { now, real: now, cpu, driver, effects: &mut self.effects, scratch: &mut self.scratch, probe, meter }
    }
}
