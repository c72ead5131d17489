//! Allocation of a request for a bio: it gets a tag, or waits for one (BL-30, BL-31).

use super::state::Current;
use super::submission::QueueSubmission;
use crate::bio::{Bio, is_flush_type};
use crate::caller::env::{Cx, Env};
use crate::ground::ids::{CpuId, HctxId};
use crate::ground::sharing::Sharing;
use crate::ground::time::Now;
use crate::policy::Steering;
use crate::request::plug::Plug;
use crate::request::{Marks, Rq};
use crate::tags::{Depth, Tags};
use crate::watch::probe::Event;
use crate::watch::reason::Reason;

/// The parameters of a request to be allocated for a bio.
#[derive(Clone, Copy)]
pub(super) struct RequestParameters {
    pub(super) hctx: HctxId,
    /// How many tags it may use.
    pub(super) depth: Depth,
    way: Way,
}

/// The way that a request takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the scheduler.
    Elevator,
    /// Past the scheduler.
    PastElevator,
    /// There is no scheduler.
    Plain,
    /// There is no scheduler, and a policy has chosen the hardware queue.
    Steered(Reason),
}

impl RequestParameters {
    /// A request of a queue without a scheduler.
    #[inline]
    pub(super) fn without_scheduler(hctx: HctxId) -> RequestParameters {
        RequestParameters { hctx, depth: Depth::Full, way: Way::Plain }
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    /// The tags that allocation takes from.
    pub(super) fn allocation_tags(&self, hctx: HctxId) -> &Tags<Sh> {
        self.state.scheduler_tags_of(hctx).unwrap_or_else(|| self.driver_tags.of(hctx))
    }

    /// The parameters of the request for the bio being submitted, if there is one.
    #[inline]
    pub(super) fn request_parameters<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
    ) -> Option<RequestParameters> {
        let bio = submission.bio.as_ref()?;
        let hctx = self.hctx_for(cx.cpu, bio);
        if self.state.elevator.is_none() {
            let steered = self.state.elevator.steering().map(|steering| self.steer(cx, steering, bio, hctx));
            return Some(steered.unwrap_or_else(|| RequestParameters::without_scheduler(hctx)));
        }
        let is_flush = is_flush_type(bio.op, bio.flags);
        let bypasses_scheduler = is_flush && self.generation.flushes_bypass_scheduler;
        let way = if bypasses_scheduler { Way::PastElevator } else { Way::Elevator };
        let depth = match submission.depth.take() {
            Some(depth) => depth,
            None if way == Way::Elevator => {
                let depth = self.state.elevator.limit_depth(cx.meter, &mut cx.elevator(), bio);
                cx.take_requested();
                depth
            }
            None => Depth::Full,
        };
        Some(RequestParameters { hctx, depth, way })
    }

    /// Asks a policy for the hardware queue of a bio.
    #[cold]
    fn steer<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        steering: &dyn Steering<Sh>,
        bio: &Bio,
        home: HctxId,
    ) -> RequestParameters {
        let (hctx, reason) = steering.place(&mut cx.elevator(), bio, home);
        cx.take_requested_by_steering();
        RequestParameters { hctx, depth: Depth::Full, way: Way::Steered(reason) }
    }

    /// Notifies the policy of a request that it has placed.
    #[cold]
    fn steered<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq, reason: Reason) {
        let Some(steering) = self.state.elevator.steering() else { return };
        rq.marks.set(Marks::STEERED);
        steering.on_issued(&mut cx.elevator(), rq);
        cx.take_requested_by_steering();
        cx.event(Event::Dispatch { hctx: rq.hctx, rq: Some(rq), reason });
    }

    /// Notifies the policy of the end of a request, if it has placed it.
    #[cold]
    pub(super) fn end_steered<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) {
        if rq.marks.contains(Marks::STEERED)
            && let Some(steering) = self.state.elevator.steering()
        {
            rq.marks.clear(Marks::STEERED);
            steering.on_ended(&mut cx.elevator(), rq);
            cx.take_requested_by_steering();
        }
    }

    /// Takes a tag for the request.
    #[inline]
    pub(super) fn take_allocation_tag(self, cpu: CpuId, parameters: RequestParameters) -> Option<u32> {
        match self.state.scheduler_tags_of(parameters.hctx) {
            Some(tags) => tags.try_take(cpu, parameters.depth),
            None => self.driver_tags.try_allocate(cpu, parameters.hctx, self.state.driver_depth),
        }
    }

    /// Creates the request for a bio that has a tag.
    #[inline(always)]
    pub(super) fn make_request<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        (bio, marks): (Bio, Marks),
        plug: Option<&mut Plug>,
        RequestParameters { hctx, way, .. }: RequestParameters,
        tag: u32,
    ) -> Rq {
        let now = self.time_under_plug(plug, cx.now);
        let mut rq = self.state.pool.take(self.state.slot(hctx, tag));
        rq.found(bio, now.at);
        rq.ctx = cx.cpu;
        rq.hctx = hctx;
        // Written in one store: reading back what was just written in parts stalls the CPU (no store forwarding).
        rq.marks = if way == Way::Elevator { marks.with(Marks::USES_ELEVATOR) } else { marks };
        match way {
            Way::Elevator => {
                self.state.elevator.prepare(cx.meter, &mut cx.scratch.elevator(now, cx.cpu), &rq);
                cx.take_requested();
            }
            Way::PastElevator => {}
            Way::Plain | Way::Steered(_) => rq.driver_tag = Some(tag),
        }
        cx.event(Event::GetRq(&rq));
        if let Way::Steered(reason) = way {
            self.steered(cx, &mut rq, reason);
        }
        rq
    }

    fn time_under_plug(self, plug: Option<&mut Plug>, now: Now) -> Now {
        plug.map_or(now, |plug| plug.now(&self.generation, now))
    }

    /// A submission that has waited for a tag runs again. Returns the wait queue that it joins if it still finds none: it has its turn in the
    /// rotation of its hardware queue in any case (BL-63).
    #[inline]
    pub(super) fn resume_with_wait_queue<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        hctx: HctxId,
    ) -> u64 {
        self.leave_wait_queue(cx, submission, Some(hctx));
        self.hctxs[hctx.index()].next_wait_queue()
    }

    /// Leaves the wait queue, if the wake-up did not come from there. A wake-up for tags of another hardware queue than `wanted`
    /// is passed on to the next sleeper.
    #[inline]
    pub(super) fn leave_wait_queue<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        wanted_hctx: Option<HctxId>,
    ) {
        let Some((hctx, position)) = submission.wait_position.take() else { return };
        let tags = self.allocation_tags(hctx);
        let was_woken = !tags.resume(cx.meter, position);
        if was_woken && wanted_hctx != Some(hctx) {
            let still_useful =
                wanted_hctx.is_some_and(|wanted_hctx| std::ptr::eq(tags, self.allocation_tags(wanted_hctx)));
            if !still_useful {
                self.forward_wakeup(cx, tags);
            }
        }
    }

    /// The hardware queue of the bio being submitted.
    pub(super) fn hctx_of_submission(self, cpu: CpuId, submission: &QueueSubmission) -> HctxId {
        submission.bio.as_ref().map_or_else(|| self.hctx_of(cpu), |bio| self.hctx_for(cpu, bio))
    }
}
