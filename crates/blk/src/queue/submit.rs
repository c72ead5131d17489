//! The way in: a bio is split, merged or given a request (`block-layer.md` 7).

use super::submission::{Stage, Submission};
use super::unplug::PlugFlush;
use super::{Queue, Step, wbt};
use crate::bio::{Bio, BioFlags, Status, is_flush_type};
use crate::check::{Checked, check};
use crate::env::{Cx, Env};
use crate::kernel::DirectIssue;
use crate::merge::{self, NoMerges};
use crate::plug::Plug;
use crate::probe::{Event, Probe};
use crate::request::{Marks, Rq};
use crate::sharing::Sharing;
use crate::split;
use crate::tags::Sleeper;

/// Where a submission has got to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// Every part is on its way.
    Done,
    /// It sleeps for a tag, or until less write-back is in flight: an [`Effect::Wake`](crate::Effect::Wake) with its waiter
    /// will come, then go on with it.
    Parked,
}

impl<Sh: Sharing> Queue<Sh> {
    /// Takes a submission as far as it gets. `plug` is the submitter's plug, if one is open.
    #[inline]
    pub fn submit<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut Submission,
        mut plug: Option<&mut Plug>,
    ) -> Submitted {
        loop {
            match self.submit_step(cx, submission, plug.as_deref_mut()) {
                SubmitStep::More => {}
                SubmitStep::Parked => return Submitted::Parked,
                SubmitStep::Done => {
                    if std::mem::take(&mut submission.is_inside) {
                        self.gate.leave(cx.cpu);
                    }
                    return Submitted::Done;
                }
            }
        }
    }

    /// One step of a submission.
    #[inline]
    fn submit_step<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut Submission,
        mut plug: Option<&mut Plug>,
    ) -> SubmitStep {
        submission.stage = match submission.stage {
            Stage::Enter => {
                let Some(bio) = submission.bio.as_mut() else { return SubmitStep::Done };
                if !self.gate.enter(cx.cpu) {
                    return self.shut_out(cx, submission, plug);
                }
                submission.is_inside = true;
                match check(&self.rules.limits, self.takes_polled, bio) {
                    Checked::Goes => {
                        cx.probe.event(cx.now, cx.cpu, Event::Queue(bio));
                        self.enter(cx, submission)
                    }
                    Checked::Ends(status) => self.end_bio(cx, submission, status),
                }
            }
            Stage::Split => self.enter(cx, submission),
            Stage::Merge => self.try_merge(cx, submission, plug),
            Stage::Throttle => self.throttle(cx, submission, plug),
            Stage::FlushToWait => match submission.flush.step(self, cx) {
                Step::More => Stage::FlushToWait,
                Step::Done => Stage::Wait,
            },
            Stage::Wait => match self.wait_in_line(cx, submission, plug) {
                Some(stage) => stage,
                None => {
                    submission.stage = Stage::Waiting;
                    return SubmitStep::Parked;
                }
            },
            Stage::Waiting => return self.woken_in_line(cx, submission),
            Stage::Allocate => {
                if self.allocate(cx, submission, plug.as_deref_mut()) {
                    self.add_to_plug_or_place(cx, submission, plug)
                } else if submission.bio.as_ref().is_some_and(|bio| bio.flags.contains(BioFlags::NOWAIT)) {
                    self.forget_admission(cx, submission);
                    self.end_bio(cx, submission, Status::Again)
                } else if let hctx = self.hctx_of_submission(cx.cpu, submission)
                    && self.has_pending(hctx)
                {
                    submission.run.start(hctx);
                    Stage::RunForTag
                } else {
                    self.before_sleep(cx, submission, plug, Stage::FlushToSleep, Stage::Sleep)
                }
            }
            Stage::RunForTag => {
                if submission.run.step(self, cx) == Step::More {
                    Stage::RunForTag
                } else if self.allocate(cx, submission, plug.as_deref_mut()) {
                    self.add_to_plug_or_place(cx, submission, plug)
                } else {
                    self.before_sleep(cx, submission, plug, Stage::FlushToSleep, Stage::Sleep)
                }
            }
            Stage::FlushToSleep => match submission.flush.step(self, cx) {
                Step::More => Stage::FlushToSleep,
                Step::Done => Stage::Sleep,
            },
            Stage::Sleep => {
                let hctx = self.hctx_of_submission(cx.cpu, submission);
                let tags = self.allocation_tags(hctx);
                let sleeper = Sleeper::Submitter(submission.waiter);
                let line = tags.wait(cx.meter, sleeper);
                if self.allocate(cx, submission, plug.as_deref_mut()) {
                    tags.leave_line(cx.meter, line, sleeper);
                    self.add_to_plug_or_place(cx, submission, plug)
                } else {
                    if let Some(plug) = plug {
                        plug.forget_clock();
                    }
                    submission.slept = Some((hctx, line));
                    submission.stage = Stage::Woken;
                    return SubmitStep::Parked;
                }
            }
            Stage::Woken => {
                self.leave_line(cx, submission);
                // The CPU may have changed: everything is chosen anew.
                Stage::Allocate
            }
            Stage::FlushFull => match submission.flush.step(self, cx) {
                Step::More => Stage::FlushFull,
                Step::Done => self.add_to_plug_or_place(cx, submission, plug),
            },
            Stage::Run => match submission.run.step(self, cx) {
                Step::More => Stage::Run,
                Step::Done => Stage::Next,
            },
            Stage::Next => match submission.remainder.take() {
                Some(rest) => {
                    submission.bio = Some(rest);
                    Stage::Split
                }
                None => return SubmitStep::Done,
            },
        };
        // The common end costs no extra round.
        if submission.stage == Stage::Next && submission.remainder.is_none() {
            return SubmitStep::Done;
        }
        SubmitStep::More
    }

    /// The queue is frozen: the submission waits, and what its task has plugged goes on without it.
    #[cold]
    fn shut_out<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut Submission, plug: Option<&mut Plug>) -> SubmitStep {
        if submission.bio.as_ref().is_some_and(|bio| bio.flags.contains(BioFlags::NOWAIT)) {
            self.end_bio(cx, submission, Status::Again);
            return SubmitStep::Done;
        }
        if let Some(plug) = plug {
            let mut flush = PlugFlush::before_sleep(cx, plug);
            while flush.step(self, cx) == Step::More {}
        }
        if self.gate.wait(cx.meter, submission.waiter) { SubmitStep::Parked } else { SubmitStep::More }
    }

    /// A task that sleeps must not keep others waiting for what it has plugged: it flushes that first.
    pub(super) fn before_sleep<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut Submission,
        plug: Option<&mut Plug>,
        flush: Stage,
        sleep: Stage,
    ) -> Stage {
        match plug {
            Some(plug) if !plug.is_empty() => {
                submission.flush = PlugFlush::before_sleep(cx, plug);
                flush
            }
            _ => sleep,
        }
    }

    #[inline(always)]
    fn enter<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut Submission) -> Stage {
        let Some(bio) = submission.bio.as_mut() else { return Stage::Next };
        let limits = &self.rules.limits;
        if let Some(at) = split::split_point(bio, limits) {
            if bio.flags.contains(BioFlags::NOWAIT) {
                return self.end_bio(cx, submission, Status::Again);
            }
            // Nobody could poll for the parts together.
            bio.flags = bio.flags.without(BioFlags::POLLED);
            let front = split::split(bio, at);
            cx.probe.event(cx.now, cx.cpu, Event::Split(&front));
            submission.remainder = submission.bio.replace(front);
        }
        match &submission.bio {
            Some(bio) if self.rules.nomerges != NoMerges::Nothing && merge::bio_mergeable(bio) => Stage::Merge,
            bio => wbt::stage_after_merging(bio.as_ref()),
        }
    }

    /// Ends a bio that does not go on.
    pub(super) fn end_bio<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut Submission, status: Status) -> Stage {
        if let Some(bio) = submission.bio.take() {
            cx.effects.end_bio(bio, status);
        }
        Stage::Next
    }

    fn try_merge<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut Submission, plug: Option<&mut Plug>) -> Stage {
        let whole = E::Probe::WATCHES.then(|| submission.bio.clone()).flatten();
        let report = |cx: &mut Cx<'_, E>, edge| {
            if let Some(bio) = &whole {
                cx.probe.event(cx.now, cx.cpu, Event::Merge(edge, bio));
            }
        };
        if let Some(plug) = plug
            && let Some(edge) = plug.merge(&self.generation, &self.rules, &mut submission.bio)
        {
            report(cx, edge);
            return Stage::Next;
        }
        let merged = if self.elevator.is_none() {
            let hctx = &self.hctxs[self.hctx_of_submission(cx.cpu, submission).index()];
            hctx.merge_into_software_queue(cx.meter, cx.cpu, &self.rules, &mut submission.bio)
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

    fn merge_into_elevator<E: Env>(&self, cx: &mut Cx<'_, E>, bio: &mut Option<Bio>) -> Option<merge::Edge> {
        let merged = self.elevator.merge_bio(cx.meter, &mut cx.elevator(), &self.rules, bio);
        self.after_call(cx);
        merged
    }

    #[inline]
    fn add_to_plug_or_place<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut Submission,
        plug: Option<&mut Plug>,
    ) -> Stage {
        if let Some(rq) = &submission.rq
            && is_flush_type(rq.op, rq.flags)
            && let Some(rq) = submission.rq.take()
        {
            submission.rq = self.begin_sequence(cx, rq);
            if submission.rq.is_none() {
                return Stage::Next;
            }
        }
        let Some(plug) = plug else { return self.place(cx, submission) };
        if plug.is_full(&self.generation, self.rules.nomerges != NoMerges::Nothing) {
            submission.flush = PlugFlush::explicit(self, cx, plug);
            return Stage::FlushFull;
        }
        if plug.is_empty() {
            cx.probe.event(cx.now, cx.cpu, Event::Plug);
        }
        plug.list.extend(submission.rq.take());
        Stage::Next
    }

    /// Hands on a request that is in no plug.
    #[inline]
    fn place<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut Submission) -> Stage {
        let Some(mut rq) = submission.rq.take() else { return Stage::Next };
        let hctx = rq.hctx;
        let inline = self.generation.unplugged_runs_inline;
        if inline {
            // The submission opened a plug of its own and flushes it at once.
            cx.probe.event(cx.now, cx.cpu, Event::Plug);
            cx.probe.event(cx.now, cx.cpu, Event::Unplug { count: 1, explicit: true });
        }
        if !rq.marks.contains(Marks::USES_ELEVATOR) && self.may_issue_directly(&rq) {
            if !self.issue_directly(cx, rq) {
                return Stage::Next;
            }
        } else {
            if !inline && self.generation.plug_stops_clock {
                rq.marks = rq.marks.with(Marks::CLOCK_RAN);
            }
            self.insert_one(cx, rq);
            if !inline {
                self.run_async(cx, hctx);
                return Stage::Next;
            }
        }
        submission.run.start(hctx);
        Stage::Run
    }

    /// Whether an unplugged request without a scheduler may by-pass the software queues.
    fn may_issue_directly(&self, rq: &Rq) -> bool {
        let many_queues = self.hctxs.len() > 1 && rq.is_sync();
        match self.generation.direct_issue {
            DirectIssue::Always if self.generation.unplugged_runs_inline => true,
            DirectIssue::SyncManyQueues => many_queues,
            DirectIssue::NotBusy | DirectIssue::Always => many_queues || self.hctxs[rq.hctx.index()].busy() == 0,
        }
    }
}

/// What a step of a submission leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubmitStep {
    More,
    Parked,
    Done,
}
