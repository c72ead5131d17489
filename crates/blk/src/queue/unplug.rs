//! Flushing a plug: its requests become visible (`block-layer.md` 8.3 and 8.4).

use std::collections::VecDeque;

use super::run::HctxRun;
use super::{Queue, Step};
use crate::env::{Cx, Env};
use crate::ids::HctxId;
use crate::kernel::{DirectIssue, PlugOrder};
use crate::plug::Plug;
use crate::probe::{Event, Probe};
use crate::request::{Marks, Rq};
use crate::sharing::Sharing;
use crate::time::Now;

/// The flush of a plug, in steps.
#[derive(Debug, Default)]
pub struct PlugFlush {
    list: VecDeque<Rq>,
    explicit: bool,
    /// The time as the plug saw it.
    now: Now,
    /// The run of a hardware queue that the flush started, while it is under way.
    run: Option<Box<HctxRun>>,
}

impl PlugFlush {
    /// A flush because the task is done, or because the plug is full.
    pub(super) fn explicit<E: Env, Sh: Sharing>(queue: &Queue<Sh>, cx: &mut Cx<'_, E>, plug: &mut Plug) -> Self {
        let now = plug.now(&queue.generation, cx.now);
        let mut flush = PlugFlush::take(cx, plug, true, now);
        if queue.generation.plug_order == PlugOrder::Sorted {
            flush.list.make_contiguous().sort_by_key(|rq| (rq.ctx, rq.sector));
        }
        flush
    }

    /// A flush because the task is about to sleep.
    pub(super) fn before_sleep<E: Env>(cx: &mut Cx<'_, E>, plug: &mut Plug) -> Self {
        let now = cx.now;
        PlugFlush::take(cx, plug, false, now)
    }

    fn take<E: Env>(cx: &mut Cx<'_, E>, plug: &mut Plug, explicit: bool, now: Now) -> Self {
        if !plug.is_empty() {
            cx.probe.event(cx.now, cx.cpu, Event::Unplug { count: plug.len(), explicit });
        }
        let mut list = cx.effects.take_list();
        std::mem::swap(&mut list, &mut plug.list);
        plug.forget_clock();
        PlugFlush { list, explicit, now, run: None }
    }

    /// The request that the next step is about, if it is about one.
    #[must_use]
    pub fn next(&self) -> Option<&Rq> {
        if self.is_running() { None } else { self.list.front() }
    }

    /// Whether a run of a hardware queue is under way that the flush started.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    fn begin_run<E: Env>(&mut self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        let mut run = cx.effects.take_run();
        run.start(hctx);
        self.run = Some(run);
    }

    /// One step.
    pub fn step<E: Env, Sh: Sharing>(&mut self, queue: &Queue<Sh>, cx: &mut Cx<'_, E>) -> Step {
        if let Some(mut run) = self.run.take() {
            // What a plug's flush runs itself still sees the plug's clock.
            let real = std::mem::replace(&mut cx.now, self.now);
            let step = run.step(queue, cx);
            cx.now = real;
            match step {
                Step::More => self.run = Some(run),
                Step::Done => cx.effects.give_run(run),
            }
            return Step::More;
        }
        let Some(first) = self.list.front() else {
            cx.effects.give_list(std::mem::take(&mut self.list));
            return Step::Done;
        };
        let (hctx, ctx) = (first.hctx, first.ctx);
        let direct = self.explicit
            && !first.marks.contains(Marks::USES_ELEVATOR)
            && match queue.generation.direct_issue {
                DirectIssue::Always => true,
                DirectIssue::NotBusy => queue.hctxs[hctx.index()].busy() == 0,
                DirectIssue::SyncManyQueues => false,
            };
        if direct {
            let next = match queue.generation.plug_order {
                PlugOrder::Lifo => self.list.pop_back(),
                PlugOrder::Fifo | PlugOrder::Sorted => self.list.pop_front(),
            };
            if let Some(rq) = next {
                // Not always that of the first: the plug may be taken from its end.
                let hctx = rq.hctx;
                if queue.issue_directly(cx, rq) {
                    self.begin_run(cx, hctx);
                }
            }
            return Step::More;
        }
        // One group: all requests of this hardware and software queue, in submission order, under one lock hold.
        let mut group = cx.effects.take_list();
        let mut rest = cx.effects.take_list();
        for rq in self.list.drain(..) {
            if (rq.hctx, rq.ctx) == (hctx, ctx) { group.push_back(rq) } else { rest.push_back(rq) }
        }
        std::mem::swap(&mut self.list, &mut rest);
        cx.effects.give_list(rest);
        let real = std::mem::replace(&mut cx.now, self.now);
        queue.insert_list(cx, &mut group);
        cx.now = real;
        cx.effects.give_list(group);
        if self.explicit {
            self.begin_run(cx, hctx);
        } else {
            queue.run_async(cx, hctx);
        }
        Step::More
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Begins the flush of a plug: because its section ends, or because the task is about to sleep and its requests
    /// must only be queued. The caller steps through it.
    pub fn begin_flush<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug, explicit: bool) -> PlugFlush {
        if explicit { PlugFlush::explicit(self, cx, plug) } else { PlugFlush::before_sleep(cx, plug) }
    }

    /// Flushes a plug at the end of its section.
    pub fn flush_plug<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug) {
        let mut flush = self.begin_flush(cx, plug, true);
        while flush.step(self, cx) == Step::More {}
    }
}
