//! Flushing a plug: its requests become visible to the queue (BL-26 to BL-29).

use std::collections::VecDeque;

use super::Queue;
use super::state::Current;
use crate::caller::env::{Cx, Env};
use crate::ground::kernel::{DirectIssue, PlugOrder};
use crate::ground::sharing::Sharing;
use crate::ground::time::Now;
use crate::request::plug::Plug;
use crate::request::{Marks, Rq};
use crate::watch::probe::Event;

/// The flush of a plug, which a replay executes step by step.
#[derive(Debug)]
pub struct PlugFlush {
    /// Boxed, as all reusable lists.
    #[expect(clippy::box_collection)]
    list: Box<VecDeque<Rq>>,
    explicit: bool,
    /// The time as the plug saw it.
    now: Now,
}

impl PlugFlush {
    /// A flush because the plugged section ends or the plug is full.
    fn explicit<E: Env, Sh: Sharing>(queue: Current<'_, Sh>, cx: &mut Cx<'_, E>, plug: &mut Plug) -> Self {
        let now = plug.now(&queue.generation, cx.now);
        let mut flush = PlugFlush::take(cx, plug, true, now);
        if queue.generation.plug_order == PlugOrder::Sorted {
            flush.list.make_contiguous().sort_by_key(|rq| (rq.ctx, rq.sector));
        }
        flush
    }

    /// A flush because the task is about to sleep.
    fn before_sleep<E: Env>(cx: &mut Cx<'_, E>, plug: &mut Plug) -> Self {
        let now = cx.now;
        PlugFlush::take(cx, plug, false, now)
    }

    fn take<E: Env>(cx: &mut Cx<'_, E>, plug: &mut Plug, explicit: bool, now: Now) -> Self {
        if !plug.is_empty() {
            cx.event(Event::Unplug { count: plug.len(), explicit });
        }
        let mut list = cx.scratch.take_list();
        std::mem::swap(&mut *list, &mut plug.list);
        plug.resume_clock();
        PlugFlush { list, explicit, now }
    }

    /// The request of the next step, if any.
    #[must_use]
    pub fn next(&self) -> Option<&Rq> {
        self.list.front()
    }

    /// Executes all remaining steps.
    pub fn finish<E: Env, Sh: Sharing>(self, queue: &Queue<Sh>, cx: &mut Cx<'_, E>) {
        queue.during(cx.cpu, |queue| self.finish_during(queue, cx));
    }

    fn finish_during<E: Env, Sh: Sharing>(mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) {
        while !self.list.is_empty() {
            self.step_during(queue, cx);
        }
        cx.scratch.give_list(self.list);
    }

    /// Executes one step: a direct issue, or the insertion of a group, and the following run of a hardware queue.
    pub fn step<E: Env, Sh: Sharing>(&mut self, queue: &Queue<Sh>, cx: &mut Cx<'_, E>) {
        queue.during(cx.cpu, |queue| self.step_during(queue, cx));
    }

    fn step_during<E: Env, Sh: Sharing>(&mut self, queue: Current<'_, Sh>, cx: &mut Cx<'_, E>) {
        let Some(first) = self.list.front() else { return };
        let (hctx, ctx) = (first.hctx, first.ctx);
        let is_direct = self.explicit
            && !first.marks.contains(Marks::USES_ELEVATOR)
            && match queue.generation.direct_issue {
                DirectIssue::Always => true,
                DirectIssue::NotBusy => queue.hctxs[hctx.index()].busy() == 0,
                DirectIssue::SyncManyQueues => false,
            };
        if is_direct {
            let next = match queue.generation.plug_order {
                PlugOrder::Lifo => self.list.pop_back(),
                PlugOrder::Fifo | PlugOrder::Sorted => self.list.pop_front(),
            };
            let Some(rq) = next else { return };
            // Not always that of the first request: the plug may be emptied from its end.
            let hctx = rq.hctx;
            if queue.issue_directly(cx, rq) {
                self.with_plug_clock(cx, |cx| _ = queue.run_hctx(cx, hctx));
            }
            return;
        }
        // A group is all requests of this hardware and software queue, in submission order, inserted under one lock hold.
        let mut group = cx.scratch.take_list();
        let mut rest = cx.scratch.take_list();
        for rq in self.list.drain(..) {
            if (rq.hctx, rq.ctx) == (hctx, ctx) { group.push_back(rq) } else { rest.push_back(rq) }
        }
        std::mem::swap(&mut self.list, &mut rest);
        cx.scratch.give_list(rest);
        self.with_plug_clock(cx, |cx| queue.insert_list(cx, &mut group));
        cx.scratch.give_list(group);
        if self.explicit {
            self.with_plug_clock(cx, |cx| _ = queue.run_hctx(cx, hctx));
        } else {
            queue.run_async(cx, hctx);
        }
    }

    /// Runs `body` with the plug's clock, which still applies during its flush.
    fn with_plug_clock<E: Env>(&self, cx: &mut Cx<'_, E>, body: impl FnOnce(&mut Cx<'_, E>)) {
        let saved_now = std::mem::replace(&mut cx.now, self.now);
        body(cx);
        cx.now = saved_now;
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Begins the flush of a plug: `explicit` at the end of its section; otherwise the task is about to sleep, and its requests
    /// are only queued.
    pub fn begin_flush<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug, explicit: bool) -> PlugFlush {
        self.during(cx.cpu, |queue| {
            if explicit { PlugFlush::explicit(queue, cx, plug) } else { PlugFlush::before_sleep(cx, plug) }
        })
    }

    /// Flushes a plug at the end of its section.
    pub fn flush_plug<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug) {
        self.during(cx.cpu, |queue| queue.flush_plug(cx, plug));
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    pub(super) fn flush_plug<E: Env>(self, cx: &mut Cx<'_, E>, plug: &mut Plug) {
        PlugFlush::explicit(self, cx, plug).finish_during(self, cx);
    }

    /// Flushes a plug before its task sleeps, so that plugged requests do not wait for it. Returns whether there were any.
    pub(super) fn flush_before_sleep<E: Env>(self, cx: &mut Cx<'_, E>, plug: Option<&mut Plug>) -> bool {
        let Some(plug) = plug.filter(|plug| !plug.is_empty()) else { return false };
        PlugFlush::before_sleep(cx, plug).finish_during(self, cx);
        true
    }
}
