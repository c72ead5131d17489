//! VFair, a scheduler from research that is not in the Linux kernel: fair queueing by what each I/O really costs a device, with credit
//! for those that wait for each of theirs.
//!
//! Used by: `schedulers::registry`.
//! Tests: `crates/blk/src/schedulers/vfair/tests.rs`.
//!
//! **Promises**: groups, or processes, get device time by weight, whatever their I/O costs; one that waits for each I/O keeps a credit for
//! the time that it waited, so that its next one goes first; whatever waits goes while there is a slot. **Costs**: O(log n) a request in the
//! number of flows that wait, one lock; what a device does with more than `slots` requests. **Rules**: docs/rules/vfair.md.

mod costs;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::bio::Op;
use crate::ground::ids::{CgroupId, HctxId, IoContextId, RqId};
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
use crate::policy::{Choice, Place, PolicyCx, Scheduler, SchedulerEvent};
use crate::watch::reason::Reason;

use super::fair_queue::{FairQueue, FlowKey, Weight};
use super::process_queue::Scatter;
use costs::{DeviceTime, MeanCosts, PARTS_PER_NS};

/// All flows are of one class.
const ONLY_CLASS: usize = 0;
const NS_PER_US: u64 = 1000;

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct Vfair {
    queue: FairQueue,
    /// The most that a flow may be behind virtual time when it comes back, us of device time at weight 1.
    credit_us: u64,
    /// Whether the load has groups: then these are the flows.
    has_groups: bool,
    /// Weights of groups, whether they have a flow or not.
    group_weights: HashMap<u32, u16, BuildHasherDefault<Scatter>>,
    device_time: DeviceTime,
    /// Over all flows: what the first I/O of a flow is expected to cost.
    mean_costs: MeanCosts,
    /// By flow.
    flows: Vec<FlowState>,
    /// By request.
    charges: Vec<Charge>,
}

#[derive(Clone, Copy, Default)]
struct FlowState {
    /// The weight of a group.
    group_weight: Option<Weight>,
    mean_costs: MeanCosts,
}

/// What was charged for a request at the device.
#[derive(Clone, Copy)]
struct Charge {
    /// Device time when it was dispatched.
    began: u64,
    /// What its flow was charged.
    charged: u64,
    weight: Weight,
    kind: u8,
}

const NO_CHARGE: Charge = Charge { began: 0, charged: 0, weight: Weight { value: 1, default: 1 }, kind: 0 };

static TUNABLES: Tunables<Vfair> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "slots",
            (Unit::Requests, 48, 1, 65_535),
            "Most requests at the device. Smaller: the order here counts; larger: throughput.",
            |vfair| i128::from(vfair.queue.slots),
            |vfair, requests| vfair.queue.slots = requests as u32,
        ),
        TunableRow::new(
            "credit_us",
            (Unit::Micros, 1000, 0, 1_000_000),
            "Most device time that a flow keeps for the time in which it waited for its I/O.",
            |vfair| i128::from(vfair.credit_us),
            |vfair, us| vfair.credit_us = us as u64,
        ),
    ],
};

impl Vfair {
    /// A fresh scheduler for request ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Vfair {
            queue: FairQueue::new(1, 48, capacity),
            credit_us: 1000,
            has_groups: false,
            group_weights: HashMap::default(),
            device_time: DeviceTime::default(),
            mean_costs: MeanCosts::default(),
            flows: Vec::new(),
            charges: vec![NO_CHARGE; capacity as usize],
        }
    }

    /// The flow of an I/O (VFAIR-2). From the first group on, groups are the flows.
    fn key(&mut self, io_context: IoContextId, cgroup: CgroupId) -> FlowKey {
        self.has_groups |= cgroup != CgroupId::ROOT;
        if self.has_groups { FlowKey::group(cgroup) } else { FlowKey::io_context(io_context) }
    }

    fn weight_of_group(&self, group: u32) -> Weight {
        let weight = self.group_weights.get(&group).map_or(Weight::GROUP_DEFAULT, |&weight| u32::from(weight));
        Weight::of_group(u64::from(weight))
    }

    /// A request is no longer at the device: its flow is charged what it really cost (VFAIR-4). Returns whether it was there.
    fn settle(&mut self, cx: &PolicyCx<'_>, id: RqId) -> bool {
        self.device_time.follow(cx.now.at, self.queue.inflight());
        let Charge { began, charged, weight, kind } = std::mem::replace(&mut self.charges[id.index()], NO_CHARGE);
        let flow = self.queue.flow_of(id);
        let was_at_device = self.queue.is_at_device(id);
        if was_at_device {
            let cost = self.device_time.passed() - began;
            self.queue.charge(flow, weight.over(cost) as i64 - charged as i64);
            self.flows[flow.index()].mean_costs.learn(kind, cost);
            self.mean_costs.learn(kind, cost);
        }
        self.queue.leave(id);
        was_at_device
    }
}

