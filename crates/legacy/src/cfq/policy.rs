//! cfq as a [`Scheduler`]: each hook and the organ that answers it.

use hoistway_blk::{
    Bio, CgroupId, Choice, DeviceNumber, Edge, Grammar, HctxId, IoContextId, IoPriority, MayQueue, Needs, Place,
    PolicyCx, Request, RqId, Scheduler, Tunable,
};

use super::log::CfqLog;
use super::tunables;
use super::{Backlog, Cfq, Whereabouts};

impl<L: CfqLog> Scheduler for Cfq<L> {
    fn name(&self) -> &'static str {
        "cfq"
    }

    fn needs(&self) -> Needs {
        Needs { bios: true, preparation: true, ..Needs::default() }
    }

    /// A legacy queue inserts nothing at the head: what is requeued stays out of the scheduler.
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, _place: Place) {
        self.arrive(cx, id);
    }

    fn grow(&mut self, capacity: u32) {
        let room = (capacity as usize).max(self.entries.len());
        self.entries.resize_with(room, Default::default);
        self.requests.grow(capacity);
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        self.answer(cx)
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        if matches!(self.entries[id.index()].place, Whereabouts::Dispatched | Whereabouts::Started) {
            self.complete(cx, id);
        }
        self.release(cx, id);
    }

    fn has_work(&self) -> bool {
        self.waiting > 0
    }

    fn bio_arrived(&mut self, cx: &mut PolicyCx<'_>, bio: &Bio) {
        let now = self.now(cx);
        self.meet(bio.io_context, bio.cgroup, now);
    }

    /// Only within one queue, and no sync bio into an async request.
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

    fn grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, edge: Edge) {
        self.note_merge(id);
        if edge == Edge::Front {
            self.grown_at_front(cx, id);
        }
    }

    fn absorbed(&mut self, _cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        self.absorb(survivor, absorbed);
    }

    fn allow_join(&self, first: RqId, second: RqId) -> bool {
        let queue = |id: RqId| self.entries[id.index()].owner.map(|(queue, _)| queue);
        queue(first).is_some() && queue(first) == queue(second)
    }

    fn may_queue(&mut self, _cx: &mut PolicyCx<'_>, bio: &Bio) -> MayQueue {
        self.hint_allocation(bio)
    }

    fn prepare(&mut self, cx: &mut PolicyCx<'_>, rq: &Request) {
        self.allocate(cx, rq);
    }

    fn dropped(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        self.release(cx, id);
    }

    fn drain(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId, out: &mut Vec<RqId>) {
        self.drain_all(cx, out);
    }

    fn requeued(&mut self, _cx: &mut PolicyCx<'_>, id: RqId) {
        self.come_back(id);
    }

    fn started(&mut self, _cx: &mut PolicyCx<'_>, id: RqId) {
        self.start(id);
    }

    fn timer(&mut self, cx: &mut PolicyCx<'_>) {
        self.idle_timer(cx);
    }

    fn io_context_exited(&mut self, cx: &mut PolicyCx<'_>, io_context: IoContextId) {
        self.exit(cx, io_context);
    }

    /// The change is noticed with the next allocation.
    fn priority_changed(&mut self, _cx: &mut PolicyCx<'_>, io_context: IoContextId, ioprio: IoPriority) {
        if let Some(context) = self.contexts.find(io_context) {
            self.contexts[context].ioprio = ioprio;
        }
    }

    /// `slice_idle` stays as it was when the scheduler was attached.
    fn rotational_changed(&mut self, rotational: bool) {
        self.config.rotational = rotational;
    }

    fn cgroup_added(&mut self, _cx: &mut PolicyCx<'_>, cgroup: CgroupId, parent: CgroupId) {
        self.groups.set_parent(cgroup, parent);
    }

    fn cgroup_removed(&mut self, cx: &mut PolicyCx<'_>, cgroup: CgroupId) {
        self.remove_group(cx, cgroup);
    }

    fn weight_changed(&mut self, _cx: &mut PolicyCx<'_>, cgroup: CgroupId, weight: u16) {
        self.groups.set_weight(cgroup, u32::from(weight));
    }

    fn leaf_weight_changed(&mut self, _cx: &mut PolicyCx<'_>, cgroup: CgroupId, weight: u16) {
        self.groups.set_leaf_weight(cgroup, u32::from(weight));
    }

    fn cgroup_statistics(&self, cgroup: CgroupId, file: &str, device: DeviceNumber) -> Option<String> {
        self.shown_statistics(cgroup, file, device)
    }

    fn reset_cgroup_statistics(&mut self, cgroup: CgroupId) {
        self.reset_statistics(cgroup);
    }

    fn tunables(&self) -> &'static [Tunable] {
        tunables::table(self.clock)
    }

    fn grammar(&self) -> Grammar {
        Grammar::LeadingDecimal
    }

    fn tunable(&self, index: usize) -> i128 {
        self.settings.get(self.clock, index)
    }

    fn set_tunable(&mut self, _cx: &mut PolicyCx<'_>, index: usize, value: i128) {
        self.settings.set(self.clock, index, value);
    }

    fn adopt(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId, id: RqId) {
        self.take_over(cx, id);
    }
}

impl<L: CfqLog> Cfq<L> {
    /// Where a request waits, if it does.
    fn backlog_of(&self, id: RqId) -> Option<&Backlog> {
        let entry = &self.entries[id.index()];
        let (queue, _) = entry.owner.filter(|_| entry.place == Whereabouts::Waiting)?;
        Some(&self.queue(queue).backlog)
    }
}
