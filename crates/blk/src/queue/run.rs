//! Running a hardware queue: left-overs first, then the scheduler or the software queues (`block-layer.md` 14, 15).

use std::collections::VecDeque;

use super::regime::Current;
use super::{Queue, Step};
use crate::driver::Driver;
use crate::effects::{Effect, RESOURCE_DELAY};
use crate::env::{Cx, Env};
use crate::ids::{CpuId, HctxId};
use crate::kernel::{AfterLeftovers, Fetch};
use crate::probe::{Event, Probe};
use crate::request::Rq;
use crate::sharing::Sharing;

/// One run of a hardware queue, in steps. It may be started again when it is done, and keeps its memory.
#[derive(Debug, Default)]
pub struct HctxRun {
    hctx: HctxId,
    stage: Stage,
    /// What is about to be sent.
    list: VecDeque<Rq>,
    /// There were left-overs, and they have been sent.
    careful: bool,
    /// Requests were drawn and sent since the last look at the dispatch list.
    restarted: bool,
    /// How many requests the batch may still draw.
    left: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// Look at the dispatch list.
    Begin,
    /// Send the left-overs.
    SendLeftovers,
    /// Draw another request of the batch.
    Draw,
    /// Send the batch.
    SendBatch,
    /// Take everything from the software queues.
    TakeAll,
    /// Take one request from the software queues.
    TakeOne,
    #[default]
    Done,
}

impl<Sh: Sharing> Queue<Sh> {
    /// Runs a hardware queue on this CPU.
    #[inline]
    pub fn run_hctx<E: Env>(&self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        self.during(cx.cpu, |queue| {
            let mut run = cx.effects.take_run();
            run.start(hctx);
            while run.step(queue, cx) == Step::More {}
            cx.effects.give_run(run);
        });
    }

    /// The hardware queues that a "run all" on this CPU runs: all of them, or with a single-dispatch scheduler the
    /// CPU's own and those with left-overs (`block-layer.md` 17).
    pub fn hctxs_of_run_all(&self, cpu: CpuId) -> impl Iterator<Item = HctxId> + '_ {
        let hctxs = &self.device.hctxs;
        let own = self.hctx_of(cpu);
        let one = self.device.generation.single_dispatch
            && self.during(cpu, |queue| queue.regime.elevator.is_single_dispatch())
            && !hctxs[own.index()].is_stopped();
        hctxs
            .iter()
            .filter(move |hctx| !hctx.is_stopped() && (!one || hctx.id() == own || hctx.has_leftovers()))
            .map(|hctx| hctx.id())
    }

    /// Whether a run of the hardware queue would find anything.
    #[inline]
    #[must_use]
    pub fn has_pending(&self, hctx: HctxId) -> bool {
        self.during(CpuId(0), |queue| queue.has_pending(hctx))
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    /// Whether a run of the hardware queue would find anything.
    #[inline]
    pub(super) fn has_pending(self, hctx: HctxId) -> bool {
        let queue = &self.hctxs[hctx.index()];
        queue.has_leftovers() || queue.has_queued() || self.regime.elevator.has_work(hctx)
    }
}

impl HctxRun {
    /// Begins a run of `hctx`.
    #[inline]
    pub(super) fn start(&mut self, hctx: HctxId) {
        debug_assert!(self.list.is_empty());
        self.hctx = hctx;
        self.stage = Stage::Begin;
        self.careful = false;
        self.restarted = false;
    }

    /// One step.
    #[inline]
    pub(super) fn step<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> Step {
        self.stage = match self.stage {
            Stage::Begin => self.begin(queue, cx),
            Stage::SendLeftovers => self.send_leftovers(queue, cx),
            Stage::Draw => self.draw(queue, cx),
            Stage::SendBatch => self.end_batch(queue, cx, false),
            Stage::TakeAll => {
                queue.hctxs[self.hctx.index()].take_all(cx.meter, &mut self.list);
                if !self.list.is_empty() {
                    queue.send(cx, self.hctx, &mut self.list);
                }
                Stage::Done
            }
            Stage::TakeOne => self.take_one(queue, cx),
            Stage::Done => Stage::Done,
        };
        if self.stage == Stage::Done { Step::Done } else { Step::More }
    }

    #[inline]
    fn begin<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> Stage {
        let hctx = &queue.hctxs[self.hctx.index()];
        if queue.is_quiesced() || hctx.is_stopped() || !queue.has_pending(self.hctx) {
            return Stage::Done;
        }
        if hctx.has_leftovers() {
            hctx.take_leftovers(cx.meter, &mut self.list);
            hctx.mark_restart();
            return Stage::SendLeftovers;
        }
        // No lock was taken yet, so the first question may follow in the same step.
        match self.source(queue) {
            Stage::Draw => self.draw(queue, cx),
            source => source,
        }
    }

