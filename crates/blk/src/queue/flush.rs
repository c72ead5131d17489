//! Flush and FUA requests in the flush sequencer of their hardware queue (BL-110 to BL-115).

use super::state::Current;
use crate::bio::Status;
use crate::caller::env::{Cx, Env};
use crate::drive::effects::Effect;
use crate::ground::ids::HctxId;
use crate::ground::meter::{Meter, Site};
use crate::ground::sharing::{Lock, Sharing};
use crate::queue::flush_queue::{self, Next};
use crate::request::{FlushSteps, Marks, Rq};

impl<Sh: Sharing> Current<'_, Sh> {
    /// Starts the sequence of a flush-type request that was just allocated. Returns it if its data takes the ordinary
    /// path now.
    pub(super) fn begin_sequence<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq) -> Option<Rq> {
        let limits = &self.state.rules.limits;
        let steps = FlushSteps::of(rq.flags, rq.sectors, limits.write_cache, limits.fua);
        flush_queue::begin(&mut rq, steps, limits.fua);
        let bypasses_scheduler = self.generation.flushes_bypass_scheduler;
        let hctx = rq.hctx;
        if steps.is_empty() {
            self.end_steered(cx, &mut rq);
            self.end(cx, rq, Status::Ok);
            return None;
        }
        if steps.is_data_only() {
            if !bypasses_scheduler {
                return Some(rq);
            }
            self.hctxs[hctx.index()].push_to_dispatch_list(cx.meter, rq);
            self.run_async(cx, hctx);
            return None;
        }
        rq.marks.set(Marks::IN_SEQUENCE);
        if steps.begins_with_data() && !bypasses_scheduler {
            self.state.flush_queues[hctx.index()].with(
                cx.meter,
                Site::FlushQueue,
                crate::queue::flush_queue::FlushQueue::data_begins,
            );
            return Some(rq);
        }
        let now = cx.now.at;
        let next = self.state.flush_queues[hctx.index()]
            .with(cx.meter, Site::FlushQueue, |queue| queue.advance(now, rq, Status::Ok));
        self.continue_sequence(cx, next);
        self.issue_flush_if_due(cx, hctx);
        None
    }

    /// The driver has completed a step of a sequence: a flush command, or the data of a request.
    #[cold]
    pub(super) fn end_flush_step<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq, status: Status) {
        let (hctx, now) = (rq.hctx, cx.now.at);
        let queue = &self.state.flush_queues[hctx.index()];
        // With a scheduler each step has its own driver tag; without one the first waiter's tag serves all steps.
        self.release_driver_tag(cx, &mut rq);
        if rq.marks.contains(Marks::FLUSH_COMMAND) {
            let mut waiters = queue.with(cx.meter, Site::FlushQueue, |queue| queue.flushed(rq));
            for rq in waiters.drain(..) {
                let next = queue.with(cx.meter, Site::FlushQueue, |queue| queue.flush_done(now, rq, status));
                self.continue_sequence(cx, next);
            }
            queue.with(cx.meter, Site::FlushQueue, |queue| queue.keep(waiters));
        } else {
            // For the scheduler the request completes with its data.
            if rq.marks.contains(Marks::INSERTED) {
                self.state.elevator.on_completed(&mut cx.elevator(), &rq);
                cx.take_requested();
                self.finish(cx, &mut rq);
            }
            let next = queue.with(cx.meter, Site::FlushQueue, |queue| queue.data_done(now, rq, status));
            self.continue_sequence(cx, next);
        }
        self.issue_flush_if_due(cx, hctx);
        self.restart(cx, hctx);
    }

    fn continue_sequence<E: Env>(self, cx: &mut Cx<'_, E>, next: Option<Next>) {
        match next {
            Some(Next::Data(rq)) => {
                self.requeued.with(cx.meter, Site::RequeueList, |list| list.push(rq));
                cx.effects.push(Effect::KickRequeue);
            }
            Some(Next::End(mut rq, status)) => {
                self.end_steered(cx, &mut rq);
                self.end(cx, rq, status);
            }
            None => {}
        }
    }

    /// Issues the flush command if it is due.
    fn issue_flush_if_due<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        let defer = self.generation.flush_always_defers || self.state.elevator.is_none();
        if let Some(command) =
            self.state.flush_queues[hctx.index()].with(cx.meter, Site::FlushQueue, |queue| queue.kick(cx.now.at, defer))
        {
            self.flush_commands.with(cx.meter, Site::FlushQueue, |list| list.push(command));
            cx.effects.push(Effect::KickRequeue);
        }
    }

    /// Moves flush commands to the heads of the dispatch lists.
    pub(super) fn queue_flush_commands(self, meter: &impl Meter) {
        while let Some(command) = self.flush_commands.with(meter, Site::FlushQueue, Vec::pop) {
            self.hctxs[command.hctx.index()].put_first(meter, command);
        }
    }
}
