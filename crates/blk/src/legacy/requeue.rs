//! A driver gives a started request back: it waits at the head of the dispatch queue (`legacy-queue.md` 9).

use crate::driver::Driver;
use crate::merge::MergeRules;
use crate::probe::{Event, Probe};
use crate::queue::Cx;
use crate::request::{Marks, Rq};
use crate::sharing::{Lock, Sharing};
use crate::time::Nanos;

use super::insert::Insertion;
use super::{LegacyQueue, Locked, run_on_worker, take_calls};

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// Takes a started request back. The queue runs soon.
    pub fn requeue<D: Driver, P: Probe>(&self, cx: &mut Cx<'_, D, P>, rq: Rq) {
        cx.probe.event(cx.now, cx.cpu, Event::Requeue(&rq));
        self.locked.with(|queue| queue.take_back(cx, &self.rules, rq));
        run_on_worker(cx.effects, Nanos::ZERO);
    }
}

impl Locked {
    pub(super) fn take_back<D: Driver, P: Probe>(&mut self, cx: &mut Cx<'_, D, P>, rules: &MergeRules, mut rq: Rq) {
        self.leave_driver(&mut rq);
        if rq.marks.contains(Marks::INSERTED) {
            self.elevator.requeued(cx.now, rq.id(), &mut cx.effects.calls);
            take_calls(cx.effects);
        }
        rq.marks.clear(Marks::STARTED);
        self.insert(cx, rules, rq, Insertion::Requeue);
    }
}