    #[inline(never)]
    fn send_leftovers<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> Stage {
        let sent = queue.send(cx, self.hctx, &mut self.list).all_gone;
        self.careful = true;
        let go_on = match queue.generation.after_leftovers {
            AfterLeftovers::AskIfSent => sent,
            AfterLeftovers::AskIfStuck => !sent,
        };
        if go_on { self.source(queue) } else { Stage::Done }
    }

    /// Where requests come from when there are no left-overs.
    #[inline]
    fn source<Sh: Sharing>(&mut self, queue: Current<'_, Sh>) -> Stage {
        let busy = queue.hctxs[self.hctx.index()].busy() > 0;
        if !queue.regime.elevator.is_none() {
            self.left = match queue.generation.fetch {
                Fetch::Batch { .. } if !busy => queue.regime.nr_requests,
                Fetch::One | Fetch::Batch { .. } => 1,
            };
            Stage::Draw
        } else if self.careful || busy {
            Stage::TakeOne
        } else {
            Stage::TakeAll
        }
    }

    /// Something came into the dispatch list while requests were drawn: start over once, then leave it to a worker.
    #[cold]
    fn again<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> Stage {
        if self.restarted {
            queue.run_async(cx, self.hctx);
            return Stage::Done;
        }
        self.restarted = true;
        Stage::Begin
    }

    /// Draws one request from the scheduler into the batch, or ends the batch. What usually ends it is looked at here, and
    /// the rest left to calls: most draws of a busy device end for want of budget.
    #[inline]
    fn draw<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> Stage {
        if self.left == 0 || !queue.regime.elevator.has_work(self.hctx) {
            return self.end_batch(queue, cx, false);
        }
        let looks_back = queue.generation.after_leftovers == AfterLeftovers::AskIfSent;
        if looks_back && queue.hctxs[self.hctx.index()].has_leftovers() {
            return self.end_batch(queue, cx, true);
        }
        if queue.generation.budget && !cx.driver.get_budget(self.hctx) {
            return self.end_batch(queue, cx, false);
        }
        self.draw_with_budget(queue, cx)
    }

    #[inline(never)]
    fn draw_with_budget<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> Stage {
        let (rq, reason) = queue.regime.elevator.dispatch(cx.meter, &mut cx.elevator(), self.hctx);
        cx.effects.take_wishes();
        cx.probe.event(cx.now, cx.cpu, Event::Dispatch { hctx: self.hctx, rq: rq.as_deref(), reason });
        let Some(mut rq) = rq else {
            if queue.generation.budget {
                cx.driver.put_budget(self.hctx);
                if self.list.is_empty() {
                    // Holding the budget may have kept another hardware queue from it.
                    cx.effects.push(Effect::RunAll { delay: RESOURCE_DELAY });
                }
            }
            return Stage::SendBatch;
        };
        queue.set_budget(&mut rq);
        let tagged = queue.take_driver_tag(cx.cpu, &mut rq);
        self.list.push_back(rq);
        match queue.generation.fetch {
            Fetch::Batch { stop_without_tag: true } if !tagged => Stage::SendBatch,
            _ => {
                self.left -= 1;
                Stage::Draw
            }
        }
    }

    /// Sends the batch and goes on with the next, as long as that makes progress.
    #[inline]
    fn end_batch<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>, again: bool) -> Stage {
        let progress = !self.list.is_empty() && self.send_batch(queue, cx);
        if again {
            self.again(queue, cx)
        } else if progress {
            self.source(queue)
        } else {
            Stage::Done
        }
    }

    /// Sends the batch, each request to its own hardware queue. Answers whether all of it went.
    #[inline(never)]
    fn send_batch<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> bool {
        if self.list.iter().all(|rq| rq.hctx == self.hctx) {
            return queue.send(cx, self.hctx, &mut self.list).all_gone;
        }
        self.list.make_contiguous().sort_by_key(|rq| rq.hctx);
        let mut progress = true;
        while let Some(first) = self.list.front() {
            let hctx = first.hctx;
            let mut group = cx.effects.take_list();
            let members = self.list.iter().take_while(|rq| rq.hctx == hctx).count();
            group.extend(self.list.drain(..members));
            progress &= queue.send(cx, hctx, &mut group).all_gone;
            cx.effects.give_list(group);
        }
        progress
    }

    /// Without a scheduler, one by one: the software queues take turns.
    #[inline(never)]
    fn take_one<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) -> Stage {
        let hctx = &queue.hctxs[self.hctx.index()];
        if hctx.has_leftovers() {
            return self.again(queue, cx);
        }
        if !hctx.has_queued() || (queue.generation.budget && !cx.driver.get_budget(self.hctx)) {
            return Stage::Done;
        }
        let Some(mut rq) = hctx.take_next(cx.meter) else {
            if queue.generation.budget {
                cx.driver.put_budget(self.hctx);
                cx.effects.push(Effect::RunAll { delay: RESOURCE_DELAY });
            }
            return Stage::Done;
        };
        queue.set_budget(&mut rq);
        self.list.push_back(rq);
        if queue.send(cx, self.hctx, &mut self.list).all_gone { Stage::TakeOne } else { Stage::Done }
    }
}
