//! Submission: a bio is split, merged or given a request, which is plugged or inserted (LQ-4 to LQ-7).

use hoistway_blk::bio::{Bio, BioFlags, Status, is_sync};
use hoistway_blk::caller::{Cx, Env, Submission, Submitted};
use hoistway_blk::drive::Effect;
use hoistway_blk::ground::{Lock, ReadMostly, Sharing, Site, Waiter};
use hoistway_blk::kit::{Checked, Guard, bio_mergeable, check, is_flush_type, split};
use hoistway_blk::request::{Edge, Marks, MergeRules, Merging, Plug, Rq};
use hoistway_blk::watch::{Event, Probe};

use super::insert::Insertion;
use super::request_list::SyncClass;
use super::{HCTX, LegacyQueue, Locked, take_requested};

/// A [submission](Submission) to a [`LegacyQueue`].
#[derive(Debug)]
pub struct LegacySubmission {
    stage: Stage,
    waiter: Waiter,
    /// The current part, until a request has it.
    bio: Option<Bio>,
    /// The rest after the split.
    remainder: Option<Bio>,
    /// Armed while it is waiting.
    guard: Guard,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Announce.
    Enter,
    /// Split.
    Split,
    /// Look for a request to merge into.
    Merge,
    /// Ask for a request.
    Allocate,
    /// It slept for a request: stop waiting and try again, for a burst of requests.
    Woken,
    /// This part is done.
    Next,
}

/// The result of an allocation.
enum Allocated {
    Request(Rq),
    /// There is none: the task is waiting.
    Waiting,
    /// There is none, and the bio must not wait.
    Refused,
}

impl LegacySubmission {
    /// Nothing to submit yet; `waiter` submits one bio at a time.
    #[must_use]
    pub fn idle(waiter: Waiter) -> Self {
        LegacySubmission { stage: Stage::Next, waiter, bio: None, remainder: None, guard: Guard::default() }
    }

    /// A bio to be submitted by `waiter`.
    #[must_use]
    pub fn new(bio: Bio, waiter: Waiter) -> Self {
        let mut submission = LegacySubmission::idle(waiter);
        submission.begin(bio);
        submission
    }
}

impl Submission for LegacySubmission {
    #[inline]
    fn begin(&mut self, bio: Bio) {
        debug_assert!(self.bio.is_none() && self.remainder.is_none());
        self.stage = Stage::Enter;
        self.bio = Some(bio);
    }

    #[inline]
    fn withdraw(&mut self) -> Option<Bio> {
        if self.stage != Stage::Enter {
            return None;
        }
        self.stage = Stage::Next;
        self.bio.take()
    }
}

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// Advances a submission as far as possible. `plug` is the submitter's plug, if one is open.
    pub fn submit<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut LegacySubmission,
        plug: Option<&mut Plug>,
    ) -> Submitted {
        self.rules.read(cx.cpu, |rules| self.submit_by(rules, cx, submission, plug))
    }

    fn submit_by<E: Env>(
        &self,
        rules: &MergeRules,
        cx: &mut Cx<'_, E>,
        submission: &mut LegacySubmission,
        mut plug: Option<&mut Plug>,
    ) -> Submitted {
        loop {
            submission.stage = match submission.stage {
                Stage::Enter => {
                    let Some(bio) = submission.bio.as_mut() else { return Submitted::Done };
                    match check(&rules.limits, true, bio) {
                        Checked::Proceeds => {
                            cx.event(Event::Queue(bio));
                            split_off(rules, cx, submission)
                        }
                        Checked::Ends(status) => end_bio(cx, submission, status),
                    }
                }
                Stage::Split => split_off(rules, cx, submission),
                Stage::Merge => {
                    if self.merge(rules, cx, submission, plug.as_deref_mut()) {
                        Stage::Next
                    } else {
                        Stage::Allocate
                    }
                }
                Stage::Allocate => {
                    match self.locked.with(cx.meter, Site::Legacy, |queue| queue.allocate(cx, submission)) {
                        Allocated::Request(rq) => {
                            cx.event(Event::GetRq(&rq));
                            self.plug_or_insert(rules, cx, rq, plug.as_deref_mut());
                            Stage::Next
                        }
                        Allocated::Refused => end_bio(cx, submission, Status::Again),
                        Allocated::Waiting => {
                            // A task that sleeps must not delay its plugged requests.
                            if let Some(plug) = plug {
                                self.unplug(cx, rules, plug, false);
                            }
                            submission.stage = Stage::Woken;
                            return Submitted::Parked;
                        }
                    }
                }
                Stage::Woken => {
                    self.locked.with(cx.meter, Site::Legacy, |queue| queue.stop_waiting(cx, submission));
                    Stage::Allocate
                }
                Stage::Next => match submission.remainder.take() {
                    Some(rest) => {
                        submission.bio = Some(rest);
                        Stage::Split
                    }
                    None => return Submitted::Done,
                },
            };
        }
    }

    /// Cancels a submission; see [`Queue::cancel`](hoistway_blk::queue::Queue::cancel).
    pub fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut LegacySubmission) -> Option<Bio> {
        if submission.stage == Stage::Woken {
            self.locked.with(cx.meter, Site::Legacy, |queue| queue.cancel_wait(cx, submission));
        }
        submission.stage = Stage::Next;
        submission.guard.disarm();
        split::rejoin(submission.bio.take(), submission.remainder.take())
    }

    /// Tries to merge the bio into a request of the plug or of the elevator. Returns whether it was merged.
    fn merge<E: Env>(
        &self,
        rules: &MergeRules,
        cx: &mut Cx<'_, E>,
        submission: &mut LegacySubmission,
        plug: Option<&mut Plug>,
    ) -> bool {
        let whole = E::Probe::WATCHES.then(|| submission.bio.clone()).flatten();
        let bio = &mut submission.bio;
        let merged = plug
            .and_then(|plug| plug.merge(&self.generation, rules, bio))
            .or_else(|| self.locked.with(cx.meter, Site::Legacy, |queue| queue.merge(cx, rules, bio)));
        if let (Some(edge), Some(bio)) = (merged, &whole) {
            cx.event(Event::Merge(edge, bio));
        }
        merged.is_some()
    }

    /// Passes a new request on: to the plug, or to the elevator and then the driver.
    fn plug_or_insert<E: Env>(&self, rules: &MergeRules, cx: &mut Cx<'_, E>, rq: Rq, plug: Option<&mut Plug>) {
        let Some(plug) = plug else {
            let insertion = if is_flush_type(rq.op, rq.flags) { Insertion::Flush } else { Insertion::Sort };
            self.locked.with(cx.meter, Site::Legacy, |queue| queue.insert(cx, rules, rq, insertion));
            return self.run(cx);
        };
        if plug.is_full(&self.generation, rules.merging != Merging::Off) {
            self.unplug(cx, rules, plug, true);
        }
        if plug.is_empty() {
            cx.event(Event::Plug);
        }
        plug.list.push_back(rq);
    }
}

