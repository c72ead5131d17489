//! A boxed policy is a policy: every call goes to what is in the box. Whoever adds a function to [`Scheduler`] adds it
//! here, or the box would answer with the default.

use crate::bio::Bio;
use crate::cgroup_weight::DeviceNumber;
use crate::ids::{CgroupId, HctxId, IoContextId, RqId};
use crate::ioprio::IoPriority;
use crate::merge::Edge;
use crate::request::Request;
use crate::tunables::{Grammar, Tunable};

use super::scheduler::{Choice, MayQueue, Needs, Place, PolicyCx, Scheduler};

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn needs(&self) -> Needs {
        (**self).needs()
    }
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        (**self).insert(cx, id, place);
    }
    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId) -> Choice {
        (**self).dispatch(cx, hctx)
    }
    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        (**self).finish(cx, id);
    }
    fn has_work(&self) -> bool {
        (**self).has_work()
    }
    fn bio_arrived(&mut self, cx: &mut PolicyCx<'_>, bio: &Bio) {
        (**self).bio_arrived(cx, bio);
    }
    fn allow_merge(&mut self, cx: &mut PolicyCx<'_>, id: RqId, bio: &Bio) -> bool {
        (**self).allow_merge(cx, id, bio)
    }
    fn front_candidate(&self, cx: &PolicyCx<'_>, bio: &Bio) -> Option<RqId> {
        (**self).front_candidate(cx, bio)
    }
    fn previous(&self, id: RqId) -> Option<RqId> {
        (**self).previous(id)
    }
    fn next(&self, id: RqId) -> Option<RqId> {
        (**self).next(id)
    }
    fn grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, edge: Edge) {
        (**self).grown(cx, id, edge);
    }
    fn absorbed(&mut self, cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        (**self).absorbed(cx, survivor, absorbed);
    }
    fn allow_join(&self, first: RqId, second: RqId) -> bool {
        (**self).allow_join(first, second)
    }
    fn may_queue(&mut self, cx: &mut PolicyCx<'_>, bio: &Bio) -> MayQueue {
        (**self).may_queue(cx, bio)
    }
    fn drain(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId, out: &mut Vec<RqId>) {
        (**self).drain(cx, hctx, out);
    }
    fn cgroup_added(&mut self, cx: &mut PolicyCx<'_>, cgroup: CgroupId, parent: CgroupId) {
        (**self).cgroup_added(cx, cgroup, parent);
    }
    fn leaf_weight_changed(&mut self, cx: &mut PolicyCx<'_>, cgroup: CgroupId, weight: u16) {
        (**self).leaf_weight_changed(cx, cgroup, weight);
    }
    fn limit_depth(&mut self, cx: &mut PolicyCx<'_>, bio: &Bio) -> Option<u32> {
        (**self).limit_depth(cx, bio)
    }
    fn arrived(&mut self, cx: &mut PolicyCx<'_>, rq: &Request) {
        (**self).arrived(cx, rq);
    }
    fn dropped(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        (**self).dropped(cx, id);
    }
    fn cgroup_removed(&mut self, cx: &mut PolicyCx<'_>, cgroup: CgroupId) {
        (**self).cgroup_removed(cx, cgroup);
    }
    fn prepare(&mut self, cx: &mut PolicyCx<'_>, rq: &Request) {
        (**self).prepare(cx, rq);
    }
    fn requeued(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        (**self).requeued(cx, id);
    }
    fn started(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        (**self).started(cx, id);
    }
    fn timer(&mut self, cx: &mut PolicyCx<'_>) {
        (**self).timer(cx);
    }
    fn depth_updated(&mut self, nr_requests: u32, async_depth: Option<u32>) {
        (**self).depth_updated(nr_requests, async_depth);
    }
    fn grow(&mut self, capacity: u32) {
        (**self).grow(capacity);
    }
    fn rotational_changed(&mut self, rotational: bool) {
        (**self).rotational_changed(rotational);
    }
    fn io_context_exited(&mut self, cx: &mut PolicyCx<'_>, io_context: IoContextId) {
        (**self).io_context_exited(cx, io_context);
    }
    fn priority_changed(&mut self, cx: &mut PolicyCx<'_>, io_context: IoContextId, ioprio: IoPriority) {
        (**self).priority_changed(cx, io_context, ioprio);
    }
    fn weight_changed(&mut self, cx: &mut PolicyCx<'_>, cgroup: CgroupId, weight: u16) {
        (**self).weight_changed(cx, cgroup, weight);
    }
    fn cgroup_changed(&mut self, cx: &mut PolicyCx<'_>, io_context: IoContextId, cgroup: CgroupId) {
        (**self).cgroup_changed(cx, io_context, cgroup);
    }
    fn cgroup_statistics(&self, cgroup: CgroupId, file: &str, device: DeviceNumber) -> Option<String> {
        (**self).cgroup_statistics(cgroup, file, device)
    }
    fn reset_cgroup_statistics(&mut self, cgroup: CgroupId) {
        (**self).reset_cgroup_statistics(cgroup);
    }
    fn tunables(&self) -> &'static [Tunable] {
        (**self).tunables()
    }
    fn grammar(&self) -> Grammar {
        (**self).grammar()
    }
    fn tunable(&self, index: usize) -> i128 {
        (**self).tunable(index)
    }
    fn set_tunable(&mut self, cx: &mut PolicyCx<'_>, index: usize, value: i128) {
        (**self).set_tunable(cx, index, value);
    }
    fn adopt(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId, id: RqId) {
        (**self).adopt(cx, hctx, id);
    }
}
