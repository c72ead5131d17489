//! Durable writes (LQ-29 to LQ-31): they bypass the elevator, through the queue's only flush sequencer.

use hoistway_blk::bio::Status;
use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{Lock, Nanos, Sharing, Site};
use hoistway_blk::kit::flush_queue::{self, Next};
use hoistway_blk::request::{FlushSteps, Marks, Rq};
use hoistway_blk::watch::Event;

use super::{LegacyQueue, Locked, run_on_worker};

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// The driver has completed a step of a sequence: the flush command, or the data of a request.
    #[cold]
    pub(super) fn step_done<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status) {
        cx.event(Event::Complete(&rq, status));
        self.locked.with(cx.meter, Site::Legacy, |queue| queue.step_done(cx, rq, status));
    }
}

impl Locked {
    /// Begins the sequence of a flush request.
    pub(super) fn begin_sequence<E: Env>(&mut self, cx: &mut Cx<'_, E>, mut rq: Rq) {
        let steps = FlushSteps::of(rq.flags, rq.sectors, self.cache.write_cache, self.cache.fua);
        flush_queue::begin(&mut rq, steps, self.cache.fua);
        if steps.is_data_only() {
            // It overtakes all requests in the elevator.
            self.dispatch.push_back(rq);
            return;
        }
        if !steps.is_empty() {
            rq.marks.set(Marks::IN_SEQUENCE);
        }
        let next = self.flush.advance(cx.now.at, rq, Status::Ok);
        self.make_progress(cx, next);
        self.kick(cx);
    }

    fn step_done<E: Env>(&mut self, cx: &mut Cx<'_, E>, mut rq: Rq, status: Status) {
        self.leave_driver(&mut rq);
        let now = cx.now.at;
        if rq.marks.contains(Marks::FLUSH_COMMAND) {
            let mut waiters = self.flush.flushed(rq);
            for rq in waiters.drain(..) {
                let next = self.flush.flush_done(now, rq, status);
                self.make_progress(cx, next);
            }
            self.flush.keep(waiters);
        } else {
            let next = self.flush.data_done(now, rq, status);
            self.make_progress(cx, next);
        }
        self.kick(cx);
    }

    fn make_progress<E: Env>(&mut self, cx: &mut Cx<'_, E>, next: Option<Next>) {
        match next {
            Some(Next::Data(mut rq)) => {
                rq.marks.clear(Marks::STARTED);
                self.dispatch.push_front(rq);
                run_on_worker(cx.effects, Nanos::ZERO);
            }
            Some(Next::End(mut rq, status)) => {
                cx.event(Event::End(&rq));
                cx.effects.end(&mut rq.bios, status);
                self.release(cx, rq);
            }
            None => {}
        }
    }

    /// Issues the flush command if it is due.
    fn kick<E: Env>(&mut self, cx: &mut Cx<'_, E>) {
        if let Some(command) = self.flush.kick(cx.now.at, true) {
            self.dispatch.push_back(command);
            run_on_worker(cx.effects, Nanos::ZERO);
        }
    }

    /// Whether the elevator must not be asked, because the device does nothing else during a flush.
    #[inline]
    pub(super) fn is_held_by_flush(&self) -> bool {
        !self.cache.flush_queueable && self.flush.is_flushing()
    }
}
