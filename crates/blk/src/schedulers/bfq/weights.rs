//! Weights: from priorities, and the multiset of those in use, which shows whether a scenario is symmetric. Rules:
//! BFQ-16, BFQ-17, BFQ-75.

use super::entity::{BE, IDLE, RT};
use crate::bio::ioprio::{IoPriority, PriorityClass};

/// Weight of a step of the priority level.
const LEVEL_STEP: u64 = 10;
/// Number of levels.
pub(super) const LEVELS: usize = 8;
/// The level of a process that asked for nothing.
pub(super) const DEFAULT_LEVEL: u8 = 4;
/// The weight of a process that asked for nothing: only these are ever raised.
pub(super) const DEFAULT_WEIGHT: u64 = weight_of_level(DEFAULT_LEVEL);
/// The weight of a group that was given none.
pub(super) const DEFAULT_GROUP_WEIGHT: u16 = 100;

/// The weight of a queue at a level.
pub(super) const fn weight_of_level(level: u8) -> u64 {
    (LEVELS as u64 - level as u64) * LEVEL_STEP
}

/// A requested weight within its range.
pub(super) fn clamp(weight: u64) -> u64 {
    weight.clamp(1, 1000)
}

/// Class and level that count for a priority.
pub(super) fn class_and_level(ioprio: IoPriority) -> (usize, u8) {
    match ioprio.class() {
        PriorityClass::RealTime => (RT, ioprio.level()),
        PriorityClass::BestEffort => (BE, ioprio.level()),
        PriorityClass::Idle => (IDLE, LEVELS as u8 - 1),
        PriorityClass::None => (BE, DEFAULT_LEVEL),
    }
}

/// How many queues have which weight. Only queues with work or requests in flight that are not raised count.
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

    /// Counts a queue no longer.
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
