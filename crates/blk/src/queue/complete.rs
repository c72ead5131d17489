//! Completion of a request: its bios complete, the scheduler is notified, tags are freed, waiters continue (BL-64, BL-77, BL-92
//! to BL-94).

use super::Queue;
use super::state::Current;
use crate::bio::Status;
use crate::caller::env::{Cx, Env};
use crate::drive::effects::Effect;
use crate::ground::ids::{CpuId, HctxId};
use crate::ground::sharing::Sharing;
use crate::ground::time::Nanos;
use crate::request::{Marks, Rq};
use crate::tags::{Sleeper, Tags};
use crate::watch::probe::Event;

impl<Sh: Sharing> Queue<Sh> {
    /// Completes a request. Its bios complete before its tags are freed.
    #[inline]
    pub fn complete<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status) {
        self.during(cx.cpu, |queue| queue.complete(cx, rq, status));
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    /// Completes a request, or only a step of its flush sequence.
    #[inline]
    pub(super) fn complete<E: Env>(self, cx: &mut Cx<'_, E>, rq: Rq, status: Status) {
        self.state.flights.end(rq.id());
        cx.event(Event::Complete(&rq, status));
        if rq.marks.intersects(Marks::IN_SEQUENCE.with(Marks::FLUSH_COMMAND).with(Marks::STEERED)) {
            return self.complete_marked(cx, rq, status);
        }
        if rq.marks.contains(Marks::USES_ELEVATOR) {
            self.state.elevator.on_completed(&mut cx.elevator(), &rq);
            cx.take_requested();
        }
        self.end(cx, rq, status);
    }

    /// Completes a step of a flush sequence, or a request that a policy has placed.
    #[cold]
    fn complete_marked<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq, status: Status) {
        if rq.marks.intersects(Marks::IN_SEQUENCE.with(Marks::FLUSH_COMMAND)) {
            return self.end_flush_step(cx, rq, status);
        }
        self.end_steered(cx, &mut rq);
        self.end(cx, rq, status);
    }

    /// Completes the bios of a request, and then the request.
    #[inline]
    pub(super) fn end<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq, status: Status) {
        cx.event(Event::End(&rq));
        cx.effects.end(&mut rq.bios, status);
        self.track_end(cx, &mut rq);
        self.release(cx, rq);
    }

    /// Carries out the results of a call into the elevator: requested actions, and requests that were merged into others.
    #[inline]
    pub(super) fn take_call_results<E: Env>(self, cx: &mut Cx<'_, E>) {
        cx.take_requested();
        if !cx.scratch.freed.is_empty() {
            self.free_absorbed(cx);
        }
    }

    #[cold]
    fn free_absorbed<E: Env>(self, cx: &mut Cx<'_, E>) {
        let mut freed = std::mem::take(&mut cx.scratch.freed);
        for mut rq in freed.drain(..) {
            cx.event(Event::Absorbed(&rq));
            self.stop_counting(cx, &mut rq);
            self.release(cx, rq);
        }
        cx.scratch.freed = freed;
    }

    /// Notifies the scheduler that a request that it has inserted is released.
    #[inline]
    pub(super) fn finish<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) {
        if rq.marks.contains(Marks::INSERTED) {
            rq.marks.clear(Marks::INSERTED);
            self.state.elevator.finish(cx.meter, &mut cx.elevator(), rq.id());
            cx.take_requested();
        }
    }

    /// Notifies the scheduler, frees the slot and its tags, and restarts the hardware queue if it is marked for that.
    #[inline]
    fn release<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq) {
        self.finish(cx, &mut rq);
        let (hctx, submitter) = (rq.hctx, rq.ctx);
        let driver_tag = rq.driver_tag.take();
        let slot_tag = self.state.tag_of_slot(&rq);
        // The slot must be returned before its tag can be allocated again.
        self.state.pool.put(rq);
        if let Some(tag) = driver_tag {
            self.free_driver_tag(cx, hctx, submitter, tag);
        }
        if let Some(tags) = self.state.scheduler_tags_of(hctx) {
            let effects = &mut *cx.effects;
            tags.free(cx.meter, slot_tag, submitter, |sleeper| effects.push(self.wake_up(sleeper)));
        }
        self.restart(cx, hctx);
    }

    /// Runs a hardware queue that is marked for a restart at the next completion.
    #[inline]
    pub(super) fn restart<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        if self.hctxs[hctx.index()].take_restart() {
            self.run_async(cx, hctx);
        }
    }

    /// Frees a driver tag of a request from this submitter's CPU, wherever that is done, and wakes the next waiter.
    #[inline]
    pub(super) fn free_driver_tag<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, submitter: CpuId, tag: u32) {
        let effects = &mut *cx.effects;
        self.driver_tags.free(cx.meter, tag, hctx, submitter, |sleeper| effects.push(self.wake_up(sleeper)));
    }

    /// Passes a wake-up on to another sleeper, because its receiver does not need these tags.
    pub(super) fn forward_wakeup<E: Env>(self, cx: &mut Cx<'_, E>, tags: &Tags<Sh>) {
        tags.forward_tag_wakeup(cx.meter, |sleeper| cx.effects.push(self.wake_up(sleeper)));
    }

    fn wake_up(self, sleeper: Sleeper) -> Effect {
        match sleeper {
            Sleeper::Submitter(waiter) => Effect::Wake(waiter),
            Sleeper::HctxOf(queue, hctx) if queue != self.driver_tags.id() => Effect::RunOther { queue, hctx },
            Sleeper::Hctx(hctx) | Sleeper::HctxOf(_, hctx) => Effect::RunHctx { hctx, delay: Nanos::ZERO },
        }
    }
}
