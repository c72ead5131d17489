//! Scheduler hooks that only the single queue of Linux up to 4.20 calls.

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};

use super::{PolicyCx, Scheduler};

/// The limits that apply to an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MayQueue {
    /// The ordinary limits.
    #[default]
    May,
    /// The soft limit may be exceeded: the policy waits for this very request.
    Must,
    /// No allocation now.
    No,
}

/// Hooks of a scheduler that only a single queue calls. A scheduler has them if it returns itself from
/// [`Scheduler::legacy_hooks`]; other schedulers behave like the defaults.
pub trait LegacyHooks: Scheduler {
    /// Whether dispatched requests are sorted into the dispatch queue instead of appended. Queried once, when it is
    /// attached.
    fn dispatches_sorted(&self) -> bool {
        false
    }

    /// The limits for an allocation that is about to be made.
    fn may_queue(&mut self, _cx: &mut PolicyCx<'_>, _bio: &Bio) -> MayQueue {
        MayQueue::May
    }

    /// The driver has fetched a dispatched request.
    fn on_started(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId) {}

    /// Dispatches all requests into `out`, in the policy's order but without idling: the scheduler is about to be changed,
    /// or a request must go after all queued ones.
    fn drain(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId, out: &mut Vec<RqId>) {
        while let Some(id) = self.dispatch(cx, hctx).rq {
            out.push(id);
        }
    }
}
