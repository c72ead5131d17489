//! Flows: who is treated fairly (MQFQ-2, MQFQ-3, MQFQ-14).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::{CgroupId, IoContextId};
use crate::schedulers::process_queue::Scatter;

/// A weight as a fraction: a flow of weight 1 has as much above as below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weight {
    pub(super) own: u32,
    pub(super) usual: u32,
}

impl Weight {
    /// What a group without a weight has.
    const OF_GROUP: u32 = 100;

    fn of_group(own: u16) -> Weight {
        Weight { own: u32::from(own).max(1), usual: Weight::OF_GROUP }
    }

    /// That of a priority: best-effort level p weighs 8 - p, real time as the best of these, idle as the least.
    pub(super) fn of_priority(priority: IoPriority) -> Weight {
        let own = match priority.class() {
            PriorityClass::RealTime => 8,
            PriorityClass::BestEffort => 8 - u32::from(priority.level()),
            PriorityClass::None => 4,
            PriorityClass::Idle => 1,
        };
        Weight { own, usual: 4 }
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Finish tag of the request that it submitted last.
    pub(super) finish: u64,
    /// Its requests that wait for their turn.
    pub(super) waiting: u32,
    /// The weight of its group; none where the requests' priorities decide.
    pub(super) group_weight: Option<Weight>,
    /// It has ended: once nothing waits the record is used again.
    has_ended: bool,
    /// Its local queues by hardware queue; [`Flows::NO_QUEUE`] where there is none yet.
    pub(super) queues: Vec<u32>,
}

type Index = HashMap<u32, u32, BuildHasherDefault<Scatter>>;

/// All flows.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    records: Vec<Flow>,
    free: Vec<u32>,
    by_io_context: Index,
    by_group: Index,
    /// Weights of groups, whether they have a flow or not.
    group_weights: HashMap<u32, u16, BuildHasherDefault<Scatter>>,
    /// Whether the load has groups: then these are the flows.
    has_groups: bool,
}

impl Flows {
    pub(super) const NO_QUEUE: u32 = u32::MAX;

    #[inline]
    pub(super) fn get(&self, flow: u32) -> &Flow {
        &self.records[flow as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, flow: u32) -> &mut Flow {
        &mut self.records[flow as usize]
    }

    /// The flow of an I/O, if it has one.
    #[inline]
    pub(super) fn find(&self, io_context: IoContextId, cgroup: CgroupId) -> Option<u32> {
        if self.has_groups {
            self.by_group.get(&cgroup.0).copied()
        } else {
            self.by_io_context.get(&io_context.0).copied()
        }
    }

    /// The flow of an I/O. From the first group on, groups are the flows; what waits stays with the flow that it came with.
    #[inline]
    pub(super) fn find_or_create(&mut self, io_context: IoContextId, cgroup: CgroupId) -> u32 {
        self.has_groups |= cgroup != CgroupId::ROOT;
        match self.find(io_context, cgroup) {
            Some(flow) => flow,
            None => self.create(io_context, cgroup),
        }
    }

    #[cold]
    fn create(&mut self, io_context: IoContextId, cgroup: CgroupId) -> u32 {
        let own = self.group_weights.get(&cgroup.0).copied().unwrap_or(Weight::OF_GROUP as u16);
        let group_weight = self.has_groups.then(|| Weight::of_group(own));
        let flow = match self.free.pop() {
            // Its local queues are empty, and serve the new flow.
            Some(flow) => {
                let record = self.get_mut(flow);
                (record.finish, record.has_ended, record.group_weight) = (0, false, group_weight);
                flow
            }
            None => {
                self.records.push(Flow { finish: 0, waiting: 0, group_weight, has_ended: false, queues: Vec::new() });
                self.records.len() as u32 - 1
            }
        };
        if self.has_groups {
            self.by_group.insert(cgroup.0, flow);
        } else {
            self.by_io_context.insert(io_context.0, flow);
        }
        flow
    }

    /// There are groups.
    pub(super) fn add_group(&mut self) {
        self.has_groups = true;
    }

    /// A group weighs this from now on: what was tagged before keeps its tags.
    pub(super) fn set_weight(&mut self, cgroup: CgroupId, weight: u16) {
        self.group_weights.insert(cgroup.0, weight);
        if let Some(&flow) = self.by_group.get(&cgroup.0) {
            self.get_mut(flow).group_weight = Some(Weight::of_group(weight));
        }
    }

    pub(super) fn end_io_context(&mut self, io_context: IoContextId) {
        let flow = self.by_io_context.remove(&io_context.0);
        self.end(flow);
    }

    pub(super) fn end_group(&mut self, cgroup: CgroupId) {
        self.group_weights.remove(&cgroup.0);
        let flow = self.by_group.remove(&cgroup.0);
        self.end(flow);
    }

    fn end(&mut self, flow: Option<u32>) {
        let Some(flow) = flow else { return };
        self.get_mut(flow).has_ended = true;
        self.recycle(flow);
    }

    /// A request of the flow no longer waits.
    #[inline]
    pub(super) fn leave(&mut self, flow: u32) {
        let record = self.get_mut(flow);
        record.waiting -= 1;
        if record.has_ended {
            self.recycle(flow);
        }
    }

    fn recycle(&mut self, flow: u32) {
        if self.get(flow).waiting == 0 {
            self.free.push(flow);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.records.len() - self.free.len()
    }
}
