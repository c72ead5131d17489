//! The driver's side: a run takes requests from the head of the dispatch queue, which the elevator fills when it is
//! empty, for as long as the device has room (LQ-21 to LQ-25).

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::drive::{Answer, Driver, RESOURCE_DELAY};
use hoistway_blk::ground::{Lock, Sharing, Site};
use hoistway_blk::request::{Marks, Rq};
use hoistway_blk::watch::Event;

use super::request_list::SyncClass;
use super::{HCTX, LegacyQueue, Locked, run_on_worker, take_requested};

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// Runs the queue on this CPU.
    pub fn run<E: Env>(&self, cx: &mut Cx<'_, E>) {
        while let Some(rq) = self.locked.with(cx.meter, Site::Legacy, |queue| {
            let mut rq = queue.start_next(cx)?;
            self.timeouts.start((cx.now.at, cx.cpu), &mut rq, &queue.flights, cx.effects);
            Some(rq)
        }) {
            // The kernel drops the lock around each command.
            match cx.driver.queue_rq(cx.real, rq, true) {
                Answer::Queued => {}
                Answer::Done(rq, status) => self.ended(cx, rq, status),
                Answer::Refused(mut rq, _) => {
                    cx.driver.put_budget(HCTX);
                    cx.event(Event::Requeue(&rq));
                    rq.marks.clear(Marks::HAS_BUDGET);
                    return self.locked.with(cx.meter, Site::Legacy, |queue| {
                        queue.take_back(cx, rq);
                        queue.retry_if_idle(cx);
                    });
                }
            }
        }
    }

    /// The driver stops its queue, or restarts and runs it.
    pub fn set_stopped(&self, stopped: bool) {
        self.locked.aside(|queue| queue.is_stopped = stopped);
    }
}

impl Locked {
    /// Takes the next request for the driver, if there is one and the device has room.
    fn start_next<E: Env>(&mut self, cx: &mut Cx<'_, E>) -> Option<Rq> {
        if self.is_stopped || !self.peek(cx) {
            return None;
        }
        let head = self.dispatch.peek_head()?;
        let class = SyncClass::of(head.is_sync());
        if !self.tags.take(head, self.in_flight[class as usize]) {
            return None;
        }
        if !cx.driver.get_budget(HCTX) {
            self.tags.put(head);
            self.retry_if_idle(cx);
            return None;
        }
        let rq = self.dispatch.pop()?;
        self.in_flight[class as usize] += 1;
        Some(rq)
    }

    /// The driver looks at the head of the dispatch queue; the elevator is asked only if the queue is empty. The first
    /// look counts as the start of a request, even if the device then has no room for it.
    fn peek<E: Env>(&mut self, cx: &mut Cx<'_, E>) -> bool {
        if self.dispatch.is_empty() && self.bypasses == 0 && !self.is_held_by_flush() {
            let (rq, reason) = self.elevator.dispatch(&mut cx.elevator());
            cx.event(Event::Dispatch { hctx: HCTX, rq: rq.as_deref(), reason });
            match rq {
                Some(rq) if self.elevator.dispatches_sorted => self.dispatch.add_sorted(rq),
                Some(rq) => self.dispatch.add_tail(rq),
                None => {}
            }
        }
        let head = self.dispatch.peek_head();
        let has_head = head.is_some();
        if let Some(rq) = head.filter(|rq| !rq.marks.contains(Marks::STARTED)) {
            rq.marks.set(Marks::STARTED);
            if rq.marks.contains(Marks::INSERTED) {
                self.elevator.on_started(&mut cx.elevator(), rq.id());
            }
            cx.event(Event::Issue(rq));
        }
        take_requested(cx);
        has_head
    }

    /// With no request at the device no completion will run the queue, so it is retried after a delay.
    fn retry_if_idle<E: Env>(&self, cx: &mut Cx<'_, E>) {
        if self.in_flight == [0; 2] {
            run_on_worker(cx.effects, RESOURCE_DELAY);
        }
    }
}
