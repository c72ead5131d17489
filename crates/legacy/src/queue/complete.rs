//! Completion of a request and its effects (LQ-26 to LQ-28).

use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::bio::Status;
use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::drive::Effect;
use hoistway_blk::ground::{CpuId, Lock, Sharing, Site, Word};
use hoistway_blk::queue::{Affinity, CompletionPlace};
use hoistway_blk::request::{Marks, Rq};
use hoistway_blk::watch::Event;

use super::request_list::SyncClass;
use super::{LegacyQueue, Locked, take_requested};

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// The place where a request's completion runs after an interrupt on `cpu`: always in a softirq (LQ-26 to LQ-28).
    pub fn completion_place(&self, rq: &Rq, cpu: CpuId, share_cache: impl Fn(CpuId, CpuId) -> bool) -> CompletionPlace {
        let affinity = Affinity::from_number(self.affinity.load(Relaxed)).unwrap_or_default();
        if affinity.redirects(rq.ctx, cpu, share_cache) {
            CompletionPlace::Redirected(rq.ctx)
        } else {
            CompletionPlace::Softirq
        }
    }

    /// A request has completed; the queue is run again.
    pub fn complete<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status) {
        self.ended(cx, rq, status);
        self.run(cx);
    }

    /// A request at the driver has completed: as a whole, or a step of it.
    pub(super) fn ended<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status) {
        if rq.marks.intersects(Marks::IN_SEQUENCE.with(Marks::FLUSH_COMMAND)) {
            self.step_done(cx, rq, status);
        } else {
            self.end(cx, rq, status);
        }
    }

    /// Ends a request: first its bios, then its resources.
    fn end<E: Env>(&self, cx: &mut Cx<'_, E>, mut rq: Rq, status: Status) {
        cx.event(Event::Complete(&rq, status));
        cx.event(Event::End(&rq));
        cx.effects.end(&mut rq.bios, status);
        self.locked.with(cx.meter, Site::Legacy, |queue| {
            queue.leave_driver(&mut rq);
            queue.release(cx, rq);
        });
    }
}

impl Locked {
    /// A request is no longer at the driver.
    pub(super) fn leave_driver(&mut self, rq: &mut Rq) {
        self.tags.put(rq);
        self.flights.end(rq.id());
        self.in_flight[SyncClass::of(rq.is_sync()) as usize] -= 1;
    }

    /// Frees requests that were merged into others.
    #[inline]
    pub(super) fn release_absorbed<E: Env>(&mut self, cx: &mut Cx<'_, E>) {
        let mut freed = std::mem::take(&mut cx.scratch.freed);
        for rq in freed.drain(..) {
            cx.event(Event::Absorbed(&rq));
            self.release(cx, rq);
        }
        cx.scratch.freed = freed;
    }

    /// Notifies the elevator, frees the slot and wakes a waiting task.
    pub(super) fn release<E: Env>(&mut self, cx: &mut Cx<'_, E>, mut rq: Rq) {
        if rq.marks.contains(Marks::INSERTED) {
            self.elevator.finish(&mut cx.elevator(), rq.id());
            take_requested(cx);
        }
        self.managed -= u32::from(rq.marks.contains(Marks::USES_ELEVATOR));
        let (class, cgroup) = (SyncClass::of(rq.is_sync()), rq.cgroup);
        rq.bios.clear();
        self.free.push(rq);
        self.lists.for_cgroup(cgroup).put(&self.thresholds, class, |waiter| cx.effects.push(Effect::Wake(waiter)));
    }
}
