//! The fast path of a plain bio: without a scheduler, a policy that steers, and a plug it goes to the driver, or sleeps for a tag, after a single
//! check of all preconditions. Tags, slots and lists are those of the stages of [`submit`](super::submit), which handle all other bios
//! and would do the same step by step.

use super::allocate::RequestParameters;
use super::state::Current;
use super::submission::{QueueSubmission, Stage};
use crate::bio::check::is_plain;
use crate::caller::block_queue::Submitted;
use crate::caller::env::{Cx, Env};
use crate::ground::sharing::Sharing;
use crate::request::merge::Merging;
use crate::watch::probe::Event;

impl<Sh: Sharing> Current<'_, Sh> {
    /// Submits the current part. Returns `None` if it has to pass through the stages; then nothing has changed.
    #[inline(always)]
    pub(super) fn submit_plain<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
    ) -> Option<Submitted> {
        if !self.state.has_fast_path {
            return None;
        }
        let bio = submission.bio.as_ref()?;
        let hctx = self.hctx_for(cx.cpu, bio);
        let wait_queue = match submission.stage {
            Stage::Enter => {
                let rules = &self.state.rules;
                let may_merge = self.hctxs[hctx.index()].has_queued() && rules.merging != Merging::Off;
                if may_merge || !self.freeze.is_open() || !is_plain(&rules.limits, bio) {
                    return None;
                }
                cx.event(Event::Queue(bio));
                submission.is_plain = true;
                None
            }
            Stage::Woken if submission.is_plain => Some(self.resume_with_wait_queue(cx, submission, hctx)),
            _ => return None,
        };
        let parameters = RequestParameters::without_scheduler(hctx);
        let tag = match self.driver_tags.try_allocate(cx.cpu, hctx, self.state.driver_depth) {
            Some(tag) => tag,
            None => match self.wait_for_tag(cx, submission, None, (parameters, wait_queue)) {
                Ok(tag) => tag,
                Err(submitted) => return Some(submitted),
            },
        };
        submission.stage = Stage::Next;
        let Some(bio) = submission.bio.take() else { return Some(Submitted::Done) };
        let rq = self.make_request(cx, (bio, submission.marks), None, parameters, tag);
        self.insert_or_issue(cx, rq);
        Some(Submitted::Done)
    }
}