/// Splits off the part that is too long for one request.
fn split_off<E: Env>(rules: &MergeRules, cx: &mut Cx<'_, E>, submission: &mut LegacySubmission) -> Stage {
    let Some(bio) = submission.bio.as_mut() else { return Stage::Next };
    let limits = &rules.limits;
    if let Some(at) = split::split_point(bio, limits) {
        if bio.flags.contains(BioFlags::NOWAIT) {
            return end_bio(cx, submission, Status::Again);
        }
        let front = split::split(bio, at);
        cx.event(Event::Split(&front));
        submission.remainder = submission.bio.replace(front);
    }
    match &submission.bio {
        Some(bio) if rules.merging != Merging::Off && bio_mergeable(bio) => Stage::Merge,
        _ => Stage::Allocate,
    }
}

/// Ends a bio without a request.
fn end_bio<E: Env>(cx: &mut Cx<'_, E>, submission: &mut LegacySubmission, status: Status) -> Stage {
    if let Some(bio) = submission.bio.take() {
        cx.effects.end_bio(bio, status);
    }
    Stage::Next
}

impl Locked {
    /// Makes a request for the bio, or adds the task to the waiting ones.
    fn allocate<E: Env>(&mut self, cx: &mut Cx<'_, E>, submission: &mut LegacySubmission) -> Allocated {
        let Some(bio) = &submission.bio else { return Allocated::Refused };
        let class = SyncClass::of(is_sync(bio.op, bio.flags));
        let may = self.elevator.may_queue(&mut cx.elevator(), bio);
        let class_and_context = (class, bio.io_context);
        let cgroup = bio.cgroup;
        let is_admitted =
            self.lists.for_cgroup(cgroup).try_get(cx.now, &self.thresholds, &mut self.batchers, class_and_context, may);
        take_requested(cx);
        if !is_admitted && bio.flags.contains(BioFlags::NOWAIT) {
            return Allocated::Refused;
        }
        if !is_admitted {
            self.lists.for_cgroup(cgroup).wait(class, submission.waiter);
            self.home.keep(&mut submission.guard, submission.waiter);
            return Allocated::Waiting;
        }
        submission.guard.disarm();
        let Some(bio) = submission.bio.take() else { return Allocated::Refused };
        if self.free.is_empty() {
            self.grow();
        }
        let mut rq = self.free.pop().expect("there is a slot for each request that may be counted");
        rq.found(bio, cx.now.at);
        rq.ctx = cx.cpu;
        rq.hctx = HCTX;
        if self.bypasses == 0 && !is_flush_type(rq.op, rq.flags) {
            rq.marks.set(Marks::USES_ELEVATOR);
            self.managed += 1;
            self.elevator.prepare(&mut cx.elevator(), &rq);
            take_requested(cx);
        }
        Allocated::Request(rq)
    }

    /// A task was woken, or continues for another reason: it stops waiting and may allocate a burst.
    fn stop_waiting<E: Env>(&mut self, cx: &Cx<'_, E>, submission: &LegacySubmission) {
        let Some(bio) = &submission.bio else { return };
        self.lists
            .for_cgroup(bio.cgroup)
            .leave_wait_queue(SyncClass::of(is_sync(bio.op, bio.flags)), submission.waiter);
        self.batchers.grant(cx.now, bio.io_context);
    }

    /// A task no longer wants a request. If it had been woken, the next waiting one is woken instead.
    fn cancel_wait<E: Env>(&mut self, cx: &mut Cx<'_, E>, submission: &LegacySubmission) {
        let Some(bio) = &submission.bio else { return };
        let (class, waiter) = (SyncClass::of(is_sync(bio.op, bio.flags)), submission.waiter);
        let list = self.lists.for_cgroup(bio.cgroup);
        if !list.leave_wait_queue(class, waiter) {
            list.wake_next_request_waiter(&self.thresholds, class, |waiter| cx.effects.push(Effect::Wake(waiter)));
        }
    }

    /// Tries to merge a bio into a request of the elevator.
    fn merge<E: Env>(&mut self, cx: &mut Cx<'_, E>, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        if self.bypasses > 0 {
            return None;
        }
        let merged = self.elevator.merge_bio(&mut cx.elevator(), rules, bio);
        take_requested(cx);
        self.release_absorbed(cx);
        merged
    }
}
