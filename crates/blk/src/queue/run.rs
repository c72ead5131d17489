//! Running a hardware queue: the dispatch list first, then the scheduler or the software queues (BL-4, BL-74 to BL-89).

use std::collections::VecDeque;

use super::Queue;
use super::state::Current;
use crate::caller::env::{Cx, Env};
use crate::drive::driver::Driver;
use crate::drive::effects::{Effect, Effects, RESOURCE_DELAY};
use crate::ground::ids::{CpuId, HctxId};
use crate::ground::kernel::{AfterDispatchList, Fetch};
use crate::ground::meter::Meter;
use crate::ground::sharing::Sharing;
use crate::policy::DispatchBatch;
use crate::request::Rq;
use crate::watch::probe::{Event, Probe};
use crate::watch::reason::Reason;

/// The result of a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// There is no more work, or another run will do it.
    Done,
    /// Requests were added to the dispatch list meanwhile, which has to go first.
    Again,
}

impl<Sh: Sharing> Queue<Sh> {
    /// Runs a hardware queue on this CPU.
    #[inline]
    pub fn run_hctx<E: Env>(&self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        self.during(cx.cpu, |queue| _ = queue.run_hctx(cx, hctx));
    }

    /// Whether a "run all" on this CPU includes a hardware queue: all of them, or with a single-dispatch scheduler the CPU's own
    /// and those with a dispatch list (BL-90).
    #[must_use]
    pub fn is_run_by_run_all(&self, cpu: CpuId, hctx: HctxId) -> bool {
        let hctxs = &self.device.hctxs;
        let target = &hctxs[hctx.index()];
        if target.is_stopped() {
            return false;
        }
        let own_hctx = self.hctx_of(cpu);
        let is_single_dispatch = self.device.generation.single_dispatch
            && self.during(cpu, |queue| queue.state.elevator.is_single_dispatch())
            && !hctxs[own_hctx.index()].is_stopped();
        !is_single_dispatch || hctx == own_hctx || target.has_dispatch_list()
    }

    /// Whether a run of the hardware queue would find work.
    #[inline]
    #[must_use]
    pub fn has_pending(&self, hctx: HctxId) -> bool {
        self.during(CpuId(0), |queue| queue.has_pending(hctx))
    }
}

/// Why a batch has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchEnd {
    /// There is no more work, no room for it, or enough in the batch.
    Over,
    /// The dispatch list is no longer empty.
    DispatchList,
    /// A later call continues the run, since this one has waited for the scheduler's lock.
    Postponed,
}

/// A batch that is dispatched under one hold of a lock.
struct Batch<'a, Sh: Sharing, D, F> {
    queue: Current<'a, Sh>,
    hctx: HctxId,
    cpu: CpuId,
    driver: &'a mut D,
    effects: &'a mut Effects,
    event: F,
    list: &'a mut VecDeque<Rq>,
    ended_by_dispatch_list: bool,
}

