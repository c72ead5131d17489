//! Cancelling a submission, for example because its client has disconnected.

use super::Queue;
use super::state::Current;
use super::submission::{QueueSubmission, Stage};
use crate::bio::Bio;
use crate::bio::split;
use crate::caller::env::{Cx, Env};
use crate::ground::sharing::Sharing;

impl<Sh: Sharing> Queue<Sh> {
    /// Cancels a submission at any stage. Returns the part that has no request yet: the whole bio, or the rest after
    /// its first parts, which complete as usual. The submission can be reused.
    ///
    /// A sleeper leaves its wait queue, and a wake-up that it already got is passed on. An
    /// [`Effect::Wake`](crate::drive::Effect::Wake) for it may still be pending and must be ignored. The submission may
    /// have been the last one that a freeze waits for, so check afterwards whether a frozen queue has drained.
    pub fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission) -> Option<Bio> {
        self.during(cx.cpu, |queue| queue.cancel(cx, submission))
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    fn cancel<E: Env>(self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission) -> Option<Bio> {
        match submission.stage {
            Stage::WaitingForThaw => self.freeze.remove_waiter(cx.meter, submission.waiter),
            Stage::Waiting => self.leave_throttle_queue(cx, submission),
            Stage::Woken => {
                self.undo_admission(cx, submission);
                self.leave_wait_queue(cx, submission, None);
            }
            _ => {}
        }
        submission.stage = Stage::Next;
        submission.guard.disarm();
        // Last, after everything is released: this may drain a frozen queue.
        if std::mem::take(&mut submission.is_inside) {
            self.freeze.unpark();
        }
        split::rejoin(submission.bio.take(), submission.remainder.take())
    }
}
