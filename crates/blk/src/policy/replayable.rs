//! Additional scheduler interface for replays of recordings.

use crate::ground::ids::{HctxId, RqId};

use super::scheduler::{PolicyCx, Scheduler};

/// A scheduler that can continue from a recorded kernel's decision if its own differs.
pub trait Replayable: Scheduler {
    /// Adopts `id` as the chosen request, as if [`dispatch`](Scheduler::dispatch) had returned it.
    fn adopt(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId, id: RqId);
}
