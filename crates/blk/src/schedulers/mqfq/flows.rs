//! Flows: who is treated fairly (MQFQ-2, MQFQ-3, MQFQ-14).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::{CgroupId, IoContextId};
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::schedulers::process_queue::Scatter;

use super::NEVER;

/// A weight relative to a default: a flow whose value equals the default has weight 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weight {
    pub(super) value: u32,
    pub(super) default: u32,
}

impl Weight {
    /// The weight of a group for which none was set.
    const GROUP_DEFAULT: u32 = 100;

    fn of_group(value: u64) -> Weight {
        Weight { value: (value as u32).max(1), default: Weight::GROUP_DEFAULT }
    }

    /// The weight of a priority: best-effort level p weighs 8 - p, real time as the best of these, idle as the least.
    pub(super) fn of_priority(priority: IoPriority) -> Weight {
        let value = match priority.class() {
            PriorityClass::RealTime => 8,
            PriorityClass::BestEffort => 8 - u32::from(priority.level()),
            PriorityClass::None => 4,
            PriorityClass::Idle => 1,
        };
        Weight { value, default: 4 }
    }
}

/// The identity of a flow: an I/O context, or a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct FlowKey(u64);

impl FlowKey {
    const GROUP: u64 = 1 << 32;

    pub(super) fn io_context(io_context: IoContextId) -> FlowKey {
        FlowKey(u64::from(io_context.0))
    }

    pub(super) fn group(cgroup: CgroupId) -> FlowKey {
        FlowKey(FlowKey::GROUP | u64::from(cgroup.0))
    }

    fn as_group(self) -> Option<u32> {
        (self.0 & FlowKey::GROUP != 0).then_some(self.0 as u32)
    }
}

/// A map from flows.
pub(super) type ByFlow<T> = HashMap<FlowKey, T, BuildHasherDefault<Scatter>>;

/// One flow, as its local queues share it. Its words are `Relaxed`, since no word depends on another.
pub(super) struct Flow<Sh: Sharing> {
    /// Finish tag of the request that it submitted last.
    finish_tag: Sh::Word,
    /// The weight of its group; 0 where the requests' priorities decide.
    group_weight: Sh::Word,
}

impl<Sh: Sharing> Flow<Sh> {
    #[inline]
    pub(super) fn group_weight(&self) -> Option<Weight> {
        match self.group_weight.load(Relaxed) {
            0 => None,
            value => Some(Weight::of_group(value)),
        }
    }

    /// Assigns a start tag to a request that adds this to the finish tag.
    #[inline]
    pub(super) fn assign_start_tag(&self, virtual_time: u64, added: u64) -> u64 {
        loop {
            let old_finish = self.finish_tag.load(Relaxed);
            let start = old_finish.max(virtual_time);
            if self.finish_tag.compare_exchange(old_finish, start.saturating_add(added).min(NEVER - 1), Relaxed) {
                return start;
            }
        }
    }

    /// A request has grown.
    pub(super) fn charge(&self, added: u64) {
        self.assign_start_tag(0, added);
    }
}

/// All flows.
pub(super) struct Flows<Sh: Sharing> {
    /// Whether the load has groups: then these are the flows.
    has_groups: Sh::Word,
    table: Sh::Lock<Table<Sh>>,
}

struct Table<Sh: Sharing> {
    living: ByFlow<Arc<Flow<Sh>>>,
    /// Weights of groups, whether they have a flow or not.
    group_weights: HashMap<u32, u16, BuildHasherDefault<Scatter>>,
}

impl<Sh: Sharing> Flows<Sh> {
    pub(super) fn new() -> Self {
        let table = Table { living: ByFlow::default(), group_weights: HashMap::default() };
        Flows { has_groups: Sh::Word::new(0), table: Sh::Lock::new(table) }
    }

    /// The flow of an I/O. From the first group on, groups are the flows; what waits stays with the flow that it
    /// came with.
    #[inline]
    pub(super) fn key(&self, io_context: IoContextId, cgroup: CgroupId) -> FlowKey {
        let has_groups = self.has_groups.load(Relaxed) != 0;
        if has_groups || cgroup != CgroupId::ROOT {
            if !has_groups {
                self.add_group();
            }
            return FlowKey::group(cgroup);
        }
        FlowKey::io_context(io_context)
    }

    /// A flow, for one more local queue.
    #[cold]
    pub(super) fn find_or_create(&self, key: FlowKey) -> Arc<Flow<Sh>> {
        self.table.aside(|Table { living, group_weights }| {
            let create = || {
                let weight_of = |group| {
                    group_weights.get(&group).map_or(u64::from(Weight::GROUP_DEFAULT), |&value| u64::from(value).max(1))
                };
                let group_weight = key.as_group().map_or(0, weight_of);
                Arc::new(Flow { finish_tag: Sh::Word::new(0), group_weight: Sh::Word::new(group_weight) })
            };
            Arc::clone(living.entry(key).or_insert_with(create))
        })
    }

    /// There are groups.
    pub(super) fn add_group(&self) {
        self.has_groups.store(1, Relaxed);
    }

    /// A group weighs this from now on: what was tagged before keeps its tags.
    pub(super) fn set_weight(&self, cgroup: CgroupId, weight: u16) {
        self.table.aside(|table| {
            table.group_weights.insert(cgroup.0, weight);
            if let Some(flow) = table.living.get(&FlowKey::group(cgroup)) {
                flow.group_weight.store(u64::from(weight).max(1), Relaxed);
            }
        });
    }

    /// A group is gone, and its weight with it.
    pub(super) fn forget_weight(&self, cgroup: CgroupId) {
        self.table.aside(|table| table.group_weights.remove(&cgroup.0));
    }

    /// A flow has ended: one of the same key is another.
    pub(super) fn end(&self, key: FlowKey) {
        self.table.aside(|table| table.living.remove(&key));
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.table.aside(|table| table.living.len())
    }
}
