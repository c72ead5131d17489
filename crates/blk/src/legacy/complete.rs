//! The end of a request, and what it sets going (`legacy-queue.md` 9).

use crate::bio::Status;
use crate::driver::Driver;
use crate::effects::Effect;
use crate::ids::CpuId;
use crate::probe::{Event, Probe};
use crate::queue::{CompletionPlace, Cx};
use crate::request::{Marks, Rq};
use crate::sharing::{Lock, Sharing};

use super::request_list::IoClass;
use super::{LegacyQueue, Locked, take_calls};

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// Where the completion of a request runs whose interrupt came on `cpu`: always in a softirq (`legacy-queue.md` 9).
    pub fn completion_place(&self, rq: &Rq, cpu: CpuId, share_cache: impl Fn(CpuId, CpuId) -> bool) -> CompletionPlace {
        if self.affinity.redirects(rq.ctx, cpu, share_cache) {
            CompletionPlace::Redirected(rq.ctx)
        } else {
            CompletionPlace::Softirq
        }
    }

    /// A request has ended; the queue is run again.
    pub fn complete<D: Driver, P: Probe>(&self, cx: &mut Cx<'_, D, P>, rq: Rq, status: Status) {
        self.ended(cx, rq, status);
        self.run(cx);
    }

    /// A request was at the driver and has ended there: as a whole, or a step of it.
    pub(super) fn ended<D: Driver, P: Probe>(&self, cx: &mut Cx<'_, D, P>, rq: Rq, status: Status) {
        if rq.marks.intersects(Marks::IN_SEQUENCE.with(Marks::FLUSH_COMMAND)) {
            self.step_done(cx, rq, status);
        } else {
            self.end(cx, rq, status);
        }
    }

    /// Ends a request: first its bios, then all that it holds.
    fn end<D: Driver, P: Probe>(&self, cx: &mut Cx<'_, D, P>, mut rq: Rq, status: Status) {
        cx.probe.event(cx.now, cx.cpu, Event::Complete(&rq, status));
        cx.probe.event(cx.now, cx.cpu, Event::End(&rq));
        cx.effects.end(&mut rq.bios, status);
        self.locked.with(|queue| {
            queue.leave_driver(&mut rq);
            queue.release(cx, rq);
        });
    }
}

impl Locked {
    /// A request is no longer at the driver.
    pub(super) fn leave_driver(&mut self, rq: &mut Rq) {
        self.tags.put(rq);
        self.in_flight[IoClass::of(rq.is_sync()) as usize] -= 1;
    }

    /// Frees requests that others have absorbed.
    #[inline]
    pub(super) fn release_absorbed<D: Driver, P: Probe>(&mut self, cx: &mut Cx<'_, D, P>) {
        let mut freed = std::mem::take(&mut cx.effects.freed);
        for rq in freed.drain(..) {
            cx.probe.event(cx.now, cx.cpu, Event::Absorbed(&rq));
            self.release(cx, rq);
        }
        cx.effects.freed = freed;
    }

    /// Tells the elevator, frees the slot and wakes whoever may have it.
    pub(super) fn release<D: Driver, P: Probe>(&mut self, cx: &mut Cx<'_, D, P>, mut rq: Rq) {
        if rq.marks.contains(Marks::INSERTED) {
            self.elevator.finish(cx.now, rq.id(), &mut cx.effects.calls);
            take_calls(cx.effects);
        }
        self.managed -= u32::from(rq.marks.contains(Marks::USES_ELEVATOR));
        let (class, cgroup) = (IoClass::of(rq.is_sync()), rq.cgroup);
        rq.bios.clear();
        self.free.push(rq);
        self.lists.of(cgroup).uncount(&self.thresholds, class, |waiter| cx.effects.push(Effect::Wake(waiter)));
    }
}
