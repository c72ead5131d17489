//! What a replay of a recording needs of a scheduler besides.

use crate::ground::ids::{HctxId, RqId};

use super::scheduler::{PolicyCx, Scheduler};

/// A scheduler that can go on from a recorded kernel's decision where its own differs.
pub trait Replayable: Scheduler {
    /// Makes `id` the request that was chosen, as if [`dispatch`](Scheduler::dispatch) had returned it.
    fn adopt(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId, id: RqId);
}
