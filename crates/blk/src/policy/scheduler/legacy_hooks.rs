//! What only the single queue of Linux up to 4.20 asks of a scheduler, or notifies it of.

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};

use super::{PolicyCx, Scheduler};

/// By which limits a request may be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MayQueue {
    /// By the ordinary limits.
    #[default]
    May,
    /// Beyond the soft limit: the policy waits for just this request.
    Must,
    /// Not now.
    No,
}

/// Hooks of a scheduler that only a single queue calls. A scheduler has them if it returns itself from
/// [`Scheduler::legacy_hooks`]; one without them behaves as these defaults do.
pub trait LegacyHooks: Scheduler {
    /// Whether what it dispatches is sorted into the dispatch queue, and not appended. Asked once, when it is attached.
    fn dispatches_sorted(&self) -> bool {
        false
    }

    /// A request is about to be allocated: by which limits?
    fn may_queue(&mut self, _cx: &mut PolicyCx<'_>, _bio: &Bio) -> MayQueue {
        MayQueue::May
    }

    /// The driver has looked at a request that was dispatched.
    fn on_started(&mut self, _cx: &mut PolicyCx<'_>, _id: RqId) {}

    /// Dispatches everything into `out`, in the policy's order but without waiting for anything: the scheduler is about to
    /// be changed, or something must go behind all that is queued.
    fn drain(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId, out: &mut Vec<RqId>) {
        while let Some(id) = self.dispatch(cx, hctx).rq {
            out.push(id);
        }
    }
}
