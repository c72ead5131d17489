//! cfq as a [`Scheduler`]: each hook and the function that carries it out.

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::{HctxId, RqId, StoreError, Tunable};
use hoistway_blk::policy::{
    Choice, LegacyHooks, MayQueue, Needs, Place, PolicyCx, Replayable, Scheduler, SchedulerEvent,
};
use hoistway_blk::request::{Edge, Request};

use super::log::CfqLog;
use super::{Backlog, Cfq, Location};

impl<L: CfqLog> Scheduler for Cfq<L> {
    fn needs(&self) -> Needs {
        Needs { bios: true, preparation: true, ..Needs::default() }
    }

    /// A legacy queue never inserts at the head: a requeued request goes to the head of the dispatch queue, and only
    /// [`on_requeued`](Scheduler::on_requeued) reports it.
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, _place: Place) {
        self.insert_request(cx, id);
    }

    fn grow(&mut self, capacity: u32) {
        let slots = (capacity as usize).max(self.entries.len());
        self.entries.resize_with(slots, Default::default);
        self.requests.grow(capacity);
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        self.choose_request(cx)
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        if matches!(self.entries[id.index()].location, Location::Dispatched | Location::Started) {
            self.complete(cx, id);
        }
        self.release(cx, id);
    }

    fn has_work(&self) -> bool {
        self.waiting > 0
    }

    fn on_bio(&mut self, cx: &mut PolicyCx<'_>, bio: &Bio) {
        let now = self.now(cx);
        self.find_or_create_context(bio.io_context, bio.cgroup, now);
    }

    /// Only within one queue, and never a sync bio into an async request.
    fn allow_merge(&mut self, _cx: &mut PolicyCx<'_>, id: RqId, bio: &Bio) -> bool {
        let entry = &self.entries[id.index()];
        let context = self.contexts.find(bio.io_context);
        let (Some((queue, _)), Some(context)) = (entry.owner, context) else { return false };
        let sync = bio.is_sync();
        (!sync || entry.sync) && self.contexts[context].queues[usize::from(sync)] == Some(queue)
    }

    fn front_candidate(&self, _cx: &PolicyCx<'_>, bio: &Bio) -> Option<RqId> {
        let context = self.contexts.find(bio.io_context)?;
        let queue = self.contexts[context].queues[usize::from(bio.is_sync())]?;
        self.queue(queue).backlog.starting_at(&self.requests, bio.end())
    }

    fn previous(&self, id: RqId) -> Option<RqId> {
        self.backlog_of(id)?.before(&self.requests, id)
    }

    fn next(&self, id: RqId) -> Option<RqId> {
        self.backlog_of(id)?.after(&self.requests, id)
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, edge: Edge) {
        if edge == Edge::Front {
            self.grown_at_front(cx, id);
        }
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        self.absorb(survivor, absorbed);
    }

    fn allow_request_merge(&self, first: RqId, second: RqId) -> bool {
        let queue = |id: RqId| self.entries[id.index()].owner.map(|(queue, _)| queue);
        queue(first).is_some() && queue(first) == queue(second)
    }

    fn prepare(&mut self, cx: &mut PolicyCx<'_>, rq: &Request) {
        self.allocate(cx, rq);
    }

    fn on_dropped(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        self.release(cx, id);
    }

    fn on_requeued(&mut self, _cx: &mut PolicyCx<'_>, id: RqId) {
        self.take_back_from_driver(id);
    }

    fn on_timer(&mut self, cx: &mut PolicyCx<'_>) {
        self.idle_timer(cx);
    }

    fn on_event(&mut self, cx: &mut PolicyCx<'_>, event: SchedulerEvent) {
        match event {
            SchedulerEvent::IoContextExited(io_context) => self.exit(cx, io_context),
            // Takes effect at the next allocation.
            SchedulerEvent::Priority { io_context, ioprio } => {
                if let Some(context) = self.contexts.find(io_context) {
                    self.contexts[context].ioprio = ioprio;
                }
            }
            // `slice_idle` keeps the value from when the scheduler was attached.
            SchedulerEvent::Rotational(rotational) => self.config.rotational = rotational,
            SchedulerEvent::CgroupAdded { cgroup, parent } => self.groups.set_parent(cgroup, parent),
            SchedulerEvent::CgroupRemoved(cgroup) => self.remove_group(cx, cgroup),
            SchedulerEvent::Weight { cgroup, weight } => self.groups.set_weight(cgroup, u32::from(weight)),
            SchedulerEvent::LeafWeight { cgroup, weight } => self.groups.set_leaf_weight(cgroup, u32::from(weight)),
            // A move is detected by the process's bios; the number of requests does not affect cfq.
            SchedulerEvent::Moved { .. } | SchedulerEvent::Depths { .. } => {}
        }
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        self.settings.tunables().shown(&self.settings)
    }

    fn set_tunable(&mut self, _cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        self.settings.tunables().store(&mut self.settings, name, text)
    }

    fn legacy_hooks(&mut self) -> Option<&mut dyn LegacyHooks> {
        Some(self)
    }
}

impl<L: CfqLog> LegacyHooks for Cfq<L> {
    fn dispatches_sorted(&self) -> bool {
        true
    }

    fn may_queue(&mut self, _cx: &mut PolicyCx<'_>, bio: &Bio) -> MayQueue {
        self.hint_allocation(bio)
    }

    fn on_started(&mut self, _cx: &mut PolicyCx<'_>, id: RqId) {
        self.start(id);
    }

    fn drain(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId, out: &mut Vec<RqId>) {
        self.drain_all(cx, out);
    }
}

impl<L: CfqLog> Replayable for Cfq<L> {
    fn adopt(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId, id: RqId) {
        self.adopt_request(cx, id);
    }
}

impl<L: CfqLog> Cfq<L> {
    /// The backlog of a request, if it is waiting.
    fn backlog_of(&self, id: RqId) -> Option<&Backlog> {
        let entry = &self.entries[id.index()];
        let (queue, _) = entry.owner.filter(|_| entry.location == Location::Waiting)?;
        Some(&self.queue(queue).backlog)
    }
}
