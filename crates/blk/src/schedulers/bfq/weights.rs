//! Weights: how they follow from priorities, and a count of those in use, which shows whether a scenario is symmetric.
//! Rules: BFQ-16, BFQ-17, BFQ-75.

use super::entity::{BE, IDLE, RT};
use crate::bio::ioprio::{IoPriority, PriorityClass};

/// Difference in weight between two adjacent priority levels.
const LEVEL_STEP: u64 = 10;
/// Number of levels.
pub(super) const LEVELS: usize = 8;
/// The level of a process that set no priority.
pub(super) const DEFAULT_LEVEL: u8 = 4;
/// The weight of a process that set no priority: only such processes are ever raised.
pub(super) const DEFAULT_WEIGHT: u64 = weight_of_level(DEFAULT_LEVEL);
/// The weight of a group for which none was set.
pub(super) const DEFAULT_GROUP_WEIGHT: u16 = 100;

/// The weight of a queue at a level.
pub(super) const fn weight_of_level(level: u8) -> u64 {
    (LEVELS as u64 - level as u64) * LEVEL_STEP
}

/// Limits a requested weight to the valid range.
pub(super) fn clamp(weight: u64) -> u64 {
    weight.clamp(1, 1000)
}

/// The class and level for a priority.
pub(super) fn class_and_level(ioprio: IoPriority) -> (usize, u8) {
    match ioprio.class() {
        PriorityClass::RealTime => (RT, ioprio.level()),
        PriorityClass::BestEffort => (BE, ioprio.level()),
        PriorityClass::Idle => (IDLE, LEVELS as u8 - 1),
        PriorityClass::None => (BE, DEFAULT_LEVEL),
    }
}

/// The number of queues of each weight. Only queues that have work or requests in flight and are not raised are
/// counted.
#[derive(Clone, Debug, Default)]
pub(super) struct WeightCounters {
    /// Weights in ascending order, each with the number of its queues. There are few.
    counts: Vec<(u64, u32)>,
}

impl WeightCounters {
    /// Counts a queue.
    pub fn add(&mut self, weight: u64) {
        match self.counts.binary_search_by_key(&weight, |&(weight, _)| weight) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (weight, 1)),
        }
    }

    /// Stops counting a queue.
    pub fn remove(&mut self, weight: u64) {
        if let Ok(at) = self.counts.binary_search_by_key(&weight, |&(weight, _)| weight) {
            self.counts[at].1 -= 1;
            if self.counts[at].1 == 0 {
                self.counts.remove(at);
            }
        }
    }

    /// Whether there are at least two different weights.
    pub fn differ(&self) -> bool {
        self.counts.len() > 1
    }

    /// The smallest weight that is counted.
    pub fn smallest(&self) -> Option<u64> {
        self.counts.first().map(|&(weight, _)| weight)
    }
}