impl<Sh: Sharing, D: Driver, F: FnMut(Event<'_>)> DispatchBatch for Batch<'_, Sh, D, F> {
    #[inline]
    fn may_dispatch(&mut self) -> bool {
        let generation = &self.queue.generation;
        self.ended_by_dispatch_list = generation.after_dispatch_list == AfterDispatchList::AskIfSent
            && self.queue.hctxs[self.hctx.index()].has_dispatch_list();
        !self.ended_by_dispatch_list && (!generation.budget || self.driver.get_budget(self.hctx))
    }

    #[inline]
    fn on_dispatched(&mut self, rq: Option<Rq>, reason: Reason) -> bool {
        (self.event)(Event::Dispatch { hctx: self.hctx, rq: rq.as_deref(), reason });
        self.queue.on_dispatched(self.cpu, self.hctx, self.driver, self.effects, rq, self.list)
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    /// Runs a hardware queue if it has work. Returns whether it had.
    #[inline(always)]
    pub(super) fn run_hctx<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId) -> bool {
        let may_run = self.may_run(cx.meter, hctx);
        if may_run {
            self.run_pending(cx, hctx);
        }
        may_run
    }

    /// Runs a hardware queue that has work. A separate function, so an idle queue does not pay for its setup.
    #[inline(never)]
    fn run_pending<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        // With a busy device, most runs end because no budget is left, before anything is set up for them.
        let elevator = &self.state.elevator;
        if elevator.postpones_run(cx.meter, hctx) {
            return;
        }
        let begins_with_dispatch =
            !elevator.is_none() && !elevator.dispatches_batches() && !self.hctxs[hctx.index()].has_dispatch_list();
        if begins_with_dispatch && !(elevator.shows_work(cx.meter, hctx) && self.get_budget(cx, hctx)) {
            return;
        }
        self.run_with_list(cx, hctx, begins_with_dispatch);
    }

    /// Runs a hardware queue. `has_budget`: it begins with a dispatch, whose budget has been taken.
    fn run_with_list<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, has_budget: bool) {
        let mut list = cx.scratch.take_list();
        // After a dispatch list, requests are taken one at a time for the rest of the run.
        let mut one_by_one = false;
        if self.run_dispatch_pass(cx, hctx, &mut list, &mut one_by_one, has_budget) == Pass::Again {
            self.restart_run(cx, hctx, &mut list, &mut one_by_one);
        }
        cx.scratch.give_list(list);
    }

    /// Restarts the run once, and then leaves the rest to a worker.
    #[cold]
    fn restart_run<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, list: &mut VecDeque<Rq>, one_by_one: &mut bool) {
        if self.may_run(cx.meter, hctx) && self.run_dispatch_pass(cx, hctx, list, one_by_one, false) == Pass::Again {
            self.run_async(cx, hctx);
        }
    }

    #[inline(always)]
    fn may_run(self, meter: &impl Meter, hctx: HctxId) -> bool {
        !self.is_quiesced()
            && !self.hctxs[hctx.index()].is_stopped()
            && (self.has_pending(hctx) || self.state.elevator.shows_work(meter, hctx))
    }

    #[inline(always)]
    fn run_dispatch_pass<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        hctx: HctxId,
        list: &mut VecDeque<Rq>,
        one_by_one: &mut bool,
        has_budget: bool,
    ) -> Pass {
        let queue = &self.hctxs[hctx.index()];
        if !has_budget && queue.has_dispatch_list() {
            *one_by_one = true;
            if !self.send_dispatch_list(cx, hctx, list) {
                return Pass::Done;
            }
        }
        if !self.state.elevator.is_none() {
            self.dispatch_from_scheduler(cx, hctx, list, has_budget)
        } else if *one_by_one || queue.busy() > 0 {
            self.take_one_by_one(cx, hctx, list)
        } else {
            queue.take_all(cx.meter, list);
            if !list.is_empty() {
                self.send(cx, hctx, list);
            }
            Pass::Done
        }
    }

    /// Issues the dispatch list. Returns whether the run continues.
    #[inline(never)]
    fn send_dispatch_list<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, list: &mut VecDeque<Rq>) -> bool {
        let queue = &self.hctxs[hctx.index()];
        queue.take_dispatch_list(cx.meter, list);
        queue.mark_restart();
        let sent = self.send(cx, hctx, list).all_sent;
        match self.generation.after_dispatch_list {
            AfterDispatchList::AskIfSent => sent,
            AfterDispatchList::AskIfStuck => !sent,
        }
    }

    // --- from the scheduler ---

    /// Dispatches requests from the scheduler and issues them in batches, as long as there is progress. `has_budget`: there is work,
    /// and the budget of the first request has been taken.
    #[inline]
    fn dispatch_from_scheduler<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        hctx: HctxId,
        list: &mut VecDeque<Rq>,
        mut has_budget: bool,
    ) -> Pass {
        loop {
            let end = self.dispatch_batch(cx, hctx, list, std::mem::take(&mut has_budget));
            let progress = !list.is_empty() && self.send_batch(cx, hctx, list);
            match end {
                BatchEnd::DispatchList => return Pass::Again,
                BatchEnd::Postponed => return Pass::Done,
                BatchEnd::Over if !progress => return Pass::Done,
                BatchEnd::Over => {}
            }
        }
    }

    /// Dispatches a batch. The usual reason for its end is checked inline: with a busy device, most batches end because no budget is
    /// left.
    #[inline]
    fn dispatch_batch<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        hctx: HctxId,
        list: &mut VecDeque<Rq>,
        mut has_budget: bool,
    ) -> BatchEnd {
        let queue = &self.hctxs[hctx.index()];
        let requests_max = match self.generation.fetch {
            Fetch::Batch { .. } if queue.busy() == 0 => self.state.nr_requests,
            Fetch::One | Fetch::Batch { .. } => 1,
        };
        if self.state.elevator.dispatches_batches() {
            let ended_by_dispatch_list = self.dispatch_under_one_hold(cx, hctx, requests_max, list);
            return if ended_by_dispatch_list { BatchEnd::DispatchList } else { BatchEnd::Over };
        }
        let checks_dispatch_list = self.generation.after_dispatch_list == AfterDispatchList::AskIfSent;
        for _ in 0..requests_max {
            if !std::mem::take(&mut has_budget) {
                if !self.state.elevator.shows_work(cx.meter, hctx) {
                    break;
                }
                if checks_dispatch_list && queue.has_dispatch_list() {
                    return BatchEnd::DispatchList;
                }
                if !list.is_empty() && self.state.elevator.postpones_run(cx.meter, hctx) {
                    return BatchEnd::Postponed;
                }
                if !self.get_budget(cx, hctx) {
                    break;
                }
            }
            if !self.dispatch_with_budget(cx, hctx, list) {
                break;
            }
        }
        BatchEnd::Over
    }

    /// Gets the budget of a request to be dispatched.
    #[inline]
    fn get_budget<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId) -> bool {
        !self.generation.budget || cx.driver.get_budget(hctx)
    }

    /// Dispatches a batch under one hold of the scheduler's lock (CL-4). Returns whether a non-empty dispatch list has ended it.
    #[inline(never)]
    fn dispatch_under_one_hold<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        hctx: HctxId,
        requests_max: u32,
        list: &mut VecDeque<Rq>,
    ) -> bool {
        if !self.state.elevator.shows_work(cx.meter, hctx) {
            return false;
        }
        let Cx { now, real, cpu, driver, effects, scratch, probe, meter } = cx;
        let event = |event: Event<'_>| probe.event(*real, *cpu, event);
        let mut batch = Batch {
            queue: self,
            hctx,
            cpu: *cpu,
            driver: &mut **driver,
            effects,
            event,
            list,
            ended_by_dispatch_list: false,
        };
        self.state.elevator.dispatch_batch(*meter, &mut scratch.elevator(*now, *cpu), hctx, requests_max, &mut batch);
        let ended_by_dispatch_list = batch.ended_by_dispatch_list;
        self.take_call_results(cx);
        ended_by_dispatch_list
    }

    /// Dispatches one request into the batch. Returns whether another may follow.
    #[inline(never)]
    fn dispatch_with_budget<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, list: &mut VecDeque<Rq>) -> bool {
        let (rq, reason) = self.state.elevator.dispatch(cx.meter, &mut cx.elevator(), hctx);
        self.take_call_results(cx);
        cx.event(Event::Dispatch { hctx, rq: rq.as_deref(), reason });
        self.on_dispatched(cx.cpu, hctx, cx.driver, cx.effects, rq, list)
    }

    /// Handles the result of a dispatch. Returns whether another may follow.
    #[inline]
    fn on_dispatched(
        self,
        cpu: CpuId,
        hctx: HctxId,
        driver: &mut impl Driver,
        effects: &mut Effects,
        rq: Option<Rq>,
        list: &mut VecDeque<Rq>,
    ) -> bool {
        let Some(mut rq) = rq else {
            if self.generation.budget {
                driver.put_budget(hctx);
                if list.is_empty() {
                    // Another hardware queue may have failed to get budget meanwhile.
                    effects.push(Effect::RunAll { delay: RESOURCE_DELAY });
                }
            }
            return false;
        };
        self.set_budget(&mut rq);
        let is_tagged = self.take_driver_tag(cpu, &mut rq);
        list.push_back(rq);
        is_tagged || self.generation.fetch != (Fetch::Batch { stop_without_tag: true })
    }

    /// Issues the batch, each request on its own hardware queue. Returns whether all requests were issued.
    #[inline(never)]
    fn send_batch<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, list: &mut VecDeque<Rq>) -> bool {
        if list.iter().all(|rq| rq.hctx == hctx) {
            return self.send(cx, hctx, list).all_sent;
        }
        list.make_contiguous().sort_by_key(|rq| rq.hctx);
        let mut progress = true;
        while let Some(first) = list.front() {
            let hctx = first.hctx;
            let mut group = cx.scratch.take_list();
            let members = list.iter().take_while(|rq| rq.hctx == hctx).count();
            group.extend(list.drain(..members));
            progress &= self.send(cx, hctx, &mut group).all_sent;
            cx.scratch.give_list(group);
        }
        progress
    }

    // --- from the software queues ---

    /// Without a scheduler, takes one request at a time from the software queues in rotation.
    #[inline(never)]
    fn take_one_by_one<E: Env>(self, cx: &mut Cx<'_, E>, hctx: HctxId, list: &mut VecDeque<Rq>) -> Pass {
        let queue = &self.hctxs[hctx.index()];
        loop {
            if queue.has_dispatch_list() {
                return Pass::Again;
            }
            if !queue.has_queued() || (self.generation.budget && !cx.driver.get_budget(hctx)) {
                return Pass::Done;
            }
            let Some(mut rq) = queue.take_next(cx.meter) else {
                if self.generation.budget {
                    cx.driver.put_budget(hctx);
                    cx.effects.push(Effect::RunAll { delay: RESOURCE_DELAY });
                }
                return Pass::Done;
            };
            self.set_budget(&mut rq);
            list.push_back(rq);
            if !self.send(cx, hctx, list).all_sent {
                return Pass::Done;
            }
        }
    }

    #[inline(always)]
    pub(super) fn has_pending(self, hctx: HctxId) -> bool {
        let queue = &self.hctxs[hctx.index()];
        queue.has_dispatch_list() || queue.has_queued() || self.state.elevator.has_work(hctx)
    }
}
