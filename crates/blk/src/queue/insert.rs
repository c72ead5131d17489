//! Insertion: a request goes to the scheduler, to its software queue, or directly to the driver (BL-71 to BL-73).

use std::collections::VecDeque;

use super::state::Current;
use crate::caller::env::{Cx, Env};
use crate::drive::driver::{Answer, Driver};
use crate::drive::effects::Effect;
use crate::ground::ids::HctxId;
use crate::ground::sharing::Sharing;
use crate::ground::time::Nanos;
use crate::policy::Place;
use crate::request::{Marks, Rq};
use crate::watch::probe::Event;

impl<Sh: Sharing> Current<'_, Sh> {
    /// Inserts a request at the tail.
    #[inline]
    pub(super) fn insert_one<E: Env>(self, cx: &mut Cx<'_, E>, rq: Rq) {
        cx.event(Event::Insert(&rq));
        if self.state.elevator.is_none() {
            self.hctxs[rq.hctx.index()].insert(cx.meter, rq, false);
        } else {
            self.insert_into_elevator(cx, std::iter::once(rq), Place::Sorted);
        }
    }

    /// Inserts requests of one software queue at the tail, in order.
    pub(super) fn insert_list<E: Env>(self, cx: &mut Cx<'_, E>, list: &mut VecDeque<Rq>) {
        for rq in list.iter() {
            cx.event(Event::Insert(rq));
        }
        if self.state.elevator.is_none() {
            for rq in list.drain(..) {
                self.hctxs[rq.hctx.index()].insert(cx.meter, rq, false);
            }
        } else {
            self.insert_into_elevator(cx, list.drain(..), Place::Sorted);
        }
    }

    /// Inserts requests into the scheduler under one lock hold.
    #[inline]
    pub(super) fn insert_into_elevator<E: Env>(self, cx: &mut Cx<'_, E>, list: impl Iterator<Item = Rq>, place: Place) {
        self.state.elevator.insert(cx.meter, &mut cx.elevator(), &self.state.rules, list, place);
        self.take_call_results(cx);
    }

    /// Issues a request directly to the driver, without a scheduler. Returns whether its hardware queue must be run,
    /// because the driver did not accept it and it is queued.
    #[inline]
    pub(super) fn issue_directly<E: Env>(self, cx: &mut Cx<'_, E>, mut rq: Rq) -> bool {
        let hctx = &self.hctxs[rq.hctx.index()];
        if hctx.is_stopped() || self.is_quiesced() || !self.take_budget(cx, &mut rq) {
            self.insert_one(cx, rq);
            return true;
        }
        self.timeouts.start((cx.now.at, cx.cpu), &mut rq, &self.state.flights, cx.effects);
        self.track_issue(cx.meter, cx.now.at, &rq);
        rq.marks.clear(Marks::HAS_BUDGET);
        cx.event(Event::Issue(&rq));
        match cx.driver.queue_rq(cx.real, rq, true) {
            Answer::Queued => {
                self.update_busy(hctx, false);
                false
            }
            Answer::Refused(mut rq, _) => {
                self.state.flights.end(rq.id());
                cx.event(Event::Requeue(&rq));
                self.update_busy(hctx, true);
                self.set_budget(&mut rq);
                self.return_budget(cx, &mut rq);
                hctx.push_to_dispatch_list(cx.meter, rq);
                true
            }
            Answer::Done(rq, status) => {
                self.update_busy(hctx, false);
                self.complete(cx, rq, status);
                false
            }
        }
    }

    /// Requests a run of a hardware queue on a worker.
    #[inline]
    pub(super) fn run_async<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        cx.effects.push(Effect::RunHctx { hctx, delay: Nanos::ZERO });
    }
}
