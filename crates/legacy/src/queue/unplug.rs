//! Flushing a plug: its requests are inserted sorted, and may be merged (LQ-14).

use std::collections::VecDeque;

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{Lock, Nanos, ReadMostly, Sharing, Site};
use hoistway_blk::kit::is_flush_type;
use hoistway_blk::request::{MergeRules, Plug, Rq};
use hoistway_blk::watch::Event;

use super::insert::{Insertion, MustRun};
use super::{LegacyQueue, run_on_worker};

impl<Sh: Sharing> LegacyQueue<Sh> {
    /// Flushes a plug at the end of its section.
    #[inline]
    pub fn flush_plug<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug) {
        self.rules.read(cx.cpu, |rules| self.unplug(cx, rules, plug, true));
    }

    /// Flushes a plug: because the task asks for it, in which case the queue runs here; or because the task is about to
    /// sleep, in which case it runs on a worker.
    pub(super) fn unplug<E: Env>(&self, cx: &mut Cx<'_, E>, rules: &MergeRules, plug: &mut Plug, explicit: bool) {
        plug.resume_clock();
        if plug.is_empty() {
            return;
        }
        let mut list = cx.scratch.take_list();
        std::mem::swap(&mut *list, &mut plug.list);
        let count = list.len();
        list.make_contiguous().sort_by_key(|rq| rq.sector);
        while self.insert_batch(cx, rules, &mut list) == MustRun::Now {
            // An elevator that wants to run at once does so before it gets the rest.
            self.run(cx);
        }
        cx.scratch.give_list(list);
        cx.event(Event::Unplug { count, explicit });
        if explicit {
            self.run(cx);
        } else {
            run_on_worker(cx.effects, Nanos::ZERO);
        }
    }

    /// Inserts requests from the front of `list` under one lock hold, until the queue must run or all are in.
    fn insert_batch<E: Env>(&self, cx: &mut Cx<'_, E>, rules: &MergeRules, list: &mut VecDeque<Rq>) -> MustRun {
        self.locked.with(cx.meter, Site::Legacy, |queue| {
            while let Some(rq) = list.pop_front() {
                let insertion = if is_flush_type(rq.op, rq.flags) { Insertion::Flush } else { Insertion::SortMerge };
                if queue.insert(cx, rules, rq, insertion) == MustRun::Now {
                    return MustRun::Now;
                }
            }
            MustRun::No
        })
    }
}
