//! Callers of the block layer: a caller's effects and reusable memory, submitters, and the agenda of a queue.
//!
//! Used by: `queue`; crates `sim`, `legacy`, `engine`, `calibrate`, `evidence` and others.
//! Tests: `crates/blk/src/caller/agenda.rs`, `crates/blk/src/caller/submitter.rs`.

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
    /// Effects of its calls that have not been [taken](crate::caller::Agenda) yet.
    pub effects: Effects,
    scratch: Scratch,
}

impl Caller {
    /// A new caller without effects.
    #[must_use]
    pub fn new() -> Self {
        Caller::default()
    }

    /// The context of its next call.
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
