//! Requeue: the driver returns a started request, which must be issued again (BL-95).

use super::Queue;
use super::state::Current;
use crate::caller::env::{Cx, Env};
use crate::drive::effects::Effect;
use crate::ground::meter::Site;
use crate::ground::sharing::{Lock, Sharing};
use crate::ground::time::Nanos;
use crate::policy::Place;
use crate::request::{Marks, Rq};
use crate::watch::probe::Event;

impl<Sh: Sharing> Queue<Sh> {
    /// Takes back a started request. It is reinserted by [`kick_requeue`](Self::kick_requeue), which an effect
    /// requests.
    pub fn requeue<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq) {
        self.during(cx.cpu, |queue| queue.requeue(cx, rq));
    }

    /// Reinserts requeued requests: those for which the driver keeps data directly into the dispatch list, the others
    /// at the head of the scheduler or software queue, one at a time, so several are dispatched in reverse order.
    pub fn kick_requeue<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.during(cx.cpu, |queue| queue.kick_requeue(cx));
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    fn requeue<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq) {
        self.state.flights.end(rq.id());
        cx.event(Event::Requeue(&rq));
        self.release_driver_tag(cx, &mut rq);
        if rq.marks.contains(Marks::INSERTED) {
            self.state.elevator.on_requeued(cx.meter, &mut cx.elevator(), rq.id());
            cx.take_requested();
        }
        self.requeued.with(cx.meter, Site::RequeueList, |list| list.push(rq));
        cx.effects.push(Effect::KickRequeue);
    }

    fn kick_requeue<E: Env>(self, cx: &mut Cx<'_, E>) {
        let requeued = self.requeued.with(cx.meter, Site::RequeueList, std::mem::take);
        for mut rq in requeued {
            let hctx = &self.hctxs[rq.hctx.index()];
            if rq.marks.contains(Marks::DONTPREP) {
                hctx.push_to_dispatch_list(cx.meter, rq);
                continue;
            }
            if !self.state.elevator.is_none() && !rq.marks.contains(Marks::USES_ELEVATOR) {
                // Bypasses the scheduler and the software queues.
                hctx.put_first(cx.meter, rq);
                continue;
            }
            cx.event(Event::Insert(&rq));
            if rq.marks.contains(Marks::USES_ELEVATOR) {
                rq.marks.clear(Marks::STARTED);
                self.insert_into_elevator(cx, std::iter::once(rq), Place::Head);
            } else {
                hctx.insert(cx.meter, rq, true);
            }
        }
        self.queue_flush_commands(cx.meter);
        cx.effects.push(Effect::RunAll { delay: Nanos::ZERO });
    }
}