impl Scheduler for Vfair {
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        self.settle(cx, id);
        let rq = cx.rq(id);
        let key = self.key(rq.io_context, rq.cgroup);
        let (flow, is_new) = self.queue.find_or_create(key, ONLY_CLASS);
        if is_new {
            let group_weight = key.as_group().map(|group| self.weight_of_group(group));
            if self.flows.len() <= flow.index() {
                self.flows.resize(flow.index() + 1, FlowState::default());
            }
            self.flows[flow.index()] = FlowState { group_weight, mean_costs: self.mean_costs };
        }
        let weight = self.flows[flow.index()].group_weight.unwrap_or_else(|| Weight::of_priority(rq.ioprio));
        self.queue.insert(id, flow, place, weight.over(self.credit_us * NS_PER_US * PARTS_PER_NS));
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        self.device_time.follow(cx.now.at, self.queue.inflight());
        let Some(next) = self.queue.pop() else {
            let reason = if self.queue.is_empty() { Reason::Empty } else { Reason::NoSlot };
            return Choice { rq: None, reason };
        };
        let rq = cx.rq(next.id);
        let kind = u8::from(rq.op != Op::Read);
        let flow = self.flows[next.flow.index()];
        let weight = flow.group_weight.unwrap_or_else(|| Weight::of_priority(rq.ioprio));
        let charged = weight.over(flow.mean_costs.expect(kind));
        self.queue.charge(next.flow, charged as i64);
        self.charges[next.id.index()] = Charge { began: self.device_time.passed(), charged, weight, kind };
        let reason = if next.is_requeued { Reason::HeadList } else { Reason::LeastStartTag };
        Choice { rq: Some(next.id), reason }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        if self.settle(cx, id) {
            cx.requested.run_queues |= self.queue.has_work();
        }
    }

    fn has_work(&self) -> bool {
        self.queue.has_work()
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, _survivor: RqId, absorbed: RqId) {
        self.queue.leave(absorbed);
    }

    fn on_event(&mut self, _cx: &mut PolicyCx<'_>, event: SchedulerEvent) {
        match event {
            SchedulerEvent::CgroupAdded { .. } => self.has_groups = true,
            SchedulerEvent::Weight { cgroup, weight } => {
                self.group_weights.insert(cgroup.0, weight);
                if let Some(flow) = self.queue.find(FlowKey::group(cgroup)) {
                    self.flows[flow.index()].group_weight = Some(Weight::of_group(u64::from(weight)));
                }
            }
            SchedulerEvent::CgroupRemoved(cgroup) => {
                self.group_weights.remove(&cgroup.0);
                self.queue.end(FlowKey::group(cgroup));
            }
            SchedulerEvent::IoContextExited(io_context) => self.queue.end(FlowKey::io_context(io_context)),
            _ => {}
        }
    }

    fn grow(&mut self, capacity: u32) {
        self.queue.grow(capacity);
        let capacity = (capacity as usize).max(self.charges.len());
        self.charges.resize(capacity, NO_CHARGE);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(self)
    }

    fn set_tunable(&mut self, cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store(self, name, text)?;
        cx.requested.run_queues |= self.queue.has_work();
        Ok(())
    }
}
