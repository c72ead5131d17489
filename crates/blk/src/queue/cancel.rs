//! A submission that is taken back: its client has departed, or wants the bio for something else.

use super::Queue;
use super::state::Current;
use super::submission::{QueueSubmission, Stage};
use crate::bio::Bio;
use crate::bio::split;
use crate::caller::env::{Cx, Env};
use crate::ground::sharing::Sharing;

impl<Sh: Sharing> Queue<Sh> {
    /// Takes a submission back from any stage, and returns what no request has been made of: the whole bio,
    /// or what is left of one whose first parts have gone, which end as if nothing had happened. The submission can be
    /// used again.
    ///
    /// A sleeper leaves its line, and a turn that had come already passes on. The wake-up for it may
    /// still be on its way to the waiter, and means nothing any more. It may have been the last that a freeze waits
    /// for: check after this, too, whether a frozen queue has drained.
    pub fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission) -> Option<Bio> {
        self.during(cx.cpu, |queue| queue.cancel(cx, submission))
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    fn cancel<E: Env>(self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission) -> Option<Bio> {
        match submission.stage {
            Stage::WaitingForThaw => self.freeze.forget(cx.meter, submission.waiter),
            Stage::Waiting => self.depart_from_line(cx, submission),
            Stage::Woken => {
                self.forget_admission(cx, submission);
                self.leave_wait_queue(cx, submission, None);
            }
            _ => {}
        }
        submission.stage = Stage::Next;
        submission.guard.disarm();
        // Last, when it owes nothing any more: a frozen queue may have emptied with that.
        if std::mem::take(&mut submission.is_inside) {
            self.freeze.leave();
        }
        split::rejoin(submission.bio.take(), submission.remainder.take())
    }
}
