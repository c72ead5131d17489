//! Insertion: into the elevator, or bypassing it into the dispatch queue (LQ-15, LQ-16).

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::request::{Marks, MergeRules, Rq};
use hoistway_blk::watch::Event;

use super::{Locked, take_requested};

/// The kinds of insertion, without those for passthrough requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Insertion {
    /// An ordinary request that was not plugged.
    Sort,
    /// An ordinary request from a plug: it may be merged into an existing one.
    SortMerge,
    /// A request with a flush or forced unit access.
    Flush,
}

/// Whether the queue must run at once in this context, before anything else is inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MustRun {
    No,
    Now,
}

impl Locked {
    /// Inserts a request.
    pub(super) fn insert<E: Env>(
        &mut self,
        cx: &mut Cx<'_, E>,
        rules: &MergeRules,
        mut rq: Rq,
        insertion: Insertion,
    ) -> MustRun {
        cx.event(Event::Insert(&rq));
        if rq.marks.contains(Marks::SOFT_BARRIER) {
            self.dispatch.set_boundary(&rq);
        }
        let is_managed = rq.marks.contains(Marks::USES_ELEVATOR);
        match insertion {
            Insertion::Sort | Insertion::SortMerge if is_managed => {
                let may_join = insertion == Insertion::SortMerge;
                return self.insert_into_elevator(cx, rules, rq, may_join);
            }
            // The kind BACK: it goes behind all existing requests.
            Insertion::Sort | Insertion::SortMerge => {
                rq.marks.set(Marks::SOFT_BARRIER);
                self.drain_elevator(cx);
                self.dispatch.push_back(rq);
                return MustRun::Now;
            }
            Insertion::Flush => {
                rq.marks.set(Marks::SOFT_BARRIER);
                self.begin_sequence(cx, rq);
            }
        }
        MustRun::No
    }

    /// Inserts a request that the driver returned: before all others.
    pub(super) fn reinsert<E: Env>(&mut self, cx: &mut Cx<'_, E>, mut rq: Rq) {
        if rq.marks.contains(Marks::SOFT_BARRIER) {
            self.dispatch.set_boundary(&rq);
        }
        // Marked before the event, whose observers see by it that the request does not enter the elevator.
        rq.marks.set(Marks::SOFT_BARRIER);
        cx.event(Event::Insert(&rq));
        self.dispatch.push_front(rq);
    }

    fn insert_into_elevator<E: Env>(
        &mut self,
        cx: &mut Cx<'_, E>,
        rules: &MergeRules,
        rq: Rq,
        may_join: bool,
    ) -> MustRun {
        self.elevator.insert(&mut cx.elevator(), rules, rq, may_join);
        let must_run = if std::mem::take(&mut cx.scratch.requested.run_queues) { MustRun::Now } else { MustRun::No };
        take_requested(cx);
        self.release_absorbed(cx);
        must_run
    }

    /// Forced dispatch: moves everything from the elevator to the dispatch queue.
    pub(super) fn drain_elevator<E: Env>(&mut self, cx: &mut Cx<'_, E>) {
        let sorted = self.elevator.dispatches_sorted;
        let Locked { elevator, dispatch, drained, .. } = self;
        elevator.drain(&mut cx.elevator(), drained, |rq| {
            if sorted { dispatch.add_sorted(rq) } else { dispatch.add_tail(rq) }
        });
        take_requested(cx);
    }
}
