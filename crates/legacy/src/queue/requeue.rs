//! The driver returns a started request: it waits at the head of the dispatch queue (LQ-26 to LQ-28).

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{Lock, Nanos, Sharing, Site};
use hoistway_blk::request::{Marks, Rq};
use hoistway_blk::watch::Event;

use super::{LegacyQueue, Locked, run_on_worker, take_requested};

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// Takes a started request back. The queue will run soon.
    pub fn requeue<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq) {
        cx.event(Event::Requeue(&rq));
        self.locked.with(cx.meter, Site::Legacy, |queue| queue.take_back(cx, rq));
        run_on_worker(cx.effects, Nanos::ZERO);
    }
}

impl Locked {
    pub(super) fn take_back<E: Env>(&mut self, cx: &mut Cx<'_, E>, mut rq: Rq) {
        self.leave_driver(&mut rq);
        if rq.marks.contains(Marks::INSERTED) {
            self.elevator.on_requeued(&mut cx.elevator(), rq.id());
            take_requested(cx);
        }
        rq.marks.clear(Marks::STARTED);
        self.reinsert(cx, rq);
    }
}
