//! Priorities of single I/Os: `cmdprio_percentage` and what goes with it.

use std::sync::Arc;

use hoistway_blk::IoPriority;

use super::stream::Stream;
use super::{Io, lane_of};

/// A share of the I/Os of a direction has a priority of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PriorityRule {
    /// 0 for reads, 1 for writes.
    pub(crate) lane: usize,
    /// Only I/Os of this size; 0 for all.
    pub(crate) bytes: u64,
    pub(crate) percent: u8,
    pub(crate) priority: IoPriority,
}

/// Draws which I/O gets which priority.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    rules: Arc<[PriorityRule]>,
    stream: Stream,
}

impl Priorities {
    pub(super) fn new(rules: &Arc<[PriorityRule]>, stream: Stream) -> Priorities {
        Priorities { rules: Arc::clone(rules), stream }
    }

    /// Gives the I/O its priority.
    pub(super) fn draw(&mut self, io: &mut Io) {
        let Some(lane) = lane_of(io.op) else { return };
        let bytes = u64::from(io.bytes);
        let drawn = self.stream.below(100);
        let mut below = 0;
        for rule in self.rules.iter().filter(|rule| rule.lane == lane && (rule.bytes == 0 || rule.bytes == bytes)) {
            below += u64::from(rule.percent);
            if drawn < below {
                io.priority = rule.priority;
                return;
            }
        }
    }
}
