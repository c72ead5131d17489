//! Submission: a bio is split, and merged or given a request (BL-30, BL-31).

use super::allocate::RequestParameters;
use super::state::Current;
use super::submission::{QueueSubmission, Stage};
use super::{Queue, wbt};
use crate::bio::check::{Checked, check, is_plain};
use crate::bio::split;
use crate::bio::{Bio, BioFlags, Status, is_flush_type};
use crate::caller::block_queue::Submitted;
use crate::caller::env::{Cx, Env};
use crate::ground::ids::CpuId;
use crate::ground::kernel::DirectIssue;
use crate::ground::sharing::Sharing;
use crate::request::merge::{self, Merging};
use crate::request::plug::Plug;
use crate::request::{Marks, Rq};
use crate::tags::Sleeper;
use crate::watch::probe::{Event, Probe};

impl<Sh: Sharing> Queue<Sh> {
    /// Continues a submission until it ends or must wait. `plug`: the submitter's plug, if one is open.
    #[inline]
    pub fn submit<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        plug: Option<&mut Plug>,
    ) -> Submitted {
        self.during(cx.cpu, |queue| queue.submit(cx, submission, plug))
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    #[inline]
    fn submit<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        plug: Option<&mut Plug>,
    ) -> Submitted {
        let submitted = self.continue_submission(cx, submission, plug);
        match submitted {
            Submitted::Parked => {
                // A freeze does not wait for submissions that themselves wait for its end.
                if submission.stage != Stage::WaitingForThaw && !std::mem::replace(&mut submission.is_inside, true) {
                    self.freeze.park();
                }
                self.freeze.home.keep(&mut submission.guard, submission.waiter);
            }
            Submitted::Done => {
                submission.guard.disarm();
                if std::mem::take(&mut submission.is_inside) {
                    self.freeze.unpark();
                }
            }
        }
        submitted
    }

    #[inline]
    fn continue_submission<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        mut plug: Option<&mut Plug>,
    ) -> Submitted {
        let plain = if plug.is_none() { self.submit_plain(cx, submission) } else { None };
        let submitted = match plain {
            Some(submitted) => submitted,
            None => self.submit_part(cx, submission, plug.as_deref_mut()),
        };
        if submitted == Submitted::Done && submission.remainder.is_some() {
            return self.submit_remaining_parts(cx, submission, plug);
        }
        submitted
    }

    #[cold]
    fn submit_remaining_parts<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        mut plug: Option<&mut Plug>,
    ) -> Submitted {
        while let Some(rest) = submission.remainder.take() {
            submission.bio = Some(rest);
            submission.stage = Stage::Split;
            if self.submit_part(cx, submission, plug.as_deref_mut()) == Submitted::Parked {
                return Submitted::Parked;
            }
        }
        Submitted::Done
    }

    /// Takes the current part from its stage through the following ones. This is straight-line code rather than a loop,
    /// because before a loop the compiler would load everything that any stage may need, at each call.
    #[inline(always)]
    fn submit_part<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        mut plug: Option<&mut Plug>,
    ) -> Submitted {
        let mut stage = submission.stage;
        if let Stage::Enter | Stage::WaitingForThaw = stage {
            while !self.freeze.is_open() {
                if let Some(submitted) = self.wait_for_thaw(cx, submission, plug.as_deref_mut()) {
                    return submitted;
                }
            }
            let Some(bio) = submission.bio.as_mut() else { return Submitted::Done };
            stage = if is_plain(&self.state.rules.limits, bio) {
                cx.event(Event::Queue(bio));
                self.first_stage_of_plain(cx.cpu, bio, plug.as_deref())
            } else {
                match check(&self.state.rules.limits, self.accepts_polled, bio) {
                    Checked::Proceeds => {
                        cx.event(Event::Queue(bio));
                        Stage::Split
                    }
                    Checked::Ends(status) => self.end_bio(cx, submission, status),
                }
            };
        }
        if stage == Stage::Split {
            stage = self.split_bio(cx, submission);
        }
        if stage == Stage::Merge {
            stage = self.try_merge(cx, submission, plug.as_deref_mut());
        }
        if let Stage::Throttle | Stage::Waiting = stage {
            let admitted = match stage {
                Stage::Throttle => self.throttle(cx, submission, plug.as_deref_mut()),
                _ => self.resume_throttled(cx, submission),
            };
            let Some(next) = admitted else { return Submitted::Parked };
            stage = next;
        }
        if let Stage::Allocate | Stage::Woken = stage {
            let Some(parameters) = self.request_parameters(cx, submission) else { return Submitted::Done };
            let mut wait_queue = None;
            if stage == Stage::Woken {
                // The CPU may have changed, so everything was chosen anew.
                wait_queue = Some(self.resume_with_wait_queue(cx, submission, parameters.hctx));
            }
            let tag = match self.take_allocation_tag(cx.cpu, parameters) {
                Some(tag) => tag,
                None => match self.wait_for_tag(cx, submission, plug.as_deref_mut(), (parameters, wait_queue)) {
                    Ok(tag) => tag,
                    Err(submitted) => return submitted,
                },
            };
            let Some(bio) = submission.bio.take() else { return Submitted::Done };
            let rq = self.make_request(cx, (bio, submission.marks), plug.as_deref_mut(), parameters, tag);
            self.add_to_plug_or_issue(cx, rq, plug);
            stage = Stage::Next;
        }
        submission.stage = stage;
        Submitted::Done
    }

    /// The queue is frozen: the submission waits, and the plugged requests of its task are sent without it. Returns `None`
    /// if it is no longer frozen.
    #[cold]
    fn wait_for_thaw<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        plug: Option<&mut Plug>,
    ) -> Option<Submitted> {
        if submission.bio.as_ref().is_some_and(|bio| bio.flags.contains(BioFlags::NOWAIT)) {
            submission.stage = self.end_bio(cx, submission, Status::Again);
            return Some(Submitted::Done);
        }
        self.flush_before_sleep(cx, plug);
        if !self.freeze.wait(cx.meter, submission.waiter) {
            return None;
        }
        submission.stage = Stage::WaitingForThaw;
        Some(Submitted::Parked)
    }

    /// Handles a submission for which no tag is free. Returns a tag if one becomes free, or else whether the bio ends or its task sleeps: in
    /// this wait queue, or in the next one of its hardware queue.
    #[inline(never)]
    pub(super) fn wait_for_tag<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        mut plug: Option<&mut Plug>,
        (parameters, wait_queue): (RequestParameters, Option<u64>),
    ) -> Result<u32, Submitted> {
        if submission.bio.as_ref().is_some_and(|bio| bio.flags.contains(BioFlags::NOWAIT)) {
            self.undo_admission(cx, submission);
            submission.stage = self.end_bio(cx, submission, Status::Again);
            return Err(Submitted::Done);
        }
        let hctx = parameters.hctx;
        let wait_queue = wait_queue.unwrap_or_else(|| self.hctxs[hctx.index()].next_wait_queue());
        // Running the hardware queue may free a tag.
        if self.run_hctx(cx, hctx)
            && let Some(tag) = self.take_allocation_tag(cx.cpu, parameters)
        {
            return Ok(tag);
        }
        let has_flushed = self.flush_before_sleep(cx, plug.as_deref_mut());
        let tags = self.allocation_tags(hctx);
        let position = tags.wait(cx.meter, wait_queue, Sleeper::Submitter(submission.waiter));
        // Without concurrent calls, a tag can have become free only if plugged requests were merged into others.
        if (Sh::CONTENDS || has_flushed)
            && let Some(tag) = self.take_allocation_tag(cx.cpu, parameters)
        {
            tags.resume(cx.meter, position);
            return Ok(tag);
        }
        if let Some(plug) = plug {
            plug.resume_clock();
        }
        submission.depth = Some(parameters.depth);
        submission.wait_position = Some((hctx, position));
        submission.stage = Stage::Woken;
        Err(Submitted::Parked)
    }

    /// The first stage with work for a plain bio: it tries to merge if there may be a request for that.
    #[inline(always)]
    fn first_stage_of_plain(self, cpu: CpuId, bio: &Bio, plug: Option<&Plug>) -> Stage {
        let may_merge = self.state.rules.merging != Merging::Off
            && (!self.state.elevator.is_none()
                || plug.is_some_and(|plug| !plug.is_empty())
                || self.hctxs[self.hctx_for(cpu, bio).index()].has_queued());
        if may_merge { Stage::Merge } else { Stage::Allocate }
    }

    #[inline(always)]
    fn split_bio<E: Env>(self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission) -> Stage {
        let Some(bio) = submission.bio.as_mut() else { return Stage::Next };
        let limits = &self.state.rules.limits;
        if let Some(split_at) = split::split_point(bio, limits) {
            if bio.flags.contains(BioFlags::NOWAIT) {
                return self.end_bio(cx, submission, Status::Again);
            }
            // The parts of a split bio could not be polled together.
            bio.flags = bio.flags.without(BioFlags::POLLED);
            let front = split::split(bio, split_at);
            cx.event(Event::Split(&front));
            submission.remainder = submission.bio.replace(front);
        }
        match &submission.bio {
            Some(bio) if self.state.rules.merging != Merging::Off && merge::bio_mergeable(bio) => Stage::Merge,
            bio => wbt::stage_after_merging(bio.as_ref()),
        }
    }

    /// Ends a bio that does not continue.
    pub(super) fn end_bio<E: Env>(self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission, status: Status) -> Stage {
        if let Some(bio) = submission.bio.take() {
            cx.effects.end_bio(bio, status);
        }
        Stage::Next
    }

    fn try_merge<E: Env>(self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission, plug: Option<&mut Plug>) -> Stage {
        let reported_bio = E::Probe::WATCHES.then(|| submission.bio.clone()).flatten();
        let report = |cx: &mut Cx<'_, E>, edge| {
            if let Some(bio) = &reported_bio {
                cx.event(Event::Merge(edge, bio));
            }
        };
        if let Some(plug) = plug
            && let Some(edge) = plug.merge(&self.generation, &self.state.rules, &mut submission.bio)
        {
            report(cx, edge);
            return Stage::Next;
        }
        let merged = if self.state.elevator.is_none() {
            let hctx = &self.hctxs[self.hctx_of_submission(cx.cpu, submission).index()];
            hctx.merge_into_software_queue(cx.meter, cx.cpu, &self.state.rules, &mut submission.bio)
        } else {
            self.merge_into_elevator(cx, &mut submission.bio)
        };
        match merged {
            Some(edge) => {
                report(cx, edge);
                Stage::Next
            }
            None => wbt::stage_after_merging(submission.bio.as_ref()),
        }
    }

    fn merge_into_elevator<E: Env>(self, cx: &mut Cx<'_, E>, bio: &mut Option<Bio>) -> Option<merge::Edge> {
        let merged = self.state.elevator.merge_bio(cx.meter, &mut cx.elevator(), &self.state.rules, bio);
        self.take_call_results(cx);
        merged
    }

    #[inline(always)]
    fn add_to_plug_or_issue<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq, plug: Option<&mut Plug>) {
        if is_flush_type(rq.op, rq.flags) {
            match self.begin_sequence(cx, rq) {
                Some(data) => rq = data,
                None => return,
            }
        }
        let Some(plug) = plug else { return self.insert_or_issue(cx, rq) };
        if plug.is_full(&self.generation, self.state.rules.merging != Merging::Off) {
            self.flush_plug(cx, plug);
        }
        if plug.is_empty() {
            cx.event(Event::Plug);
        }
        plug.list.push_back(rq);
    }

    /// Inserts or issues a request that is in no plug.
    #[inline(always)]
    pub(super) fn insert_or_issue<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq) {
        let hctx = rq.hctx;
        let runs_inline = self.generation.unplugged_runs_inline;
        if runs_inline {
            // The submission opens a plug of its own and flushes it at once.
            cx.event(Event::Plug);
            cx.event(Event::Unplug { count: 1, explicit: true });
        }
        if !rq.marks.contains(Marks::USES_ELEVATOR) && self.may_issue_directly(&rq) {
            if !self.issue_directly(cx, rq) {
                return;
            }
        } else {
            if !runs_inline && self.generation.plug_stops_clock {
                rq.marks = rq.marks.with(Marks::CLOCK_RAN);
            }
            self.insert_one(cx, rq);
            if !runs_inline {
                return self.run_async(cx, hctx);
            }
        }
        self.run_hctx(cx, hctx);
    }

    /// Whether an unplugged request without a scheduler may bypass the software queues.
    fn may_issue_directly(self, rq: &Rq) -> bool {
        let many_queues = self.hctxs.len() > 1 && rq.is_sync();
        match self.generation.direct_issue {
            DirectIssue::Always if self.generation.unplugged_runs_inline => true,
            DirectIssue::SyncManyQueues => many_queues,
            DirectIssue::NotBusy | DirectIssue::Always => many_queues || self.hctxs[rq.hctx.index()].busy() == 0,
        }
    }
}
