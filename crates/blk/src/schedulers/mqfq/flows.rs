//! Flows: who is treated fairly (MQFQ-2, MQFQ-3, MQFQ-14).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::{CgroupId, IoContextId};
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::schedulers::fair_queue::{FlowKey, Weight};
use crate::schedulers::process_queue::Scatter;

use super::NEVER;

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
