//! Priorities of single I/Os.

use std::sync::Arc;

use crate::PriorityRule;
use crate::io::{Io, lane_of};
use crate::stream::Stream;

/// Draws the priorities of single I/Os.
#[derive(Debug)]
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
