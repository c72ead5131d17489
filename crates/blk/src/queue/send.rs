//! Issuing a list of requests to the driver, and handling those that it refuses (BL-86 to BL-89).

use std::collections::VecDeque;

use super::state::Current;
use crate::caller::env::{Cx, Env};
use crate::drive::driver::{Answer, Driver, Refusal};
use crate::drive::effects::{Effect, RESOURCE_DELAY};
use crate::ground::ids::{CpuId, HctxId};
use crate::ground::meter::Meter;
use crate::ground::sharing::Sharing;
use crate::ground::time::Nanos;
use crate::queue::hardware_queue::HardwareQueue;
use crate::request::{Marks, Rq};
use crate::tags::Sleeper;
use crate::watch::probe::Event;

/// The result of issuing a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    /// Whether all requests were issued.
    pub(super) all_sent: bool,
}

/// The resource that is missing for issuing a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// A resource without a notification: the caller must retry on its own.
    Resource,
    /// A resource that a completion frees.
    Completion,
    /// A shared driver tag: the CPU that frees one wakes this hardware queue.
    SharedTag,
}

impl<Sh: Sharing> Current<'_, Sh> {
    /// Issues `list`, whose requests all belong to `hctx`, in order. The list is empty afterwards in any case.
    #[inline]
    pub(super) fn send<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, list: &mut VecDeque<Rq>) -> Sent {
        let (mut queued, mut missing) = (0u32, None);
        while let Some(mut rq) = list.pop_front() {
            if let Some(resource) = self.missing_resource(cx, &mut rq) {
                list.push_front(rq);
                missing = Some(resource);
                break;
            }
            self.timeouts.start((cx.now.at, cx.cpu), &mut rq, &self.state.flights, cx.effects);
            self.track_issue(cx.meter, cx.now.at, &rq);
            rq.marks.clear(Marks::HAS_BUDGET);
            cx.event(Event::Issue(&rq));
            match cx.driver.queue_rq(cx.real, rq, list.is_empty()) {
                Answer::Queued => queued += 1,
                Answer::Done(rq, status) => self.complete(cx, rq, status),
                Answer::Refused(mut rq, refusal) => {
                    self.state.flights.end(rq.id());
                    cx.event(Event::Requeue(&rq));
                    if self.generation.budget {
                        rq.marks.set(Marks::HAS_BUDGET);
                    }
                    self.release_driver_tag(cx, &mut rq);
                    list.push_front(rq);
                    missing = Some(if refusal == Refusal::Busy { Missing::Resource } else { Missing::Completion });
                    break;
                }
            }
        }
        let queue = &self.hctxs[hctx.index()];
        let all_sent = list.is_empty();
        if !all_sent {
            if queued > 0 {
                cx.driver.commit(hctx);
            }
            self.return_to_dispatch_list(cx, queue, list, missing);
        }
        self.update_busy(queue, !all_sent);
        Sent { all_sent }
    }

    /// Gets budget and a driver tag for a request. Returns the missing resource, if any.
    #[inline]
    fn missing_resource<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) -> Option<Missing> {
        if !rq.marks.contains(Marks::HAS_BUDGET) && !self.take_budget(cx, rq) {
            return Some(Missing::Resource);
        }
        if self.take_driver_tag(cx.cpu, rq) {
            return None;
        }
        if self.driver_tags.shares_tags_with_other_queues() {
            return self.wait_for_shared_tag(cx.meter, cx.cpu, rq);
        }
        // Set the mark, then try again: a completion in between either frees a tag in time or sees the mark.
        self.hctxs[rq.hctx.index()].mark_restart();
        if self.take_driver_tag(cx.cpu, rq) { None } else { Some(Missing::Completion) }
    }

    /// Joins the wait queue for a tag that other queues may free, and tries again.
    #[cold]
    fn wait_for_shared_tag(self, meter: &impl Meter, cpu: CpuId, rq: &mut Rq) -> Option<Missing> {
        let (tags, sleeper) = (self.driver_tags.of(rq.hctx), Sleeper::HctxOf(self.driver_tags.id(), rq.hctx));
        let hctx = &self.hctxs[rq.hctx.index()];
        let joined = tags.enqueue_sleeper(meter, || hctx.next_wait_queue(), sleeper);
        if !self.take_driver_tag(cpu, rq) {
            return Some(Missing::SharedTag);
        }
        if joined {
            tags.leave(meter, sleeper);
        }
        None
    }

    /// Moves unissued requests to the dispatch list and makes sure that they are retried.
    #[cold]
    fn return_to_dispatch_list<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        hctx: &HardwareQueue<Sh>,
        list: &mut VecDeque<Rq>,
        missing: Option<Missing>,
    ) {
        for rq in list.iter_mut() {
            self.return_budget(cx, rq);
        }
        hctx.append_to_dispatch_list(cx.meter, list, self.generation.dispatch_list_at_head);
        let is_waiting = || {
            let sleeper = Sleeper::HctxOf(self.driver_tags.id(), hctx.id());
            self.driver_tags.of(hctx.id()).is_waiting(cx.meter, sleeper)
        };
        let delay = if !hctx.wants_restart() || (missing == Some(Missing::SharedTag) && !is_waiting()) {
            // No completion will restart the queue, or one just did.
            Some(Nanos::ZERO)
        } else if missing == Some(Missing::Resource) {
            Some(RESOURCE_DELAY)
        } else {
            None
        };
        if let Some(delay) = delay {
            cx.effects.push(Effect::RunHctx { hctx: hctx.id(), delay });
        }
    }

    // --- budget ---

    /// Takes budget for a request.
    #[inline]
    pub(super) fn take_budget<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) -> bool {
        if !self.generation.budget {
            return true;
        }
        let granted = cx.driver.get_budget(rq.hctx);
        if granted {
            rq.marks.set(Marks::HAS_BUDGET);
        }
        granted
    }

    /// Records that a request holds the budget that was taken before its dispatch.
    #[inline]
    pub(super) fn set_budget(self, rq: &mut Rq) {
        if self.generation.budget {
            rq.marks.set(Marks::HAS_BUDGET);
        }
    }

    /// Returns the budget of a request that did not reach the driver.
    #[inline]
    pub(super) fn return_budget<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) {
        if rq.marks.contains(Marks::HAS_BUDGET) {
            rq.marks.clear(Marks::HAS_BUDGET);
            cx.driver.put_budget(rq.hctx);
        }
    }

    // --- driver tags ---

    /// Takes a driver tag for a request, unless it already has one.
    #[inline]
    pub(super) fn take_driver_tag(self, cpu: CpuId, rq: &mut Rq) -> bool {
        if rq.driver_tag.is_none() {
            rq.driver_tag = self.driver_tags.try_take(cpu, rq.hctx);
        }
        rq.driver_tag.is_some()
    }

    /// Frees a driver tag early, if the request also has a scheduler tag.
    pub(super) fn release_driver_tag<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) {
        if self.state.scheduler_tags.is_empty() {
            return;
        }
        if let Some(tag) = rq.driver_tag.take() {
            self.free_driver_tag(cx, rq.hctx, rq.ctx, tag);
        }
    }

    /// Updates the busy average, on kernels that have one.
    #[inline]
    pub(super) fn update_busy(self, hctx: &HardwareQueue<Sh>, busy: bool) {
        if self.generation.busy_average {
            hctx.update_busy(busy);
        }
    }
}
